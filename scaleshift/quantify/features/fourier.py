"""Random Fourier features: Phi(x) = sqrt(2/D) [cos Wx ; sin Wx], a shift-invariant kernel in one pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import qmc

from scaleshift import parameters
from scaleshift.blocks import noise
from scaleshift.errors import DataError
from scaleshift.kernels import dispatch
from scaleshift.kernels.families import KERNELS, Kernel, normal_quantile, student_factor
from scaleshift.kernels.reference import single_precision
from scaleshift.quantify.features.base import ExplicitEmbedding, FeatureMap, Source, known_kernel
from scaleshift.quantify.features.directions import directions

SAMPLERS = ("sobol", "iid", "orthogonal")
TINY = 2.0**-33  # uniform numbers keep this distance from 0 and 1


class FourierFeatures(FeatureMap):
    """Random Fourier features of a kernel.

    Parameters
    ----------
    n_features : int, default 1000
        Length D of a feature vector, even: D / 2 frequencies.
    kernel : {"gaussian", "laplace", "matern32", "matern52", "cauchy"}, default "gaussian"
        As in `ExactKernel`.
    bandwidth : "auto" or float, default "auto"
        In the units of X. "auto" is chosen from the source; see `scaleshift.quantify.bandwidth`.
    sampler : {"sobol", "iid", "orthogonal"}, default "sobol"
        How frequencies are drawn. "iid" has the textbook kernel error of 1 / sqrt(D). "sobol", a scrambled
        Sobol sequence, has less; Gaussian frequencies (of the Matern kernels: their Gaussian factor) are
        whitened then. "orthogonal" draws Gaussian ones in blocks of n_markers that are orthogonal to each
        other; frequencies of the Laplace and Cauchy kernels have no such factor: an error.
    frequencies : array-like, shape (D / 2, n_markers), optional
        Radians per unit of X, in place of drawn ones.
    random_state : None, int or numpy.random.Generator
        None takes the quantifier's.

    Notes
    -----
    ||Phi(x)|| = 1 for every x. Sources: Rahimi and Recht (2007), "Random features for large-scale
    kernel machines"; Yu et al. (2016), "Orthogonal random features".

    Examples
    --------
    >>> FourierFeatures(n_features=256).n_features
    256
    """

    def __init__(
        self,
        n_features: int = 1000,
        kernel: str = "gaussian",
        bandwidth: Any = "auto",
        sampler: str = "sobol",
        frequencies: Any = None,
        random_state: Any = None,
    ):
        self.n_features = n_features
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.sampler = sampler
        self.frequencies = frequencies
        self.random_state = random_state

    def learn(self, source: Source) -> FourierEmbedding:
        """Draw the frequencies, or take those given.

        Examples
        --------
        >>> from scaleshift import DFM
        >>> X, y = [[0.0], [0.1], [5.0], [5.1]], ["B", "B", "T", "T"]
        >>> model = DFM(FourierFeatures(64, bandwidth=1.0), n_bootstrap=0).fit(X, y)
        >>> model.embedding_  # what this gave
        <FourierEmbedding, 64 features, bandwidth 1>
        """
        kernel = known_kernel(self.kernel)
        d = source.n_columns
        if self.frequencies is not None:
            given = np.asarray(self.frequencies)
            if given.ndim != 2 or given.shape[1] != d or not len(given) or given.dtype.kind not in "iuf":
                raise DataError(
                    f"frequencies have shape {given.shape} and dtype {given.dtype}: expected numbers, "
                    f"(n, {d}), one column a marker"
                )
            return FourierEmbedding(_usable(single_precision(given), "frequencies"), bandwidth=float("nan"))
        n = self.n_features
        if not isinstance(n, int | np.integer) or n < 2 or n % 2:
            raise DataError(f"n_features={n!r}: expected an even number, cos and sin of each frequency")
        check_sampler(self.sampler, KERNELS[kernel])
        width = source.resolve_bandwidth(self.bandwidth, kernel=kernel)
        rng = noise.generator(source.seed_of(self.random_state), "frequencies")
        drawn = frequencies(KERNELS[kernel], self.n_features // 2, d, self.sampler, rng)
        with np.errstate(over="ignore"):
            return FourierEmbedding(_usable(single_precision(drawn / width), f"bandwidth={width:g}"), width)


def _usable(frequencies: np.ndarray, what: str) -> np.ndarray:
    if not np.isfinite(frequencies).all() or not np.abs(frequencies).max() > 1e-30:
        raise DataError(f"{what}: out of the range of float32; bring the markers to a scale near 1")
    return frequencies


@dataclass(frozen=True, repr=False)
class FourierEmbedding(ExplicitEmbedding):
    """Frequencies of a kernel; of one's own where they were given."""

    frequencies: np.ndarray  # (D / 2, n_markers), radians per unit
    bandwidth: float  # NaN where the frequencies were given
    sums = staticmethod(dispatch.fourier_sums)

    @property
    def width(self) -> int:
        """D."""
        return 2 * len(self.frequencies)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The frequencies."""
        return {"frequencies": self.frequencies}

    @property
    def n_matching(self) -> int:  # type: ignore[override]
        """All of them."""
        return self.width

    def features(self, means: np.ndarray) -> np.ndarray:
        """Phi = means / sqrt(F), so that ||Phi(x)||^2 = (sum cos^2 + sin^2) / F = 1."""
        return means / np.sqrt(len(self.frequencies))


def check_sampler(sampler: str, kernel: Kernel) -> None:
    """Raise a DataError unless frequencies of the kernel can be drawn so."""
    parameters.check("sampler", sampler, lambda v: v in SAMPLERS, list(SAMPLERS))
    if sampler == "orthogonal" and kernel.quantile is not None:
        known = ", ".join(name for name, other in KERNELS.items() if other.quantile is None)
        raise DataError(
            f"sampler='orthogonal' is for Gaussian frequencies, those of the kernels {known}: take 'sobol' "
            f"or 'iid' for kernel={kernel.name!r}"
        )


def frequencies(kernel: Kernel, n: int, d: int, sampler: str, rng: np.random.Generator) -> np.ndarray:
    """Draw frequencies of a kernel of bandwidth 1.

    Parameters
    ----------
    kernel : Kernel
    n, d : int
        Frequencies and markers.
    sampler : {"sobol", "iid", "orthogonal"}
    rng : numpy.random.Generator

    Returns
    -------
    numpy.ndarray, shape (n, d)
        Each marginally of the kernel's law. For "sobol" and d <= n the Gaussian ones have W'W / n = I; those
        of a Matern kernel are such ones over the root of a chi-squared variable by its degrees of freedom.
    """
    if kernel.quantile is not None:
        return kernel.quantile(_uniform(n, d, sampler, rng))
    uniform = _uniform(n, d + (kernel.freedom is not None), sampler, rng)
    if sampler == "orthogonal":
        drawn = _orthogonal(n, d, rng)
    else:
        drawn = normal_quantile(uniform[:, :d])
        if sampler == "sobol" and d <= n:  # heavy tails must not be whitened: only this factor is
            values, vectors = np.linalg.eigh(drawn.T @ drawn / n)
            drawn = drawn @ (vectors / np.sqrt(values)) @ vectors.T
    if kernel.freedom is not None:
        drawn = drawn * student_factor(uniform[:, d:], kernel.freedom)
    return drawn


def _uniform(n: int, d: int, sampler: str, rng: np.random.Generator) -> np.ndarray:
    """Numbers between 0 and 1, (n, d): a Sobol sequence, or independent."""
    if sampler != "sobol":
        points = rng.random((n, d))
    elif d > qmc.Sobol.MAXDIM:
        raise DataError(
            f"{d} markers are more than a Sobol sequence has ({qmc.Sobol.MAXDIM}): take sampler='iid'"
        )
    else:
        points = qmc.Sobol(d, scramble=True, rng=rng).random_base2(int(np.ceil(np.log2(n))))[:n]
    return np.clip(points, TINY, 1 - TINY)


def _orthogonal(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Gaussian rows (n, d), d at a time orthogonal to each other, with the norms of independent ones."""
    norms = np.linalg.norm(rng.standard_normal((n, d)), axis=1, keepdims=True)
    return directions(n, d, rng) * norms
