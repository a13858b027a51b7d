"""How likely is a row of a score to be a positive?  Platt scaling on held-out scores, for any prior.

After Platt (1999), "Probabilistic outputs for support vector machines": a logistic curve of one score.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logit

STEEPEST, FLATTEST = 1e3, 1e-3  # slopes a spread of scores


@dataclass(frozen=True)
class Curve:
    """Probability expit(slope u + intercept) of a score u in units of its spread."""

    slope: float
    intercept: float


def platt(scores: np.ndarray, counts: np.ndarray) -> Curve:
    """The most likely curve.

    Parameters
    ----------
    scores : numpy.ndarray, shape (n,)
        Distinct ones.
    counts : numpy.ndarray, shape (2, n)
        Weights of the negatives and of the positives that have each.

    Returns
    -------
    Curve
        It rises: a ranking that is worse than chance on these rows says nothing.

    Examples
    --------
    >>> found = platt(np.array([-1.0, 1.0]), np.array([[75.0, 25.0], [25.0, 75.0]]))
    >>> round(found.slope, 2), round(found.intercept, 2)
    (1.07, 0.0)
    """
    negative, positive = counts.sum(axis=1)
    # Targets that are not quite 0 and 1, as Platt's: separable scores get a finite slope.
    high, low = (positive + 1) / (positive + 2), 1 / (negative + 2)
    some = counts.sum(axis=0) > 0
    u, (n, p) = scores[some], counts[:, some]
    for_, against = high * p + low * n, (1 - high) * p + (1 - low) * n
    total = for_.sum() + against.sum()

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        z = parameters[0] * u + parameters[1]
        residual = (expit(z) * (for_ + against) - for_) / total
        value = -(for_ @ log_expit(z) + against @ log_expit(-z)) / total
        return float(value), np.array([residual @ u, residual.sum()])

    start = np.array([1.0, logit(for_.sum() / total)])
    bounds = [(FLATTEST, STEEPEST), (None, None)]
    options = {"maxiter": 1_000, "ftol": 1e-15, "gtol": 1e-10}
    slope, intercept = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    return Curve(float(slope), float(intercept))


def binormal(gap: float, variance: np.ndarray, weight: np.ndarray) -> Curve:
    """The curve of normal scores of one variance about 0.

    Parameters
    ----------
    gap : float
        Mean of the positives less that of the negatives; 0 is in the middle.
    variance, weight : numpy.ndarray, shape (2,)
        Of negatives and positives: the one variance is their mean by weight.

    Examples
    --------
    >>> binormal(1.0, np.array([0.5, 0.5]), np.array([3.0, 1.0])).slope
    2.0
    """
    spread = float(weight @ variance / weight.sum())
    slope = np.clip(gap / spread if spread > 0 else STEEPEST, FLATTEST, STEEPEST)
    return Curve(float(slope), float(np.log(weight[1] / weight[0])))
