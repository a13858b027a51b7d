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
