"""The solver "sht": the source's stochastic hard thresholding, with its size chosen by held-out AUC.

Each ranking is a descent of its own: nothing but the steps is shared between folds and sizes.
"""

from __future__ import annotations

import os
import shutil
from typing import Any

import numpy as np

from scaleshift.auc.fitting import LearnedRanking, Path, ScoreMoments, assembled
from scaleshift.auc.held_out import Rankings, Scored, fold_of_bucket, linear_scores
from scaleshift.auc.moments import ClassMoments, contrast, usable, weights
from scaleshift.auc.ranking import binormal_auc, scales
from scaleshift.auc.screening import class_spread
from scaleshift.auc.sht import Descent, descend
from scaleshift.auc.solving import Job, Solved
from scaleshift.blocks import graph, passes
from scaleshift.blocks.block import Block, Column, Rows
from scaleshift.blocks.buckets import Buckets
from scaleshift.blocks.rows import with_columns
from scaleshift.checkpoint import fingerprint


def sht(job: Job) -> Solved:
    """Descents of all rows, and, where sizes or the AUC are asked for, of the rows outside every fold."""
    spread = job.kept("spread", lambda: class_spread(job.rows, None, weighted=job.weighted))
    usable(spread, job.contrasts.sign, job.fewest)
    every, last = [], None
    for name, sign in zip(job.contrasts.names, job.contrasts.sign, strict=True):
        scored, size = _held_out(job, name, sign) if job.n_folds else (None, len(job.task.options.sizes) - 1)
        found = [_descent(job, job.rows, name, sign, k, "all") for k in job.task.options.sizes]
        last = found[size]
        path = np.stack([one.coef for one in found])
        every.append(_assembled(job, spread, sign, path, scored, size))
    assert last is not None
    remarks = {
        "coef_history_": last.history,
        "coef_history_steps_": last.history_steps,
        "objective_path_": last.objective,
        "n_iter_": last.n_iter,
        "step_size_": last.step_size,
        "converged_": last.converged,
    }
    return Solved(every, int(spread.count.sum()), remarks=remarks)


def _assembled(
    job: Job, spread: ClassMoments, sign: np.ndarray, path: np.ndarray, scored: Scored | None, size: int
) -> LearnedRanking:
    options, found = job.task.options, contrast(spread, sign)
    return assembled(
        Path(path, np.array(options.sizes), size, options.alphas[0]),
        score_moments(job, sign, path),
        scored,
        stability=np.full(path.shape[1], np.nan),
        mean=found.mean,
        deviation=scales(found),
        alone=binormal_auc(found.delta, scales(found) ** 2),
    )


def _descent(job: Job, rows: Rows, name: str, sign: np.ndarray, k: int, part: str) -> Descent:
    """A descent, or one that was finished before; what it has kept of its steps is needed no more then."""
    options = job.task.options
    how = {"scale": options.scale, "alpha": options.alphas[0], **job.steps}
    one = f"{job.contrasts.names.index(name)}-{part}-{k}"
    path = None if job.checkpoint is None else os.path.join(os.fspath(job.checkpoint), one)
    asked = {"sign": sign, **how}  # a contrast of the same place may have other labels
    given = {name: value if value is None else np.asarray(value).tolist() for name, value in asked.items()}
    found: Descent = job.kept(
        f"{one}-{fingerprint(given)[:8]}",
        lambda: descend(rows, sign, k=k, seed=job.seed, checkpoint=path, **how),
    )
    if path is not None:
        shutil.rmtree(path, ignore_errors=True)
    return found


def _held_out(job: Job, name: str, sign: np.ndarray) -> tuple[Scored, int]:
    """Held-out scores of every size, and the place of the size whose AUC is highest."""
    assert job.buckets is not None
    sizes = job.task.options.sizes
    found = np.zeros((job.n_folds, len(sizes), job.rows.n_markers))
    for fold in range(job.n_folds):
        rows = without_fold(job, fold)
        for row, k in enumerate(sizes):
            found[fold, row] = _descent(job, rows, name, sign, k, f"fold{fold}").coef
    moments = score_moments(job, sign, found.reshape(-1, found.shape[-1]))
    shape = found.shape[:2]
    unit = np.sqrt(moments.variance.sum(axis=0)).reshape(shape)
    unit = np.where(unit > 0, unit, 1)
    middle = moments.mean.mean(axis=0).reshape(shape) / unit
    used = np.flatnonzero((found != 0).any(axis=(0, 1)))
    rankings = Rankings(sign, used, found[..., used] / unit[..., None], middle)
    counts = job.judge([rankings], None).scored[0].counts
    auc, _ = Scored(counts).auc()
    rule = job.task.rule
    own = [_best(np.delete(auc, fold, axis=0), rule) for fold in range(job.n_folds)]
    chosen = np.stack([counts[fold, size] for fold, size in enumerate(own)])[:, None]
    return Scored(np.concatenate([counts, chosen], axis=1)), _best(auc, rule)


def _best(auc: np.ndarray, rule: str) -> int:
    """Place of the size with the highest mean AUC over folds that have one, or of one as good: see `best`.

    Examples
    --------
    >>> auc = np.array([[0.70, 0.80, 0.86], [0.60, 0.83, 0.80]])
    >>> _best(auc, "best"), _best(auc, "one_se")
    (2, 1)
    """
    auc = auc[np.isfinite(auc).all(axis=1)]
    if not len(auc):
        return auc.shape[1] - 1
    mean = auc.mean(axis=0)
    size = int(mean.argmax())
    if rule == "one_se" and len(auc) > 1:
        enough = mean >= mean[size] - auc[:, size].std(ddof=1) / np.sqrt(len(auc))
        return int(enough.argmax())
    return size


def without_fold(job: Job, fold: int) -> Rows:
    """The rows, those of a fold with the weight 0."""
    rows = job.rows
    told: dict[str, Any] = {
        "buckets": job.buckets,
        "n_folds": job.n_folds,
        "fold": fold,
        "weighted": job.weighted,
    }
    weight: Any = passes.map_rows(weight_leaf, rows.without_x(), **told)
    if rows.is_one_block:
        weight = graph.compute(weight, in_memory=True)
    return with_columns(rows, weight=Column(weight))


def weight_leaf(block: Block, buckets: Buckets, n_folds: int, fold: int, weighted: bool) -> np.ndarray:
    """Weights of the rows of a block, 0 in a fold."""
    own = fold_of_bucket(buckets.n, n_folds)[buckets(block)]
    return np.where(own == fold, 0.0, weights(block) if weighted else 1.0)


def score_moments(job: Job, sign: np.ndarray, path: np.ndarray) -> ScoreMoments:
    """Means and variances of the scores of rankings, (m, d), in both classes: one pass."""
    used = np.flatnonzero((path != 0).any(axis=0))
    layout = {"weight": (2,), "first": (2, len(path)), "second": (2, len(path))}
    taken = used if used.size else np.zeros(1, np.int64)
    rows = job.rows.features(taken)
    told: dict[str, Any] = {"sign": sign, "path": path[:, taken], "weighted": job.weighted}
    found = passes.total(score_sums, rows, layout, **told)
    mean = found["first"] / found["weight"][:, None]
    variance = np.maximum(found["second"] / found["weight"][:, None] - mean**2, 0)
    return ScoreMoments(found["weight"], mean, variance)


def score_sums(block: Block, sign: np.ndarray, path: np.ndarray, weighted: bool) -> dict[str, np.ndarray]:
    """Sums of the scores of a block's rows, and of their squares, by class."""
    codes = block.codes("label")
    side = np.where(codes < 0, 0, sign[codes])
    weight = weights(block) if weighted else np.ones(len(codes))
    members = np.stack([weight * (side == which) for which in (-1, 1)])  # (2, n)
    scores = linear_scores(block.x, path)
    return {"weight": members.sum(axis=1), "first": members @ scores, "second": members @ scores**2}
