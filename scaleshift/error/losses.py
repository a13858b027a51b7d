"""What does a prediction cost, once the outcome is known? And what is to be expected before it is?

Squared error of numbers; of K classes, whose prediction is a row of probabilities, the counting error, the
deviance and the Brier score; or a function of the user's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from scaleshift.errors import DataError
from scaleshift.user_objects import call, name_of

SMALLEST = 1e-12  # probability in a deviance
OF_NUMBERS = ("squared",)
OF_CLASSES = ("counting", "deviance", "brier")
Loss = str | Callable[[Any, Any], Any]


def decided(proba: np.ndarray) -> np.ndarray:
    """Code of the most likely class, the lowest where several are: (..., K) -> (...)."""
    return proba.argmax(axis=-1)


def class_losses(loss: Loss, proba: np.ndarray, classes: np.ndarray | None = None) -> np.ndarray:
    """Loss of each label that a row could have.

    Parameters
    ----------
    loss : {"counting", "deviance", "brier"} or callable
        ``loss(y, proba) -> (n,)`` of labels y, (n,), and probabilities, (n, K).
    proba : numpy.ndarray, shape (..., K)
        Predicted probabilities.
    classes : numpy.ndarray, shape (K,), optional
        Labels, which a callable is given.

    Returns
    -------
    numpy.ndarray of float64, shape (..., K)

    Examples
    --------
    >>> class_losses("brier", np.array([[0.75, 0.25]])).tolist()
    [[0.125, 1.125]]
    """
    k = proba.shape[-1]
    if callable(loss):
        flat = proba.reshape(-1, k)
        labels = np.arange(k) if classes is None else classes
        found = [_called(loss, np.repeat(labels[j : j + 1], len(flat)), flat) for j in range(k)]
        return np.stack(found, axis=-1).reshape(proba.shape)
    if loss == "counting":
        return (decided(proba)[..., None] != np.arange(k)).astype(np.float64)
    if loss == "deviance":
        return -2 * np.log(np.maximum(proba, SMALLEST))
    squares: np.ndarray = (proba**2).sum(axis=-1, keepdims=True)
    return squares + 1 - 2 * proba


def expected_loss(loss: Loss, truth: np.ndarray, proba: np.ndarray, classes: Any = None) -> np.ndarray:
    """Mean loss of each row over the labels that it can have: sum_k truth_k loss(k, proba).

    Parameters
    ----------
    loss : {"counting", "deviance", "brier"} or callable
    truth : numpy.ndarray, shape (..., K)
        How likely each label is.
    proba : numpy.ndarray, shape (..., K)
        Predicted probabilities; broadcast with `truth`.
    classes : numpy.ndarray, shape (K,), optional

    Returns
    -------
    numpy.ndarray of float64, shape (...)

    Examples
    --------
    >>> expected_loss("counting", np.array([0.9, 0.1]), np.array([[0.6, 0.4], [0.3, 0.7]])).round(6).tolist()
    [0.1, 0.9]
    """
    losses = class_losses(loss, proba, classes)
    return np.einsum("...k,...k->...", np.broadcast_to(truth, losses.shape), losses)


def observed_loss(loss: Loss, y: np.ndarray, prediction: np.ndarray, classes: Any = None) -> np.ndarray:
    """Loss of each row whose outcome is known.

    Parameters
    ----------
    loss : "squared", one of `OF_CLASSES`, or callable
    y : numpy.ndarray, shape (n,)
        Numbers, or codes of classes.
    prediction : numpy.ndarray, shape (n,), or (n, K) of classes
    classes : numpy.ndarray, shape (K,), optional

    Returns
    -------
    numpy.ndarray of float64, shape (n,)

    Examples
    --------
    >>> observed_loss("squared", np.array([1.0]), np.array([3.0])).tolist()
    [4.0]
    """
    if prediction.ndim == 1:
        return _called(loss, y, prediction) if callable(loss) else (y - prediction) ** 2
    losses = class_losses(loss, prediction, classes)
    return np.take_along_axis(losses, y[:, None].astype(np.int64), axis=1)[:, 0]


def _called(loss: Callable[[Any, Any], Any], y: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    found = np.asarray(call(loss, y, prediction))
    if found.shape != (len(y),) or found.dtype.kind not in "biuf":
        raise DataError(
            f"loss {name_of(loss)} gave {found.dtype} of shape {found.shape} for {len(y)} rows: expected one "
            "number a row"
        )
    if not np.isfinite(found).all():
        raise DataError(
            f"loss {name_of(loss)} gave NaN or infinite values: expected a number a row, also of labels "
            "that it is not likely to have (clip probabilities)"
        )
    return found.astype(np.float64)
