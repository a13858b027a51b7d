"""How must source rows be weighted to look like a target?  By the odds that a row is of the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize

from scaleshift.blocks import noise
from scaleshift.blocks.blas import one_thread

# Of |w|^2 / 2 beside the sum of log losses. The one that tells held-out rows apart best: with many features
# and few rows a light penalty finds differences where there are none.
PENALTIES = np.array([1.0, 30.0, 1_000.0])
MOST_LOG_ODDS = 52 * np.log(2)  # beyond, the probability rounds to 1
# Slope of a mean log loss at which a fit ends: closer, weights change by less than by other rows. Sides that
# can be told apart entirely have no best weights, and end there too.
FLAT = 1e-3


@dataclass(frozen=True)
class Shift:
    """How a target differs from the source, as a cross-fitted discriminator sees it."""

    weight: np.ndarray  # (n,) of source rows

    @property
    def effective_sample_size(self) -> float:
        """So many source rows of weight 1 tell as much of the target: (sum w)^2 / sum w^2.

        Examples
        --------
        >>> Shift(np.array([1.0, 3.0])).effective_sample_size
        1.6
        """
        return float(self.weight.sum() ** 2 / (self.weight**2).sum())

    @property
    def coverage(self) -> float:
        """Share of the target that source rows stand for, about: the mean weight, at most 1.

        Density ratios have the mean 1 unless the target is where there is no source. The effective sample
        size does not tell: where sides are told apart entirely, all weights are alike, and small.

        Examples
        --------
        >>> Shift(np.array([0.01, 0.03])).coverage
        0.02
        """
        return min(float(self.weight.mean()), 1.0)


def discriminate(source: np.ndarray, target: np.ndarray, *, n_folds: int = 5, random_state: Any = 0) -> Shift:
    """Fit logistic regressions of target against source, each on all folds but one.

    Parameters
    ----------
    source : numpy.ndarray of float64, shape (n, p)
        Finite.
    target : numpy.ndarray of float64, shape (m, p)
    n_folds : int, default 5
        At most as many as there are rows on either side.
    random_state : int, Generator or None, default 0
        Of the folds.

    Returns
    -------
    Shift

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> alike = discriminate(rng.normal(size=(500, 2)), rng.normal(size=(500, 2)))
    >>> bool(alike.effective_sample_size > 450)
    True
    """
    n, m = len(source), len(target)
    is_target = np.repeat([False, True], [n, m])
    random = noise.generator(noise.seed_of(random_state), "discriminator")
    fold = np.concatenate([random.permutation(size) % n_folds for size in (n, m)])
    with one_thread():
        tried = _cross_fitted(_features(source, target), is_target, fold, n_folds)
    log_odds = min(tried, key=lambda found: _log_loss(found, is_target))
    balanced = log_odds[:n] + np.log(n / m)  # as if there were as many rows on both sides
    return Shift(np.exp(np.minimum(balanced, MOST_LOG_ODDS)))


def _cross_fitted(z: np.ndarray, is_target: np.ndarray, fold: np.ndarray, n_folds: int) -> np.ndarray:
    """Log odds that each row is of the target, by models that have not seen it: one a penalty, (L, n + m)."""
    train = fold[:, None] != np.arange(n_folds)
    n_penalties, n_train = len(PENALTIES), train.sum(axis=0)
    share = np.repeat((train / n_train).astype(z.dtype), n_penalties, axis=1)
    penalty = (PENALTIES / n_train[:, None]).ravel()
    weights = _fitted(z, is_target, share, penalty).reshape(-1, n_folds, n_penalties)
    found = np.empty((n_penalties, len(z)))
    for number in range(n_folds):
        out = fold == number
        found[:, out] = (z[out] @ weights[:, number]).T
    return found


def _fitted(z: np.ndarray, is_target: np.ndarray, share: np.ndarray, penalty: np.ndarray) -> np.ndarray:
    """Weights of C logistic regressions, (q, C), in one descent: rows are read once for all of them.

    `share`, (n, C): of each row in the mean log loss of a fit; `penalty`, (C,): beside that mean.
    """
    q, c = z.shape[1], len(penalty)
    sign = np.where(is_target, -1, 1).astype(z.dtype)[:, None]

    def loss_and_slope(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weights = flat.reshape(q, c)
        wrong = z @ weights.astype(z.dtype)  # log odds, then those of the wrong side
        wrong *= sign
        small = np.exp(-np.abs(wrong))
        losses = np.log1p(small) + np.maximum(wrong, 0)
        proba = np.where(wrong > 0, 1, small) / (1 + small)
        slope = (z.T @ (proba * sign * share)).astype(np.float64)
        shrunk = penalty * weights[1:]
        slope[1:] += shrunk
        return float(np.vdot(share, losses)) + float(np.vdot(shrunk, weights[1:])) / 2, slope.ravel()

    start = np.zeros(q * c)
    found = optimize.minimize(loss_and_slope, start, jac=True, method="L-BFGS-B", options={"gtol": FLAT})
    return np.asarray(found.x.reshape(q, c), z.dtype)


def _log_loss(log_odds: np.ndarray, is_target: np.ndarray) -> float:
    return float(np.logaddexp(0, np.where(is_target, -log_odds, log_odds)).mean())


def _features(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """1, standardised features and their squares, of source and target rows: (n + m, 1 + 2 p) float32.

    A change of spread shows in the squares alone. Single precision is enough for standardised numbers, and
    takes half the time.
    """
    n, p = len(source), source.shape[1]
    found = np.ones((n + len(target), 1 + 2 * p), np.float32)
    linear = _standardised(np.concatenate([source, target]), n)
    found[:, 1 : 1 + p] = linear
    found[:, 1 + p :] = _standardised(linear * linear, n)
    return found


def _standardised(x: np.ndarray, n: int) -> np.ndarray:
    """By mean and spread of both sides, of which each counts by half; constant features become 0.

    The source's spread alone would blow up features that hardly vary there. Many target rows count no more
    than few.
    """
    centred = x - (x[:n].mean(axis=0) + x[n:].mean(axis=0)) / 2
    squares = [np.einsum("ij,ij->j", side, side) / len(side) for side in (centred[:n], centred[n:])]
    spread = np.sqrt((squares[0] + squares[1]) / 2)
    largest = np.maximum(x.max(axis=0), -x.min(axis=0))
    centred *= np.divide(1, spread, out=np.zeros_like(spread), where=spread > 1e-12 * largest)
    return centred
