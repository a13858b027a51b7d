"""What will learning a mixture cost?  The passes of `DominoSlicer.fit`, told before it runs."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from scaleshift.blocks.fitting import fewer_of
from scaleshift.blocks.plan import Plan
from scaleshift.slices import planning, sampling
from scaleshift.slices.inputs import Given
from scaleshift.slices.mixtures import restarts
from scaleshift.slices.mixtures.expectation import mixture_leaf
from scaleshift.slices.mixtures.mixture import Mixture, components_of
from scaleshift.slices.outcomes import Kind

if TYPE_CHECKING:
    from scaleshift.slices.domino import DominoSlicer

USUAL_PASSES = 10  # at most, as a rule, from a start that a sample was fitted to
SAMPLE_STEPS = 25  # of each restart, about
WAY_OUT = "use fewer n_pca_components or n_mixture_components"


def plan_domino(slicer: DominoSlicer, found: Given) -> Plan:
    """Passes of `DominoSlicer.fit`."""
    fit = planning.begin(slicer, found, WAY_OUT)
    planner, kept, kind = fit.planner, fit.kept, fit.preparation.kind
    mixtures = [_any_mixture(slicer, kind, size, fit.n_columns) for size in slicer._sizes]
    components = components_of(mixtures, slicer._settings.powers)
    planner.fewer = functools.partial(fewer_of, what="components", n=max(slicer._sizes))
    from_sample = slicer.init_params is None and not slicer.compat
    if from_sample:
        fit.sample(sampling.ROWS, sampling.columns_of(kind))
    usual = min(USUAL_PASSES, slicer.max_iter) if from_sample else slicer.max_iter
    em: dict[str, Any] = {"kernel": mixture_leaf, "kind": kind, "components": components}
    one = planner.on_kept("expectation", kept, times=usual, at_most=slicer.max_iter, **em)
    planner.on_kept("ranking", kept, **em)
    if from_sample:
        steps = len(restarts.OUTCOME_SCALES) * SAMPLE_STEPS
        planner.driver_seconds = one.seconds / fit.n_timed * sampling.ROWS * steps
    return fit.end(slicer._made(mixtures[0], np.arange(slicer.n_slices)))


def _any_mixture(slicer: DominoSlicer, kind: Kind, size: int, d: int) -> Mixture:
    shapes = {"diag": (size, d), "spherical": (size,)}
    covariances = np.ones(shapes.get(slicer.covariance_type, (size, 1, 1)))
    if slicer.covariance_type in ("full", "tied"):
        covariances = np.eye(d) if slicer.covariance_type == "tied" else covariances * np.eye(d)
    even = np.full((size, kind.n_labels), 1 / kind.n_labels)
    means = np.random.default_rng(0).normal(size=(size, d))
    predictions = even if kind.has_errors else None
    return Mixture(slicer.covariance_type, np.full(size, 1 / size), means, covariances, even, predictions)
