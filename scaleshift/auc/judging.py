"""What do all rows say of rankings that were learned?  Held-out scores, and features that were overlooked.

One pass answers both: scores of the rows that a fold left out, and the covariance of every feature with the
final scores, which tells whether one that was never a candidate would have helped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from scaleshift.auc.held_out import Rankings, Scored, count_scores, fold_of_bucket, linear_scores, n_bins
from scaleshift.auc.moments import ClassMoments, contrast
from scaleshift.auc.ranking import scales
from scaleshift.blocks import passes
from scaleshift.blocks.block import Block, Rows
from scaleshift.blocks.buckets import Buckets
from scaleshift.blocks.sparse_rows import is_sparse
from scaleshift.kernels.reference import library, namespace, tile_rows, to_numpy

MOST_OVERLOOKED = 200  # features that are brought in, a contrast
DENSE_ROWS, SPARSE_ROWS = 256, 8_192  # of a tile: dense ones at least, or adding tiles up takes longest


@dataclass(frozen=True)
class Final:
    """Rankings of all contrasts, of all features."""

    weights: np.ndarray  # (n_contrasts, d)
    signs: np.ndarray  # (n_contrasts, n_classes) int8

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return self.weights.nbytes + self.signs.nbytes


class Judged(NamedTuple):
    """What a pass over all rows says."""

    scored: list[Scored]  # a contrast; none without folds
    across: np.ndarray | None  # (n_contrasts, 2, d) sums of x times the final score by side; or not asked


def judge(
    rows: Rows,
    buckets: Buckets | None,
    n_folds: int,
    rankings: list[Rankings],
    final: Final | None,
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
    final : Final, optional
        Final rankings of all features, where overlooked ones are asked for.
    weighted : bool
    """
    layout = layout_of(rankings, n_folds, final)
    told: dict[str, Any] = {"buckets": buckets, "n_folds": n_folds, "weighted": weighted}
    found = passes.total(judged_block, rows, layout, **told, rankings=rankings, final=final)
    return Judged([Scored(found[f"counts{i}"]) for i in range(len(rankings))], found.get("across"))


def layout_of(rankings: list[Rankings], n_folds: int, final: Final | None) -> dict[str, tuple[int, ...]]:
    """Shapes of what one block gives."""
    layout: dict[str, tuple[int, ...]] = {
        f"counts{i}": (n_folds, one.middle.shape[1], 2, n_bins(rankings)) for i, one in enumerate(rankings)
    }
    if final is not None:
        layout["across"] = (len(final.weights), 2, final.weights.shape[1])
    return layout


def judged_block(
    block: Block,
    buckets: Buckets | None,
    n_folds: int,
    rankings: list[Rankings],
    final: Final | None,
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
        counted = np.where(codes >= 0, 1.0 if weight is None else weight, 0.0)
        found["across"] = _crossed(block.x, np.where(codes >= 0, final.signs[:, codes], 0), counted, final)
    return found


def _crossed(x: Any, side: np.ndarray, weight: np.ndarray, final: Final) -> np.ndarray:
    """Sums of the rows times their final scores, by contrast and side: (n_contrasts, 2, d), float64.

    Tile by tile: a float64 copy of a block of all features would be the largest array of a pass.
    """
    found = np.zeros((2 * len(side), x.shape[1]))
    used = np.flatnonzero(final.weights.any(axis=0))
    size = SPARSE_ROWS if is_sparse(x) else max(DENSE_ROWS, tile_rows(x, x.shape[1]))
    for start in range(0, x.shape[0], size):
        rows = slice(start, start + size)
        tile = x[rows]
        scores = linear_scores(tile[:, used], final.weights[:, used]).T * weight[rows]  # (n_contrasts, n)
        members = np.stack([scores * (side[:, rows] == which) for which in (-1, 1)], axis=1)
        found += _summed(tile, members.reshape(len(found), -1))
    return found.reshape(len(side), 2, -1)


def _summed(x: Any, members: np.ndarray) -> np.ndarray:
    """Sums of rows, dense or sparse, by members: (n, d), (m, n) -> (m, d) float64."""
    if library(x) != "cupy":
        return np.asarray((x.T.astype(np.float64, copy=False) @ members.T).T)
    xp = namespace(x)
    return to_numpy(xp.asarray(members) @ x.astype(xp.float64))


def overlooked(
    across: np.ndarray,
    spread: ClassMoments,
    sign: np.ndarray,
    final: np.ndarray,
    alpha: float,
    candidates: np.ndarray,
    *,
    scale: bool = True,
    positive: bool = False,
) -> np.ndarray:
    """Features that were no candidates, though one in place of the least useful would make F smaller.

    Parameters
    ----------
    across : numpy.ndarray, shape (2, d)
        Of `judge`, for this contrast.
    spread : ClassMoments
        Of all features.
    sign : numpy.ndarray of int8, shape (n_classes,)
    final : numpy.ndarray, shape (d,)
        The ranking.
    alpha : float
        Its shrinkage.
    candidates : numpy.ndarray of int
    scale, positive : bool
        How the ranking was learned: see `ranking.sparse_path`.

    Returns
    -------
    numpy.ndarray of int
        The most useful first.

    Notes
    -----
    The condition of first order, at the weights that the others have, as if the two features had no
    covariance: a feature that is told may turn out of no use once its covariances are summed.
    """
    found = contrast(spread, sign)
    support = np.flatnonzero(final)
    usable = np.isfinite(scales(found))
    own = np.where(usable, scales(found), 1)
    unit = own if scale else np.full_like(own, np.sqrt(np.mean(own[candidates][usable[candidates]] ** 2)))
    diagonal = (own / unit) ** 2 + alpha
    covariance = np.zeros(len(final))  # of each feature with the score, both classes'
    for sums, weight, mean in zip(across, found.weight, found.mean, strict=True):
        covariance += sums / weight - mean * (mean @ final)
    gap = found.delta @ final
    # In the metric of best_subsets: its weights are these, less the factor that makes F smallest.
    length = float((final * (covariance + alpha * unit**2 * final))[support].sum())
    factor = gap / length if length > 0 else 0.0
    residual = (found.delta - factor * covariance) / unit
    gain = np.where(usable & ((residual > 0) | (not positive)), residual**2 / diagonal, 0)
    gain[candidates] = 0
    if not usable[support].all():  # squares about 0 cannot tell the spread of features so far off
        return np.empty(0, np.int64)
    cost = ((factor * final * unit) ** 2 * diagonal)[support]
    order = np.argsort(-gain, kind="stable")[:MOST_OVERLOOKED]
    return order[gain[order] > (cost.min() if support.size else 0)]
