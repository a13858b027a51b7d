"""What do a few rows add to logistic and softmax fits?  Sums of probabilities, for many fits at once.

Rows are z, (t, q): 1, then the features; all zeros of a row that does not count. Parameters are
(m, q, n_fits) with m = 1 of two classes, whose logit is that of the second, and m = K of K classes. Float64.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from scaleshift.kernels.cpu import categorical

TILE = 98_304  # numbers of a tile's logits, about: three such arrays fit the caches
FEWEST_ROWS = 64


def tiles(n: int, width: int, most: int = 4_096) -> Iterator[slice]:
    """Runs of rows, such that arrays of `width` numbers a row stay in the caches.

    Examples
    --------
    >>> list(tiles(5, 10, most=3))
    [slice(0, 3, None), slice(3, 5, None)]
    """
    step = int(min(max(TILE // max(width, 1), FEWEST_ROWS), most))
    for begin in range(0, n, step):
        yield slice(begin, min(begin + step, n))


def logits(z: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Logits of rows under every fit: (t, q), (m, q, n_fits) -> (m, t, n_fits)."""
    found: np.ndarray = np.matmul(z, theta)
    return found


def probabilities(logits: np.ndarray) -> np.ndarray:
    """Probabilities of contiguous logits, in their place: of the second class, or of each of K.

    Examples
    --------
    >>> probabilities(np.zeros((1, 1, 1))).ravel().tolist()
    [0.5]
    >>> probabilities(np.zeros((4, 1, 1))).ravel().tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    if len(logits) == 1:
        categorical.sigmoids(logits.reshape(-1))
        return logits
    logits -= logits.max(axis=0)
    categorical.exponentials(logits.reshape(-1))
    logits /= logits.sum(axis=0)
    return logits


def log_totals(logits: np.ndarray) -> np.ndarray:
    """Give log sum_k exp(logit_k), the first of two classes with the logit 0: (m, t, n) -> (t, n)."""
    if len(logits) == 1:  # max(x, 0) - log p of |x|: log1p would cost three times as much
        found: np.ndarray = probabilities(np.abs(logits))[0]
        np.log(found, out=found)
        return np.subtract(np.maximum(logits[0], 0), found, out=found)
    highest = logits.max(axis=0)
    each = logits - highest
    categorical.exponentials(each.reshape(-1))
    found = each.sum(axis=0)
    np.log(found, out=found)
    found += highest
    return found


def class_probabilities(logits: np.ndarray) -> np.ndarray:
    """Probabilities of every class: (m, t, n_fits) -> (K, t, n_fits)."""
    found = probabilities(logits.copy())
    return np.concatenate([1 - found, found]) if len(found) == 1 else found


def group_sums(z: np.ndarray, group: np.ndarray, n_groups: int) -> np.ndarray:
    """Sums of rows by group, (n_groups, q); negative groups do not count.

    Examples
    --------
    >>> group_sums(np.ones((3, 1)), np.array([1, -1, 1]), 2).tolist()
    [[0.0], [2.0]]
    """
    found = np.zeros((n_groups, z.shape[1]))
    numbers = np.arange(n_groups)
    for tile in tiles(len(z), n_groups):
        found += (group[tile, None] == numbers).astype(np.float64).T @ z[tile]
    return found


def slope_sums(
    z: np.ndarray, theta: np.ndarray, fold: np.ndarray | None, left_out: np.ndarray | None
) -> np.ndarray:
    """Z'P of every fit.

    Parameters
    ----------
    z : numpy.ndarray, shape (t, q)
    theta : numpy.ndarray, shape (m, q, n_fits)
    fold : numpy.ndarray of int, shape (t,), or None
        Of each row.
    left_out : numpy.ndarray of int, shape (n_fits,), or None
        Fold whose rows do not count in a fit; negative: none. None: all rows count in all fits.

    Returns
    -------
    numpy.ndarray, shape (m, q, n_fits)
    """
    found = np.zeros(theta.shape)
    m, _, n_fits = theta.shape
    for tile in tiles(len(z), m * n_fits):
        p = probabilities(logits(z[tile], theta))
        if left_out is not None and fold is not None:
            p *= fold[tile, None] != left_out
        found += np.matmul(z[tile].T, p)
    return found


def curve_sums(
    z: np.ndarray, theta: np.ndarray, fold: np.ndarray | None, left_out: np.ndarray | None
) -> dict[str, np.ndarray]:
    """What Newton's step of every fit needs.

    Parameters
    ----------
    z, theta, fold, left_out
        As for `slope_sums`.

    Returns
    -------
    dict
        slope (m, q, n_fits): Z'P; curvature (n_fits, m q, m q): second derivatives of the negative log
        likelihood, coordinates class by class; total (n_fits,): sum of log totals.
    """
    m, q, n_fits = theta.shape
    slope = np.zeros(theta.shape)
    curvature = np.zeros((n_fits, m, q, m, q))
    total = np.zeros(n_fits)
    for tile in tiles(len(z), max(m * n_fits, q)):
        rows = z[tile]
        counts = np.broadcast_to(rows[:, :1], (len(rows), n_fits))  # 1 where a row counts in a fit
        if left_out is not None and fold is not None:
            counts = counts * (fold[tile, None] != left_out)
        found = logits(rows, theta)
        total += np.einsum("tc,tc->c", log_totals(found), counts)
        p = probabilities(found)
        p *= counts
        slope += np.matmul(rows.T, p)
        _add_curvature(curvature, rows, p)
    return {"slope": slope, "curvature": curvature.reshape(n_fits, m * q, m * q), "total": total}


def _add_curvature(curvature: np.ndarray, rows: np.ndarray, p: np.ndarray) -> None:
    """Add sum_i p_k (1{k = l} - p_l) z z' of some rows: (n_fits, m, q, m, q)."""
    for c in range(len(curvature)):
        for k in range(len(p)):
            for other in range(k, len(p)):
                weight = p[k, :, c] * ((k == other) - p[other, :, c])
                part = (rows * weight[:, None]).T @ rows
                curvature[c, k, :, other] += part
                if other != k:
                    curvature[c, other, :, k] += part
