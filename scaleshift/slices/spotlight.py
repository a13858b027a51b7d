"""Where does the model fail?  Where a spotlight that moves through embeddings meets the highest losses."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from scaleshift.blocks import passes
from scaleshift.blocks.block import Invalid, Kept
from scaleshift.doing import doing
from scaleshift.errors import DataError
from scaleshift.slices import sampling
from scaleshift.slices.base import HOLDOUT, Begun, Slicer
from scaleshift.slices.inputs import Given, given
from scaleshift.slices.prepared import Preparation, prepare
from scaleshift.slices.projection import Projection
from scaleshift.slices.spotlights.fit import Known, Search, at_rest, published, sample_rows, sampled
from scaleshift.slices.spotlights.gains import Gains, spread
from scaleshift.slices.spotlights.meanings import SPOTLIGHT
from scaleshift.slices.spotlights.membership import FoundSpotlight, SpotlightSlices, slices_of
from scaleshift.slices.spotlights.steps import Form
from scaleshift.slices.survey import Survey

if TYPE_CHECKING:
    from scaleshift.blocks.plan import Plan

SECONDS = 1.0  # between states that are written


class SpotlightSlicer(Slicer):
    """Slices where a model fails, by spotlights in the space of its embeddings.

    A spotlight is a soft ball. It moves, widens and narrows until the mean loss of the rows in its light is
    highest, with at least a given share of the rows in it. What it found is then taken from the losses, and
    the next one is sought.

    Parameters
    ----------
    spotlight_size : float, default 0.02
        Least weight of the rows in a spotlight, as a share of all.
    num_steps : int, default 1000
        Steps of a spotlight: on a sample by default, each over all rows with `compat`.
    learning_rate : float, default 1e-3
        Of Adam. By default in units of ten standard deviations of the embeddings, so that a spotlight can go
        ``10 * num_steps * learning_rate`` of them in each direction; with `compat` in the embeddings' own.
    n_slices : int, default 5
        Spotlights, one after the other.
    kernel : {"gaussian", "epanechnikov"}, default "gaussian"
        Shape of the light, with precision p and r the squared distance from the mean: ``exp(-p r / 2)`` or
        ``max(0, 1 - p r)``. With many columns few rows get much of a Gaussian light. By default it is what
        moves, and the membership at its place is ``1 / (1 + exp(p (r - radius) / 2))``, a Gaussian against an
        even background, with p and radius such that memberships add up to the least weight.
    barrier_scale : float, default 1
        What too small a spotlight pays, in standard deviations of the losses (in units of the loss with
        `compat`).
    patience : int, default 20
        Steps without a better objective after which the learning rate falls.
    decay : float, default 0.5
        Factor by which it falls.
    flip : bool, default False
        Seek low losses.
    n_pca_components : int or None, default 128
        Principal components of the embeddings in which spotlights move; all of them where there are fewer.
        None: the embeddings as they are. With `compat` always as they are.
    holdout : float, default 0.2
        Share of the rows that the fit does not see; `describe` tests on them whether slices are real. None
        are held out with `compat`.
    invalid : {"raise", "drop"}, default "raise"
        What to do with rows whose embeddings hold NaN or infinite values: refuse them by name, or leave them
        out and count them (`n_invalid_`); their memberships are NaN, and they belong to no slice.
    compat : None or "spotlight"
        Reproduce the published numbers: start at the origin with precision 1e-4, all rows in every step,
        spotlights in the order in which they were found.
    checkpoint : path, optional
        Folder that holds the state after each spotlight and during its passes over all rows: a killed fit
        goes on from there. The steps on a sample, which come first, are taken again.
    random_state : None, int or numpy.random.Generator
        Of the sample and its starts, and of the rows held out.

    Attributes
    ----------
    means_ : list of numpy.ndarray, shape (d,)
        Where spotlights lie, in the space of the embeddings, best first.
    precisions_ : list of float
        How steeply their light falls.
    radii_ : list of float
        Squared distance at which a membership is a half; empty where the light is not saturated.
    weights_ : list of float
        Sum of the memberships over the rows of the fit. Memberships of rows: `predict_proba`.
    effective_sizes_ : list of float
        Squared sum over sum of squares of the memberships: how many rows a spotlight really averages.
    mean_losses_ : list of float
        Mean loss in the light.
    weighted_losses_ : list of float
        The same of the losses that the spotlight saw, less what earlier ones explain.
    n_invalid_ : int
        Rows that were left out.
    profile_ : SliceProfile
        Sums over the rows of each slice, which `describe` tells of.
    objective_traces_, total_weight_traces_, learning_rate_traces_ : list of numpy.ndarray
        Objective and sum of the light before each step, and learning rate after it. By default the first two
        end with the passes over all rows, and the light is the one that moves.

    References
    ----------
    d'Eon et al. (2022), The Spotlight: A general method for discovering systematic errors in deep learning
    models.

    Examples
    --------
    >>> import numpy as np
    >>> from scaleshift import SpotlightSlicer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2_000, 2)) + 6 * rng.integers(0, 2, (2_000, 2))
    >>> losses = rng.random(2_000) + (X > 3).all(axis=1)  # fails in one corner
    >>> slicer = SpotlightSlicer(0.1, n_slices=1, random_state=0).fit(embeddings=X, losses=losses)
    >>> bool((slicer.means_[0] > 3).all())
    True
    >>> inside = slicer.predict(embeddings=X)[:, 0] == 1
    >>> bool(losses[inside].mean() > 1.3)
    True
    """

    METHOD = "Spotlight"
    CITATION = (
        "d'Eon et al. (2022), The Spotlight: A general method for discovering systematic errors in deep "
        "learning models"
    )
    MEANINGS = SPOTLIGHT

    def __init__(
        self,
        spotlight_size: float = 0.02,
        num_steps: int = 1000,
        learning_rate: float = 1e-3,
        *,
        n_slices: int = 5,
        kernel: str = "gaussian",
        barrier_scale: float = 1,
        patience: int = 20,
        decay: float = 0.5,
        flip: bool = False,
        n_pca_components: int | None = 128,
        holdout: float = HOLDOUT,
        invalid: Invalid = "raise",
        compat: str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        random_state: Any = None,
    ):
        self.spotlight_size = spotlight_size
        self.num_steps = num_steps
        self.learning_rate = learning_rate
        self.n_slices = n_slices
        self.kernel = kernel
        self.barrier_scale = barrier_scale
        self.patience = patience
        self.decay = decay
        self.flip = flip
        self.n_pca_components = n_pca_components
        self.holdout = holdout
        self.invalid = invalid
        self.compat = compat
        self.checkpoint = checkpoint
        self.random_state = random_state

    def fit(
        self,
        data: Any = None,
        embeddings: Any = "embedding",
        targets: Any = "target",
        pred_probs: Any = "pred_probs",
        losses: Any = None,
        *,
        sample_weight: Any = None,
    ) -> Self:
        """Learn the slices.

        Parameters
        ----------
        data : DataFrame, Dataset, AnnData or mapping of columns, optional
        embeddings : str or array-like, shape (n, d), default "embedding"
        targets : str or array-like, shape (n,), default "target"
        pred_probs : str or array-like, shape (n, C) or (n,), default "pred_probs"
        losses : str or array-like, shape (n,), optional
            May be given alone; without them they are the cross-entropies of `pred_probs`, or the squared
            residuals of a regression.
        sample_weight : str or array-like, shape (n,), optional
            How many rows each stands for. All of these are columns of `data`, or arrays, as
            `DominoSlicer.fit` takes them.

        Returns
        -------
        Self
            Itself.

        Raises
        ------
        DataError
            If a parameter has no meaning, losses are not finite, or a spotlight would hold less than a row.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(200, 2)) + 9 * (np.arange(200) > 179)[:, None]
        >>> losses = 1.0 * (X[:, 0] > 5)  # fails far out
        >>> slicer = SpotlightSlicer(0.1, n_slices=1, random_state=0).fit(embeddings=X, losses=losses)
        >>> found = slicer.predict(embeddings=X)[:, 0]
        >>> int(found[:180].sum()), int(found[180:].sum())
        (0, 20)
        """
        self._check()
        begun = self._begin(given(data, embeddings, targets, pred_probs, losses, sample_weight))
        preparation = begun.preparation
        kept = passes.keep(begun.rows, prepare, preparation.row_bytes, preparation=preparation)
        search = self._search(kept, preparation, begun.seen)
        return self._keep(begun, self._find(search, begun))

    def _plan_fit(
        self, X: Any, y: Any, *, pred_probs: Any = None, losses: Any = None, sample_weight: Any = None
    ) -> Plan:
        """What `scaleshift.explain` tells of a fit."""
        from scaleshift.slices.spotlights.planning import plan_spotlight

        self._check()
        return plan_spotlight(self, Given(X, y, pred_probs, losses, sample_weight))

    @property
    def _slices(self) -> SpotlightSlices:
        return self.spotlights_

    def _search(self, kept: Kept, preparation: Preparation, seen: Survey) -> Search:
        """What spotlights are sought with: one pass over the losses, another one that draws the sample."""
        losses = spread(kept, self._sign, seen.loss)
        if self.spotlight_size * losses["n_rows"] < 1:
            raise DataError(
                f"spotlight_size={self.spotlight_size} of {losses['n_rows']:.0f} rows is less than one row: "
                "choose a larger share, or give more rows"
            )
        known = Known(losses["mass"], losses["mean"], losses["deviation"], losses["least"])
        unit = 1.0 if self.compat else _unit(preparation.projection, seen.scatter)
        form = Form(self.kernel, unit, self._saturated)
        sample = None
        if not self.compat:
            n_rows = sample_rows(self.spotlight_size)
            sample = sampling.draw(kept, preparation.kind, seen, preparation.seed, n_rows, sampling.LOSSES)
        return Search(
            kept=kept,
            known=known,
            form=form,
            sample=sample,
            seed=preparation.seed,
            size=self.spotlight_size,
            n_steps=self.num_steps,
            learning_rate=self.learning_rate,
            barrier_scale=self.barrier_scale,
            patience=self.patience,
            decay=self.decay,
            n_columns=preparation.projection.n_columns,
        )

    def _find(self, job: Search, begun: Begun) -> list[FoundSpotlight]:
        """One spotlight after the other."""
        gains = self._gains(job.known)
        method = published if self.compat else sampled
        clock = _Clock()
        state = begun.state or {"finished": [], "current": None}
        finished, current = state["finished"], state["current"]
        with doing("spotlights", self.n_slices) as advance:
            advance(len(finished))
            while len(finished) < self.n_slices:
                now = gains.after(slices_of(self.kernel, finished) if finished else None)

                def keep(state: Any, finished: list[FoundSpotlight] = finished) -> None:
                    if self.checkpoint is not None and clock.rings():
                        self._write(begun, {"finished": finished, "current": state})

                path = method(job, now, len(finished), current, keep)
                finished, current = [*finished, at_rest(job, now, path)], None
                advance(1)
                self._write(begun, {"finished": finished, "current": None})
        return finished

    def _gains(self, known: Known) -> Gains:
        """Losses as they are with `compat`, else in standard deviations; explained rows have the least."""
        if self.compat:
            return Gains(self._sign)
        scale = known.deviation if known.deviation > 1e-9 * abs(known.mean) else 1.0
        return Gains(self._sign, known.mean, scale, (known.least - known.mean) / scale)

    def _keep(self, begun: Begun, lights: list[FoundSpotlight]) -> Self:
        """Keep what was found: the pass of the profile."""
        if not self.compat:
            lights = sorted(lights, key=lambda light: -self._sign * light.weighted_loss)
        slices = slices_of(self.kernel, lights)
        return self._set(
            begun,
            slices,
            spotlights_=slices,
            means_=[begun.preparation.projection.back(light.mean[None])[0] for light in lights],
            precisions_=[light.precision for light in lights],
            radii_=[light.radius for light in lights if light.radius is not None],
            weights_=[light.weight for light in lights],
            effective_sizes_=[light.effective_size for light in lights],
            mean_losses_=[light.mean_loss for light in lights],
            weighted_losses_=[light.weighted_loss for light in lights],
            objective_traces_=[light.objectives for light in lights],
            total_weight_traces_=[light.weights for light in lights],
            learning_rate_traces_=[light.rates for light in lights],
        )

    @property
    def _n_components(self) -> int | None:
        return None if self.compat else self.n_pca_components

    def _projection(self, seen: Survey) -> Projection:
        """With `compat` the embeddings themselves: a spotlight starts at their origin."""
        return Projection(np.zeros_like(seen.mean), None) if self.compat else super()._projection(seen)

    @property
    def _saturated(self) -> bool:
        """Whether the light ends sharply where a spotlight has come to rest."""
        return not self.compat and self.kernel == "gaussian"

    @property
    def _sign(self) -> float:
        return -1.0 if self.flip else 1.0


class _Clock:
    """Says when to write the next state: passes over few rows are much quicker than files."""

    def __init__(self) -> None:
        self.last = -np.inf

    def rings(self) -> bool:
        """Whether the time is over; it then begins again."""
        now = time.monotonic()
        if now - self.last < SECONDS:
            return False
        self.last = now
        return True


def _unit(projection: Projection, scatter: np.ndarray) -> float:
    """Standard deviation of a column of projected embeddings, root mean square over the columns."""
    if projection.components is None:
        variance = float(np.mean(scatter if scatter.ndim == 1 else np.diagonal(scatter)))
    else:
        components = projection.components
        variance = float(np.einsum("ij,jk,ik->", components, scatter, components)) / len(components)
    return float(np.sqrt(variance)) if variance > 0 else 1.0
