"""What do all rows say of rankings that were learned?  Held-out scores, and features that were overlooked.

One pass answers both: scores of the rows that a fold left out, and the covariance of every feature with the
final scores, which tells whether one that was never a candidate would have helped.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from scaleshift.auc.buckets import Buckets
from scaleshift.auc.held_out import Rankings, Scored, count_scores, fold_of_bucket, linear_scores, n_bins
from scaleshift.auc.moments import ClassMoments, contrast
from scaleshift.auc.ranking import scales
from scaleshift.blocks import passes
from scaleshift.blocks.block import Block, Rows
from scaleshift.kernels.reference import library, namespace, to_numpy

MOST_OVERLOOKED = 200  # features that are brought in, a contrast


class Judged(NamedTuple):
    """What a pass over all rows says."""

    scored: list[Scored]  # a contrast; none without folds
    across: np.ndarray | None  # (n_contrasts, n_classes, d) sums of x times the final score; or not asked


def judge(
    rows: Rows,
    buckets: Buckets | None,
    n_folds: int,
    rankings: list[Rankings],
    final: np.ndarray | None,
    *,
    weighted: bool,
) -> Judged:
    """Score the rows that each fold left out, and cross all features with final scores: one pass.

    Parameters
    ----------
    rows : Rows
    buckets : Buckets or None
        Of the rows.
    n_folds : int
    rankings : list of Rankings
        One a contrast; none where there are no folds.
    final : numpy.ndarray, shape (n_contrasts, d), optional
        Final rankings of all features, where overlooked ones are asked for.
    weighted : bool
    """
    n_classes = len(rows.categories("label"))
    layout = layout_of(rankings, n_folds, n_classes, final)
    told: dict[str, Any] = {"buckets": buckets, "n_folds": n_folds, "weighted": weighted}
    asked: dict[str, Any] = {"rankings": rankings, "n_classes": n_classes, "final": final}
    found = passes.total(judged_block, rows, layout, **told, **asked)
    return Judged([Scored(found[f"counts{i}"]) for i in range(len(rankings))], found.get("across"))


def layout_of(
    rankings: list[Rankings], n_folds: int, n_classes: int, final: np.ndarray | None
) -> dict[str, tuple[int, ...]]:
    """Shapes of what one block gives."""
    layout: dict[str, tuple[int, ...]] = {
        f"counts{i}": (n_folds, one.middle.shape[1], 2, n_bins(rankings)) for i, one in enumerate(rankings)
    }
    if final is not None:
        layout["across"] = (len(final), n_classes, final.shape[1])
    return layout


def judged_block(
    block: Block,
    buckets: Buckets | None,
    n_folds: int,
    rankings: list[Rankings],
    n_classes: int,
    final: np.ndarray | None,
    weighted: bool,
) -> dict[str, np.ndarray]:
    """Sums of one block."""
    codes = block.codes("label")
    weight = block.columns["weight"] if weighted else None
    found = {}
    if buckets is not None:
        fold = fold_of_bucket(buckets.n, n_folds)[buckets(block)]
        for i, one in enumerate(rankings):
            found[f"counts{i}"] = count_scores(block, fold, one, weight, n_bins(rankings))
    if final is not None:
        scores = linear_scores(block.x, final)  # (n, n_contrasts)
        counted = np.where(codes >= 0, 1.0 if weight is None else weight, 0.0)
        members = (codes[:, None] == np.arange(n_classes)) * counted[:, None]  # (n, n_classes)
        found["across"] = np.stack([_crossed(block.x, members * score[:, None]) for score in scores.T])
    return found


def _crossed(x: Any, members: np.ndarray) -> np.ndarray:
    """Sums of the rows by class, (n_classes, d), float64."""
    if library(x) != "cupy":
        return np.asarray((x.T.astype(np.float64, copy=False) @ members).T)
    xp = namespace(x)
    return to_numpy((x.T.astype(xp.float64) @ xp.asarray(members)).T)


def overlooked(
    across: np.ndarray,
    spread: ClassMoments,
    sign: np.ndarray,
    final: np.ndarray,
    alpha: float,
    candidates: np.ndarray,
) -> np.ndarray:
    """Features that were no candidates, though one in place of the least useful would make F smaller.

    Parameters
    ----------
    across : numpy.ndarray, shape (n_classes, d)
        Of `judge`, for this contrast.
    spread : ClassMoments
        Of all features.
    sign : numpy.ndarray of int8, shape (n_classes,)
    final : numpy.ndarray, shape (d,)
        The ranking.
    alpha : float
        Its shrinkage.
    candidates : numpy.ndarray of int

    Returns
    -------
    numpy.ndarray of int
        The most useful first.

    Notes
    -----
    The condition of first order: what exchanging two features would change at least, at the weights that the
    others have.
    """
    found = contrast(spread, sign)
    unit = scales(found)
    support = np.flatnonzero(final)
    if not support.size:
        return np.empty(0, np.int64)
    covariance = np.zeros(len(final))  # of each feature with the score, both classes'
    for side, weight, mean in zip((-1, 1), found.weight, found.mean, strict=True):
        covariance += across[sign == side].sum(axis=0) / weight - mean * (mean @ final)
    gap = found.delta @ final
    # In the metric of best_subsets: its weights are these, less the factor that makes F smallest.
    length = float((final[support] * (covariance + alpha * found.variance * final)[support]).sum())
    factor = gap / length if length > 0 else 0.0
    residual = (found.delta - factor * covariance) / unit
    gain = np.nan_to_num(residual**2 / (1 + alpha))
    gain[candidates] = 0
    if not np.isfinite(unit[support]).all():  # squares about 0 cannot tell the spread of features so far off
        return np.empty(0, np.int64)
    cost = (factor * final[support] * unit[support]) ** 2 * (1 + alpha)
    order = np.argsort(-gain, kind="stable")[:MOST_OVERLOOKED]
    return order[gain[order] > cost.min()]
