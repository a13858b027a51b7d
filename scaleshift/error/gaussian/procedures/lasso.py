"""What are the weights that a penalty on their sizes leaves?  (1/2n)|y - a - Xw|^2 + alpha |w|_1."""

from __future__ import annotations

import numpy as np

from scaleshift.error.gaussian.design import CentredPart, pseudo_inverse
from scaleshift.error.gaussian.procedures.least_squares import LeastSquares
from scaleshift.solve.gram_lasso import gram_lasso, support_least_squares

SMALLEST = 1e-3  # alpha to choose from, of the smallest at which all weights are 0
SMALLEST_WIDE = 1e-2  # the same where there are no more rows than features


class Lasso:
    """Minimise (1/2n)|y - a - Xw|^2 + alpha |w|_1."""

    penalised = True

    def fit(
        self, part: CentredPart, cross: np.ndarray, alpha: np.ndarray, start: np.ndarray | None = None
    ) -> np.ndarray:
        """Intercepts and weights, (1 + p, C)."""
        if not alpha.any():
            return LeastSquares().fit(part, cross, alpha)
        near = None if start is None else start[1:] * part.unit
        found = gram_lasso(part.scatter / part.n, part.centred(cross).T / part.n, alpha[:, None], near)
        return part.whole(found[:, 0].T, cross)

    def freedom(self, part: CentredPart, theta: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        """1 + the number of weights that are not 0; no more than the rank."""
        return np.minimum(1.0 + (theta[1:] != 0).sum(axis=0), part.n if alpha.any() else part.rank)

    def relaxed(self, part: CentredPart, cross: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Least squares on the features that are kept."""
        weights = np.ascontiguousarray((theta[1:] * part.unit[:, None]).T)
        found = support_least_squares(part.scatter / part.n, part.centred(cross).T / part.n, weights)
        return part.whole(found.T, cross)

    def operator(self, part: CentredPart, alpha: float) -> np.ndarray | None:
        """A fit is no linear function of outcomes, but without a penalty."""
        return LeastSquares().operator(part, alpha) if alpha == 0 else None

    def hat(self, part: CentredPart, theta: np.ndarray, alpha: float) -> np.ndarray:
        """That of least squares on the features that are kept."""
        on = np.flatnonzero(theta[1:])
        inverse = np.zeros_like(part.scatter)
        inverse[np.ix_(on, on)] = pseudo_inverse(part.scatter[np.ix_(on, on)])[0]
        return part.operator(inverse)

    def alphas(self, part: CentredPart, cross: np.ndarray, n: int) -> np.ndarray:
        """From where all weights are 0, in equal steps of the logarithm, for each outcome: (C, n)."""
        largest = np.abs(part.centred(cross)).max(axis=0, initial=0) / part.n
        smallest = SMALLEST if part.n > len(part.mean) else SMALLEST_WIDE
        return np.maximum(largest, np.finfo(np.float64).tiny)[:, None] * np.geomspace(1, smallest, n)

    def path(self, part: CentredPart, cross: np.ndarray, alphas: np.ndarray) -> np.ndarray:
        """Each penalty from the weights of the one before: (C, n, 1 + p)."""
        weights = gram_lasso(part.scatter / part.n, part.centred(cross).T / part.n, alphas) / part.unit
        intercepts = (cross[0] / part.n)[:, None] - weights @ part.mean
        return np.concatenate([intercepts[..., None], weights], axis=2)
