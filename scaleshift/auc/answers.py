"""What does a fitted ranking say of rows?  Scores, labels, probabilities under any prior."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import expit, logit

from scaleshift.errors import DataError

RAREST = 1e-300  # share of a class that a prior rules out


def probabilities(scores: np.ndarray, slope: np.ndarray, kind: str, n_classes: int) -> np.ndarray:
    """Probabilities of the classes: (n, n_contrasts) -> (n, n_classes).

    Those of two labels are expit(slope * score). Several each against the others are brought to the sum 1; of
    pairs each label gets its mean probability in the pairs it is in (Hastie and Tibshirani 1998).
    """
    sure = expit(slope * scores)
    if kind == "binary":
        return np.concatenate([1 - sure, sure], axis=1)
    if kind == "ovr":
        total = sure.sum(axis=1, keepdims=True)
        return np.where(total > 0, sure / np.where(total > 0, total, 1), 1 / n_classes)
    found = np.zeros((len(sure), n_classes))
    for column, (first, second) in enumerate(itertools.combinations(range(n_classes), 2)):
        found[:, second] += sure[:, column]
        found[:, first] += 1 - sure[:, column]
    return found / found.sum(axis=1, keepdims=True)


def shifts(prior: np.ndarray, trained: np.ndarray, kind: str) -> np.ndarray:
    """What a prior of the classes adds to the log odds of each contrast: (n_contrasts,).

    Within a class, rows are taken to look as they did in training: a label shift.
    """
    # A share of 0 is a tiny one: infinite log odds would make all rows of one score.
    if kind == "ovo":
        ratio = np.log(np.maximum(prior, RAREST)) - np.log(trained)
        return np.array([b - a for a, b in itertools.combinations(ratio, 2)])
    most = -np.log(RAREST)
    with np.errstate(divide="ignore"):
        odds = np.clip(logit(prior), -most, most) - logit(trained)
    return odds[1:] if kind == "binary" else odds


def prior_of(prior: Any, classes: np.ndarray, sample: Any = None) -> np.ndarray:
    """Shares of the classes from what a user passes: (n_classes,), adding up to 1.

    Parameters
    ----------
    prior : float, mapping, array-like or xarray.Dataset
        Share of the positive one of two classes; shares by label; shares in the order of `classes`; or a
        result of quantification, with its variable ``proportion`` (sample, label).
    classes : numpy.ndarray
    sample : str, optional
        Which of several samples of the result.

    Raises
    ------
    DataError
        If labels are missing, or shares are no shares.

    Examples
    --------
    >>> prior_of(0.2, np.array(["a", "b"])).tolist()
    [0.8, 0.2]
    >>> prior_of({"a": 1, "b": 3}, np.array(["a", "b"])).tolist()
    [0.25, 0.75]
    """
    if isinstance(prior, xr.Dataset):
        prior = _of_result(prior, classes, sample)
    if isinstance(prior, dict):
        missing = [label for label in classes.tolist() if label not in prior]
        if missing:
            raise DataError(f"the prior lacks the class {missing[0]!r}: give each of {classes.tolist()}")
        prior = [prior[label] for label in classes.tolist()]
    try:
        shares = np.asarray(prior, np.float64)
    except (TypeError, ValueError):
        shares = np.array(np.nan)  # no number
    if shares.ndim == 0 and len(classes) == 2:
        shares = np.array([1 - shares, shares])
    if shares.shape != (len(classes),) or not (np.isfinite(shares) & (shares >= 0)).all() or not shares.sum():
        raise DataError(
            f"prior={prior!r}: expected the share of {classes.tolist()[-1]!r}, or one share of each of "
            f"{classes.tolist()}, none below 0"
        )
    return shares / shares.sum()


def _of_result(result: xr.Dataset, classes: np.ndarray, sample: Any) -> np.ndarray:
    """Shares of the classes in one sample of a quantification; others are one, where they are."""
    if "proportion" not in result or "label" not in result.dims:
        raise DataError("the result has no variable proportion (sample, label): pass one of `predict`")
    shares = result["proportion"]
    if "sample" in shares.dims:
        names = shares["sample"].values.tolist()
        if sample is None and len(names) > 1:
            raise DataError(f"the result has {len(names)} samples: say which, sample=..., of {names[:5]}")
        name = names[0] if sample is None else sample
        if name not in names:
            raise DataError(f"the result has no sample {name!r}; it has {names[:5]}")
        shares = shares.isel(sample=names.index(name))
    by_label = dict(zip(shares["label"].values.tolist(), shares.values.tolist(), strict=True))
    found = [by_label.get(label, 0.0) for label in classes.tolist()]
    missing = [label for label in classes.tolist() if label not in by_label]
    if len(classes) == 2 and missing == [classes.tolist()[0]]:  # one label against all others
        return np.array([sum(by_label.values()) - found[1], found[1]])
    if missing:
        raise DataError(f"the result has no label {missing[0]!r}; it has {list(by_label)[:8]}")
    return np.array(found)
