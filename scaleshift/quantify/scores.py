"""How much does a single row look like each class?  Densities of the classes at it, up to one factor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from scaleshift.blocks.block import Block
from scaleshift.kernels.reference import Array
from scaleshift.quantify.features import Embedding

TILE_ROWS = 512  # have their features at a time: those of a whole block would be gigabytes
# Of the classes' usual density: what unknown cells get, of which nothing is known but their share.
UNKNOWN_DENSITY = 0.1


@dataclass(frozen=True)
class KernelScores:
    """<Phi(x), Phi_i>: the kernel density of class i at x."""

    embedding: Embedding
    weights: np.ndarray  # (width, n_labels): a density is linear in the row's features
    typical: np.ndarray  # (n_labels,) |Phi_i|^2, the mean density of each class at its own cells

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return self.embedding.nbytes + self.weights.nbytes

    def __call__(self, x: Array) -> np.ndarray:
        """A tile of rows at a time; approximate kernels go below 0, densities do not."""
        scores = np.empty((len(x), self.weights.shape[1]))
        for first in range(0, len(x), TILE_ROWS):
            tile = slice(first, first + TILE_ROWS)
            scores[tile] = row_features(self.embedding, x[tile]) @ self.weights
        return np.maximum(scores, 0, out=scores)


@dataclass(frozen=True)
class ClassifierScores:
    """p(i | x) over the share of class i in what the classifier learned from: its density, up to a factor."""

    embedding: Any  # has `log_posterior(x) -> (n, n_labels)` and `prior`, (n_labels,)
    typical: None = None  # such densities have no scale: they do not see unknown cells

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return int(self.embedding.nbytes)

    def __call__(self, x: Array) -> np.ndarray:
        """Bayes' rule, backwards."""
        prior = self.embedding.prior
        return np.exp(self.embedding.log_posterior(x)) / np.where(prior > 0, prior, np.inf)


ClassScores = KernelScores | ClassifierScores


def row_features(embedding: Embedding, x: Array) -> np.ndarray:
    """The embedding's sums of every single row, (n, width); for few rows."""
    block = Block(x, {}, 0, np.ones(len(x), bool), np.zeros(x.shape[1]))
    return embedding.target_sums(block, np.arange(len(x), dtype=np.int32), len(x))


def class_scores(model: Any) -> ClassScores:
    """Densities by the model's classifier where it has one, else by its kernel."""
    embedding, present = model.embedding_, model.class_counts_ > 0
    if hasattr(embedding, "log_posterior"):
        return ClassifierScores(embedding)
    weights = np.zeros((embedding.width, len(present)))
    weights[:, present] = embedding.products(model.source_.means[present], np.eye(embedding.width))
    return KernelScores(embedding, weights, np.where(present, np.diag(model.gram_), 1.0))
