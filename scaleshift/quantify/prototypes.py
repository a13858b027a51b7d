"""Which of some 256 typical posteriors is a row's most like?  What a sample's rows say of it, in few numbers.

Counts of a sample's rows by prototype are additive. They tell its proportions almost as well as all its rows,
and can be drawn again as often as intervals need.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from scaleshift.blocks import noise

N_PROTOTYPES = 256
ROUNDS = 8  # of k-means: prototypes need to be near the rows, not to be best
ROWS_AT_A_TIME = 256


@dataclass(frozen=True)
class Prototypes:
    """Places in the simplex of posteriors; made by `learn_prototypes`.

    Near is what has near square roots: differences between small probabilities count.
    """

    centres: np.ndarray  # (n_prototypes, n_labels) square roots of probabilities
    posterior: np.ndarray  # (n_prototypes, n_labels) mean posterior of the rows nearest to each

    def __len__(self) -> int:
        return len(self.centres)

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return self.centres.nbytes + self.posterior.nbytes

    def nearest(self, posterior: np.ndarray) -> np.ndarray:
        """Number of the prototype of each row: (n, n_labels) -> (n,).

        Examples
        --------
        >>> corners = Prototypes(np.eye(3), np.eye(3))
        >>> corners.nearest(np.array([[0.8, 0.1, 0.1], [0.0, 0.4, 0.6]])).tolist()
        [0, 2]
        """
        # |x - z|^2 is |x|^2 - 2 (x z - |z|^2 / 2).
        half = np.square(self.centres).sum(axis=1) / 2
        found = np.empty(len(posterior), np.int64)
        for first in range(0, len(posterior), ROWS_AT_A_TIME):  # whose products stay in the cache
            rows = slice(first, first + ROWS_AT_A_TIME)
            found[rows] = (np.sqrt(posterior[rows]) @ self.centres.T - half).argmax(axis=1)
        return found

    def counts(self, posterior: np.ndarray, groups: np.ndarray, n_groups: int) -> np.ndarray:
        """Rows of each group by prototype: -> (n_groups, n_prototypes). Negative groups are left out.

        Examples
        --------
        >>> corners = Prototypes(np.eye(2), np.eye(2))
        >>> corners.counts(np.array([[0.8, 0.2], [0.1, 0.9]]), np.array([1, -1]), 2).tolist()
        [[0.0, 0.0], [1.0, 0.0]]
        """
        taken, n = groups >= 0, len(self)
        place = groups[taken].astype(np.int64) * n + self.nearest(posterior[taken])
        return np.bincount(place, minlength=n_groups * n).reshape(n_groups, n).astype(np.float64)


def learn_prototypes(
    posterior: np.ndarray, code: np.ndarray, seed: int, n_prototypes: int = N_PROTOTYPES
) -> Prototypes:
    """Find prototypes by k-means, in which every class counts the same.

    Parameters
    ----------
    posterior : numpy.ndarray, shape (n, n_labels)
        Of rows of the source, held out.
    code : numpy.ndarray of int, shape (n,)
        Class of each.
    seed : int
    n_prototypes : int, default 256
        At most; no more than there are different rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> first = rng.uniform(size=(1_000, 1))
    >>> found = learn_prototypes(np.hstack([first, 1 - first]), (first[:, 0] < 0.5).astype(int), seed=0)
    >>> len(found), bool(np.allclose(found.posterior.sum(axis=1), 1))
    (256, True)
    """
    from sklearn.cluster import kmeans_plusplus  # slow to import

    x, weight = np.sqrt(posterior), 1 / np.bincount(code)[code]
    state = np.random.RandomState(noise.generator(seed, "prototypes").integers(2**32))
    centres, _ = kmeans_plusplus(x, min(n_prototypes, len(x)), sample_weight=weight, random_state=state)
    found = Prototypes(np.unique(centres, axis=0), np.empty(0))
    for _ in range(ROUNDS):
        means = _means(found.nearest(posterior), np.hstack([x, posterior]), weight)
        found = Prototypes(*np.hsplit(means, 2))
    return found


def _means(number: np.ndarray, values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Weighted means of the rows of each number that occurs."""
    _, number = np.unique(number, return_inverse=True)
    sums = sparse.csr_array((weight, (number, np.arange(len(number))))) @ values
    return sums / np.bincount(number, weight)[:, None]
