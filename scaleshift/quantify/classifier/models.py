"""A fitted classifier of any kind, as the quantifiers ask it: log posteriors by label code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd
from dask.sizeof import sizeof
from sklearn.base import clone, is_classifier

from scaleshift.errors import DataError
from scaleshift.quantify.classifier.logistic import fit_logistic
from scaleshift.spelling import suggestion
from scaleshift.user_objects import ask

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
        """Of its probabilities; without these, all or nothing for what it predicts.

        Raises
        ------
        DataError
            If the estimator fails, or gives what are no probabilities, or no class of its own.
        """
        names = getattr(self.estimator, "feature_names_in_", None)
        rows = x if names is None else pd.DataFrame(x, columns=names)  # or scikit-learn warns
        if not hasattr(self.estimator, "predict_proba"):
            return self._all_or_nothing(np.asarray(ask(self.estimator, "predict", rows)))
        found = np.asarray(ask(self.estimator, "predict_proba", rows))
        name, expected = f"{_name(self.estimator)}.predict_proba", (len(x), len(self.classes))
        if found.shape != expected or found.dtype.kind not in "biuf":
            raise DataError(
                f"{name} gave an array of shape {found.shape} and dtype {found.dtype}: expected numbers of "
                f"shape {expected}, a column for each of its classes_"
            )
        if not np.isfinite(found).all() or found.min(initial=0) < -1e-6:
            raise DataError(
                f"{name} gave NaN, infinite or negative values for finite rows: expected probabilities"
            )
        return np.log(np.maximum(found, TINY))

    def _all_or_nothing(self, predicted: np.ndarray) -> np.ndarray:
        known = np.asarray(self.estimator.classes_)
        same = predicted[:, None] == known if predicted.ndim == 1 else np.zeros((1, 1), bool)
        if not same.any(axis=1).all():
            what = f"an array of shape {predicted.shape}"
            if predicted.ndim == 1:
                what = repr(predicted[~same.any(axis=1)][0].item())
            raise DataError(
                f"{_name(self.estimator)}.predict gave {what}: expected one of its classes_ a row"
            )
        return np.where(same, 0.0, LOG_TINY)


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
    model = clone(estimator)
    ask(model, "fit", x, code)
    classes = np.asarray(getattr(model, "classes_", ()))
    if not np.array_equal(classes, np.unique(code)):
        raise DataError(
            f"{_name(model)}.fit left {classes.tolist()} in classes_ where it was to learn the classes "
            f"{np.unique(code).tolist()}: expected these, ascending"
        )
    return Estimator(model, classes.astype(np.int64))


def fitted_already(
    estimator: Any, known: np.ndarray, n_markers: int, markers: Sequence[str] | None = None
) -> Estimator:
    """A classifier that the user has fitted, on the labels as they are.

    Parameters
    ----------
    estimator : scikit-learn style classifier
    known : numpy.ndarray, shape (n_labels,)
        Labels of the source.
    n_markers : int
        Of the source.
    markers : sequence of str, optional
        Their names.

    Raises
    ------
    DataError
        If it is not fitted, on other markers, or knows a label that the source does not have.
    """
    if not hasattr(estimator, "classes_"):
        raise DataError(f"cv='prefit': {_name(estimator)} has no classes_: fit it, or pass a number")
    names = [str(name) for name in getattr(estimator, "feature_names_in_", ())]
    if names and markers is not None:
        learned, has = ", ".join(names), ", ".join(markers)
    else:
        learned, has = str(getattr(estimator, "n_features_in_", n_markers)), str(n_markers)
    if learned != has:
        raise DataError(
            f"cv='prefit': {_name(estimator)} was fitted on other markers ({learned}) than the source has "
            f"({has}): fit it on the source's, in their order"
        )
    classes = np.asarray(estimator.classes_)
    strange = [label for label in classes.tolist() if label not in known.tolist()]
    if strange:
        hint = suggestion(str(strange[0]), [str(label) for label in known])
        raise DataError(f"the classifier knows the label {strange[0]!r}, which the source lacks{hint}")
    return Estimator(estimator, np.array([np.flatnonzero(known == label)[0] for label in classes], np.int64))


def _name(estimator: Any) -> str:
    return type(estimator).__name__


def check_estimator(estimator: Any, needs: Sequence[str] = ()) -> None:
    """Refuse what is no classifier, or lacks a method that is needed."""
    if estimator is None:
        return
    lacks = [name for name in ("fit", "predict", *needs) if not hasattr(estimator, name)]
    if lacks or isinstance(estimator, type) or not is_classifier(estimator):
        what = f"lacks {', '.join(lacks)}" if lacks else "is no classifier object"
        name = estimator.__name__ if isinstance(estimator, type) else type(estimator).__name__
        raise DataError(f"estimator: {name} {what}; pass a scikit-learn style classifier, or None")
