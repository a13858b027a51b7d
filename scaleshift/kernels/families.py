"""Which kernels are there?  Of each one: its name, its formula, its profile, and the law of its frequencies.

A kernel of bandwidth s is k(x, y) = profile(statistic(x / u, y / u)) with the unit u = s, or sqrt(2) s for
the Gaussian one. Statistics and profiles are plain array code for numpy and CuPy alike. A shift-invariant
kernel is the characteristic function of its frequencies' law: k(x, y) = E cos(w.(x - y)), w in radians a
unit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special
from scipy.spatial.distance import cdist

Array = Any  # numpy.ndarray or cupy.ndarray: numpy's functions serve both


def squared_distances(x: Array, z: Array) -> Array:
    """|x - z|^2, (rows, points), with the square expanded into a matrix product.

    That costs digits if the rows are far from their common origin: 1e-16 |x|^2.
    """
    result = (-2 * x) @ z.T
    result += (x * x).sum(axis=1)[:, None]
    result += (z * z).sum(axis=1)
    return np.maximum(result, 0, out=result)


def euclidean_distances(x: Array, z: Array) -> Array:
    """|x - z|, (rows, points)."""
    result = squared_distances(x, z)
    return np.sqrt(result, out=result)


def manhattan_distances(x: Array, z: Array) -> Array:
    """|x - z|_1, (rows, points)."""
    result = np.zeros_like(x, shape=(len(x), len(z)))
    for column in range(x.shape[1]):
        difference = x[:, column, None] - z[:, column]
        result += np.abs(difference, out=difference)
    return result


def products(x: Array, z: Array) -> Array:
    """prod_j (1 + (x_j - z_j)^2), (rows, points)."""
    result = np.ones_like(x, shape=(len(x), len(z)))
    for column in range(x.shape[1]):
        difference = x[:, column, None] - z[:, column]
        difference *= difference
        difference += 1
        with np.errstate(over="ignore"):  # the kernel is 0 there
            result *= difference
    return result


def _falling(t: Array) -> Array:
    return np.exp(-t)


def _matern32(r: Array) -> Array:
    t = 3**0.5 * r
    return (1 + t) * np.exp(-t)


def _matern52(r: Array) -> Array:
    t = 5**0.5 * r
    return (1 + t + t * t / 3) * np.exp(-t)


def _reciprocal(product: Array) -> Array:
    return 1 / product


def _cauchy_quantile(u: np.ndarray) -> np.ndarray:
    return np.tan(np.pi * (u - 0.5))


def _laplace_quantile(u: np.ndarray) -> np.ndarray:
    return np.sign(u - 0.5) * -np.log1p(-2 * np.abs(u - 0.5))


@dataclass(frozen=True)
class Kernel:
    """One shift-invariant kernel; k(x, x) = 1."""

    name: str
    formula: str  # r = |x - y|, s the bandwidth
    statistic: Callable[[Array, Array], Array]
    profile: Callable[[Array], Array]
    #: scipy's name of the statistic and its degree in the scale, where it is a distance or its square
    metric: str | None = None
    degree: int = 1
    unit: float = 1.0  # bandwidths
    #: of one coordinate of a frequency, where coordinates are independent; else frequencies are Gaussian ...
    quantile: Callable[[np.ndarray], np.ndarray] | None = None
    #: ... over the root of a chi-squared variable by its degrees of freedom, one a frequency
    freedom: int | None = None

    def between(self, x: Array, z: Array) -> Array:
        """Kernel values (rows, points) of float64 rows, in units of `unit` bandwidths about one origin."""
        return self.profile(self.statistic(x, z))

    def matrix(self, x: np.ndarray, z: np.ndarray, bandwidth: float) -> np.ndarray:
        """Kernel values (rows, points) of a few numpy rows: to the last digits, and slower.

        Examples
        --------
        >>> KERNELS["laplace"].matrix(np.zeros((1, 2)), np.ones((1, 2)), 2.0).round(4)
        array([[0.3679]])
        """
        unit = self.unit * bandwidth
        if self.metric is None:
            return self.between(x / unit, z / unit)
        return self.profile(cdist(x, z, self.metric) / unit**self.degree)


KERNELS = {
    kernel.name: kernel
    for kernel in (
        Kernel(
            "gaussian",
            "exp(-r^2 / (2 s^2))",
            squared_distances,
            _falling,
            metric="sqeuclidean",
            degree=2,
            unit=2**0.5,
        ),
        Kernel(
            "laplace",
            "exp(-|x - y|_1 / s)",
            manhattan_distances,
            _falling,
            metric="cityblock",
            quantile=_cauchy_quantile,
        ),
        Kernel(
            "matern32",
            "(1 + sqrt(3) r / s) exp(-sqrt(3) r / s)",
            euclidean_distances,
            _matern32,
            metric="euclidean",
            freedom=3,
        ),
        Kernel(
            "matern52",
            "(1 + sqrt(5) r / s + 5 r^2 / (3 s^2)) exp(-sqrt(5) r / s)",
            euclidean_distances,
            _matern52,
            metric="euclidean",
            freedom=5,
        ),
        Kernel(
            "cauchy",
            "prod_j 1 / (1 + (x_j - y_j)^2 / s^2)",
            products,
            _reciprocal,
            quantile=_laplace_quantile,
        ),
    )
}


def normal_quantile(u: np.ndarray) -> np.ndarray:
    """Standard normal numbers of uniform ones."""
    return special.ndtri(u)


def student_factor(u: np.ndarray, freedom: int) -> np.ndarray:
    """sqrt(freedom / chi2) of uniform numbers: what makes Gaussian frequencies those of a Matern kernel."""
    return np.sqrt(freedom / special.chdtri(freedom, u))
