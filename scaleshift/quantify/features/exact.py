"""Exact kernels: what Fourier features and landmarks approximate. For small data, and the truth in tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from scaleshift.errors import DataError
from scaleshift.kernels import dispatch
from scaleshift.quantify.features.base import Embedding, FeatureMap, Source, known_kernel

MAX_ROWS = 50_000


class ExactKernel(FeatureMap):
    """An exact kernel; keeps the labelled source rows.

    Parameters
    ----------
    kernel : {"gaussian", "laplace", "matern32", "matern52", "cauchy"}, default "gaussian"
        With r = ||x - y|| and s the bandwidth: exp(-r^2 / (2 s^2)); exp(-||x - y||_1 / s);
        (1 + t) exp(-t) with t = sqrt(3) r / s; (1 + t + t^2 / 3) exp(-t) with t = sqrt(5) r / s;
        the product over markers of 1 / (1 + (x_j - y_j)^2 / s^2).
    bandwidth : "auto" or float, default "auto"
        In the units of X. "auto" is chosen from the source; see `scaleshift.quantify.bandwidth`.

    Raises
    ------
    DataError
        When fitted on more than 50 000 labelled rows: the cost is (source rows) x (all rows).

    Examples
    --------
    >>> ExactKernel("laplace", bandwidth=2.0)
    ExactKernel(bandwidth=2.0, kernel='laplace')
    """

    def __init__(self, kernel: str = "gaussian", bandwidth: Any = "auto"):
        self.kernel = kernel
        self.bandwidth = bandwidth

    def learn(self, source: Source) -> ExactEmbedding:
        """Keep the labelled rows.

        Examples
        --------
        >>> from scaleshift import DFM
        >>> kernel = ExactKernel("laplace", bandwidth=1.0)
        >>> model = DFM(kernel, n_bootstrap=0).fit([[0.0], [1.0], [5.0]], ["B", "B", "T"])
        >>> sorted(model.embedding_.points.ravel().tolist())  # the rows are kept, and saved with the model
        [0.0, 1.0, 5.0]
        """
        kernel = known_kernel(self.kernel)
        check_few(source, "use features='fourier'")
        width = source.resolve_bandwidth(self.bandwidth, kernel=kernel)
        kept = source.draw(source.counts)
        return ExactEmbedding(kept["x"], kept["code"], len(source.counts), width, kernel)


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

    def learn(self, source: Source) -> ExactEmbedding:
        """Keep the labelled rows.

        Examples
        --------
        >>> from scaleshift import DFM
        >>> kernel = GaussianKernel(bandwidth=1.0)
        >>> model = DFM(kernel, n_bootstrap=0).fit([[0.0], [1.0], [5.0]], ["B", "B", "T"])
        >>> sorted(model.embedding_.points.ravel().tolist())  # the rows are kept, and saved with the model
        [0.0, 1.0, 5.0]
        """
        return ExactKernel("gaussian", self.bandwidth).learn(source)


def check_few(source: Source, way_out: str) -> None:
    """Raise a DataError where there are more labelled rows than an exact kernel keeps."""
    n = int(source.counts.sum())
    if n > MAX_ROWS:
        raise DataError(
            f"the exact kernel keeps the labelled source rows, and there are {n}: "
            f"at most {MAX_ROWS}; {way_out}"
        )


class PairwiseEmbedding(Embedding):
    """A row's features are its mean kernel values with each class of the source; maybe others after these."""

    points: np.ndarray  # (n, n_markers)
    point_groups: np.ndarray  # (n,)
    n_labels: int

    def gram(self, means: np.ndarray) -> np.ndarray:
        """G_ij is the mean over class i of the mean kernel value with class j."""
        gram = self.products(means, means)
        return (gram + gram.T) / 2

    def products(self, means: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Already what the target's embedding holds."""
        present = np.bincount(self.point_groups, minlength=self.n_labels) > 0
        return targets[..., : self.n_labels][..., present]


@dataclass(frozen=True, repr=False)
class ExactEmbedding(PairwiseEmbedding):
    """Mean values of a shift-invariant kernel with each class of the source."""

    points: np.ndarray  # (n, n_markers)
    point_groups: np.ndarray  # (n,)
    n_labels: int
    bandwidth: float
    kernel: str
    sums = staticmethod(dispatch.exact_sums)

    @property
    def width(self) -> int:
        """Number of classes."""
        return self.n_labels

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The source rows, their classes and the kernel."""
        return {
            "points": self.points,
            "point_groups": self.point_groups,
            "n_point_groups": self.n_labels,
            "bandwidth": self.bandwidth,
            "kernel": self.kernel,
        }
