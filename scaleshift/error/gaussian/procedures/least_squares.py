"""What are the weights without a penalty?  Least squares, of the smallest norm where they are not unique."""

from __future__ import annotations

import numpy as np

from scaleshift.error.gaussian.design import CentredPart


class LeastSquares:
    """Minimise |y - a - Xw|^2."""

    penalised = False

    def fit(
        self, part: CentredPart, cross: np.ndarray, alpha: np.ndarray, start: np.ndarray | None = None
    ) -> np.ndarray:
        """Intercepts and weights, (1 + p, C)."""
        return part.whole(part.inverse @ part.centred(cross), cross)

    def freedom(self, part: CentredPart, theta: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        """The rank, with the intercept."""
        return np.full(theta.shape[1], float(part.rank))

    def relaxed(self, part: CentredPart, cross: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Nothing is there to relax."""
        return theta

    def operator(self, part: CentredPart, alpha: float) -> np.ndarray:
        """Inverse of Z'Z."""
        return part.operator(part.inverse)

    def hat(self, part: CentredPart, theta: np.ndarray, alpha: float) -> np.ndarray:
        """Inverse of Z'Z."""
        return self.operator(part, alpha)

    def alphas(self, part: CentredPart, cross: np.ndarray, n: int) -> np.ndarray:
        """None but 0."""
        return np.zeros((cross.shape[1], 1))

    def path(self, part: CentredPart, cross: np.ndarray, alphas: np.ndarray) -> np.ndarray:
        """One fit."""
        return self.fit(part, cross, alphas[:, 0]).T[:, None]
