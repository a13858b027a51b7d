"""What does a fitted ranking say of rows?  Scores, labels, probabilities under any prior."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import expit, log_expit, logsumexp

from scaleshift.errors import DataError
from scaleshift.spelling import suggestion

RAREST = 1e-300  # share of a class that a prior rules out


def probabilities(log_odds: np.ndarray, kind: str, n_classes: int) -> np.ndarray:
    """Probabilities of the classes: (n, n_contrasts) -> (n, n_classes).

    Those of two labels are expit(log odds). Several each against the others are brought to the sum 1; of
    pairs each label gets its mean probability in the pairs it is in (Hastie and Tibshirani 1998).
    """
    sure = expit(log_odds)
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
    """What a prior of the classes adds to the log odds of each contrast, whatever the row: (n_contrasts,).

    Within a class, rows are taken to look as they did in training: a label shift. What it adds to one label
    against several goes by the row: see `shifted`.
    """
    if kind == "ovr":
        return np.zeros(len(prior))
    ratio = _log_shares(prior) - np.log(trained)
    return np.array([b - a for a, b in itertools.combinations(ratio, 2)])


def _log_shares(prior: np.ndarray) -> np.ndarray:
    """Logarithms; a share of 0 is a tiny one, or infinite log odds would make all rows of one score."""
    return np.log(np.maximum(prior, RAREST))


def shifted(log_odds: np.ndarray, prior: np.ndarray, trained: np.ndarray) -> np.ndarray:
    """Log odds of each label against all others under another prior: (n, n_classes).

    Bayes: the probability of each label is multiplied by prior / trained, and all are brought to the sum 1.
    What the others' are multiplied by together depends on which of them the row resembles.

    Examples
    --------
    >>> before = np.log(np.array([[0.5, 0.3, 0.2]]) / [0.5, 0.7, 0.8])
    >>> after = shifted(before, np.array([0.8, 0.1, 0.1]), np.full(3, 1 / 3))
    >>> expit(after).round(3).tolist()
    [[0.889, 0.067, 0.044]]
    """
    ratio = _log_shares(prior) - np.log(trained)
    after = log_expit(log_odds) + ratio
    found = np.empty_like(after)
    for label in range(len(prior)):
        others = np.arange(len(prior)) != label
        found[:, label] = after[:, label] - logsumexp(after[:, others], axis=1)
    return found


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
        for label in prior:
            if label not in classes.tolist():
                hint = suggestion(label, classes.tolist())
                raise DataError(f"the prior names the class {label!r}, which is not known{hint}")
        prior = _completed(prior, classes)
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


def _completed(prior: dict[Any, Any], classes: np.ndarray) -> dict[Any, Any]:
    """With the share of the other one of two classes, where one is given."""
    absent = [label for label in classes.tolist() if label not in prior]
    if len(classes) == 2 and len(absent) == 1 and len(prior) == 1:
        (share,) = prior.values()
        return {**prior, absent[0]: 1 - share}
    return prior


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
            raise DataError(f"the result has no sample {name!r}{suggestion(name, names)}")
        shares = shares.isel(sample=names.index(name))
    by_label = dict(zip(shares["label"].values.tolist(), shares.values.tolist(), strict=True))
    found = [by_label.get(label, 0.0) for label in classes.tolist()]
    missing = [label for label in classes.tolist() if label not in by_label]
    if len(classes) == 2 and missing == [classes.tolist()[0]]:  # one label against all others
        return np.array([sum(by_label.values()) - found[1], found[1]])
    if missing:
        hint = suggestion(missing[0], by_label)
        raise DataError(f"the result has no label {missing[0]!r}{hint}")
    return np.array(found)
