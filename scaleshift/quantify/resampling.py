"""How much would the answer vary?  Random halves of folds stand for new draws of the data.

A replicate takes half of the folds in place of all. Its mean deviates from the mean of all rows as one fresh
draw of them would (Poisson weights vary more than that).
"""

from __future__ import annotations

import functools

import numpy as np

from scaleshift.blocks import noise


@functools.lru_cache(maxsize=8)
def halves(n: int, n_folds: int, seed: int, stream: str) -> np.ndarray:
    """Weights of `n` replicates, each with mean 1.

    Parameters
    ----------
    n, n_folds : int
    seed : int
    stream : str
        Different streams are independent.

    Returns
    -------
    numpy.ndarray, shape (n, n_folds)
        The same for all folds that the replicate takes, 0 for the others.

    Notes
    -----
    The mean of k of J folds, drawn without replacement, has the variance S^2 (1/k - 1/J) with S^2 that of the
    folds. It has to be S^2 / J on average: k = J / 2; for odd J, (J + 1) / 2 with the probability
    (J + 1) / 2J, else (J - 1) / 2.

    Examples
    --------
    >>> np.sort(halves(1, 4, 0, "source")).tolist()
    [[0.0, 0.0, 2.0, 2.0]]
    """
    rng = noise.generator(seed, f"{stream}-halves")
    taken = np.full((n, 1), n_folds // 2)
    if n_folds % 2:
        taken += rng.random((n, 1)) < (n_folds + 1) / (2 * n_folds)
    weights = np.where(np.arange(n_folds) < taken, n_folds / taken, 0)
    drawn = rng.permuted(weights, axis=1)
    drawn.flags.writeable = False  # it is shared by all who ask
    return drawn


def deviations(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """By how much each fold moves the mean of its group, to first order.

    Weighted by a random half less one they add up to how the mean of a fresh draw deviates. Where few of the
    folds hold rows, these vary too little by themselves and are enlarged.

    Parameters
    ----------
    sums : numpy.ndarray, shape (..., n_folds, width)
    counts : numpy.ndarray, shape (..., n_folds)
        Rows of each fold; one at least in a group.

    Returns
    -------
    numpy.ndarray, shape (..., n_folds, width)
        0 for a group of which one fold holds all rows: it tells of no noise.

    Examples
    --------
    >>> deviations(np.array([[1.0], [3.0]]), np.array([1, 1])).ravel().tolist()
    [-0.5, 0.5]
    """
    n_rows = counts.sum(axis=-1)[..., None, None]
    moved = (sums - counts[..., None] * (sums.sum(axis=-2, keepdims=True) / n_rows)) / n_rows
    used, n_folds = np.count_nonzero(counts, axis=-1), counts.shape[-1]
    # The variance of a mean of k used folds is sum d^2 k / (k - 1); halves of n give sum d^2 n / (n - 1).
    larger = np.where(used > 1, used * (n_folds - 1) / (np.maximum(used - 1, 1) * n_folds), 1)
    return moved * np.sqrt(larger)[..., None, None]
