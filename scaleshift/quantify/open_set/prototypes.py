"""Which posteriors occur?  A few hundred of them stand for those of all cells.

What expectation-maximisation needs of a sample is how many cells are nearest to each prototype, and their
mean posterior: sums, which can be added in any chunking.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

N_PROTOTYPES = 256
MAX_ROWS = 10_000
TILE = 8_192  # rows at a time: bounds the matrix of products


@dataclass(frozen=True)
class Prototypes:
    """Posteriors, each class taken as equally frequent."""

    centres: np.ndarray  # (n_prototypes, n_classes)

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return self.centres.nbytes

    def nearest(self, posterior: np.ndarray) -> np.ndarray:
        """Number of the prototype that is nearest to each posterior: (n, n_classes) -> (n,)."""
        half = (self.centres**2).sum(axis=1) / 2
        found = np.empty(len(posterior), np.int64)
        for first in range(0, len(posterior), TILE):
            q = posterior[first : first + TILE]
            found[first : first + TILE] = (q @ self.centres.T - half).argmax(axis=1)
        return found


def learn_prototypes(posterior: np.ndarray, seed: int) -> Prototypes:
    """Prototypes of some cells' posteriors, by k-means.

    Parameters
    ----------
    posterior : numpy.ndarray, shape (n, n_classes)
        Of all classes about equally many.
    seed : int
    """
    taken = posterior[:: max(-(-len(posterior) // MAX_ROWS), 1)]
    distinct = np.unique(taken.round(6), axis=0)
    if len(distinct) <= N_PROTOTYPES:
        return Prototypes(distinct)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        means = KMeans(N_PROTOTYPES, n_init=1, max_iter=20, random_state=seed % 2**32).fit(taken)
    return Prototypes(means.cluster_centers_)
