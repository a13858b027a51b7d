"""What will seeking spotlights cost?  The passes of a fit, told before it runs."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from scaleshift.blocks import states
from scaleshift.blocks.plan import Plan
from scaleshift.blocks.planner import PlannedKept, Planner
from scaleshift.kernels.spotlight import Spotlights
from scaleshift.slices import sampling, survey
from scaleshift.slices.describing.profile import merge_profiles, profile_leaf
from scaleshift.slices.inputs import Given
from scaleshift.slices.outcomes import learn_kind
from scaleshift.slices.prepared import Preparation, prepare, strata_of
from scaleshift.slices.projection import Projection
from scaleshift.slices.spotlights.fit import RADII, sample_rows
from scaleshift.slices.spotlights.gains import Gains, shown_leaf, spotlight_leaf, spread_leaf
from scaleshift.slices.spotlights.membership import SpotlightSlices
from scaleshift.slices.spotlights.search import LADDER, N_STARTS, PASSES

if TYPE_CHECKING:
    from scaleshift.slices.spotlight import SpotlightSlicer

USUAL_PASSES = 3  # over all rows, of a spotlight that a sample was searched for
WAY_OUT = "use fewer n_pca_components"


def plan_spotlight(slicer: SpotlightSlicer, found: Given) -> Plan:
    """Passes of `SpotlightSlicer.fit`."""
    kind = learn_kind(found)
    rows = kind.rows(found, slicer.invalid)
    planner = Planner("SpotlightSlicer.fit", rows, WAY_OUT)
    d = rows.n_markers
    pca = None if slicer.compat else slicer.n_pca_components
    planner.merged("survey", rows, survey.look, survey.merge, kind=kind, products=pca is not None)
    components = None if pca is None else np.eye(min(pca, d), d)
    dtype, holdout = ("float64", 0.0) if slicer.compat else ("float32", slicer.holdout)
    preparation = Preparation(kind, Projection(np.zeros(d), components), dtype, 0, holdout)
    kept = planner.keep("preparation", rows, prepare, preparation.row_bytes, preparation=preparation)
    planner.on_kept("losses", kept, spread_leaf, sign=1.0, pivot=0.0)
    if slicer.compat:
        steps = slicer.n_slices * slicer.num_steps
        _step(planner, kept, slicer, 1, "steps", steps, steps)
    else:
        _search(planner, kept, slicer, preparation)
    one = _spotlights(slicer, kept, 1, saturated=slicer.kernel == "gaussian" and not slicer.compat)
    planner.on_kept("light", kept, shown_leaf, times=slicer.n_slices, gains=Gains(), spotlight=one)
    many = _spotlights(slicer, kept, slicer.n_slices)
    slices = SpotlightSlices(slicer.kernel, many.means, many.precisions, many.radii, many.precisions)
    planner.merged(
        "profile", rows, profile_leaf, merge_profiles, slices=slices, preparation=preparation, shift=None
    )
    return planner.plan()


def _search(planner: Planner, kept: PlannedKept, slicer: SpotlightSlicer, preparation: Preparation) -> None:
    """The sample, the steps on it, and the passes over all rows that follow."""
    kind, n_rows = preparation.kind, sample_rows(slicer.spotlight_size)
    n_strata = survey.n_strata(kind)
    planner.on_kept(
        "sample",
        kept,
        states.smallest,
        n=np.full(n_strata, n_rows // n_strata),
        by=functools.partial(strata_of, kind=kind),
        seed=0,
        stream="slices",
        columns=sampling.LOSSES,
    )
    usual, most = (slicer.n_slices * times for times in (USUAL_PASSES, PASSES))
    seconds = _step(planner, kept, slicer, max(N_STARTS, len(LADDER)), "refinement", usual, most)
    if slicer.kernel == "gaussian":
        many = _spotlights(slicer, kept, len(RADII), saturated=True)
        each = {"times": slicer.n_slices, "at_most": slicer.n_slices}
        planner.on_kept("radius", kept, spotlight_leaf, **each, gains=Gains(), spotlights=many)
    rows = min(n_rows, planner.n_rows)
    planner.driver_seconds = seconds * rows * slicer.num_steps * slicer.n_slices


def _step(
    planner: Planner, kept: PlannedKept, slicer: SpotlightSlicer, n: int, what: str, times: int, at_most: int
) -> float:
    """Passes with `n` spotlights side by side; seconds of one for a row."""
    spotlights = _spotlights(slicer, kept, n)
    found = planner.on_kept(
        what, kept, spotlight_leaf, times=times, at_most=at_most, gains=Gains(), spotlights=spotlights
    )
    return found.seconds / max(len(kept.prepared.result.x), 1)


def _spotlights(slicer: SpotlightSlicer, kept: PlannedKept, n: int, saturated: bool = False) -> Spotlights:
    """Any."""
    d = kept.prepared.result.x.shape[1]
    return Spotlights(slicer.kernel, np.zeros((n, d)), np.ones(n), np.ones(n) if saturated else None)
