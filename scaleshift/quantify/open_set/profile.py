"""What is usual for a class of the source?  Where it lies, and how novel its cells are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

QUANTILE = 0.95


@dataclass(frozen=True)
class Profile:
    """Of the cells that are predicted to be of each class."""

    medians: np.ndarray  # (n_classes, n_markers); NaN where none is predicted
    thresholds: np.ndarray  # (n_classes,) 95 % quantiles of the novelty
    spread: np.ndarray  # (n_classes, n_markers) standard deviation within the class itself
    unknown: int  # class of unknown cells, or -1


def profile(
    z: np.ndarray,
    predicted: np.ndarray,
    novelty: np.ndarray,
    weight: np.ndarray,
    spread: np.ndarray,
    unknown: int,
) -> Profile:
    """Learn it from held-out cells of the source, each of which stands for `weight` cells.

    Parameters
    ----------
    z : numpy.ndarray, shape (n, n_markers)
    predicted, novelty, weight : numpy.ndarray, shape (n,)
    spread : numpy.ndarray, shape (n_classes, n_markers)
    unknown : int
    """
    medians = np.full(spread.shape, np.nan)
    thresholds = np.full(len(spread), quantile(novelty, weight, QUANTILE))
    for number in np.unique(predicted):
        here = predicted == number
        thresholds[number] = quantile(novelty[here], weight[here], QUANTILE)
        medians[number] = [quantile(values, weight[here], 0.5) for values in z[here].T]
    return Profile(medians, thresholds, spread, unknown)


def quantile(values: np.ndarray, weight: np.ndarray, level: float) -> float:
    """The value below which a share `level` of the weight lies; halfway where it falls between two.

    Examples
    --------
    >>> quantile(np.array([3.0, 1.0, 2.0, 4.0]), np.ones(4), 0.5)
    2.5
    >>> quantile(np.array([3.0, 1.0]), np.array([9.0, 1.0]), 0.5)
    3.0
    """
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weight[order])
    target = level * below[-1]
    tolerance = 1e-9 * below[-1]
    lower = min(int(np.searchsorted(below, target - tolerance)), len(order) - 1)
    upper = min(int(np.searchsorted(below, target + tolerance, "right")), len(order) - 1)
    a, b = values[order[lower]], values[order[upper]]
    return float(a if a == b else (a + b) / 2)
