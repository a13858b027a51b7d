"""How much does a single row look like each class?  Densities of the classes at it, up to one factor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from scaleshift.blocks.block import Block
from scaleshift.errors import DataError
from scaleshift.kernels.reference import Array
from scaleshift.quantify.features import Embedding
from scaleshift.quantify.moments import centres_and_spreads

TILE_ROWS = 512  # have their features at a time: those of a whole block would be gigabytes
# Of the classes' usual kernel density: what unknown cells get, of which nothing is known but their share.
UNKNOWN_DENSITY = 0.4


@dataclass(frozen=True)
class KernelScores:
    """<Phi(x), Phi_i>: the kernel density of class i at x."""

    embedding: Embedding
    weights: np.ndarray  # (width, n_labels): a density is linear in the row's features
    typical: np.ndarray  # (n_labels,) |Phi_i|^2, the mean density of each class at its own cells
    power: float  # to which a kernel density is as sharp as the class: see `sharpness`

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return self.embedding.nbytes + self.weights.nbytes

    def __call__(self, x: Array) -> np.ndarray:
        """(n, n_markers) -> (n, n_labels). Approximate kernels go below 0, densities do not."""
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
    power: float = 1.0

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return int(self.embedding.nbytes)

    def __call__(self, x: Array) -> np.ndarray:
        """Bayes' rule, backwards: (n, n_markers) -> (n, n_labels)."""
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
    if not embedding.is_density:
        raise DataError(
            f"the features of this {type(model).__name__} give no densities of the classes at single cells: "
            "fit a DFM with features='landmarks' or 'fourier', or BBSE, whose classifier does"
        )
    width = embedding.width
    weights = np.zeros((width, len(present)))
    for first in range(0, width, TILE_ROWS):  # a unit matrix of thousands of features is gigabytes
        units = np.eye(min(TILE_ROWS, width - first), width, first)
        weights[first : first + TILE_ROWS, present] = embedding.products(model.source_.means[present], units)
    return KernelScores(embedding, weights, np.where(present, np.diag(model.gram_), 1.0), sharpness(model))


def sharpness(model: Any) -> float:
    """1 + (bandwidth / within-class sd)^2: to this power a smoothed Gaussian is as sharp as it was.

    The kernel makes a class of variance v one of variance v + bandwidth^2, and the bandwidth that tells class
    means apart best is several sd wide: without this, posteriors hardly depend on the cell.
    """
    if not np.isfinite(model.bandwidth_):
        return 1.0
    present = model.class_counts_ > 0
    counts = model.class_counts_[present]
    _, spreads = centres_and_spreads(model.source_.moments[present], counts)
    variance = np.average(np.mean(spreads**2, axis=1), weights=counts)
    return float(1 + model.bandwidth_**2 / variance)


def posteriors(density: np.ndarray, prior: np.ndarray, power: float) -> np.ndarray:
    """Prior times sharpened density, made to add up to one.

    A row where nothing has any density tells nothing: its posterior is the prior.

    Parameters
    ----------
    density, prior : numpy.ndarray, shape (n, n_classes)
    power : float

    Examples
    --------
    >>> posteriors(np.array([[0.2, 0.1], [0.0, 0.0]]), np.array([[0.5, 0.5], [0.9, 0.1]]), 2.0).tolist()
    [[0.8, 0.2], [0.9, 0.1]]
    """
    possible = np.where(prior > 0, density, 0)
    top = possible.max(axis=1, keepdims=True)  # relative to it, powers neither overflow nor vanish
    relative = np.divide(possible, top, out=np.ones_like(possible), where=top > 0)
    joint = prior * relative**power
    total = joint.sum(axis=1, keepdims=True)
    return np.divide(joint, total, out=np.full_like(joint, np.nan), where=total > 0)


def usual_density(share: np.ndarray, typical: np.ndarray) -> np.ndarray:
    """Mean density of known cells in their own classes, by class shares: (..., n_labels) -> (...,)."""
    known = share.sum(axis=-1)
    mean = typical.mean()
    return np.divide(share @ typical, known, out=np.full(np.shape(known), mean), where=known > 0)
