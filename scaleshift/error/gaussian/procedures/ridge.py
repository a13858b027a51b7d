"""What are the weights that a penalty on their squares leaves?  (1/n)|y - a - Xw|^2 + alpha |w|^2."""

from __future__ import annotations

import numpy as np

from scaleshift.error.gaussian.design import CentredPart, pseudo_inverse
from scaleshift.error.gaussian.procedures.least_squares import LeastSquares

LARGEST, SMALLEST = 1e2, 1e-6  # alpha to choose from, of the largest and the mean eigenvalue of X'X/n


class Ridge(LeastSquares):
    """Minimise (1/n)|y - a - Xw|^2 + alpha |w|^2."""

    penalised = True

    def fit(
        self, part: CentredPart, cross: np.ndarray, alpha: np.ndarray, start: np.ndarray | None = None
    ) -> np.ndarray:
        """Intercepts and weights, (1 + p, C): one inverse for each alpha."""
        centred, weights = part.centred(cross), np.empty((len(cross) - 1, cross.shape[1]))
        for value in np.unique(alpha):
            here = alpha == value
            weights[:, here] = _inverse(part, float(value)) @ centred[:, here]
        return part.whole(weights, cross)

    def freedom(self, part: CentredPart, theta: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        """1 + trace of the hat matrix of the centred features."""
        values = part.eigen[0]
        if not alpha.all():
            return np.where(alpha > 0, self._traces(values, part.n, alpha), float(part.rank))
        return self._traces(values, part.n, alpha)

    def relaxed(self, part: CentredPart, cross: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Least squares on all features."""
        return part.whole(part.inverse @ part.centred(cross), cross)

    def operator(self, part: CentredPart, alpha: float) -> np.ndarray:
        """Of the centred features (S + n alpha)^-1."""
        return part.operator(_inverse(part, alpha))

    def alphas(self, part: CentredPart, cross: np.ndarray, n: int) -> np.ndarray:
        """From where little is left of weights to where least squares is met; the same for all outcomes."""
        values = part.eigen[0] / part.n
        ends = LARGEST * values.max(initial=0), SMALLEST * values.mean() if values.size else 0
        if not ends[1] > 0:  # no feature varies
            return np.ones((cross.shape[1], 1))
        return np.tile(np.geomspace(*ends, n), (cross.shape[1], 1))

    def path(self, part: CentredPart, cross: np.ndarray, alphas: np.ndarray) -> np.ndarray:
        """All penalties from one decomposition: (C, n, 1 + p)."""
        values, vectors = part.eigen
        along = vectors.T @ part.centred(cross)  # (p, C)
        shrunk = along.T[:, None] / (values + part.n * alphas[..., None])  # (C, n, p)
        weights = (shrunk @ vectors.T) / part.unit
        intercepts = (cross[0] / part.n)[:, None] - weights @ part.mean
        return np.concatenate([intercepts[..., None], weights], axis=2)

    @staticmethod
    def _traces(values: np.ndarray, n: float, alpha: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore"):
            return 1 + np.nansum(values[:, None] / (values[:, None] + n * alpha), axis=0)


def _inverse(part: CentredPart, alpha: float) -> np.ndarray:
    if alpha == 0:
        return part.inverse
    return pseudo_inverse(part.scatter + part.n * alpha * np.eye(len(part.mean)))[0]
