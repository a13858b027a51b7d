"""Which k coefficients stay?  The largest in magnitude, of equal ones the first: exactly k of them."""

from __future__ import annotations

import numpy as np

ROUNDING = 1e-12  # of a magnitude: copies of a feature are equal, in whatever order their sums were added up


def hard_threshold(v: np.ndarray, k: int) -> np.ndarray:
    """H_k, eq. (1), without sorting: O(d).

    Parameters
    ----------
    v : numpy.ndarray, shape (d,)
    k : int
        0 gives zeros, d and more `v` itself. Magnitudes that differ by 1e-12 of themselves are equal.

    Returns
    -------
    numpy.ndarray, shape (d,)
        A copy. Where `v` is not finite it is returned as it is, or what went wrong would be hidden.

    Examples
    --------
    >>> hard_threshold(np.array([1.0, -3.0, 2.0, -2.0]), 2).tolist()
    [0.0, -3.0, 2.0, 0.0]
    """
    d = len(v)
    if k >= d or not np.isfinite(v).all():
        return v.copy()
    kept = np.zeros(d, bool)
    if k > 0:
        magnitude = np.abs(v)
        least = np.partition(magnitude, d - k)[d - k]
        kept = magnitude > least * (1 + ROUNDING)
        equal = np.flatnonzero(~kept & (magnitude >= least * (1 - ROUNDING)))
        kept[equal[: k - int(kept.sum())]] = True
    return np.where(kept, v, 0.0)
