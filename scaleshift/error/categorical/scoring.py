"""What does each label cost under many fits at once?  Losses of logits, class by class, for tiles of rows."""

from __future__ import annotations

import numpy as np

from scaleshift.error.losses import SMALLEST, Loss, class_losses
from scaleshift.kernels.logistic import class_probabilities, log_totals, probabilities

TIED = 4.5e-16  # logits that differ by no more have probabilities that are equal: the lower class is decided
DEAREST = -2 * float(np.log(SMALLEST))  # deviance


def losses(loss: Loss, logits: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Loss of every label, (m, t, n_fits) -> (K, t, n_fits); m = 1 of two classes.

    The same numbers as `class_losses` of probabilities, without probabilities where they are not needed.

    Examples
    --------
    >>> losses("counting", np.array([[[-1.0, 0.0, 1.0]]]), np.arange(2)).tolist()
    [[[0.0, 0.0, 1.0]], [[1.0, 1.0, 0.0]]]
    """
    if callable(loss):
        proba = np.moveaxis(class_probabilities(logits), 0, -1)
        return np.moveaxis(class_losses(loss, np.ascontiguousarray(proba), classes), -1, 0)
    if loss == "counting":
        return _counting(logits)
    if loss == "deviance":
        return _deviance(logits)
    p = probabilities(logits.copy())
    if len(p) == 1:
        return np.concatenate([2 * p**2, 2 * (1 - p) ** 2])
    found: np.ndarray = (p**2).sum(axis=0) + 1 - 2 * p
    return found


def _counting(logits: np.ndarray) -> np.ndarray:
    if len(logits) == 1:
        found = np.empty((2, *logits.shape[1:]))
        found[0] = logits[0] > TIED
        np.subtract(1, found[0], out=found[1])
        return found
    best, decided = logits[0].copy(), np.zeros(logits.shape[1:], np.int64)
    for k in range(1, len(logits)):
        above = logits[k] > best + TIED
        decided[above] = k
        np.copyto(best, logits[k], where=above)
    return (decided != np.arange(len(logits))[:, None, None]).astype(np.float64)


def _deviance(logits: np.ndarray) -> np.ndarray:
    total = log_totals(logits)
    found = np.stack([total, total - logits[0]]) if len(logits) == 1 else total - logits
    found *= 2
    return np.minimum(found, DEAREST, out=found)


def steps(proba: np.ndarray) -> np.ndarray:
    """Cumulative probabilities without the last: a label is how many of them a uniform number reaches.

    Examples
    --------
    >>> steps(np.array([[0.25], [0.5], [0.25]])).ravel().tolist()
    [0.25, 0.75]
    """
    return np.cumsum(proba[:-1], axis=0)
