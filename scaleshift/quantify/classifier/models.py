"""A fitted classifier of any kind, as the quantifiers ask it: log posteriors by label code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from dask.sizeof import sizeof
from sklearn.base import clone, is_classifier

from scaleshift.blocks import labels
from scaleshift.errors import DataError
from scaleshift.quantify.classifier.logistic import fit_logistic

TINY = np.finfo(np.float64).tiny
LOG_TINY = float(np.log(TINY))


class Model(Protocol):
    """What has learned the classes."""

    @property
    def classes(self) -> np.ndarray:
        """Codes of the labels that it knows, (n_classes,)."""

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""

    def log_posterior(self, x: np.ndarray) -> np.ndarray:
        """(n, n_markers) -> (n, n_classes), float64."""


@dataclass(frozen=True)
class Estimator:
    """A fitted scikit-learn style classifier."""

    estimator: Any
    classes: np.ndarray  # (n_classes,) the label code of each of its columns

    @property
    def nbytes(self) -> int:
        """As far as Dask can tell."""
        return int(sizeof(self.estimator))

    def log_posterior(self, x: np.ndarray) -> np.ndarray:
        """Of its probabilities; without these, all or nothing for what it predicts."""
        if hasattr(self.estimator, "predict_proba"):
            return np.log(np.maximum(self.estimator.predict_proba(x), TINY))
        predicted = self.estimator.predict(x)
        known = np.asarray(self.estimator.classes_)
        return np.where(predicted[:, None] == known, 0.0, LOG_TINY)


@dataclass(frozen=True)
class OneClass:
    """What can be learned of a single class: that every row is of it."""

    classes: np.ndarray  # (1,)

    @property
    def nbytes(self) -> int:
        """Nothing to speak of."""
        return 0

    def log_posterior(self, x: np.ndarray) -> np.ndarray:
        """Certain."""
        return np.zeros((len(x), 1))


def fitted(estimator: Any, x: np.ndarray, code: np.ndarray) -> Model:
    """Fit a classifier on some rows; None is the default one.

    Parameters
    ----------
    estimator : None or scikit-learn style classifier
        A clone of it is fitted.
    x : numpy.ndarray, shape (n, n_markers)
    code : numpy.ndarray of int, shape (n,)
        Label codes.
    """
    if len(np.unique(code)) == 1:
        return OneClass(code[:1].astype(np.int64))
    if estimator is None:
        return fit_logistic(x, code)
    model = clone(estimator).fit(x, code)
    return Estimator(model, np.asarray(model.classes_, np.int64))


def fitted_already(estimator: Any, known: np.ndarray) -> Estimator:
    """A classifier that the user has fitted, on the labels as they are.

    Parameters
    ----------
    estimator : scikit-learn style classifier
    known : numpy.ndarray, shape (n_labels,)
        Labels of the source.

    Raises
    ------
    DataError
        If it is not fitted, or knows a label that the source does not have.
    """
    if not hasattr(estimator, "classes_"):
        raise DataError(f"cv='prefit': {type(estimator).__name__} has no classes_: fit it, or pass a number")
    classes = np.asarray(estimator.classes_)
    strange = [label for label in classes.tolist() if label not in known.tolist()]
    if strange:
        hint = labels.suggestion(str(strange[0]), [str(label) for label in known])
        raise DataError(f"the classifier knows the label {strange[0]!r}, which the source lacks{hint}")
    return Estimator(estimator, np.array([np.flatnonzero(known == label)[0] for label in classes], np.int64))


def check_estimator(estimator: Any, needs: Sequence[str] = ()) -> None:
    """Refuse what is no classifier, or lacks a method that is needed."""
    if estimator is None:
        return
    lacks = [name for name in ("fit", "predict", *needs) if not hasattr(estimator, name)]
    if lacks or isinstance(estimator, type) or not is_classifier(estimator):
        what = f"lacks {', '.join(lacks)}" if lacks else "is no classifier object"
        name = estimator.__name__ if isinstance(estimator, type) else type(estimator).__name__
        raise DataError(f"estimator: {name} {what}; pass a scikit-learn style classifier, or None")
