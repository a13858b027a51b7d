"""What will a fit of a linear model cost?  Its passes, told before they run."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from scaleshift.blocks import states
from scaleshift.blocks.fitting import fewer_of
from scaleshift.blocks.plan import Plan
from scaleshift.blocks.planner import Planner
from scaleshift.error.gaussian.sums import layout_of_source, source_block
from scaleshift.error.held_out import drawn_with_folds, most_rows
from scaleshift.error.job import GAUSSIAN, job_of
from scaleshift.errors import DataError

if TYPE_CHECKING:
    from scaleshift.error.prediction_error import PredictionError

WAY_OUT = "choose features, or take fewer folds"


def plan_fit(model: PredictionError, X: Any, y: Any, groups: Any) -> Plan:
    """The plan of a fit.

    Raises
    ------
    DataError
        Of other models, whose passes are as many as their descents or refits need.
    """
    if model.model not in GAUSSIAN:
        raise DataError(
            f"explain knows the linear models {', '.join(GAUSSIAN)}: others take as many passes or refits as "
            "they need; time one of them"
        )
    job = job_of(model, X, y, groups, None, seed=0)
    rows, p = job.rows, job.rows.n_markers
    fewer = functools.partial(fewer_of, what="features", n=p, power=2)
    planner = Planner(f"PredictionError.fit, {model.model}", rows, WAY_OUT, fewer)
    if job.buckets is not None:
        planner.tally("folds", "label")
    layout = layout_of_source(p, job.buckets.n if job.buckets else 1)
    told: dict[str, Any] = {"noise": (), "centre": np.zeros(p), "middle": 0.0}
    planner.total("sums by fold", rows, source_block, layout, buckets=job.buckets, **told)
    n = np.array([most_rows(rows)])
    merge = functools.partial(states.merge_smallest, n)
    drawn: dict[str, Any] = {"n": n, "name": "outcome", "buckets": job.buckets, "seed": 0}
    planner.merged("held-out rows", rows, drawn_with_folds, merge, **drawn)
    return planner.plan()
