"""How must source rows be weighted to look like a target?  By the odds that a row is of the target."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from scaleshift.blocks import noise
from scaleshift.blocks.blas import one_thread

# Of |w|^2 / 2 beside the sum of log losses. The one that tells held-out rows apart best: with many features
# and few rows a light penalty finds differences where there are none.
PENALTIES = (1.0, 30.0, 1_000.0)
MOST_LOG_ODDS = 52 * np.log(2)  # beyond, the probability rounds to 1


@dataclass(frozen=True)
class Shift:
    """How a target differs from the source, as a cross-fitted discriminator sees it."""

    weight: np.ndarray  # (n,) of source rows
    auc: float  # of telling target from source: 0.5 where they are alike

    @property
    def effective_sample_size(self) -> float:
        """So many source rows of weight 1 tell as much of the target: (sum w)^2 / sum w^2.

        Examples
        --------
        >>> Shift(np.array([1.0, 3.0]), 0.5).effective_sample_size
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
        >>> Shift(np.array([0.01, 0.03]), 1.0).coverage
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
    >>> bool(abs(alike.auc - 0.5) < 0.05), bool(alike.effective_sample_size > 450)
    (True, True)
    """
    n, m = len(source), len(target)
    features = _features(source, target)
    is_target = np.repeat([False, True], [n, m])
    random = noise.generator(noise.seed_of(random_state), "discriminator")
    fold = np.concatenate([random.permutation(size) % n_folds for size in (n, m)])
    with one_thread(), warnings.catch_warnings():
        # Sides that can be told apart entirely have no best weights: what is reached then is as good.
        warnings.simplefilter("ignore", ConvergenceWarning)
        tried = [_cross_fitted(features, is_target, fold, penalty) for penalty in PENALTIES]
    log_odds = min(tried, key=lambda found: _log_loss(found, is_target))
    balanced = log_odds + np.log(n / m)  # as if there were as many rows on both sides
    weight = np.exp(np.minimum(balanced[:n], MOST_LOG_ODDS))
    return Shift(weight, float(roc_auc_score(is_target, log_odds)))


def _cross_fitted(
    features: np.ndarray, is_target: np.ndarray, fold: np.ndarray, penalty: float
) -> np.ndarray:
    """Log odds that each row is of the target, by a model that has not seen it, (n + m,)."""
    found = np.empty(len(features))
    for number in np.unique(fold):
        out = fold == number
        model = LogisticRegression(C=1 / penalty, max_iter=200).fit(features[~out], is_target[~out])
        found[out] = model.decision_function(features[out])
    return found


def _log_loss(log_odds: np.ndarray, is_target: np.ndarray) -> float:
    return float(np.logaddexp(0, np.where(is_target, -log_odds, log_odds)).mean())


def _features(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Standardised features and their squares, of source and target rows: (n + m, 2 p).

    A change of spread shows in the squares alone.
    """
    linear = _standardised(np.concatenate([source, target]), len(source))
    return np.hstack([linear, _standardised(linear**2, len(source))])


def _standardised(x: np.ndarray, n: int) -> np.ndarray:
    """By mean and spread of both sides, of which each counts by half; constant features become 0.

    The source's spread alone would blow up features that hardly vary there. Many target rows count no more
    than few.
    """
    centred = x - (x[:n].mean(axis=0) + x[n:].mean(axis=0)) / 2
    spread = np.sqrt(((centred[:n] ** 2).mean(axis=0) + (centred[n:] ** 2).mean(axis=0)) / 2)
    largest = abs(x).max(axis=0)
    return np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 1e-12 * largest)
