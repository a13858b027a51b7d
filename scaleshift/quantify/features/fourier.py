"""Random Fourier features: Phi(x) = sqrt(2/D) [cos Wx ; sin Wx], a Gaussian kernel in one pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm, qmc

from scaleshift.blocks import noise
from scaleshift.errors import DataError
from scaleshift.kernels import dispatch
from scaleshift.kernels.reference import single_precision
from scaleshift.quantify.features.base import ExplicitEmbedding, FeatureMap, Source

SAMPLERS = ("sobol", "iid")


class FourierFeatures(FeatureMap):
    """Random Fourier features of the Gaussian kernel exp(-||x - y||^2 / (2 bandwidth^2)).

    Parameters
    ----------
    n_features : int, default 1000
        Length D of a feature vector, even: D / 2 frequencies.
    kernel : {"gaussian"}, default "gaussian"
    bandwidth : "auto" or float, default "auto"
        In the units of X. "auto" is chosen from the source; see `scaleshift.quantify.bandwidth`.
    sampler : {"sobol", "iid"}, default "sobol"
        How frequencies are drawn. "sobol" is a scrambled Sobol sequence, whitened; it has less kernel
        error than "iid", which has the textbook one of 1 / sqrt(D).
    frequencies : array-like, shape (D / 2, n_markers), optional
        Radians per unit of X, in place of drawn ones.
    random_state : None, int or numpy.random.Generator
        None takes the quantifier's.

    Notes
    -----
    ||Phi(x)|| = 1 for every x. Source: Rahimi and Recht (2007), "Random features for large-scale
    kernel machines".

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
        """Draw the frequencies, or take those given."""
        if self.kernel != "gaussian":
            raise DataError(f"kernel={self.kernel!r}: FourierFeatures knows 'gaussian'")
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
        width = source.resolve_bandwidth(self.bandwidth)
        rng = noise.generator(source.seed_of(self.random_state), "frequencies")
        drawn = gaussian_frequencies(self.n_features // 2, d, self.sampler, rng)
        with np.errstate(over="ignore"):
            return FourierEmbedding(_usable(single_precision(drawn / width), f"bandwidth={width:g}"), width)


def _usable(frequencies: np.ndarray, what: str) -> np.ndarray:
    if not np.isfinite(frequencies).all() or not np.abs(frequencies).max() > 1e-30:
        raise DataError(f"{what}: out of the range of float32; bring the markers to a scale near 1")
    return frequencies


@dataclass(frozen=True)
class FourierEmbedding(ExplicitEmbedding):
    """Frequencies of a Gaussian kernel; of a kernel of one's own where they were given."""

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


def gaussian_frequencies(n: int, d: int, sampler: str, rng: np.random.Generator) -> np.ndarray:
    """Draw frequencies of a Gaussian kernel of bandwidth 1.

    Parameters
    ----------
    n, d : int
        Frequencies and markers.
    sampler : {"sobol", "iid"}
    rng : numpy.random.Generator

    Returns
    -------
    numpy.ndarray, shape (n, d)
        Marginally standard normal; for "sobol" and d <= n, W'W / n is the identity.
    """
    if sampler == "iid":
        return rng.standard_normal((n, d))
    if sampler != "sobol":
        raise DataError(f"sampler={sampler!r}: expected one of {', '.join(SAMPLERS)}")
    if d > qmc.Sobol.MAXDIM:
        raise DataError(f"{d} markers are more than a Sobol sequence has ({qmc.Sobol.MAXDIM}): sampler='iid'")
    points = qmc.Sobol(d, scramble=True, rng=rng).random_base2(int(np.ceil(np.log2(n))))[:n]
    tiny = 2.0**-33
    w = norm.ppf(np.clip(points, tiny, 1 - tiny))
    if d > n:
        return w
    values, vectors = np.linalg.eigh(w.T @ w / n)
    return w @ (vectors / np.sqrt(values)) @ vectors.T
