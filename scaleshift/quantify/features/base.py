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

from scaleshift.blocks import noise
from scaleshift.blocks.block import Rows
from scaleshift.quantify import bandwidth


@dataclass(frozen=True)
class Source:
    """What a map may learn from: the labelled rows, and the quantifier's own choices."""

    rows: Rows
    counts: np.ndarray  # (n_labels,) labelled rows of each class
    bandwidth: float | str  # a number, or "auto"
    criterion: str
    seed: int

    def resolve_bandwidth(self, own: float | str) -> float:
        """The map's own bandwidth where it is a number, else the quantifier's; "auto" costs one pass."""
        given = self.bandwidth if bandwidth.checked(own) == "auto" else own
        if bandwidth.checked(given) == "auto":
            return bandwidth.select(self.rows, self.counts, self.criterion, self.seed)
        return float(given)

    def seed_of(self, random_state: Any) -> int:
        """Seed of the map's own random state, else the quantifier's."""
        return self.seed if random_state is None else noise.seed_of(random_state)


class Embedding(ABC):
    """A learned map: feature sums of a block, and inner products of their means."""

    #: ``sums(x, groups, n_groups, **parameters) -> (n_groups, width)``, run on workers.
    sums: Callable[..., np.ndarray]

    #: Width of the kernel in the units of the rows; NaN where there is none.
    bandwidth: float

    #: k(x, x), the same for every row: what debiasing takes off the diagonal of the Gram matrix.
    self_product = 1.0

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

    @abstractmethod
    def squared_norms(self, targets: np.ndarray) -> np.ndarray:
        """Squared norms of the target means, NaN where they cannot be known: -> (n_targets,)."""


class FeatureMap(BaseEstimator, ABC):
    """Settings of a map; `learn` gives the embedding."""

    @abstractmethod
    def learn(self, source: Source) -> Embedding:
        """Learn from the source whatever the map depends on."""
