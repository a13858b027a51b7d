"""Landmarks (Nystrom): Phi(x) = K_ZZ^(-1/2) k(Z, x), the exact kernel on the span of a few source rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from scaleshift.blocks import noise
from scaleshift.errors import DataError
from scaleshift.kernels import dispatch
from scaleshift.kernels.families import KERNELS
from scaleshift.quantify import bandwidth
from scaleshift.quantify.features.base import ExplicitEmbedding, FeatureMap, Source, known_kernel

POOL = 20  # rows drawn of a class for each of its landmarks
EIGENVALUES_ABOVE = 1e-7  # of the largest


class LandmarkFeatures(FeatureMap):
    """Features of a kernel by landmarks, rows of the source that all others are compared with.

    Soft matching on 64 to 128 landmarks is as good as with the exact kernel, also where unknown cells lie far
    from every class: there the features vanish.

    Parameters
    ----------
    n_landmarks : int, default 128
        Of the source, in equal shares of its classes, spread out within each.
    kernel : {"gaussian", "laplace", "matern32", "matern52", "cauchy"}, default "gaussian"
        As in `ExactKernel`. The Gaussian one is computed many times faster than the others.
    bandwidth : "auto" or float, default "auto"
        In the units of X. "auto" is chosen from the source; see `scaleshift.quantify.bandwidth`.
    landmarks : array-like, shape (n_landmarks, n_markers), optional
        Given ones, in place of drawn ones.
    random_state : None, int or numpy.random.Generator
        None takes the quantifier's.

    Notes
    -----
    One pass over the source draws landmarks and the rows for ``bandwidth="auto"``.
    Source: Williams and Seeger (2001), "Using the Nystrom method to speed up kernel machines".

    Examples
    --------
    >>> LandmarkFeatures(n_landmarks=64).n_landmarks
    64
    """

    def __init__(
        self,
        n_landmarks: int = 128,
        kernel: str = "gaussian",
        bandwidth: Any = "auto",
        landmarks: Any = None,
        random_state: Any = None,
    ):
        self.n_landmarks = n_landmarks
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.landmarks = landmarks
        self.random_state = random_state

    def learn(self, source: Source) -> LandmarkEmbedding:
        """Draw the landmarks, or take those given.

        Examples
        --------
        >>> from scaleshift import DFM
        >>> X, y = [[0.0], [0.1], [5.0], [5.1]], ["B", "B", "T", "T"]
        >>> model = DFM(LandmarkFeatures(3, bandwidth=1.0), n_bootstrap=0).fit(X, y)
        >>> model.embedding_  # what this gave
        <LandmarkEmbedding, 3 features, bandwidth 1>
        """
        kernel = known_kernel(self.kernel)
        if self.landmarks is not None:
            landmarks = _given(self.landmarks, source.n_columns)
            return embedding(
                landmarks, source.resolve_bandwidth(self.bandwidth, kernel=kernel), kernel=kernel
            )
        m = self.n_landmarks
        if not isinstance(m, int | np.integer) or m < 1:
            raise DataError(f"n_landmarks={m!r}: expected a positive number")
        share = equal_shares(source.counts, int(m))
        wanted = np.maximum(POOL * share, bandwidth.allocation(source.counts))
        drawn = source.draw(np.minimum(wanted, source.counts))
        width = source.resolve_bandwidth(self.bandwidth, drawn, kernel)
        rng = noise.generator(source.seed_of(self.random_state), "landmarks")
        chosen = [
            spread(drawn["x"][drawn["code"] == code].astype(np.float64), n, rng)
            for code, n in enumerate(share)
        ]
        landmarks = np.unique(np.concatenate(chosen), axis=0)
        return embedding(landmarks, width, drawn["x"].astype(np.float64), kernel)


def _given(landmarks: Any, d: int) -> np.ndarray:
    given = np.asarray(landmarks)
    if given.ndim != 2 or given.shape[1] != d or not len(given) or given.dtype.kind not in "iuf":
        raise DataError(
            f"landmarks have shape {given.shape} and dtype {given.dtype}: expected numbers, (n, {d}), one "
            "column a marker"
        )
    if not np.isfinite(given).all():
        row = np.flatnonzero(~np.isfinite(given).all(axis=1))[0]
        raise DataError(f"landmarks hold NaN or infinite values, first in row {row}: leave such rows out")
    return np.unique(given.astype(np.float64), axis=0)


def equal_shares(counts: np.ndarray, m: int) -> np.ndarray:
    """Landmarks of each class: equal, but for classes that have not enough rows; m in all where there are.

    Examples
    --------
    >>> equal_shares(np.array([1_000, 3, 0, 500]), 10).tolist()
    [4, 3, 0, 3]
    """
    share = np.zeros(len(counts), np.int64)
    while (left := m - share.sum()) > 0 and (open_ := np.flatnonzero(share < counts)).size:
        each = max(left // open_.size, 1)
        share[open_[:left]] += np.minimum(each, (counts - share)[open_[:left]])
    return share


def spread(x: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """`n` distinct rows of `x` that lie apart, drawn by k-means++."""
    x = np.unique(x, axis=0)
    if n >= len(x):
        return x
    if n == 0:
        return x[:0]
    from sklearn.cluster import kmeans_plusplus  # slow to import

    return kmeans_plusplus(x, n, random_state=int(rng.integers(2**31)))[0]


def embedding(
    landmarks: np.ndarray, width: float, rows: np.ndarray | None = None, kernel: str = "gaussian"
) -> LandmarkEmbedding:
    """The map of these landmarks; some `rows` tell the mean of ||Phi(x)||^2, which is 1 at most."""
    family = KERNELS[kernel]
    gram = family.matrix(landmarks, landmarks, width)
    values, vectors = np.linalg.eigh(gram)
    kept = values > EIGENVALUES_ABOVE * values[-1]
    # In the memory order that it has after saving and loading: another one gives other bits.
    whiten = np.ascontiguousarray(vectors[:, kept] / np.sqrt(values[kept]))
    self_product = 1.0
    if rows is not None:
        matched = family.matrix(rows, landmarks, width) @ whiten
        self_product = float(np.mean(np.sum(matched**2, axis=1)))
    return LandmarkEmbedding(landmarks, width, whiten, self_product, kernel)


@dataclass(frozen=True, repr=False)
class LandmarkEmbedding(ExplicitEmbedding):
    """Sums of k(x, z) over rows, and of r(x) = exp(-sum_z k(x, z)), which shows rows far from every z."""

    landmarks: np.ndarray  # (m, n_markers)
    bandwidth: float
    whiten: np.ndarray  # (m, n_matching), K_ZZ^(-1/2) up to a rotation
    self_product: float
    kernel: str = "gaussian"
    sums = staticmethod(dispatch.landmark_sums)

    @property
    def width(self) -> int:
        """A kernel sum for each landmark, and the residual's."""
        return len(self.landmarks) + 1

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The landmarks and the kernel."""
        return {"landmarks": self.landmarks, "bandwidth": self.bandwidth, "kernel": self.kernel}

    @property
    def n_matching(self) -> int:  # type: ignore[override]
        """All features but the residual."""
        return self.whiten.shape[1]

    def features(self, means: np.ndarray) -> np.ndarray:
        """[K_ZZ^(-1/2) k, r]: applied to means, never to rows."""
        return np.concatenate([means[..., :-1] @ self.whiten, means[..., -1:]], axis=-1)
