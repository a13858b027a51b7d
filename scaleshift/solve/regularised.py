"""Class proportions that explain a sample's predicted shares without straying far from the source's.

Minimise ||M'a - t|| + penalty ||a / b - 1|| over a >= 0: norms, not their squares. A minimiser of these is
one of ||M'a - t||^2 + ridge ||a / b - 1||^2 for the ridge = penalty ||M'a - t|| / ||a / b - 1||. As the ridge
grows, the first norm grows and the second falls along a convex curve, so ridge ||a / b - 1|| - penalty
||M'a - t|| changes its sign once: one root to find, each trial a quadratic program. The ends, where one of
the norms is zero and has no slope, are told apart by their subgradients.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize.elementwise import find_root

from scaleshift.solve.simplex import simplex_least_squares

LEAST_RIDGE, MOST_RIDGE = 1e-14, 1e8  # where a sample's and the classes' shares sum to one


def regularised_mixture(
    means: np.ndarray, targets: np.ndarray, share: np.ndarray, penalty: float
) -> np.ndarray:
    """Proportions that are penalised by how far importance weights are from one.

    Parameters
    ----------
    means : numpy.ndarray, shape (n, c, n_features)
        Predicted shares of the classes, with the sum 1 each: n problems.
    targets : numpy.ndarray, shape (n, n_features)
        Predicted shares of the samples, with the sum 1.
    share : numpy.ndarray, shape (c,)
        Class shares of the source, positive.
    penalty : float
        Not negative.

    Returns
    -------
    numpy.ndarray, shape (n, c)
        Not negative; the sum is near 1. A problem's minimiser does not depend on those solved with it.

    Examples
    --------
    >>> means, share = np.array([[[0.9, 0.1], [0.2, 0.8]]]), np.array([0.5, 0.5])
    >>> target = np.array([[0.27, 0.73]])
    >>> regularised_mixture(means, target, share, 0.0).round(6).tolist()
    [[0.1, 0.9]]
    >>> regularised_mixture(means, target, share, 1.0).tolist()
    [[0.5, 0.5]]
    """
    difference = targets - share @ means
    pull = np.linalg.norm(share * (means @ difference[..., None])[..., 0], axis=1)
    result = np.tile(share, (len(means), 1))
    moved = np.flatnonzero(pull > penalty * np.linalg.norm(difference, axis=1))
    means, targets = means[moved], targets[moved]

    def excess(log_ridge: np.ndarray, rows: np.ndarray) -> np.ndarray:
        ridge = np.exp(log_ridge)
        alpha = _ridge(means[rows], targets[rows], share, ridge)
        missed = np.linalg.norm(_mixed(alpha, means[rows]) - targets[rows], axis=1)
        return ridge * np.linalg.norm(alpha / share - 1, axis=1) - penalty * missed

    ends = np.log([LEAST_RIDGE, MOST_RIDGE])
    ridge = np.zeros(len(moved))
    rows = np.arange(len(moved))
    low, high = excess(np.full(len(rows), ends[0]), rows), excess(np.full(len(rows), ends[1]), rows)
    ridge[high <= 0] = MOST_RIDGE
    inner = rows[(low < 0) & (high > 0)]
    if inner.size:
        ridge[inner] = np.exp(find_root(excess, tuple(ends), args=(inner,), tolerances={"xatol": 1e-13}).x)
    result[moved] = _ridge(means, targets, share, ridge)
    return result


def _ridge(means: np.ndarray, targets: np.ndarray, share: np.ndarray, ridge: np.ndarray) -> np.ndarray:
    """Minimise ||M'a - t||^2 + ridge ||a / b - 1||^2 over a >= 0: -> (n, c)."""
    # As what is missed is no more than with a = b, it has a norm of at most sqrt(2): the sum is below this.
    bound = 2 + np.sqrt(2 * means.shape[2])
    gram = means @ means.swapaxes(1, 2) + ridge[:, None, None] * np.diag(1 / share**2)
    products = (means @ targets[..., None])[..., 0] + ridge[:, None] / share
    return bound * simplex_least_squares(gram, products / bound, soft=True)


def _mixed(alpha: np.ndarray, means: np.ndarray) -> np.ndarray:
    """(n, c), (n, c, n_features) -> (n, n_features)."""
    return (alpha[:, None] @ means)[:, 0]
