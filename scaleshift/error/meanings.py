"""Which values do parameters of `PredictionError` have?  And what is said of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from scaleshift.error.job import MODELS
from scaleshift.parameters import is_switch, is_whole

Meaning = tuple[Callable[[Any], Any], str | tuple[str, ...]]
GENERATORS = ("auto", "plugin", "relaxed", "ols")
REFITS = ("cold", "warm", "never")


def _is_alpha(value: Any) -> bool:
    return value is None or (np.ndim(value) == 0 and 0 <= value < 1e100)


def _is_model(value: Any) -> bool:
    if isinstance(value, str):
        return value in MODELS
    return hasattr(value, "predict") or hasattr(value, "predict_proba")  # those of ONNX have the latter alone


def _is_cv(value: Any) -> bool:
    return value is None or (is_whole(value) and value >= 2) or (isinstance(value, list) and len(value) >= 2)


MEANINGS: Mapping[str, Meaning] = {
    "model": (_is_model, (*MODELS, "or an estimator with fit and predict")),
    "generator": (lambda value: value in GENERATORS, GENERATORS),
    "alpha": (_is_alpha, "a number from 0, or None"),
    "penalty": (lambda value: value in ("l1", "l2"), "'l1' or 'l2'"),
    "cv": (_is_cv, "a number from 2, a list of (train, test), or None"),
    "n_bootstrap": (lambda value: is_whole(value) and value >= 2, "a whole number from 2"),
    "tol": (lambda value: value is None or 0 < value < np.inf, "a number above 0, or None"),
    "forget": (lambda value: 0 <= value <= 1, "a number from 0 to 1"),
    "refit": (lambda value: value in REFITS, REFITS),
    "scale": (is_switch, "True or False"),
    "rechoose": (is_switch, "True or False"),
    "invalid": (lambda value: value in ("raise", "drop"), "'raise' or 'drop'"),
}
