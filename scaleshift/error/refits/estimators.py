"""How is the user's estimator fitted, fitted again, and asked?  In the labels themselves, for every class."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from scaleshift.blocks.graph import SHARE_BYTES
from scaleshift.errors import DataError
from scaleshift.models.predicting import Predictor, known_classes, other_classes
from scaleshift.user_objects import ask

FAR_OFF = 1e-3  # from 1: sum of a row of probabilities, also of float16


@dataclass(frozen=True)
class Asked:
    """A fitted estimator that is asked for all classes; travels in tasks."""

    model: Any
    classes: np.ndarray | None  # (K,) labels; None: it predicts numbers

    @property
    def nbytes(self) -> int:
        """What is not known is taken as large."""
        return 2 * SHARE_BYTES

    def __reduce__(self) -> Any:
        return settled, (self.model, self.classes)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Numbers, (n,), or probabilities, (n, K): 0 of a class that the model has not met."""
        if not len(x):
            return np.empty(0 if self.classes is None else (0, len(self.classes)))
        if self.classes is None:
            numbers = Predictor(self.model, None, None)(x, 0).astype(np.float64)
            if not np.isfinite(numbers).all():
                raise DataError(
                    f"{type(self.model).__name__}.predict gave NaN or infinite values for "
                    f"{(~np.isfinite(numbers)).sum()} of {len(x)} rows: expected a finite number a row"
                )
            return numbers
        known = known_classes(self.model)
        own = self.classes if known is None else known
        found = Predictor(self.model, own, None)(x, 0)
        if not (found.min() >= -FAR_OFF and np.abs(found.sum(axis=1) - 1).max() <= FAR_OFF):
            raise DataError(
                f"{type(self.model).__name__}.predict_proba gave rows that are no probabilities: expected "
                "numbers from 0 whose sum over classes is 1"
            )
        every = np.zeros((len(x), len(self.classes)))
        every[:, self._places(own)] = found
        return every

    def _places(self, own: np.ndarray) -> list[int]:
        labels = self.classes.tolist() if self.classes is not None else []
        if not set(own.tolist()) <= set(labels):
            raise DataError(
                f"{other_classes(self.model, own.tolist(), labels)}; labels of a categorical may have "
                "categories without rows"
            )
        return [labels.index(label) for label in own.tolist()]


def settled(model: Any, classes: np.ndarray | None) -> Asked:
    """A fitted estimator wherever it is: its arrays are their own and lie as BLAS likes them.

    They may be views where they were fitted, and lie at any byte where they arrive: BLAS adds in another
    order then, or not at all.
    """
    return Asked(copy.deepcopy(model), classes)


def fitted(estimator: Any, x: np.ndarray, y: np.ndarray) -> Any:
    """A new estimator of the same parameters, fitted: the user's own is left as it is."""
    model = clone(estimator, safe=False)
    ask(model, "fit", x, y)
    return model


def continued(model: Any, x: np.ndarray, y: np.ndarray) -> Any:
    """A copy of a fitted estimator that has gone on from where it is, with other outcomes."""
    model = copy.deepcopy(model)
    if has_warm_start(model):
        model.set_params(warm_start=True)
        ask(model, "fit", x, y)
    else:
        ask(model, "partial_fit", x, y)
    return model


def has_warm_start(estimator: Any) -> bool:
    """Whether `fit` may go on from an earlier one."""
    asked: Callable[[], dict[str, Any]] | None = getattr(estimator, "get_params", None)
    return asked is not None and "warm_start" in asked()


def check_estimator(estimator: Any, refit: str, *, draws: bool, numbers: bool) -> None:
    """Refuse an estimator that lacks what is asked of it.

    Parameters
    ----------
    estimator : object
    refit : {"cold", "warm", "never"}
    draws : bool
        Whether outcomes are drawn from it.
    numbers : bool
        Whether outcomes are numbers.
    """
    name = type(estimator).__name__
    if isinstance(estimator, type):
        raise DataError(f"model={estimator.__name__} is a class: pass an object, {estimator.__name__}()")
    if refit != "never" and not hasattr(estimator, "fit"):
        raise DataError(f"model {name} has no fit: pass refit='never' for one that stays as it is")
    if not any(hasattr(estimator, method) for method in ("predict", "predict_proba")):
        raise DataError(f"model {name} has no predict: pass an estimator in scikit-learn's style")
    if numbers and not hasattr(estimator, "predict"):
        raise DataError(
            f"model {name} has no predict, which outcomes that are numbers need: pass a regressor"
        )
    if draws and not numbers and refit != "never" and not hasattr(estimator, "predict_proba"):
        raise DataError(
            f"model {name} has no predict_proba, from which labels are drawn: wrap it, "
            "sklearn.calibration.CalibratedClassifierCV(model), or ask for method='cv' alone"
        )
    if refit == "warm" and not has_warm_start(estimator) and not hasattr(estimator, "partial_fit"):
        raise DataError(
            f"model {name} has neither warm_start nor partial_fit, by which refit='warm' goes on from the "
            "fitted model: pass refit='cold'"
        )
