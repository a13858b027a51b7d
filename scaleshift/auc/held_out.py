"""What is the AUC on rows that a ranking has not seen?  Counts of scores in narrow bins, by fold: one pass.

Every row is scored by the rankings of its own fold, which was learned from the other folds. Scores are in
units of their training spread about the middle of the training classes, and counted in bins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from scaleshift.blocks.block import Block
from scaleshift.kernels.reference import library, namespace, to_numpy

REACH = 12.0  # bins go so many spreads to both sides; the outermost are open
MOST_BINS, FEWEST_BINS = 4_096, 256
STATE_BYTES = 32_000_000  # of all contrasts' counts, about: many contrasts have fewer bins


class Rankings(NamedTuple):
    """What rows of one contrast are scored by."""

    sign: np.ndarray  # (n_classes,) int8
    features: np.ndarray  # (p,) of which features the weights are
    weights: np.ndarray  # (n_folds, m, p)
    middle: np.ndarray  # (n_folds, m) score that counts as 0


@dataclass(frozen=True)
class Scored:
    """Weights of held-out rows by the score that each of m rankings gave them."""

    counts: np.ndarray  # (n_folds, m, 2, n_bins) of negatives, of positives

    def auc(self) -> tuple[np.ndarray, np.ndarray]:
        """AUC and the bound of its error: (n_folds, m); NaN where a fold lacks a class.

        Rows in one bin count as tied, which is wrong by half their pairs at most.
        """
        return _auc(self.counts)

    def variance(self) -> np.ndarray:
        """Variance of each AUC by its number of rows, (n_folds, m) (DeLong, DeLong, Clarke-Pearson 1988)."""
        negative, positive = self.counts[:, :, 0], self.counts[:, :, 1]
        return _of_placements(negative, positive) + _of_placements(positive[..., ::-1], negative[..., ::-1])

    def pooled_auc(self) -> np.ndarray:
        """AUC of all folds' rows together, (m,): of rankings that are the same in every fold."""
        return _auc(self.counts.sum(axis=0))[0]

    def pooled(self, ranking: int) -> np.ndarray:
        """Weights of all folds' rows by their score: (2, n_bins)."""
        return self.counts[:, ranking].sum(axis=0)


def n_bins(rankings: list[Rankings]) -> int:
    """Bins of the scores of some contrasts."""
    n_rankings = sum(one.middle.size for one in rankings)
    return int(np.clip(STATE_BYTES // (16 * max(n_rankings, 1)), FEWEST_BINS, MOST_BINS))


def bin_scores(n: int) -> np.ndarray:
    """Score in the middle of each of n bins: (n,)."""
    return (np.arange(n) + 0.5) * (2 * REACH / n) - REACH


def _auc(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """AUC and bound of counts, (..., 2, n_bins) -> (...)."""
    negative, positive = counts[..., 0, :], counts[..., 1, :]
    below = np.cumsum(negative, axis=-1) - negative
    pairs = negative.sum(axis=-1) * positive.sum(axis=-1)
    tied = (positive * negative).sum(axis=-1) / 2
    with np.errstate(invalid="ignore"):
        return ((positive * below).sum(axis=-1) + tied) / pairs, tied / pairs


def _of_placements(others: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Variance of the mean share of the others that lie below one of its own: (..., n_bins) -> (...)."""
    n = own.sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        below = (np.cumsum(others, axis=-1) - others / 2) / others.sum(axis=-1, keepdims=True)
        mean = (own * below).sum(axis=-1) / n
        spread = (own * (below - mean[..., None]) ** 2).sum(axis=-1)
        return spread / n / np.maximum(n - 1, 1)


def fold_of_bucket(n_buckets: int, n_folds: int) -> np.ndarray:
    """Fold that each bucket belongs to, (n_buckets,): runs of buckets, as `selection.divided` makes them."""
    return np.repeat(
        np.arange(n_folds), [len(part) for part in np.array_split(np.arange(n_buckets), n_folds)]
    )


def count_scores(
    block: Block, fold: np.ndarray, ranking: Rankings, weight: np.ndarray | None, bins: int
) -> np.ndarray:
    """Count the rows of one block by fold, ranking, class and score.

    Parameters
    ----------
    block : Block
    fold : numpy.ndarray of int, shape (n,)
        Fold of each row.
    ranking : Rankings
    weight : numpy.ndarray, shape (n,), optional
    bins : int
        Of the scores.

    Returns
    -------
    numpy.ndarray, shape (n_folds, m, 2, n_bins)
    """
    codes = block.codes("label")
    side = np.where(codes < 0, 0, ranking.sign[codes])
    n_folds, m = ranking.middle.shape
    found = np.zeros((n_folds, m, 2, bins))
    x = block.x[:, ranking.features]
    for f in range(n_folds):
        chosen = np.flatnonzero((fold == f) & (side != 0))
        if chosen.size:
            scores = linear_scores(x[chosen], ranking.weights[f]) - ranking.middle[f]
            found[f] = _binned(scores, side[chosen] > 0, None if weight is None else weight[chosen], bins)
    return found


def linear_scores(x: Any, weights: np.ndarray) -> np.ndarray:
    """Scores of rows, dense or sparse: (n, p), (m, p) -> (n, m) float64."""
    if library(x) != "cupy":
        return np.asarray(x.astype(np.float64, copy=False) @ weights.T)
    xp = namespace(x)
    return to_numpy(x.astype(xp.float64) @ xp.asarray(weights.T))


def _binned(scores: np.ndarray, positive: np.ndarray, weight: np.ndarray | None, bins: int) -> np.ndarray:
    m = scores.shape[1]
    place = np.clip((scores + REACH) * (bins / (2 * REACH)), 0, bins - 1).astype(np.int64)
    key = (np.arange(m) * 2 + positive[:, None].astype(np.int64)) * bins + place
    w = None if weight is None else np.repeat(weight, m)
    return np.bincount(key.ravel(), w, minlength=m * 2 * bins).reshape(m, 2, bins)
