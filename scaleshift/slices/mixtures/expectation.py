"""How does a mixture get better?  Expectation-maximisation: one pass over the kept blocks an iteration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from scaleshift.blocks import passes
from scaleshift.blocks.block import Block, Kept
from scaleshift.kernels import dispatch
from scaleshift.kernels.mixture import Components
from scaleshift.slices.mixtures.mixture import Mixture, Powers, components_of, layout_of, maximise
from scaleshift.slices.outcomes import Kind
from scaleshift.slices.prepared import outcomes_of


@dataclass(frozen=True)
class Settings:
    """How far to go."""

    tol: float
    max_iter: int
    reg_covar: float
    powers: Powers


@dataclass(frozen=True)
class Fit:
    """A mixture, and how it was found."""

    mixture: Mixture
    lower_bounds: list[float] = field(default_factory=list)  # mean log-likelihood before each M-step
    converged: bool = False

    @property
    def lower_bound(self) -> float:
        """The last one."""
        return self.lower_bounds[-1] if self.lower_bounds else -np.inf

    @property
    def n_iter(self) -> int:
        """Passes that were made."""
        return len(self.lower_bounds)


def climb(
    kept: Kept,
    kind: Kind,
    fits: list[Fit],
    settings: Settings,
    after: Callable[[list[Fit]], None] = lambda fits: None,
) -> list[Fit]:
    """Iterate every mixture to its maximum, all of them in the same passes.

    An iteration ends where the mean log-likelihood changes by less than `tol`, or after `max_iter` of them.
    A mixture's path does not depend on the others.

    Parameters
    ----------
    kept : Kept
        Prepared blocks.
    kind : Kind
    fits : list of Fit
        Where to start, also from a checkpoint.
    settings : Settings
    after : callable, optional
        Called with all fits after each pass: to keep them.
    """
    fits = list(fits)
    while True:
        open_ = [i for i, fit in enumerate(fits) if not fit.converged and fit.n_iter < settings.max_iter]
        if not open_:
            return fits
        found = step(kept, kind, [fits[i].mixture for i in open_], settings)
        for i, (mixture, bound) in zip(open_, found, strict=True):
            change = abs(bound - fits[i].lower_bound)
            bounds = [*fits[i].lower_bounds, bound]
            fits[i] = Fit(mixture, bounds, converged=bool(change < settings.tol))
        after(fits)


def step(kept: Kept, kind: Kind, mixtures: list[Mixture], settings: Settings) -> list[tuple[Mixture, float]]:
    """One iteration: the next mixtures, and the mean log-likelihood of those that came in."""
    sums = expect(kept, kind, mixtures, settings.powers)
    sizes = [m.n_components for m in mixtures]
    better = maximise(sums, mixtures[0].covariance_type, sizes, settings.reg_covar)
    return list(zip(better, (sums["log_likelihood"] / sums["mass"][0]).tolist(), strict=True))


def expect(kept: Kept, kind: Kind, mixtures: list[Mixture], powers: Powers) -> dict[str, np.ndarray]:
    """Sums of one pass under these mixtures: the E-step."""
    components = components_of(mixtures, powers)
    layout = layout_of(
        components.covariance_type,
        components.sizes,
        components.means.shape[1],
        kind.n_labels,
        components.prediction_probs is not None,
    )
    layout["log_likelihood"] = (len(mixtures),)
    return passes.total(mixture_leaf, kept, layout, kind=kind, components=components)


def mixture_leaf(block: Block, kind: Kind, components: Components) -> dict[str, np.ndarray]:
    """Sums of one prepared block."""
    return dispatch.mixture_sums(block.x, outcomes_of(block, kind), components)


def renewed(fit: Fit) -> Fit:
    """The same mixture, as a start on other rows."""
    return replace(fit, lower_bounds=[], converged=False)
