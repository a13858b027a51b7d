"""What is a feature map?  Settings that learn an embedding from the source, and the embedding itself.

An embedding is additive: a group's state is the sum of a feature vector over its rows. Everything
that distribution matching needs are inner products of group means.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from scaleshift.blocks import noise, passes
from scaleshift.blocks.block import Block, Rows
from scaleshift.blocks.invalid import NO_SOURCE
from scaleshift.errors import DataError
from scaleshift.kernels.families import KERNELS
from scaleshift.parameters import check
from scaleshift.quantify import bandwidth


def known_kernel(kernel: Any) -> str:
    """A kernel's name as it was given; DataError unless there is such a kernel."""
    check("kernel", kernel, lambda value: isinstance(value, str) and value in KERNELS, list(KERNELS))
    return kernel


@dataclass(frozen=True)
class Source:
    """What a map may learn from: the labelled rows, and the quantifier's own choices."""

    rows: Rows
    counts: np.ndarray  # (n_labels,) labelled rows of each class
    bandwidth: float | str  # a number, or "auto"
    criterion: str
    seed: int

    @property
    def n_columns(self) -> int:
        """Columns of the rows that `draw` gives."""
        return self.rows.n_markers

    def resolve_bandwidth(
        self, own: float | str, drawn: Mapping[str, np.ndarray] | None = None, kernel: str = "gaussian"
    ) -> float:
        """The map's own bandwidth where it is a number, else the quantifier's.

        "auto" is chosen for the `kernel` and costs one pass, or none where rows were `drawn` already: at
        least those of `bandwidth.allocation`.
        """
        given = self.bandwidth if bandwidth.checked(own) == "auto" else own
        if bandwidth.checked(given) == "auto":
            drawn = self.draw(bandwidth.allocation(self.counts)) if drawn is None else drawn
            return bandwidth.select(drawn, self.counts, self.criterion, kernel)
        return float(given)

    def refuse_bandwidth(self, what: str) -> None:
        """Raise a DataError where the quantifier was given a bandwidth and the map, `what`, has none."""
        if bandwidth.checked(self.bandwidth) != "auto":
            raise DataError(f"bandwidth={self.bandwidth!r}: {what} has no bandwidth; leave it at 'auto'")

    def draw(self, n: np.ndarray) -> dict[str, np.ndarray]:
        """Up to n[i] labelled rows of class i, those with the smallest random keys: one pass.

        A DataError where there is none at all.
        """
        drawn = passes.sample(self.rows.only("label"), n, by="label", seed=self.seed)
        if not len(drawn["x"]):
            raise DataError(NO_SOURCE)
        return drawn

    def seed_of(self, random_state: Any) -> int:
        """Seed of the map's own random state, else the quantifier's."""
        return self.seed if random_state is None else noise.seed_of(random_state)


class Embedding(ABC):
    """A learned map: feature sums of a block, and inner products of their means."""

    #: ``sums(x, groups, n_groups, **parameters) -> (n_groups, width)``, run on workers.
    sums: Callable[..., np.ndarray]

    #: Width of the kernel in the units of the rows; NaN where there is none.
    bandwidth: float

    #: Mean of k(x, x) over rows: what debiasing takes off the diagonal of the Gram matrix.
    self_product: float = 1.0

    #: Whether <Phi(x), Phi_i> is a density of class i at the row x, up to a factor that classes share.
    is_density: bool = True

    #: Largest norm of a row's features; infinite where there is none.
    largest_norm: float = 1.0

    def __repr__(self) -> str:
        of_kernel = f", bandwidth {self.bandwidth:.3g}" if np.isfinite(self.bandwidth) else ""
        return f"<{type(self).__name__}{self._size}{of_kernel}>"

    _size = ""  # in words, where vectors have one

    def source_sums(self, block: Block, groups: np.ndarray, n_groups: int) -> np.ndarray:
        """Feature sums of labelled rows by group: -> (n_groups, width). Negative groups are left out.

        The block has the columns "label" and, where the source has several samples, "sample".
        """
        return self.target_sums(block, groups, n_groups)

    def target_sums(self, block: Block, groups: np.ndarray, n_groups: int) -> np.ndarray:
        """The same of rows whose labels are not known."""
        return self.sums(block.x, groups, n_groups, **self.parameters)

    @property
    @abstractmethod
    def width(self) -> int:
        """Length of a feature vector."""

    @property
    @abstractmethod
    def parameters(self) -> Mapping[str, Any]:
        """What `sums` needs beside the rows."""

    @abstractmethod
    def gram(self, means: np.ndarray) -> np.ndarray:
        """Inner products of the class means: (n_labels, width) -> (n_labels, n_labels)."""

    @abstractmethod
    def products(self, means: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Inner products of target and class means: -> (n_targets, n_labels)."""

    def self_products(self, means: np.ndarray) -> np.ndarray:
        """Mean of k(x, x) over the rows of each class: (n_labels, width) -> (n_labels,)."""
        return np.full(len(means), self.self_product)

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return sum(getattr(value, "nbytes", 0) for value in self.parameters.values())

    def same_as(self, other: Embedding) -> bool:
        """Whether states of both can be added: the same map with the same numbers."""
        mine, others = self.parameters, other.parameters
        return type(self) is type(other) and all(np.array_equal(mine[name], others[name]) for name in mine)


class ExplicitEmbedding(Embedding):
    """A learned map with vectors whose inner products are the kernel.

    Beside these a vector may have further features that the proportions never use, but the label-shift test
    does: whatever shows rows that the kernel does not see.
    """

    #: How many features, the first ones, the proportions are matched on.
    n_matching: int

    @property
    def _size(self) -> str:  # type: ignore[override]
        return f", {self.n_matching:,} features"

    @abstractmethod
    def features(self, means: np.ndarray) -> np.ndarray:
        """Feature vectors of sums or means, a linear map: (..., width) -> (..., n_features)."""

    def gram(self, means: np.ndarray) -> np.ndarray:
        """Inner products of the class means."""
        return self.products(means, means)

    def products(self, means: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """<Phi_Q, Phi_i> for every target and class."""
        matched = slice(self.n_matching)
        return self.features(targets)[..., matched] @ self.features(means)[..., matched].T


class FeatureMap(BaseEstimator, ABC):
    """Settings of a map; `learn` gives the embedding."""

    @abstractmethod
    def learn(self, source: Source) -> Embedding:
        """Learn from the source whatever the map depends on."""


class Learned(FeatureMap):
    """What another model has learned, taken as it is: so that the states of both can be added."""

    def __init__(self, embedding: Embedding):
        self.embedding = embedding

    def learn(self, source: Source) -> Embedding:
        """Learn nothing."""
        return self.embedding
