"""Which outcomes could the rows have had?  Drawn around what the fitted model predicts, and integrated out.

A *world* is a law of outcomes given a prediction: labels by tempered probabilities, numbers by residuals of
rows that the model had not learned from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import softmax

from scaleshift.blocks import noise
from scaleshift.error.losses import SMALLEST, Loss, class_losses, expected_loss, observed_loss

TEMPERATURES = 2.0 ** (np.arange(-16, 49) / 8)  # 1/4 to 64, 1 among them
MOST_RESIDUALS = 10_000
FEW_RESIDUALS = 101  # over which a loss of the user's is integrated


class Scored(NamedTuple):
    """Sums over rows."""

    expected: float  # losses, outcomes integrated out
    observed: float  # losses with outcomes that were drawn
    optimism: float  # by how much the model flatters itself where it has learned; 0 elsewhere


class World(Protocol):
    """A law of outcomes."""

    def truth(self, prediction: np.ndarray) -> np.ndarray:
        """Where outcomes are centred: probabilities (n, K), or means (n,)."""

    def drawn(self, truth: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        """An outcome a row, (n,): codes or numbers."""

    def given(self, truth: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """The same of the caller's noise: uniforms of labels, standard normals of numbers."""

    def expected(self, truth: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        """Loss of each row with the outcome integrated out, (n,)."""

    def scored(
        self, truth: np.ndarray, prediction: np.ndarray, y: np.ndarray, learned: np.ndarray | None
    ) -> Scored:
        """Losses with the outcome integrated out and with `y`; optimism where outcomes were `learned`."""

    def coordinates(self, prediction: np.ndarray) -> np.ndarray:
        """Where deviations of predictions can be added."""

    def prediction(self, coordinates: np.ndarray) -> np.ndarray:
        """The way back."""

    def spread(self, seed: int, replicate: int) -> float:
        """Factor of the noise that a replicate of the whole study would have found."""

    def outcomes(self, y: np.ndarray) -> np.ndarray:
        """What an estimator is given."""


@dataclass(frozen=True)
class Labels:
    """Labels by probabilities, sharper or flatter by a temperature."""

    loss: Loss
    classes: np.ndarray
    temperature: float = 1.0

    def truth(self, prediction: np.ndarray) -> np.ndarray:
        """Probabilities, (n, K)."""
        return tempered(prediction, self.temperature)

    def drawn(self, truth: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        """How many cumulative probabilities, without the last, are not above the uniform: codes."""
        return (np.cumsum(truth[:, :-1], axis=1) <= uniform[:, None]).sum(axis=1)

    def given(self, truth: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """The same."""
        return self.drawn(truth, noise)

    def expected(self, truth: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        """Mean loss over the labels."""
        return expected_loss(self.loss, truth, prediction, self.classes)

    def scored(
        self, truth: np.ndarray, prediction: np.ndarray, y: np.ndarray, learned: np.ndarray | None
    ) -> Scored:
        """Optimism: - sum_k loss(k) (1{y = k} - truth_k), whose mean over draws is minus the covariance."""
        losses = class_losses(self.loss, prediction, self.classes)
        rows = np.arange(len(y))
        expected, observed = float(np.vdot(truth, losses)), float(losses[rows, y].sum())
        own = expected if learned is None else float(losses[rows, learned].sum())
        return Scored(expected, observed, expected - own)

    def coordinates(self, prediction: np.ndarray) -> np.ndarray:
        """Logits."""
        found: np.ndarray = np.log(np.maximum(prediction, SMALLEST))
        return found

    def prediction(self, coordinates: np.ndarray) -> np.ndarray:
        """Probabilities."""
        found: np.ndarray = softmax(coordinates, axis=1)
        return found

    def spread(self, seed: int, replicate: int) -> float:
        """Probabilities have no noise beside."""
        return 1.0

    def outcomes(self, y: np.ndarray) -> np.ndarray:
        """Labels as the user knows them."""
        found: np.ndarray = self.classes[y]
        return found


@dataclass(frozen=True)
class Numbers:
    """Numbers: a prediction and one of the held-out residuals."""

    loss: Loss
    residuals: np.ndarray  # ascending, of mean 0
    sigma2: float  # their variance
    n: int  # rows that they come from

    def truth(self, prediction: np.ndarray) -> np.ndarray:
        """Means, (n,)."""
        return prediction

    def drawn(self, truth: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        """The mean and a residual."""
        return truth + self.residuals[(uniform * len(self.residuals)).astype(np.int64)]

    def given(self, truth: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """The mean and noise of the residuals' variance."""
        return truth + np.sqrt(self.sigma2) * noise

    def expected(self, truth: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        """Squared error in closed form; another loss over 101 quantiles of the residuals."""
        if not callable(self.loss):
            return self.sigma2 + (truth - prediction) ** 2
        places = (np.arange(FEW_RESIDUALS) + 0.5) / FEW_RESIDUALS * len(self.residuals)
        few = self.residuals[places.astype(np.int64)]
        return np.mean([observed_loss(self.loss, truth + residual, prediction) for residual in few], axis=0)

    def scored(
        self, truth: np.ndarray, prediction: np.ndarray, y: np.ndarray, learned: np.ndarray | None
    ) -> Scored:
        """Optimism: 2 (f - mean) (y - mean), of mean twice the covariance; or the loss that was missed."""
        expected = float(self.expected(truth, prediction).sum())
        observed = float(observed_loss(self.loss, y, prediction).sum())
        if learned is None:
            return Scored(expected, observed, 0.0)
        if callable(self.loss):
            return Scored(
                expected, observed, expected - float(observed_loss(self.loss, learned, prediction).sum())
            )
        return Scored(expected, observed, 2 * float((prediction - truth) @ (learned - truth)))

    def coordinates(self, prediction: np.ndarray) -> np.ndarray:
        """Numbers as they are."""
        return prediction

    def prediction(self, coordinates: np.ndarray) -> np.ndarray:
        """The same."""
        return coordinates

    def spread(self, seed: int, replicate: int) -> float:
        """A variance found in n residuals, by the true one."""
        return float(noise.of_replicate(seed, "variance", replicate).chisquare(self.n) / self.n)

    def outcomes(self, y: np.ndarray) -> np.ndarray:
        """Numbers as they are."""
        return y


def tempered(proba: np.ndarray, temperature: float) -> np.ndarray:
    """Probabilities with logits divided by a temperature: (n, K) -> (n, K).

    Examples
    --------
    >>> tempered(np.array([[0.9, 0.1]]), 2.0).round(2).tolist()
    [[0.75, 0.25]]
    """
    if temperature == 1.0:
        return proba
    found: np.ndarray = softmax(np.log(np.maximum(proba, SMALLEST)) / temperature, axis=1)
    return found


def deviances(proba: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Sum of deviances over rows at each temperature: (n, K), (n,) -> (n_temperatures,)."""
    logits = np.log(np.maximum(proba.T, SMALLEST), order="C")  # (K, n): sums over few classes are quick
    logits -= logits.max(axis=0)
    own = logits[y, np.arange(len(y))]
    return np.array([2 * (np.log(np.exp(logits / t).sum(axis=0)) - own / t).sum() for t in TEMPERATURES])


def best_temperature(found: np.ndarray) -> float:
    """The temperature of least deviance; 1 where none is better.

    Examples
    --------
    >>> best_temperature(np.ones(len(TEMPERATURES)))
    1.0
    """
    one = int(np.flatnonzero(TEMPERATURES == 1.0)[0])
    best = int(found.argmin())
    return float(TEMPERATURES[best if found[best] < found[one] else one])


def few_residuals(residuals: np.ndarray) -> np.ndarray:
    """Residuals of a fold in order, quantiles of them where they are many.

    Examples
    --------
    >>> few_residuals(np.array([2.0, -1.0])).tolist(), len(few_residuals(np.zeros(20_000)))
    ([-1.0, 2.0], 10000)
    """
    ordered = np.sort(residuals)
    if len(ordered) <= MOST_RESIDUALS:
        return ordered
    places = (np.arange(MOST_RESIDUALS) + 0.5) / MOST_RESIDUALS * len(ordered)
    return ordered[places.astype(np.int64)]


def pooled(parts: list[np.ndarray], sizes: list[int]) -> np.ndarray:
    """Residuals of all folds, centred and in order; `sizes` are the rows of each.

    Examples
    --------
    >>> pooled([np.array([3.0]), np.array([0.0, 0.0])], [1, 2]).tolist()
    [-1.0, -1.0, 2.0]
    """
    value = np.concatenate(parts)
    weight = np.concatenate([np.full(len(p), n / max(len(p), 1)) for p, n in zip(parts, sizes, strict=True)])
    order = np.argsort(value, kind="stable")
    value, reached = value[order], np.cumsum(weight[order])
    if sum(sizes) > MOST_RESIDUALS:
        places = (np.arange(MOST_RESIDUALS) + 0.5) / MOST_RESIDUALS * reached[-1]
        value = value[np.searchsorted(reached, places)]
    return value - value.mean()
