"""What will learning slices cost?  The passes of a fit, told before it runs."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from scaleshift.blocks import states
from scaleshift.blocks.plan import Plan
from scaleshift.blocks.planner import PlannedKept, Planner
from scaleshift.slices import sampling, survey
from scaleshift.slices.describing.profile import merge_profiles, profile_leaf
from scaleshift.slices.inputs import Given
from scaleshift.slices.mixtures import restarts
from scaleshift.slices.mixtures.expectation import mixture_leaf
from scaleshift.slices.mixtures.membership import MixtureSlices
from scaleshift.slices.mixtures.mixture import Mixture, components_of
from scaleshift.slices.outcomes import Kind, learn_kind
from scaleshift.slices.prepared import Preparation, prepare, strata_of
from scaleshift.slices.projection import Projection

if TYPE_CHECKING:
    from scaleshift.slices.domino import DominoSlicer

USUAL_PASSES = 10  # at most, as a rule, from a start that a sample was fitted to
SAMPLE_STEPS = 25  # of each restart, about

WAY_OUT = "use fewer n_pca_components or n_mixture_components"


def plan_domino(slicer: DominoSlicer, found: Given) -> Plan:
    """Passes of `DominoSlicer.fit`."""
    kind = learn_kind(found)
    rows = kind.rows(found, slicer.invalid)
    planner = Planner("DominoSlicer.fit", rows, WAY_OUT)
    products = slicer.n_pca_components is not None
    planner.merged("survey", rows, survey.look, survey.merge, kind=kind, products=products)
    preparation = _preparation(slicer, kind, rows.n_markers)
    kept = planner.keep("preparation", rows, prepare, preparation.row_bytes, preparation=preparation)
    mixtures = [_any_mixture(slicer, kind, size, preparation.projection.n_columns) for size in slicer._sizes]
    components = components_of(mixtures, slicer._settings.powers)
    from_sample = slicer.init_params is None and not slicer.compat
    if from_sample:
        _sample(planner, kept, kind)
    usual = min(USUAL_PASSES, slicer.max_iter) if from_sample else slicer.max_iter
    em: dict[str, Any] = {"kernel": mixture_leaf, "kind": kind, "components": components}
    one = planner.on_kept("expectation", kept, times=usual, at_most=slicer.max_iter, **em)
    planner.on_kept("ranking", kept, **em)
    slices = MixtureSlices(mixtures[0], slicer._settings.powers, np.arange(slicer.n_slices))
    planner.merged(
        "profile", rows, profile_leaf, merge_profiles, slices=slices, preparation=preparation, shift=None
    )
    if from_sample:
        rows_timed = max(len(kept.prepared.result.x), 1)
        steps = len(restarts.OUTCOME_SCALES) * SAMPLE_STEPS
        planner.driver_seconds = one.seconds / rows_timed * sampling.ROWS * steps
    return planner.plan()


def _sample(planner: Planner, kept: PlannedKept, kind: Kind) -> None:
    n_strata = survey.n_strata(kind)
    planner.on_kept(
        "sample",
        kept,
        states.smallest,
        n=np.full(n_strata, sampling.ROWS // n_strata),
        by=functools.partial(strata_of, kind=kind),
        seed=0,
        stream="slices",
        columns=sampling.columns_of(kind),
    )


def _preparation(slicer: DominoSlicer, kind: Kind, d: int) -> Preparation:
    """One that costs what the real one will; directions are not known before the survey."""
    components = None if slicer.n_pca_components is None else np.eye(min(slicer.n_pca_components, d), d)
    dtype, holdout = ("float64", 0.0) if slicer.compat else ("float32", slicer.holdout)
    return Preparation(kind, Projection(np.zeros(d), components), dtype, 0, holdout)


def _any_mixture(slicer: DominoSlicer, kind: Kind, size: int, d: int) -> Mixture:
    shapes = {"diag": (size, d), "spherical": (size,)}
    covariances = np.ones(shapes.get(slicer.covariance_type, (size, 1, 1)))
    if slicer.covariance_type in ("full", "tied"):
        covariances = np.eye(d) if slicer.covariance_type == "tied" else covariances * np.eye(d)
    even = np.full((size, kind.n_labels), 1 / kind.n_labels)
    means = np.random.default_rng(0).normal(size=(size, d))
    predictions = even if kind.has_errors else None
    return Mixture(slicer.covariance_type, np.full(size, 1 / size), means, covariances, even, predictions)
