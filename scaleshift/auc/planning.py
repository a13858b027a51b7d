"""What will a fit of a ranking cost?  Its passes, told before they run, and the search on the driver."""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from scaleshift.auc.held_out import Rankings
from scaleshift.auc.job import job_of
from scaleshift.auc.judging import Final, judged_block, layout_of
from scaleshift.auc.moments import layout_of_moments, scatter_of_block
from scaleshift.auc.screening import layout_of_spread, spread_of_block
from scaleshift.auc.solving import Job
from scaleshift.blocks import blas
from scaleshift.blocks.block import Rows
from scaleshift.blocks.fitting import fewer_of
from scaleshift.blocks.plan import Plan
from scaleshift.blocks.planner import Planner
from scaleshift.errors import DataError
from scaleshift.solve.best_subset import best_subsets

if TYPE_CHECKING:
    from scaleshift.auc.sparse_auc import SparseAUC

WAY_OUT = "take solver='stream' with fewer candidates, n_screened=..., or fewer folds"


def plan_fit(model: SparseAUC, rows: Rows, weighted: bool) -> Plan:
    """The plan of a fit to rows."""
    name, job = job_of(model, rows, weighted, seed=0)
    if name == "sht":
        raise DataError("explain knows no solver 'sht', whose steps depend on each other: try 'moments'")
    planner = Planner(f"SparseAUC.fit, solver {name}", job.rows, WAY_OUT)
    if job.buckets is not None:
        planner.tally("buckets", "label")
    d, n_classes = job.rows.n_markers, len(job.rows.categories("label"))
    told: dict[str, Any] = {"buckets": job.buckets, "n_classes": n_classes, "weighted": job.weighted}
    groups = n_classes * (job.buckets.n if job.buckets else 1)
    if name != "moments":
        planner.total("variances", job.rows, spread_of_block, layout_of_spread(groups, d), **told)
    p = d if name == "moments" else min(d, job.n_screened)
    planner.fewer = functools.partial(fewer_of, what="features", n=p, power=2)
    if name != "screen":
        rows = job.rows.features(np.arange(p))
        planner.total(
            "covariances", rows, scatter_of_block, layout_of_moments(groups, p), centre=np.zeros(p), **told
        )
        planner.driver_seconds += _search_seconds(job, p)
    if job.n_folds or name == "stream":
        signs = np.stack(job.contrasts.sign)
        final = Final(np.zeros((len(signs), d)), signs) if name == "stream" else None
        rankings = [_rankings(job, sign, p) for sign in job.contrasts.sign] if job.n_folds else []
        layout = layout_of(rankings, job.n_folds, final)
        del told["n_classes"]
        beside: dict[str, Any] = {"n_folds": job.n_folds, "rankings": rankings, "final": final}
        planner.total("held-out rows", job.rows, judged_block, layout, **told, **beside)
    return planner.plan()


def _rankings(job: Job, sign: np.ndarray, p: int) -> Rankings:
    """Rankings as large as those that will be: their weights do not matter."""
    m = len(job.task.options.sizes) + 1
    used = np.arange(min(p, job.n_folds * job.task.options.sizes[-1]))
    shape = job.n_folds, m
    return Rankings(sign, used, np.zeros((*shape, len(used))), np.zeros(shape))


def _search_seconds(job: Job, p: int) -> float:
    """Of all paths and halves, told from one path of made-up features."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4 * p, p))
    matrix, gain = x.T @ x / len(x), rng.normal(size=p) / 10
    with blas.one_thread():
        begin = time.process_time()
        best_subsets(matrix, gain, job.task.options.sizes)
        seconds = time.process_time() - begin
    n_paths = (
        1 + len([*job.task.folds, *job.task.again]) * len(job.task.options.alphas) + len(job.task.halves)
    )
    return len(job.contrasts.sign) * n_paths * seconds
