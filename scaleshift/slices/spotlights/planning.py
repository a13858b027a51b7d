"""What will seeking spotlights cost?  The passes of `SpotlightSlicer.fit`, told before it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scaleshift.blocks.plan import Plan
from scaleshift.kernels.spotlight import Spotlights
from scaleshift.slices import planning, sampling
from scaleshift.slices.inputs import Given
from scaleshift.slices.planning import PlannedFit
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
    fit = planning.begin(slicer, found, WAY_OUT)
    fit.planner.on_kept("losses", fit.kept, spread_leaf, sign=1.0, pivot=0.0)
    if slicer.compat:
        steps = slicer.n_slices * slicer.num_steps
        _step(fit, slicer, 1, "steps", steps, steps)
    else:
        _search(fit, slicer)
    one = _spotlights(fit, slicer, 1, slicer._saturated)
    fit.planner.on_kept("light", fit.kept, shown_leaf, times=slicer.n_slices, gains=Gains(), spotlight=one)
    many = _spotlights(fit, slicer, slicer.n_slices, slicer._saturated)
    return fit.end(SpotlightSlices(*many, peaks=many.precisions))


def _search(fit: PlannedFit, slicer: SpotlightSlicer) -> None:
    """The sample, the steps on it, and the passes over all rows that follow."""
    n_rows = sample_rows(slicer.spotlight_size)
    fit.sample(n_rows, sampling.LOSSES)
    usual, most = (slicer.n_slices * times for times in (USUAL_PASSES, PASSES))
    seconds = _step(fit, slicer, max(N_STARTS, len(LADDER)), "refinement", usual, most)
    if slicer._saturated:
        _step(fit, slicer, len(RADII), "radius", slicer.n_slices, slicer.n_slices, saturated=True)
    rows = min(n_rows, fit.planner.n_rows)
    fit.planner.driver_seconds = seconds * rows * slicer.num_steps * slicer.n_slices


def _step(
    fit: PlannedFit,
    slicer: SpotlightSlicer,
    n: int,
    what: str,
    times: int,
    at_most: int,
    saturated: bool = False,
) -> float:
    """Passes with `n` spotlights side by side; seconds of one for a row."""
    many = _spotlights(fit, slicer, n, saturated)
    found = fit.planner.on_kept(
        what, fit.kept, spotlight_leaf, times=times, at_most=at_most, gains=Gains(), spotlights=many
    )
    return found.seconds / fit.n_timed


def _spotlights(fit: PlannedFit, slicer: SpotlightSlicer, n: int, saturated: bool) -> Spotlights:
    """Any."""
    radii = np.ones(n) if saturated else None
    return Spotlights(slicer.kernel, np.zeros((n, fit.n_columns)), np.ones(n), radii)
