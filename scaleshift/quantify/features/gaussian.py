"""The exact Gaussian kernel: what Fourier features approximate. For small data, and the truth in tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from scaleshift.errors import DataError
from scaleshift.kernels import dispatch
from scaleshift.quantify.features.base import Embedding, FeatureMap, Source

MAX_ROWS = 50_000


class GaussianKernel(FeatureMap):
    """Exact Gaussian kernel exp(-||x - y||^2 / (2 bandwidth^2)); keeps the labelled source rows.

    Parameters
    ----------
    bandwidth : "auto" or float, default "auto"
        In the units of X.

    Raises
    ------
    DataError
        When fitted on more than 50 000 labelled rows: the cost is (source rows) x (all rows).

    Examples
    --------
    >>> GaussianKernel(bandwidth=2.0)
    GaussianKernel(bandwidth=2.0)
    """

    def __init__(self, bandwidth: Any = "auto"):
        self.bandwidth = bandwidth

    def learn(self, source: Source) -> GaussianEmbedding:
        """Keep the labelled rows."""
        n = int(source.counts.sum())
        if n > MAX_ROWS:
            raise DataError(
                f"the exact kernel keeps the labelled source rows, and there are {n}: "
                f"at most {MAX_ROWS}; use features='fourier'"
            )
        width = source.resolve_bandwidth(self.bandwidth)
        kept = source.draw(source.counts)
        return GaussianEmbedding(kept["x"], kept["code"], len(source.counts), width)


@dataclass(frozen=True)
class GaussianEmbedding(Embedding):
    """A row's feature vector is its mean kernel value with each class of the source."""

    points: np.ndarray  # (n, n_markers)
    point_groups: np.ndarray  # (n,)
    n_labels: int
    bandwidth: float
    sums = staticmethod(dispatch.gaussian_sums)

    @property
    def width(self) -> int:
        """Number of classes."""
        return self.n_labels

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The source rows and their classes."""
        return {
            "points": self.points,
            "point_groups": self.point_groups,
            "n_point_groups": self.n_labels,
            "bandwidth": self.bandwidth,
        }

    def gram(self, means: np.ndarray) -> np.ndarray:
        """G_ij is the mean over class i of the mean kernel value with class j."""
        present = np.bincount(self.point_groups, minlength=self.n_labels) > 0
        gram = means[:, present]
        return (gram + gram.T) / 2

    def products(self, means: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Already what the target's embedding holds."""
        present = np.bincount(self.point_groups, minlength=self.n_labels) > 0
        return targets[..., present]
