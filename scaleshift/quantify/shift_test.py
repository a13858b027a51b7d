"""Does any mixture of the classes fit the sample?  Distance, relative misfit, and a test of label shift.

Under label shift the sample's embedding differs from that of the best mixture by sampling noise only. Noise
is made from random halves of the folds, of the sample and of the source, and projected off the directions
that another mixture would absorb: without the projection the test would never reject. Where the classes
absorb all of it (features that are as few as they, such as a classifier's outputs) there is nothing to test.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from scaleshift.quantify.resampling import deviations, halves
from scaleshift.solve.simplex import simplex_least_squares

N_NULL = 9_999


@dataclass(frozen=True)
class ShiftTest:
    """The source's side of the comparison, in all features, also those that proportions do not use."""

    means: np.ndarray  # (n_labels, n_features) class embeddings
    gram: np.ndarray  # (n_labels, n_labels)
    basis: np.ndarray  # (n_features, n_labels - 1), orthonormal, of the differences of class embeddings
    noise: np.ndarray | None  # (n_labels, n_folds, n_features) deviations of the folds; None: no test
    seed: int

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return 0 if self.noise is None else self.noise.nbytes

    @property
    def has_noise(self) -> bool:
        """Whether p-values can be computed."""
        return self.noise is not None

    def fit(self, targets: list[np.ndarray]) -> np.ndarray:
        """Hard mixtures that come nearest to some samples' embeddings: -> (n_samples, n_labels)."""
        products = np.array([self.means @ target for target in targets]).reshape(
            len(targets), len(self.means)
        )
        return simplex_least_squares(self.gram, products)

    def __call__(
        self, target: np.ndarray, alpha: np.ndarray, sums: np.ndarray, counts: np.ndarray
    ) -> dict[str, float]:
        """Distance, misfit and p-value of one sample.

        Parameters
        ----------
        target : numpy.ndarray, shape (n_features,)
            The sample's embedding.
        alpha : numpy.ndarray, shape (n_labels,)
            What `fit` gave for it.
        sums : numpy.ndarray, shape (n_folds, n_features)
            Features of the sample's rows; not looked at without noise.
        counts : numpy.ndarray, shape (n_folds,)
        """
        residual = target - alpha @ self.means
        squared, norm = residual @ residual, target @ target
        p_value = np.nan
        if self.noise is not None and np.count_nonzero(counts) > 1:  # one cell has no noise
            own = deviations(sums, counts)
            null = self._null(own, np.einsum("i,ijw->jw", alpha, self.noise, optimize=True))
            p_value = (1 + np.count_nonzero(null >= squared)) / (1 + N_NULL)
        return {
            "distance": np.sqrt(squared),
            "misfit": np.sqrt(squared / norm) if norm > 0 else np.nan,  # no embedding, no share of it
            "p_value": p_value,
        }

    def _null(self, own: np.ndarray, source: np.ndarray) -> np.ndarray:
        """Squared norms of the projected noise, (N_NULL,)."""
        noise = np.concatenate([own, -source])  # (n_folds + n_folds of the source, n_features)
        noise = noise - (noise @ self.basis) @ self.basis.T
        gram = (noise @ noise.T).astype(np.float32)
        signs = _signs(len(own), len(source), self.seed)
        return np.einsum("bj,bj->b", signs @ gram, signs)


@functools.lru_cache(maxsize=4)
def _signs(n_target: int, n_source: int, seed: int) -> np.ndarray:
    """By how much random halves weigh a fold above its mean weight, (N_NULL, n_target + n_source)."""
    drawn = [halves(N_NULL, n, seed, f"null-{of}") for of, n in (("target", n_target), ("source", n_source))]
    return (np.concatenate(drawn, axis=1) - 1).astype(np.float32)


def shift_test(means: np.ndarray, sums: np.ndarray, counts: np.ndarray, seed: int) -> ShiftTest:
    """Prepare the test.

    Parameters
    ----------
    means : numpy.ndarray, shape (n_labels, n_features)
    sums : numpy.ndarray, shape (n_labels, n_folds, n_features)
    counts : numpy.ndarray, shape (n_labels, n_folds)
    seed : int
    """
    basis = _span(means[1:] - means[0])
    noise = None if counts.shape[1] == 1 else deviations(sums, counts)
    if noise is not None:
        left = np.linalg.norm(noise - (noise @ basis) @ basis.T)
        if left <= 1e-9 * np.linalg.norm(noise):  # rounding is no noise
            noise = None
    return ShiftTest(means, means @ means.T, basis, noise, seed)


def _span(vectors: np.ndarray) -> np.ndarray:
    """Orthonormal basis of what `vectors` span, (n_features, rank); rounding is no direction."""
    if not len(vectors):
        return np.zeros((vectors.shape[1], 0))
    _, values, directions = np.linalg.svd(vectors, full_matrices=False)
    return directions[values > 1e-9 * max(values[0], 1e-300)].T
