"""Which components are slices to look at?  Those with more errors than the overall rate lets expect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats

from scaleshift.slices.mixtures.expectation import Fit
from scaleshift.slices.mixtures.mixture import Mixture

LEAST_SUPPORT = 5.0  # rows of a slice
LEVEL = 0.95  # of the Wilson bound


@dataclass(frozen=True)
class Evidence:
    """What the last pass of the fit says of each component."""

    mass: float  # of all rows
    n: np.ndarray  # (K,) weighted rows of each
    errors: np.ndarray  # (K,)
    loss: np.ndarray  # (K,) sums
    mixture: Mixture

    @property
    def error_rate(self) -> float:
        """Of all rows."""
        return float(self.errors.sum() / self.mass)


def excess_errors(found: Evidence) -> np.ndarray:
    """Errors beyond those expected at the overall rate, (K,)."""
    return found.errors - found.error_rate * found.n


def error_rate(found: Evidence) -> np.ndarray:
    """Share of errors, (K,)."""
    return found.errors / np.maximum(found.n, np.finfo(float).tiny)


def loss(found: Evidence) -> np.ndarray:
    """Loss beyond that expected at the overall mean, (K,)."""
    return found.loss - found.loss.sum() / found.mass * found.n


def wilson(found: Evidence) -> np.ndarray:
    """Lower end of the Wilson interval of the share of errors, (K,)."""
    return wilson_interval(found.errors, found.n, LEVEL)[0]


def mismatch(found: Evidence) -> np.ndarray:
    """Largest excess of a predicted class over the label, |max_c (q_kc - p_kc)|: domino 0.1.5's score, (K,).

    It is 0 for a component that is wrong everywhere, half of it false positives and half false negatives.
    """
    mixture = found.mixture
    assert mixture.prediction_probs is not None
    return np.abs((mixture.prediction_probs - mixture.label_probs).max(axis=1))


RANKINGS: dict[str, Callable[[Evidence], np.ndarray]] = {
    "excess_errors": excess_errors,
    "error_rate": error_rate,
    "loss": loss,
    "wilson": wilson,
    "mismatch": mismatch,
}
OF_ERRORS = ("excess_errors", "error_rate", "wilson", "mismatch")  # not for losses alone


def best(scores: np.ndarray, n: np.ndarray, n_slices: int) -> np.ndarray:
    """Components with the highest scores, best first, those of too few rows last: (n_slices,) int64."""
    return np.lexsort((-scores, n < LEAST_SUPPORT))[:n_slices].astype(np.int64)


def criterion(sums: dict[str, np.ndarray], fits: list[Fit]) -> np.ndarray:
    """Bayesian information criterion a row, of each mixture."""
    mass = sums["mass"][0]
    parameters = np.array([fit.mixture.n_parameters for fit in fits])
    return (-2 * sums["log_likelihood"] + parameters * np.log(mass)) / mass


def evidence(sums: dict[str, np.ndarray], fits: list[Fit], best: int) -> Evidence:
    """What the last pass says of the components of the best mixture."""
    first = sum(fit.mixture.n_components for fit in fits[:best])
    part = slice(first, first + fits[best].mixture.n_components)
    extra = sums["extra"][part]
    return Evidence(float(sums["mass"][0]), sums["n"][part], extra[:, 0], extra[:, 1], fits[best].mixture)


def wilson_interval(hits: np.ndarray, n: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Interval of a share (Wilson 1927); (0, 1) without rows.

    Examples
    --------
    >>> low, high = wilson_interval(np.array([5.0]), np.array([10.0]), 0.95)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.237], [0.763])
    """
    z = stats.norm.ppf((1 + level) / 2)
    rows = np.maximum(n, np.finfo(float).tiny)
    share = hits / rows
    centre = (share + z**2 / (2 * rows)) / (1 + z**2 / rows)
    half = z / (1 + z**2 / rows) * np.sqrt(np.maximum(share * (1 - share), 0) / rows + z**2 / (4 * rows**2))
    # Exact at the ends, where rounding would leave [0, 1].
    low = np.where((np.asarray(n) > 0) & (hits > 0), np.maximum(centre - half, 0), 0.0)
    return low, np.where((np.asarray(n) > 0) & (hits < n), np.minimum(centre + half, 1), 1.0)
