"""What does each label cost under many fits at once?  Losses of logits, class by class, for tiles of rows."""

from __future__ import annotations

import numpy as np

from scaleshift.error.losses import SMALLEST, Loss, class_losses
from scaleshift.kernels.cpu.categorical import exponentials
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
    return _brier(logits)


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
    if len(logits) == 1:
        found = np.empty((2, *total.shape))
        found[0] = total
        np.subtract(total, logits[0], out=found[1])
    else:
        found = total - logits
    found *= 2
    return np.minimum(found, DEAREST, out=found)


def _brier(logits: np.ndarray) -> np.ndarray:
    p = probabilities(logits.copy())
    if len(p) == 1:
        found = np.empty((2, *p.shape[1:]))
        found[0] = p[0]
        np.subtract(1, p[0], out=found[1])
        found *= found
        found *= 2
        return found
    squares = np.einsum("ktb,ktb->tb", p, p)
    squares += 1
    p *= -2
    p += squares
    return p


def expected_losses(loss: Loss, truth: np.ndarray, logits: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Mean loss over the labels: truth (K, t, n_fits), logits (m, t, n_fits) -> (t, n_fits).

    Examples
    --------
    >>> even, sure = np.full((2, 1, 1), 0.5), np.full((1, 1, 1), 50.0)
    >>> float(expected_losses("brier", even, sure, np.arange(2))[0, 0])
    1.0
    """
    if len(logits) == 1 and loss == "deviance":
        x = np.clip(logits[0], -DEAREST / 2, DEAREST / 2)  # within these limits exp does not overflow
        found = x.copy()
        exponentials(found.reshape(-1))
        found += 1
        np.log(found, out=found)
        x *= truth[1]
        found -= x
        found *= 2
        return found
    if len(logits) == 1 and loss == "brier":  # 2 (p - t)^2 + 2 t (1 - t)
        found = probabilities(logits.copy())[0]
        found -= truth[1]
        found *= found
        found += truth[0] * truth[1]
        found *= 2
        return found
    each: np.ndarray = np.einsum("ktb,ktb->tb", truth, losses(loss, logits, classes))
    return each


def steps(proba: np.ndarray) -> np.ndarray:
    """Cumulative probabilities without the last: a label is how many of them a uniform number reaches.

    Examples
    --------
    >>> steps(np.array([[0.25], [0.5], [0.25]])).ravel().tolist()
    [0.25, 0.75]
    """
    return np.cumsum(proba[:-1], axis=0)
