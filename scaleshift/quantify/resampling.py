"""How much would the answer vary?  Random halves of folds stand for new draws of the data.

A replicate gives half of the folds the weight 2 and the others 0. Its mean deviates from the mean of all rows
as one fresh draw of them would (Poisson weights vary more than that).
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
        2 for half of the folds, 0 for the others; of an odd number one has 1.

    Examples
    --------
    >>> np.sort(halves(1, 5, 0, "source")).tolist()
    [[0.0, 0.0, 1.0, 2.0, 2.0]]
    """
    weights = np.ones((n, n_folds))
    weights[:, : n_folds // 2] = 2
    weights[:, n_folds - n_folds // 2 :] = 0
    drawn = noise.generator(seed, f"{stream}-halves").permuted(weights, axis=1)
    drawn.flags.writeable = False  # it is shared by all who ask
    return drawn


def unbiased(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Sums of parts of which random halves vary as fresh draws of all rows would.

    Halves of n parts vary too little where few of these hold rows, or n is odd: the parts' deviations from
    the mean are enlarged by as much. One part alone has none.

    Parameters
    ----------
    sums : numpy.ndarray, shape (..., n_parts, width)
    counts : numpy.ndarray, shape (..., n_parts)
        Rows of each part; of all parts one at least.

    Returns
    -------
    numpy.ndarray, shape (..., n_parts, width)

    Examples
    --------
    >>> unbiased(np.array([[1.0], [3.0], [0.0], [0.0]]), np.array([1, 1, 0, 0])).round(2).ravel().tolist()
    [0.78, 3.22, 0.0, 0.0]
    """
    used, n = np.count_nonzero(counts, axis=-1), counts.shape[-1]
    wanted = used / np.maximum(used - 1, 1)
    factor = np.where(used > 1, np.sqrt(wanted / (n / (n - 1) if n % 2 == 0 else 1)), 1)
    if (factor == 1).all():
        return sums
    mean = sums.sum(axis=-2) / counts.sum(axis=-1)[..., None]
    deviations = sums - counts[..., None] * mean[..., None, :]
    return sums + (factor - 1)[..., None, None] * deviations
