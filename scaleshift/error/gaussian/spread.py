"""How do refits scatter about the generator?  M = mean of (theta* - theta)(theta* - theta)'.

It depends on the source alone: the error of any target is variance of noise + tr(U M).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scaleshift.error.gaussian.clusters import NoiseVariance
from scaleshift.error.gaussian.sums import Outcomes


@dataclass(frozen=True)
class RefitSpread:
    """M, and the replicates that it is the mean of."""

    matrix: np.ndarray  # (q, q)
    differences: np.ndarray  # (B, q) generator less refit; none where M is exact
    in_b: np.ndarray  # (B,) error at the source's rows, noise of outcomes integrated out
    in_b_drawn: np.ndarray  # (B,) with fresh outcomes that were given; else none
    covariance_penalty: float  # 2/n sum of cov(prediction, outcome) over replicates; NaN without given noise

    @classmethod
    def unknown(cls, q: int) -> RefitSpread:
        """Where there is no variance of noise."""
        return cls(np.full((q, q), np.nan), np.empty((0, q)), np.empty(0), np.empty(0), np.nan)


def exact_spread(
    operator: np.ndarray, gram: np.ndarray, between: np.ndarray | None, mean: np.ndarray, noise: NoiseVariance
) -> RefitSpread:
    """Of a linear procedure theta = A Z'y: bias bias' + A cov(Z'y) A', without replicates."""
    bias = operator @ (gram @ mean) - mean
    covariance = noise.own * gram if between is None else noise.own * gram + noise.shared * between
    matrix = np.outer(bias, bias) + operator @ covariance @ operator.T
    empty = np.empty(0)
    return RefitSpread(matrix, np.empty((0, len(mean))), empty, empty, np.nan)


def spread_of(
    theta: np.ndarray,
    mean: np.ndarray,
    noise: NoiseVariance,
    gram: np.ndarray,
    train: Outcomes | None,
    fresh: Outcomes | None,
) -> RefitSpread:
    """Of refits, (q, B); with the sums of given noise also what was drawn."""
    differences = np.ascontiguousarray((mean[:, None] - theta).T)
    products, n = gram / gram[0, 0], gram[0, 0]
    in_b = noise.total + squares(differences, products)
    in_b_drawn, penalty = np.empty(0), np.nan
    if train is not None and fresh is not None:
        in_b_drawn = drawn_errors(
            differences, products, noise, fresh.cross.sum(axis=0), fresh.square.sum(axis=0), n
        )
        centred = theta - theta.mean(axis=1, keepdims=True)
        cross = np.vdot(centred, train.cross.sum(axis=0))
        penalty = 2 * np.sqrt(noise.total) * cross / (n * max(len(in_b) - 1, 1))
    matrix = differences.T @ differences / max(len(differences), 1)
    return RefitSpread(matrix, differences, in_b, in_b_drawn, float(penalty))


def squares(differences: np.ndarray, products: np.ndarray) -> np.ndarray:
    """Mean squared difference of predictions, d'U d: (B, q) -> (B,)."""
    return np.einsum("bq,bq->b", differences @ products, differences)


def drawn_errors(
    differences: np.ndarray,
    products: np.ndarray,
    noise: NoiseVariance,
    cross: np.ndarray,
    square: np.ndarray,
    n: float,
) -> np.ndarray:
    """Mean of (z'd + s e)^2 over n rows, of sums of their noise, (q, B) and (B,): -> (B,)."""
    along = np.einsum("bq,qb->b", differences, cross)
    own = squares(differences, products)
    found: np.ndarray = own + 2 * np.sqrt(noise.total) * along / n + noise.total * square / n
    return found
