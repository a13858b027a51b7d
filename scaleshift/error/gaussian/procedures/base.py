"""What must a procedure do?  Learn weights of all outcomes at once, and say what it costs in freedom."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from scaleshift.error.gaussian.design import CentredPart


class Procedure(Protocol):
    """A way to learn intercept and weights of C outcomes from their moments."""

    penalised: bool  # whether there is an alpha

    def fit(
        self, part: CentredPart, cross: np.ndarray, alpha: np.ndarray, start: np.ndarray | None = None
    ) -> np.ndarray:
        """Intercepts and weights, (1 + p, C), of Z'y, (1 + p, C), and a penalty for each, (C,).

        `start`, (1 + p,): a model near these, where that is of use.
        """

    def freedom(self, part: CentredPart, theta: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        """Degrees of freedom that each fit took, (C,)."""

    def relaxed(self, part: CentredPart, cross: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Least squares on the features that the fits, (1 + p, C), keep: (1 + p, C)."""

    def operator(self, part: CentredPart, alpha: float) -> np.ndarray | None:
        """A with theta = A Z'y, (1 + p, 1 + p); None where a fit is no linear function of outcomes."""

    def hat(self, part: CentredPart, theta: np.ndarray, alpha: float) -> np.ndarray:
        """The same of the fit as it came out, which has these weights, (1 + p,)."""

    def alphas(self, part: CentredPart, cross: np.ndarray, n: int) -> np.ndarray:
        """Penalties to choose from, the largest first: (C, n)."""

    def path(self, part: CentredPart, cross: np.ndarray, alphas: np.ndarray) -> np.ndarray:
        """Intercepts and weights at each penalty: (C, n, 1 + p)."""
