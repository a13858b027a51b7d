"""What error does a classifier expect of itself?  Average confidence, and what of it the source had."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from scaleshift.blocks import passes
from scaleshift.blocks.block import Block
from scaleshift.error.comparators import given
from scaleshift.error.losses import decided

AVERAGE = "Hendrycks and Gimpel (2017), A baseline for detecting misclassified examples"
DIFFERENCE = "Guillory et al. (2021), Predicting with confidence on unseen distributions"

#: name -> (long_name, description)
VARIABLES = {
    "error": ("error on the target", "expected share of target rows that are misclassified"),
    "error_source": ("error on the source", "share of the source rows that are misclassified"),
    "confidence_source": ("confidence on the source", "mean of the largest probability of each source row"),
    "confidence_target": ("confidence on the target", "mean of the largest probability of each target row"),
}


def average_confidence(proba: Any) -> xr.Dataset:
    """Error that a classifier expects of itself: one minus the mean of its largest probabilities.

    Parameters
    ----------
    proba : array-like of numbers, shape (m, K)
        Probabilities of target rows: numpy, Dask with any chunks, pandas, xarray. Columns are classes.

    Returns
    -------
    xarray.Dataset
        error, and confidence_target; both in 0 to 1.

    Raises
    ------
    DataError
        If `proba` is empty, has fewer than two columns, or values that are no probabilities.

    Notes
    -----
    Right where the classifier is calibrated on the target, which labels of the source cannot tell. Lazy input
    is read once.

    References
    ----------
    Hendrycks and Gimpel (2017).

    Examples
    --------
    >>> import scaleshift as ss
    >>> float(ss.error.average_confidence([[0.9, 0.1], [0.3, 0.7]])["error"].round(6))
    0.2
    """
    n, confidence = _confidence(proba, "proba")
    values = {"error": 1 - confidence / n, "confidence_target": confidence / n}
    return given.dataset(values, VARIABLES, "average_confidence", AVERAGE)


def difference_of_confidence(
    proba_source: Any, y_source: Any, proba_target: Any, classes: Any = None
) -> xr.Dataset:
    """Error on held-out source rows, plus what confidence loses from source to target.

    Parameters
    ----------
    proba_source : array-like of numbers, shape (n, K)
        Probabilities of source rows that the classifier has not learned from: numpy, Dask, pandas, xarray.
    y_source : array-like, shape (n,)
        Their classes.
    proba_target : array-like of numbers, shape (m, K)
        Probabilities of target rows.
    classes : array-like, shape (K,), optional
        The class of each column, as `classes_` of a classifier; 0 to K - 1 where not given.

    Returns
    -------
    xarray.Dataset
        error, error_source, confidence_source, confidence_target. The error may leave 0 to 1.

    Raises
    ------
    DataError
        If arrays are empty or do not fit each other, values are no probabilities, or labels are not among
        the classes or missing.

    Notes
    -----
    Right where miscalibration is the same on both sides. Lazy input is read once; the lower class is decided
    for where two are equally likely.

    References
    ----------
    Guillory et al. (2021).

    Examples
    --------
    >>> import scaleshift as ss
    >>> result = ss.error.difference_of_confidence([[0.9, 0.1]] * 4, ["a", "a", "a", "b"], [[0.8, 0.2]] * 3,
    ...     classes=["a", "b"])
    >>> float(result["error_source"]), float(result["error"].round(6))
    (0.25, 0.35)
    """
    rows = given.proba_rows(proba_source, "proba_source", y_source, "y_source", classes)
    given.refuse_other_classes(rows, proba_target)
    state = passes.total(judged, rows, None, merge=given.merged)
    given.refuse(state, "proba_source")
    n, confidence, n_wrong = state["sums"]
    m, confidence_target = _confidence(proba_target, "proba_target")
    found = {"error_source": n_wrong / n, "confidence_source": confidence / n}
    found["confidence_target"] = confidence_target / m
    error = found["error_source"] + found["confidence_source"] - found["confidence_target"]
    return given.dataset({"error": error, **found}, VARIABLES, "difference_of_confidence", DIFFERENCE)


def confident(block: Block) -> given.State:
    """Rows, and the sum of their largest probabilities."""
    proba, wrong = given.proba_of(block)
    return {"sums": np.array([len(proba), proba.max(axis=1).sum()]), **wrong}


def judged(block: Block) -> given.State:
    """The same, and how many rows are misclassified."""
    proba, wrong = given.proba_of(block)
    (y,) = block.columns.values()
    n_wrong = np.count_nonzero(decided(proba) != y)
    return {"sums": np.array([len(proba), proba.max(axis=1).sum(), n_wrong]), **wrong}


def _confidence(proba: Any, name: str) -> tuple[float, float]:
    state = passes.total(confident, given.proba_rows(proba, name), None, merge=given.merged)
    given.refuse(state, name)
    n, confidence = state["sums"]
    return float(n), float(confidence)
