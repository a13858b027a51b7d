"""How sure may a classifier be?  Posteriors corrected by what became of rows that it had not seen.

After Alexandari, Kundaje and Shrikumar (2020), "Maximum likelihood with bias-corrected calibration is hard to
beat at label shift adaptation".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from scaleshift.errors import DataError

KINDS = ("bcts", "vector", None)
FLOOR = float(np.log(1e-12))  # of a log posterior that is scaled: certainty is no infinite logit
STEEPEST = 100.0  # scale of classes that nothing confuses, for which none is the largest


@dataclass(frozen=True)
class Calibration:
    """softmax(scale * logits + bias), the logits centred log posteriors."""

    scale: np.ndarray  # (n_labels,) all the same for temperature scaling
    bias: np.ndarray  # (n_labels,) -inf for classes that nothing is known of
    floor: float  # of the log posteriors

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return self.scale.nbytes + self.bias.nbytes

    def __call__(self, log_posterior: np.ndarray) -> np.ndarray:
        """Calibrated log posteriors: (n, n_labels) -> (n, n_labels).

        Examples
        --------
        >>> half = Calibration(np.full(2, 0.5), np.zeros(2), FLOOR)
        >>> np.exp(half(np.log([[0.9, 0.1]]))).round(2).tolist()
        [[0.75, 0.25]]
        """
        known = np.isfinite(self.bias)
        found = np.full(log_posterior.shape, -np.inf)
        logits = centred(log_posterior[:, known], self.floor)
        found[:, known] = log_softmax(self.scale[known] * logits + self.bias[known], axis=1)
        return found


def centred(log_posterior: np.ndarray, floor: float) -> np.ndarray:
    """Logits of mean 0, of log posteriors not below a floor.

    Examples
    --------
    >>> centred(np.array([[0.0, -40.0]]), -2.0).tolist()
    [[1.0, -1.0]]
    """
    logits = np.maximum(log_posterior, floor)
    return logits - logits.mean(axis=1, keepdims=True)


def fit_calibration(
    kind: str | None, log_posterior: np.ndarray, code: np.ndarray, weight: np.ndarray
) -> Calibration:
    """Learn it from rows whose classes are known: the highest likelihood, a convex problem.

    Parameters
    ----------
    kind : {"bcts", "vector", None}
        Bias-corrected temperature scaling has one scale for all classes, vector scaling one for each; both
        have a bias for each. None leaves the posteriors as they are.
    log_posterior : numpy.ndarray, shape (n, n_labels)
        Of rows that the classifier has not seen.
    code : numpy.ndarray of int, shape (n,)
        Their classes; of others nothing is known.
    weight : numpy.ndarray, shape (n,)
        What each row counts.

    Raises
    ------
    DataError
        For another kind.

    Examples
    --------
    >>> said = np.log([[0.99, 0.01], [0.99, 0.01], [0.99, 0.01], [0.01, 0.99]])
    >>> found = fit_calibration("bcts", said, np.array([0, 0, 1, 1]), np.ones(4))
    >>> np.exp(found(said)).round(2).tolist()
    [[0.67, 0.33], [0.67, 0.33], [0.67, 0.33], [0.0, 1.0]]
    """
    if kind not in KINDS:
        raise DataError(f"calibration={kind!r}: expected 'bcts', 'vector' or None")
    c = log_posterior.shape[1]
    known = np.bincount(code, minlength=c) > 0
    scale, bias = np.ones(c), np.where(known, 0.0, -np.inf)
    if kind is None or known.sum() == 1:
        return Calibration(scale, bias, -np.inf)
    place = np.cumsum(known) - 1
    logits = centred(log_posterior[:, known], FLOOR)
    scale[known], bias[known] = _fitted(logits, place[code], weight / weight.sum(), kind == "vector")
    return Calibration(scale, bias, FLOOR)


def _fitted(
    logits: np.ndarray, code: np.ndarray, weight: np.ndarray, by_class: bool
) -> tuple[np.ndarray, np.ndarray]:
    n, c = logits.shape
    n_scales = c if by_class else 1
    true = code[:, None] == np.arange(c)

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        scale, bias = np.split(parameters, [n_scales])
        log_p = log_softmax(scale * logits + bias, axis=1)
        residual = weight[:, None] * (np.exp(log_p) - true)
        by_scale = (residual * logits).sum(axis=0)
        gradient = np.concatenate([by_scale if by_class else [by_scale.sum()], residual.sum(axis=0)])
        return float(-weight @ log_p[np.arange(n), code]), gradient

    start = np.concatenate([np.ones(n_scales), np.zeros(c)])
    bounds = [(0, STEEPEST)] * n_scales + [(None, None)] * c
    options = {"maxiter": 1_000, "maxfun": 10_000, "ftol": 1e-15, "gtol": 1e-9}
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    return np.broadcast_to(found[:n_scales], c), found[n_scales:]
