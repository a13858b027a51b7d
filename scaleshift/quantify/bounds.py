"""How large can the error be?  Bounds of the theory, about 100 times larger than actual errors.

With probability 1 - delta the L2 error of the proportions is at most

    2 C R / sqrt(worth) (source term + 1 / sqrt(m)),    R = 2 + sqrt(2 log(2 c / delta)), C = sup ||Phi|| = 1,

with delta_min for hard and lambda_min for soft matching as the worth. The source term is ||w|| / sqrt(n) with
the importance weights w of the sample, and max_i 1 / sqrt(n_i) whatever the sample.
Source: Dussap, Blanchard and Cherief-Abdellatif (2023).
"""

from __future__ import annotations

import numpy as np

from scaleshift.errors import DataError


def source_bound(worth: float, counts: np.ndarray, delta: float) -> float:
    """The bound for a target without end, whatever its proportions.

    Parameters
    ----------
    worth : float
        Smallest eigenvalue of the Gram matrix that matching divides by.
    counts : numpy.ndarray, shape (n_labels,)
        Source rows of each class.
    delta : float
        Probability that the bound fails.

    Examples
    --------
    >>> round(source_bound(0.5, np.array([10_000, 10_000]), 0.05), 3)
    0.141
    """
    return _factor(worth, len(counts), delta) / np.sqrt(counts.min())


def sample_bound(
    worth: float, counts: np.ndarray, delta: float, weight: np.ndarray, n_cells: np.ndarray
) -> np.ndarray:
    """The bound of each sample: weight (n_samples, n_labels), n_cells (n_samples,) -> (n_samples,)."""
    with np.errstate(divide="ignore"):
        source = np.sqrt(np.square(weight).sum(axis=-1) / counts.sum())
        return _factor(worth, len(counts), delta) * (source + 1 / np.sqrt(n_cells))


def _factor(worth: float, c: int, delta: float) -> float:
    if not 0 < delta < 1:
        raise DataError(f"delta={delta!r}: expected a probability between 0 and 1")
    if not worth > 0:  # one class, or classes that coincide: nothing is bounded
        return np.inf
    return 2 * (2 + np.sqrt(2 * np.log(2 * c / delta))) / np.sqrt(worth)
