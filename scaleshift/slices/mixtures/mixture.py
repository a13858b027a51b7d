"""What is an error-aware mixture, and how do its parameters follow from sums?  By the M-step.

Row i has an embedding x_i, a label and a prediction. Component k: P(S = k) = w_k, x | k ~ N(mu_k, Sigma_k),
label | k ~ Cat(p_k), prediction | k ~ Cat(q_k) (Eyuboglu et al. 2022).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from scaleshift.blocks.statistics import Layout
from scaleshift.kernels.mixture import EPSILON, Components


@dataclass(frozen=True)
class Mixture:
    """Parameters of K components in d columns."""

    covariance_type: str
    weights: np.ndarray  # (K,)
    means: np.ndarray  # (K, d)
    covariances: np.ndarray  # diag (K, d), spherical (K,), full (K, d, d), tied (d, d)
    label_probs: np.ndarray  # (K, C)
    prediction_probs: np.ndarray | None  # (K, C)

    def __post_init__(self) -> None:
        """Refuse parts that do not belong together, as a damaged file may hold: kernels check no bounds."""
        k, d = np.shape(self.means)
        of_covariance = {"diag": (k, d), "spherical": (k,), "full": (k, d, d), "tied": (d, d)}
        shapes = [(self.weights, (k,)), (self.covariances, of_covariance[self.covariance_type])]
        if self.prediction_probs is not None:
            shapes.append((self.prediction_probs, np.shape(self.label_probs)))
        if any(np.shape(part) != shape for part, shape in shapes) or np.shape(self.label_probs)[:1] != (k,):
            raise ValueError(f"the parts of a mixture of {k} components in {d} columns have other shapes")

    @property
    def n_components(self) -> int:
        """K."""
        return len(self.weights)

    @property
    def n_parameters(self) -> int:
        """Free ones, for an information criterion."""
        k, d = self.means.shape
        of_covariance = {
            "diag": k * d,
            "spherical": k,
            "full": k * d * (d + 1) // 2,
            "tied": d * (d + 1) // 2,
        }
        classes = self.label_probs.shape[1] - 1
        of_outcomes = k * classes * (1 if self.prediction_probs is None else 2)
        return k - 1 + k * d + of_covariance[self.covariance_type] + of_outcomes


@dataclass(frozen=True)
class Powers:
    """Exponents of the probabilities of a label and of a prediction."""

    label: float = 1.0
    prediction: float = 1.0


def components_of(mixtures: Sequence[Mixture], powers: Powers) -> Components:
    """Mixtures of one kind as one batch for the kernels."""
    first = mixtures[0]
    stack = np.stack if first.covariance_type == "tied" else np.concatenate
    predictions = [m.prediction_probs for m in mixtures if m.prediction_probs is not None]
    return Components(
        first.covariance_type,
        tuple(m.n_components for m in mixtures),
        np.concatenate([m.weights for m in mixtures]),
        np.concatenate([m.means for m in mixtures]),
        stack([m.covariances for m in mixtures]),
        np.concatenate([m.label_probs for m in mixtures]),
        np.concatenate(predictions) if predictions else None,
        powers.label,
        powers.prediction,
    )


def layout_of(
    covariance_type: str, sizes: Sequence[int], d: int, n_labels: int, predictions: bool
) -> dict[str, tuple[int, ...]]:
    """Shapes of the sums of a pass; without the log-likelihood, which a start has not."""
    k = sum(sizes)
    squares: Layout = {"diag": (k, d), "spherical": (k, d), "full": (k, d, d), "tied": (d, d)}
    layout = {"mass": (1,), "n": (k,), "x": (k, d), "xx": squares[covariance_type], "label": (k, n_labels)}
    if predictions:
        layout["prediction"] = (k, n_labels)
    return {**layout, "extra": (k, 2)}


def maximise(
    sums: Mapping[str, np.ndarray], covariance_type: str, sizes: Sequence[int], reg_covar: float
) -> list[Mixture]:
    """Parameters of greatest likelihood, of every mixture of a batch: the M-step.

    N_k = sum r + 10 eps; w = N / n; mu = sum r x / N; p, q = sums of outcomes / N; variances are
    E x^2 - mu^2 + reg_covar.
    """
    mixtures, first = [], 0
    for size in sizes:
        part = slice(first, first + size)
        first += size
        n = sums["n"][part] + 10 * EPSILON
        means = sums["x"][part] / n[:, None]
        squares = sums["xx"] if covariance_type == "tied" else sums["xx"][part]
        prediction = sums.get("prediction")
        mixtures.append(
            Mixture(
                covariance_type,
                n / sums["mass"][0],
                means,
                _covariances(covariance_type, n, means, squares, reg_covar),
                sums["label"][part] / n[:, None],
                None if prediction is None else prediction[part] / n[:, None],
            )
        )
    return mixtures


def _covariances(
    covariance_type: str, n: np.ndarray, means: np.ndarray, squares: np.ndarray, reg_covar: float
) -> np.ndarray:
    if covariance_type == "tied":
        scatter = squares - (means.T * n) @ means
        return scatter / n.sum() + reg_covar * np.eye(len(scatter))
    if covariance_type == "full":
        between = means[:, :, None] * means[:, None, :]
        return squares / n[:, None, None] - between + reg_covar * np.eye(means.shape[1])
    variance = np.maximum(squares / n[:, None] - means**2, 0) + reg_covar
    return variance.mean(axis=1) if covariance_type == "spherical" else variance
