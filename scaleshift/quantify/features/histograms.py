"""How are values distributed?  Histograms as features: of every marker, or of every class's posterior.

A row has a 1 in one bin of each histogram: a group's mean is its histograms, side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scaleshift.blocks.block import Block
from scaleshift.errors import DataError
from scaleshift.kernels.reference import to_numpy
from scaleshift.quantify.classifier.cross_fit import allocation, cross_fit
from scaleshift.quantify.features.base import ExplicitEmbedding, FeatureMap, Source
from scaleshift.quantify.features.classifier import ClassifierEmbedding


def checked_bins(n_bins: Any) -> int:
    """The number, or a DataError."""
    if not isinstance(n_bins, int | np.integer) or n_bins < 2:
        raise DataError(f"n_bins={n_bins!r}: expected a number of bins from 2")
    return int(n_bins)


def histogram_sums(bins: list[np.ndarray], groups: np.ndarray, n_groups: int, n_bins: int) -> np.ndarray:
    """Histograms of some columns by group, side by side: -> (n_groups, n_columns x n_bins), float64.

    Parameters
    ----------
    bins : list of numpy.ndarray of int, each (n,)
        The bin of every row, one array a column.
    groups : numpy.ndarray of int, shape (n,)
        Negative ones are left out.
    n_groups, n_bins : int

    Examples
    --------
    >>> histogram_sums([np.array([0, 1, 1])], np.array([1, 1, -1]), 2, 2).tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """
    taken = np.flatnonzero(groups >= 0)
    first = groups[taken].astype(np.int64) * n_bins
    result = np.empty((n_groups, len(bins), n_bins))
    for column, of_rows in enumerate(bins):
        counts = np.bincount(first + of_rows[taken], minlength=n_groups * n_bins)
        result[:, column] = counts.reshape(n_groups, n_bins)
    return result.reshape(n_groups, len(bins) * n_bins)


class MarkerHistograms(FeatureMap):
    """A histogram of every marker, on edges from the source.

    Parameters
    ----------
    n_bins : int, default 20
        Of every marker, equally wide between the .001 and .999 quantiles of at most about 20 000 rows of the
        source, drawn by class; the outer two are open, so that every row falls into a bin.
    """

    def __init__(self, n_bins: int = 20):
        self.n_bins = n_bins

    def learn(self, source: Source) -> MarkerHistogramEmbedding:
        """Place the edges: one pass."""
        n_bins = checked_bins(self.n_bins)
        x = source.draw(allocation(source.counts))["x"]
        low, high = np.quantile(x.astype(np.float64), RANGE, axis=0)
        return MarkerHistogramEmbedding(np.linspace(low, high, n_bins + 1, axis=1)[:, 1:-1].copy())


RANGE = (0.001, 0.999)


@dataclass(frozen=True, repr=False)
class MarkerHistogramEmbedding(ExplicitEmbedding):
    """Histograms of markers side by side."""

    edges: np.ndarray  # (n_markers, n_bins - 1) between the bins
    is_density = False  # a sum over markers, no product

    @property
    def bandwidth(self) -> float:  # type: ignore[override]
        """There is none."""
        return float("nan")

    @property
    def self_product(self) -> float:  # type: ignore[override]
        """A row has a 1 in one bin of every marker."""
        return float(len(self.edges))

    @property
    def largest_norm(self) -> float:  # type: ignore[override]
        """Its root."""
        return float(np.sqrt(len(self.edges)))

    @property
    def n_bins(self) -> int:
        """Bins of each marker."""
        return self.edges.shape[1] + 1

    @property
    def width(self) -> int:
        """Bins of all markers."""
        return len(self.edges) * self.n_bins

    @property
    def n_matching(self) -> int:  # type: ignore[override]
        """All of them."""
        return self.width

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The edges."""
        return {"edges": self.edges}

    def features(self, means: np.ndarray) -> np.ndarray:
        """As they are."""
        return means

    def target_sums(self, block: Block, groups: np.ndarray, n_groups: int) -> np.ndarray:
        """Counts in the bins, by group."""
        x = to_numpy(block.x)
        bins = [np.searchsorted(edges, x[:, marker], "right") for marker, edges in enumerate(self.edges)]
        return histogram_sums(bins, groups, n_groups, self.n_bins)


class ScoreHistograms(FeatureMap):
    """A histogram of what a cross-fitted classifier gives as the probability of every class.

    Parameters
    ----------
    estimator : None or scikit-learn style classifier, default None
    n_bins : int, default 8
        Of [0, 1], equally wide.
    cv : int or "prefit", default 5
        As in `ClassifierFeatures`.
    """

    def __init__(self, estimator: Any = None, n_bins: int = 8, cv: int | str = 5):
        self.estimator = estimator
        self.n_bins = n_bins
        self.cv = cv

    def learn(self, source: Source) -> ScoreHistogramEmbedding:
        """Fit the classifiers."""
        n_bins = checked_bins(self.n_bins)
        fits = cross_fit(self.estimator, self.cv, source, source.seed)
        return ScoreHistogramEmbedding(fits, "proba", n_bins=n_bins)


@dataclass(frozen=True, repr=False)
class ScoreHistogramEmbedding(ClassifierEmbedding):
    """Histograms of the posteriors of all labels side by side."""

    n_bins: int = field(kw_only=True)

    @property
    def width(self) -> int:
        """Bins of all labels."""
        return self.fits.n_labels * self.n_bins

    @property
    def n_matching(self) -> int:  # type: ignore[override]
        """All of them."""
        return self.width

    @property
    def largest_norm(self) -> float:  # type: ignore[override]
        """A row has a 1 in one bin of every label."""
        return float(np.sqrt(self.fits.n_labels))

    def features(self, means: np.ndarray) -> np.ndarray:
        """As they are."""
        return means

    def self_products(self, means: np.ndarray) -> np.ndarray:
        """A row has a 1 in one bin of every label."""
        return np.full(len(means), float(self.fits.n_labels))

    def _sums(self, log_posterior: np.ndarray, groups: np.ndarray, n_groups: int) -> np.ndarray:
        bins = [
            np.minimum(np.exp(column) * self.n_bins, self.n_bins - 1).astype(np.int64)
            for column in log_posterior.T
        ]
        return histogram_sums(bins, groups, n_groups, self.n_bins)
