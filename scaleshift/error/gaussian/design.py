"""What follows from the rows' features alone, whatever their outcomes are?  Moments of the training parts.

Solutions are made of centred moments, in units of the features: an intercept is never penalised.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

CONSTANT = 1e-12  # share of a square that a variance must have to be one, when told from sums
RANK = 1e-12  # of the largest eigenvalue of a correlation matrix: below, there is none


@dataclass(frozen=True)
class CentredPart:
    """Rows of which a model is learned, about a centre."""

    n: float
    mean: np.ndarray  # (p,)
    unit: np.ndarray  # (p,) in which weights count: 1, or the standard deviation
    scatter: np.ndarray  # (p, p) about the mean, in units; 0 of features that do not vary

    def centred(self, cross: np.ndarray) -> np.ndarray:
        """Sums of products of features about their mean with outcomes: (1 + p, C) -> (p, C), in units."""
        found = (cross[1:] - self.mean[:, None] * cross[0]) / self.unit[:, None]
        found[np.diag(self.scatter) <= 0] = 0
        return found

    def whole(self, weights: np.ndarray, cross: np.ndarray) -> np.ndarray:
        """Intercept and weights of z: (p, C) in units -> (1 + p, C)."""
        weights = weights / self.unit[:, None]
        weights[np.diag(self.scatter) <= 0] = 0
        return np.concatenate([(cross[0] / self.n - self.mean @ weights)[None], weights])

    @functools.cached_property
    def inverse(self) -> np.ndarray:
        """Pseudo-inverse of the scatter, (p, p)."""
        return pseudo_inverse(self.scatter)[0]

    @functools.cached_property
    def rank(self) -> int:
        """Independent directions, with that of the intercept."""
        return 1 + pseudo_inverse(self.scatter)[1]

    @functools.cached_property
    def eigen(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues, (p,), not negative, and eigenvectors of the scatter."""
        values, vectors = np.linalg.eigh(self.scatter)
        return np.maximum(values, 0), vectors

    def operator(self, inverse: np.ndarray) -> np.ndarray:
        """A with theta = A Z'y, of what takes centred products to weights: (p, p) -> (1 + p, 1 + p)."""
        inverse = inverse / np.outer(self.unit, self.unit)
        drawn = inverse @ self.mean
        found = np.empty((1 + len(drawn), 1 + len(drawn)))
        found[0, 0] = 1 / self.n + self.mean @ drawn
        found[0, 1:] = found[1:, 0] = -drawn
        found[1:, 1:] = inverse
        return found


@dataclass(frozen=True)
class Design:
    """All rows, and what is left of them without each fold."""

    gram: np.ndarray  # (K, 1 + p, 1 + p) by fold
    whole: CentredPart
    training: tuple[CentredPart, ...]  # without each of `folds`; empty without cross-validation
    folds: np.ndarray  # numbers of the folds that have rows

    @functools.cached_property
    def total(self) -> np.ndarray:
        """G of all rows."""
        return self.gram.sum(axis=0)

    @property
    def n_by_fold(self) -> np.ndarray:
        """Rows of each fold: (K,)."""
        return self.gram[:, 0, 0]


def design_of(gram: np.ndarray, scale: bool, centre: np.ndarray) -> Design:
    """Training parts of sums by fold.

    Parameters
    ----------
    gram : numpy.ndarray, shape (K, 1 + p, 1 + p)
        About the mean of all rows.
    scale : bool
        Whether weights count in units of the standard deviations of the training part.
    centre : numpy.ndarray, shape (p,)
        That mean: a spread that is not seen beside it is none.
    """
    folds = np.flatnonzero(gram[:, 0, 0] > 0)
    least = (8 * np.finfo(np.float64).eps * centre) ** 2
    training: tuple[CentredPart, ...] = ()
    if folds.size > 1:
        training = tuple(part_of(gram[folds[folds != k]], scale, least) for k in folds)
    return Design(gram, part_of(gram, scale, least), training, folds)


def part_of(gram: Sequence[np.ndarray] | np.ndarray, scale: bool, least: np.ndarray) -> CentredPart:
    """Centred moments of some folds; variances of `least` (p,) and below are none."""
    total = np.sum(gram, axis=0)
    n, mean = float(total[0, 0]), total[1:, 0] / total[0, 0]
    squares = np.diag(total)[1:]
    scatter = total[1:, 1:] - n * np.outer(mean, mean)
    constant = (np.diag(scatter) <= CONSTANT * squares) | (np.diag(scatter) <= n * least)
    scatter[constant], scatter[:, constant] = 0, 0
    unit = np.ones(len(mean))
    if scale:
        unit = np.where(constant, 1, np.sqrt(np.maximum(np.diag(scatter), 0) / n))
        scatter = scatter / np.outer(unit, unit)
    return CentredPart(n, mean, unit, scatter)


def pseudo_inverse(matrix: np.ndarray) -> tuple[np.ndarray, int]:
    """Moore-Penrose inverse of a matrix of products, and its rank, whatever units the columns have.

    The rank is told from the correlations, so that a column of small numbers counts as others do.

    Examples
    --------
    >>> found, rank = pseudo_inverse(np.array([[1e12, 0.0], [0.0, 1e-12]]))
    >>> found.diagonal().tolist(), rank
    ([1e-12, 1000000000000.0], 2)
    >>> pseudo_inverse(np.ones((2, 2)))[0].round(6).tolist()
    [[0.25, 0.25], [0.25, 0.25]]
    """
    size, values, vectors = _correlation_eigen(matrix)
    kept = values > RANK * values.max(initial=0)
    left = vectors[:, kept] / size[:, None]
    found = (left / values[kept]) @ left.T
    if not kept.all():  # a generalised inverse so far: of the smallest norm among its kind
        null, _ = np.linalg.qr(vectors[:, ~kept] / size[:, None])
        found = found - null @ (null.T @ found)
        found = found - (found @ null) @ null.T
    return (found + found.T) / 2, int(kept.sum())


@dataclass(frozen=True)
class Root:
    """A factor of a matrix of products: of what its noise is made."""

    factor: np.ndarray  # (q, q), factor factor' = matrix
    directions: np.ndarray  # (rank, q) orthonormal: the part of a standard normal draw that counts


def root_of(matrix: np.ndarray) -> Root:
    """Symmetric root in units of the columns; small changes of the matrix change it little.

    Examples
    --------
    >>> root = root_of(np.array([[4.0, 4.0], [4.0, 4.0]]))
    >>> (root.factor @ root.factor.T).round(6).tolist(), len(root.directions)
    ([[4.0, 4.0], [4.0, 4.0]], 1)
    """
    size, values, vectors = _correlation_eigen(matrix)
    kept = values > RANK * values.max(initial=0)
    vectors, values = vectors[:, kept], values[kept]
    size = np.where(np.diag(matrix) > 0, size, 0)
    return Root(size[:, None] * ((vectors * np.sqrt(values)) @ vectors.T), vectors.T)


def _correlation_eigen(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sizes of the columns, and eigenvalues and -vectors of the matrix in units of these."""
    diagonal = np.diag(matrix)
    size = np.where(diagonal > 0, np.sqrt(np.maximum(diagonal, 0)), 1)
    values, vectors = np.linalg.eigh(matrix / size[:, None] / size)
    return size, values, vectors
