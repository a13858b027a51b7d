"""Of which mixture of the classes are a sample's mean features those?  Two ways to solve for it.

`GramMixture` needs inner products of means only: the features may be thousands. `MeanMixture` takes any
function of the means themselves: the features are few.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from scaleshift.quantify.features import Embedding, ExplicitEmbedding
from scaleshift.quantify.resampling import halves
from scaleshift.solve.simplex import simplex_least_squares

#: ``solver(means (n, n_labels, n_features), targets (n, n_features)) -> (n, n_labels)``: n problems, each on
#: its own; an object of a class in the table of those that can be sent to workers.
Solver = Callable[[np.ndarray, np.ndarray], np.ndarray]

AT_A_TIME = 2**20  # numbers of class means in one call of a solver, at most: bounds its memory


class Mixture(Protocol):
    """The source's side of the problem, of the classes that have rows."""

    @property
    def n_labels(self) -> int:
        """Classes."""

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""

    @property
    def n_parts(self) -> np.ndarray | None:
        """Folds of the source that hold rows of each class, then all folds; None: no replicates.

        (n_labels + 1,)
        """

    def shares(self, means: list[np.ndarray]) -> np.ndarray:
        """Of some samples by their mean sums, (width,) each: -> (n, n_labels).

        A sample's have the same bits whatever the others are.
        """

    def replicated(self, sums: np.ndarray, counts: np.ndarray, seed: int) -> np.ndarray:
        """Of one sample, (n_folds, width) and (n_folds,), had it and the source been drawn again.

        -> (n_replicates, n_labels)
        """


@dataclass(frozen=True)
class Resampled:
    """The source drawn again by random halves of its folds, or of its samples."""

    weights: np.ndarray  # (n, n_folds)
    sums: np.ndarray  # (n_labels, n_folds, n_features)
    counts: np.ndarray  # (n_labels, n_folds)

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return self.weights.nbytes + self.sums.nbytes

    @property
    def n_parts(self) -> np.ndarray:
        """Folds that hold rows of each class, then all folds, (n_labels + 1,)."""
        return np.append(np.count_nonzero(self.counts, axis=1), self.counts.shape[1])

    def means(self, weights: np.ndarray) -> np.ndarray:
        """Class means of one replicate, (n_labels, n_features); of all rows where it has none of a class."""
        n_rows = self.counts @ weights
        drawn = np.tensordot(weights, self.sums, (0, 1))
        held = n_rows > 0
        total = np.where(held[:, None], drawn, self.sums.sum(axis=1))
        return total / np.where(held, n_rows, self.counts.sum(axis=1))[:, None]

    def all_means(self, replicates: slice) -> np.ndarray:
        """The same of several replicates at once, (n, n_labels, n_features)."""
        weights = self.weights[replicates]
        n_rows = (weights @ self.counts.T)[..., None]
        drawn = (weights @ self.sums).swapaxes(0, 1)
        whole = self.sums.sum(axis=1) / self.counts.sum(axis=1)[:, None]
        return np.where(n_rows > 0, drawn / np.where(n_rows > 0, n_rows, 1), whole)


def redrawn(
    embedding: ExplicitEmbedding, sums: np.ndarray, counts: np.ndarray, n: int, seed: int
) -> Resampled:
    """Draw the source `n` times again.

    Parameters
    ----------
    embedding : ExplicitEmbedding
    sums : numpy.ndarray, shape (n_labels, n_folds, width)
    counts : numpy.ndarray, shape (n_labels, n_folds)
    n, seed : int
    """
    matched = embedding.features(sums)[..., : embedding.n_matching]
    return Resampled(halves(n, counts.shape[1], seed, "source"), matched, counts)


@dataclass(frozen=True)
class GramMixture:
    """The nearest mixture of class embeddings: a small quadratic program on their inner products."""

    embedding: Embedding
    soft: bool  # whether the shares may sum to less than one
    means: np.ndarray  # (n_labels, width)
    gram: np.ndarray  # (n_labels, n_labels)
    again: Resampled | None
    grams: np.ndarray | None  # (n_replicates, n_labels, n_labels)

    @property
    def n_labels(self) -> int:
        """Classes."""
        return len(self.means)

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        parts = (self.means, self.again, self.grams)
        return sum(getattr(part, "nbytes", 0) for part in parts)

    @property
    def n_parts(self) -> np.ndarray | None:
        """Folds of the source that hold rows of each class, then all folds."""
        return None if self.again is None else self.again.n_parts

    def shares(self, means: list[np.ndarray]) -> np.ndarray:
        """Of some samples by their mean sums."""
        # One product a sample: those of all at once would have other bits in another company.
        products = [self.embedding.products(self.means, mean) for mean in means]
        return simplex_least_squares(self.gram, _stacked(products, self.n_labels), soft=self.soft)

    def replicated(self, sums: np.ndarray, counts: np.ndarray, seed: int) -> np.ndarray:
        """Of one sample, drawn again: to first order, so that no replicate is embedded."""
        assert self.again is not None
        assert self.grams is not None
        assert isinstance(self.embedding, ExplicitEmbedding)
        total = sums.sum(axis=0) / counts.sum()
        products = self.embedding.products(self.means, total)
        weights = halves(len(self.again.weights), len(counts), seed, "target")
        n_rows = weights @ counts
        by_fold = self.embedding.products(self.means, sums)  # (n_folds, n_labels)
        own = np.where(n_rows[:, None] > 0, weights @ by_fold / np.maximum(n_rows, 1)[:, None], products)
        mean = self.embedding.features(total)[: self.embedding.n_matching]
        drawn = own + self._source_products(mean) - products
        return simplex_least_squares(self.grams, drawn, soft=self.soft)

    def _source_products(self, target: np.ndarray) -> np.ndarray:
        """<Phi_Q, Phi_i> with the class embeddings of every replicate, (n_replicates, n_labels)."""
        assert self.again is not None
        weights, counts = self.again.weights, self.again.counts
        by_fold = self.again.sums @ target  # (n_labels, n_folds)
        n_rows = weights @ counts.T
        found = weights @ by_fold.T / np.where(n_rows > 0, n_rows, 1)
        return np.where(n_rows > 0, found, by_fold.sum(axis=1) / counts.sum(axis=1))


def gram_mixture(
    embedding: Embedding, soft: bool, means: np.ndarray, again: Resampled | None = None
) -> GramMixture:
    """Prepare the quadratic program; `again` for intervals."""
    grams = None
    if again is not None:
        grams = np.empty((len(again.weights), len(means), len(means)))
        thin = _in_own_span(again)
        for b, weights in enumerate(again.weights):  # not all means at once: n times the classes
            drawn = thin.means(weights)
            grams[b] = drawn @ drawn.T
    return GramMixture(embedding, soft, means, embedding.gram(means), again, grams)


def _in_own_span(again: Resampled) -> Resampled:
    """The same inner products with at most as many features as there are folds of classes."""
    every = again.sums.reshape(-1, again.sums.shape[2])
    if len(every) >= every.shape[1]:
        return again
    coordinates = np.asarray(np.linalg.qr(every.T, mode="r")).T
    return replace(again, sums=coordinates.reshape(*again.sums.shape[:2], -1))


@dataclass(frozen=True)
class MeanMixture:
    """Whatever a solver makes of the class means and a sample's mean."""

    embedding: ExplicitEmbedding
    solver: Solver
    means: np.ndarray  # (n_labels, n_features)
    again: Resampled | None

    @property
    def n_labels(self) -> int:
        """Classes."""
        return len(self.means)

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return self.means.nbytes + getattr(self.again, "nbytes", 0) + getattr(self.solver, "nbytes", 0)

    @property
    def n_parts(self) -> np.ndarray | None:
        """Folds of the source that hold rows of each class, then all folds."""
        return None if self.again is None else self.again.n_parts

    def shares(self, means: list[np.ndarray]) -> np.ndarray:
        """Of some samples by their mean sums."""
        found = [self.solver(self.means[None], self._features(mean)[None])[0] for mean in means]
        return _stacked(found, self.n_labels)

    def replicated(self, sums: np.ndarray, counts: np.ndarray, seed: int) -> np.ndarray:
        """Of one sample, drawn again."""
        assert self.again is not None
        weights = halves(len(self.again.weights), len(counts), seed, "target")
        n_rows = (weights @ counts)[:, None]
        matched = self._features(sums)
        total = matched.sum(axis=0) / counts.sum()
        targets = np.where(n_rows > 0, weights @ matched / np.maximum(n_rows, 1), total)
        step = max(AT_A_TIME // self.means.size, 1)
        parts = [slice(first, first + step) for first in range(0, len(targets), step)]
        return np.concatenate([self.solver(self.again.all_means(part), targets[part]) for part in parts])

    def _features(self, sums: np.ndarray) -> np.ndarray:
        return self.embedding.features(sums)[..., : self.embedding.n_matching]


def mean_mixture(
    embedding: ExplicitEmbedding, solver: Solver, means: np.ndarray, again: Resampled | None = None
) -> MeanMixture:
    """Prepare a solver on means of sums, (n_labels, width); `again` for intervals."""
    return MeanMixture(embedding, solver, embedding.features(means)[:, : embedding.n_matching], again)


def _stacked(rows: list[np.ndarray], width: int) -> np.ndarray:
    """Rows as a matrix, also of none."""
    return np.array(rows).reshape(len(rows), width)
