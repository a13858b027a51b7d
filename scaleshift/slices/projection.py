"""In which coordinates are covariances diagonal?  In principal components: exact, their signs fixed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scaleshift.kernels.reference import Array, to_numpy
from scaleshift.slices import tiles

RELATIVE = 1e-10  # of the largest variance: directions with less hold rounding errors only


@dataclass(frozen=True)
class Projection:
    """(x - mean) components', or x - mean alone."""

    mean: np.ndarray  # (d,)
    components: np.ndarray | None  # (d', d), orthonormal rows

    def __post_init__(self) -> None:
        """Refuse parts that do not belong together, as a damaged file may hold."""
        d = np.shape(self.mean)
        if len(d) != 1 or (self.components is not None and np.shape(self.components)[1:] != d):
            raise ValueError("the parts of a projection have other shapes than its mean")

    @property
    def n_columns(self) -> int:
        """Columns that come out."""
        return len(self.mean) if self.components is None else len(self.components)

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return self.mean.nbytes + (0 if self.components is None else self.components.nbytes)

    def __call__(self, x: Array, dtype: np.dtype) -> np.ndarray:
        """Project rows, some at a time: (n, d) -> (n, d') of the dtype."""
        x = to_numpy(x)
        result = np.empty((len(x), self.n_columns), dtype)
        # Subtracted before anything is rounded.
        centre = self.mean.astype(np.result_type(x.dtype, np.float32))
        if self.components is None:
            return np.subtract(x, centre, out=result, casting="same_kind")
        components = self.components.T.astype(dtype)
        tile = np.empty((min(tiles.ROWS, len(x)), x.shape[1]), dtype)
        for rows in tiles.tiles(len(x)):
            centred = tile[: rows.stop - rows.start]
            np.subtract(x[rows], centre, out=centred, casting="same_kind")
            np.matmul(centred, components, out=result[rows])
        return result

    def back(self, means: np.ndarray) -> np.ndarray:
        """Points of the projected space as embeddings, (k, d') -> (k, d)."""
        return self.mean + (means if self.components is None else means @ self.components)


def principal(mean: np.ndarray, covariance: np.ndarray, n_components: int) -> Projection:
    """Project on the directions of largest variance; fewer where the rest has none.

    Signs are such that the largest entry of each direction is positive: nothing depends on luck.

    Parameters
    ----------
    mean : numpy.ndarray, shape (d,)
    covariance : numpy.ndarray, shape (d, d)
    n_components : int
        More than d counts as d.

    Examples
    --------
    >>> found = principal(np.zeros(2), np.array([[1.0, 0.0], [0.0, 4.0]]), 1)
    >>> found.components.tolist()
    [[0.0, 1.0]]
    """
    variance, vectors = np.linalg.eigh(covariance)
    variance, vectors = variance[::-1], vectors[:, ::-1]
    # Values far from zero are rounded to float32 before they come here.
    rounding = (4 * np.finfo(np.float32).eps * np.abs(mean).max(initial=0)) ** 2
    real = max(1, int((variance > max(RELATIVE * variance[0], rounding)).sum()))
    components = vectors[:, : min(n_components, real)].T
    largest = np.abs(components).argmax(axis=1)
    signs = np.sign(components[np.arange(len(components)), largest])
    return Projection(mean, np.ascontiguousarray(components * signs[:, None]) + 0.0)
