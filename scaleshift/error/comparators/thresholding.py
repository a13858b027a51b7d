"""Which share of a target is less confident than the source's misclassified share?  Exactly, of any rows.

The threshold is an order statistic. It is found without sorting or gathering rows: floating-point numbers
from 0 order as their bits do, so that four passes, each counting 16 more bits, leave one number.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from scaleshift.blocks import passes
from scaleshift.blocks.block import Block, Rows
from scaleshift.error.comparators import given
from scaleshift.error.comparators.confidence import judged

CITATION = "Garg et al. (2022), Leveraging unlabeled data to predict out-of-distribution performance"
DIGIT = 16  # bits that a pass tells apart: 65 536 counts, half a megabyte

#: name -> (long_name, description)
VARIABLES = {
    "error": ("error on the target", "share of target rows whose confidence is below the threshold"),
    "error_source": ("error on the source", "share of the source rows that are misclassified"),
    "threshold": (
        "threshold of confidence",
        "the (k + 1)-th smallest confidence of the source's rows, of which k are misclassified; infinite if "
        "all are",
    ),
    "share_tied": ("ties below the threshold", "share of rows at the threshold that count as below it"),
}


class Threshold(NamedTuple):
    """Where confidence is low: below, and in a share of the rows that are right there."""

    at: float
    share_tied: float  # 0 where no two rows have the same confidence

    def error(self, n_below: float, n_at: float, n: float) -> float:
        """Share of n rows that count as misclassified."""
        return (n_below + self.share_tied * n_at) / n


def average_thresholded_confidence(
    proba_source: Any, y_source: Any, proba_target: Any, classes: Any = None
) -> xr.Dataset:
    """Share of the target that is less confident than the threshold which the source's error tells.

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
        error, error_source, threshold, share_tied.

    Raises
    ------
    DataError
        If arrays are empty or do not fit each other, values are no probabilities, or labels are not among
        the classes or missing.

    Notes
    -----
    Confidence is the largest probability. With k misclassified rows of the source the threshold is their
    (k + 1)-th smallest confidence, so that k lie below it. Where rows share that confidence fewer do: of the
    rows at the threshold, on both sides, the share that is lacking counts as below it, so that the source
    itself gets its own error. Without ties that share is 0. Lazy probabilities of the source are read
    five times, those of the target once.

    References
    ----------
    Garg et al. (2022).

    Examples
    --------
    >>> import scaleshift as ss
    >>> source = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]
    >>> result = ss.error.average_thresholded_confidence(source, [0, 1, 1], [[0.7, 0.3], [0.95, 0.05]])
    >>> float(result["threshold"]), float(result["error"])
    (0.8, 0.5)
    """
    rows = given.proba_rows(proba_source, "proba_source", y_source, "y_source", classes)
    given.refuse_other_classes(rows, proba_target)
    target = given.proba_rows(proba_target, "proba_target")
    state = passes.total(judged, rows, None, merge=given.merged)
    given.refuse(state, "proba_source")
    n, _, n_wrong = state["sums"].tolist()
    threshold = _selected(rows.only(), int(n_wrong), int(n))
    state = passes.total(placed, target, None, merge=given.merged, at=threshold.at)
    given.refuse(state, "proba_target")
    values = {
        "error": threshold.error(*state["sums"].tolist()),
        "error_source": n_wrong / n,
        "threshold": threshold.at,
        "share_tied": threshold.share_tied,
    }
    return given.dataset(values, VARIABLES, "average_thresholded_confidence", CITATION)


def threshold_of(confidence: np.ndarray, n_wrong: int) -> Threshold:
    """The threshold of rows in memory, (n,), of which `n_wrong` are misclassified."""
    if n_wrong == len(confidence):
        return Threshold(math.inf, 0.0)
    at = float(np.partition(confidence, n_wrong)[n_wrong])
    n_below, n_at = np.count_nonzero(confidence < at), np.count_nonzero(confidence == at)
    return Threshold(at, (n_wrong - n_below) / n_at)


def _selected(rows: Rows, n_wrong: int, n: int) -> Threshold:
    """The same by passes of counts."""
    if n_wrong == n:
        return Threshold(math.inf, 0.0)
    prefix, rank = 0, n_wrong  # leading bits known so far, and rank among the rows that have them
    for shift in range(64 - DIGIT, -1, -DIGIT):
        layout = {"counts": (2**DIGIT,)}
        counts = passes.total(digits, rows, layout, prefix=prefix, shift=shift)["counts"].astype(np.int64)
        until = np.cumsum(counts)
        digit = int(np.searchsorted(until, rank, "right"))
        rank -= int(until[digit] - counts[digit])
        prefix = prefix << DIGIT | digit
    at = np.array(prefix, np.uint64).view(np.float64)
    return Threshold(float(at), rank / int(counts[digit]))


def digits(block: Block, prefix: int, shift: int) -> dict[str, np.ndarray]:
    """How often each 16 bits follow the leading bits `prefix` in the confidence of rows."""
    bits = np.ascontiguousarray(given.proba_of(block)[0].max(axis=1)).view(np.uint64)
    digit = (bits >> np.uint64(shift)) & np.uint64(2**DIGIT - 1)
    if shift < 64 - DIGIT:
        digit = digit[bits >> np.uint64(shift + DIGIT) == np.uint64(prefix)]
    return {"counts": np.bincount(digit.astype(np.int64), minlength=2**DIGIT)}


def placed(block: Block, at: float) -> given.State:
    """Rows below the threshold, at it, and all."""
    proba, wrong = given.proba_of(block)
    most = proba.max(axis=1)
    below, tied = np.count_nonzero(most < at), np.count_nonzero(most == at)
    return {"sums": np.array([below, tied, len(most)], np.float64), **wrong}
