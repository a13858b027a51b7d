"""How well does a score rank the positive rows above the others?  The area under the ROC curve.

Of any number of rows: exactly, by bringing rows with near scores together; or from a histogram, with a
bound of its error. Never as a mean over blocks, which is another number.
"""

from __future__ import annotations

import functools
import json
import math
import warnings
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

import scaleshift
from scaleshift.auc import pairs, scored
from scaleshift.auc.classes import signs
from scaleshift.blocks import passes, ranges
from scaleshift.blocks.block import Block, Rows
from scaleshift.parameters import check, is_whole

DRAWN_A_BIN = 8  # scores drawn for an edge of the histogram
CITATION = "Hanley and McNeil (1982), The meaning and use of the area under a ROC curve"
PARTIAL = "McClish (1989), Analyzing a portion of the ROC curve"

#: name -> (long_name, description)
VARIABLES = {
    "auc": (
        "area under the ROC curve",
        "probability that a positive row has a higher score than a negative one, ties counting one half; "
        "with max_fpr below 1 of the negative rows that score highest, standardised: 0.5 by chance, 1 best",
    ),
    "bound": ("bound of the error", "auc of the rows is no further away than this; 0 for the exact method"),
    "n_positive": ("positive rows", "rows of the positive label"),
    "n_negative": ("negative rows", "rows of all other labels"),
    "n_unlabelled": ("rows left out", "rows without a label"),
}


def roc_auc(
    y: Any,
    score: Any,
    sample_weight: Any = None,
    max_fpr: float | None = None,
    method: str = "exact",
    pos_label: Any = None,
    *,
    n_bins: int = 4096,
) -> xr.Dataset:
    """Area under the ROC curve of a score, of rows that need not fit into memory.

    Parameters
    ----------
    y : array-like, shape (n,)
        Labels of any type: numpy, Dask, pandas, xarray. Rows without one (NaN, None, pandas.NA) are left out
        and counted.
    score : array-like of numbers, shape (n,)
        Higher means rather positive. numpy, Dask with any chunks, pandas, xarray; infinite ones are allowed.
    sample_weight : array-like of numbers, shape (n,), optional
        From 0, which leaves a row out.
    max_fpr : float, optional
        In (0, 1]: only the part of the curve up to this false positive rate, standardised (McClish) so that
        0.5 is chance and 1 the best; as `sklearn.metrics.roc_auc_score` has it.
    method : {"exact", "histogram"}, default "exact"
        "exact" equals scikit-learn; the rows' labels, scores and weights change places once. "histogram" is
        two passes of sums, and bounds its error.
    pos_label : label, optional
        The positive label; that which sorts last where there are two. All others are negative.
    n_bins : int, default 4096
        Bins of the histogram between scores that are drawn from the rows, the same for any chunks.

    Returns
    -------
    xarray.Dataset
        auc; bound, by which auc may be off; n_positive, n_negative, n_unlabelled (rows). With rows of one
        class only, auc and bound are NaN.

    Raises
    ------
    DataError
        If there are more than two labels without `pos_label`, scores that are NaN, weights that are negative
        or not finite, columns of other lengths, or a parameter without a meaning.

    Warns
    -----
    UserWarning
        If rows are of one class only; says which is missing.

    Notes
    -----
    Pairs of rows are counted in whole numbers without weights, and in float64 with them. The histogram's
    bound is ``sum_b p_b n_b / (2 n_pos n_neg)`` over bins that can hold more than one score, where p_b and
    n_b are a bin's positive and negative rows; scores that many rows share have bins of their own. Lazy
    input is read twice, labels three times; unknown chunks and lengths cost another pass.

    References
    ----------
    Hanley and McNeil (1982); for `max_fpr` McClish (1989).

    Examples
    --------
    >>> import dask.array as da
    >>> import scaleshift as ss
    >>> result = ss.roc_auc(["B", "T", "T", "B"], [0.1, 0.4, 0.8, 0.4])
    >>> float(result["auc"]), result.attrs["positive"], int(result["n_positive"])
    (0.875, 'T', 2)
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(100_000) < 0.1
    >>> score = da.from_array(rng.normal(size=y.size) + y, chunks=10_000)
    >>> exact, fast = ss.roc_auc(y, score), ss.roc_auc(y, score, method="histogram")
    >>> bool(abs(exact["auc"] - fast["auc"]) <= fast["bound"]), bool(fast["bound"] < 1e-3)
    (True, True)
    """
    limit = _checked(max_fpr, method, n_bins)
    rows = scored.rows_of(y, score, sample_weight)
    categories = rows.categories("label")
    sign = _signs(categories, pos_label)
    n_parts = ranges.n_ranges(rows) if method == "exact" else n_bins
    n_drawn = (ranges.DRAWN if method == "exact" else DRAWN_A_BIN) * n_parts if n_parts > 1 else 0
    looked = scored.look(rows, sign, n_drawn)
    positive = _positive(categories, sign, pos_label)
    if not looked["weight"].all():
        _warn(categories, looked, positive)
        found = Found(math.nan, math.nan)
    else:
        task = Task(rows, sign, looked["weight"], ranges.cuts(looked["drawn"], n_parts), limit)
        found = METHODS[method](task)
    return _dataset(found, looked["n_rows"], method, positive, limit, n_bins)


class Task(NamedTuple):
    """What a method is given."""

    rows: Rows
    signs: np.ndarray  # (n_labels,)
    weight: np.ndarray  # (2,) positive and negative rows, or what they weigh
    cuts: np.ndarray  # (n,) scores, ascending
    limit: float  # the largest false positive rate

    @property
    def n_pairs(self) -> Any:
        """Pairs of a positive and a negative row: a whole number without weights."""
        positive, negative = self.weight.tolist()
        return positive * negative


class Found(NamedTuple):
    """What it answers."""

    auc: float
    bound: float


def exact(task: Task) -> Found:
    """Pairs in the right order, counted in ranges of scores."""
    if task.limit == 1:
        counted = _by_range(task, pairs.twice_in_order)
        twice = math.fsum(counted) if isinstance(counted[0], float) else sum(counted)
        return Found(twice / (2 * task.n_pairs), 0.0)
    limit = task.limit * task.weight[1]
    found = _by_range(task, functools.partial(pairs.in_order_until, limit=limit))
    return Found(pairs.standardised(math.fsum(found) / task.n_pairs, task.limit), 0.0)


def _by_range(task: Task, answer: Any) -> list[Any]:
    return passes.by_range(pairs.ties, pairs.joined, answer, task.rows, "score", task.cuts, signs=task.signs)


def histogram(task: Task) -> Found:
    """The same of rows that count as ties where they share a bin, and how wrong that can be."""
    shape = (2 * len(task.cuts) + 1,)
    layout = dict.fromkeys(pairs.CLASSES, shape)
    table = passes.total(binned, task.rows, layout, signs=task.signs, edges=task.cuts)
    whole = math.inf if task.limit == 1 else task.limit * task.weight[1]
    taken, before = pairs.until(table, whole, dict.fromkeys(pairs.CLASSES, 0.0))
    # Within a bin the curve may be anywhere in a rectangle, and is taken to be its diagonal.
    part = pairs.share(taken, table["negative"]) / 2
    area = np.sum(taken * (before + table["positive"] * part)) / task.n_pairs
    off = (
        np.sum((taken * table["positive"] * (1 - part))[::2]) / task.n_pairs
    )  # other bins are one score each
    if task.limit == 1:
        return Found(float(area), float(off))
    slope = pairs.standardised(1.0, task.limit) - pairs.standardised(0.0, task.limit)
    return Found(float(pairs.standardised(area, task.limit)), float(off * slope))


def binned(block: Block, signs: np.ndarray, edges: np.ndarray) -> dict[str, np.ndarray]:
    """Rows of either class between the edges (even bins) and on them (odd bins)."""
    table, n = pairs.ties(block, signs), 2 * len(edges) + 1
    place = sum(np.searchsorted(edges, table["score"], side) for side in ("left", "right"))
    return {name: np.bincount(place, table[name], n) for name in pairs.CLASSES}


METHODS = {"exact": exact, "histogram": histogram}


def _checked(max_fpr: Any, method: Any, n_bins: Any) -> float:
    """The largest false positive rate."""
    check("method", method, lambda value: isinstance(value, str) and value in METHODS, list(METHODS))
    check(
        "max_fpr", max_fpr, lambda value: value is None or 0 < value <= 1, "None, or a number above 0, to 1"
    )
    check("n_bins", n_bins, lambda n: is_whole(n) and 1 <= n <= 100_000, "a whole number from 1 to 100 000")
    return 1.0 if max_fpr is None else float(max_fpr)


def _signs(categories: np.ndarray, pos_label: Any) -> np.ndarray:
    """Which labels are positive; of a label that is alone, its own meaning tells."""
    if len(categories) != 1:
        return signs(categories, pos_label)
    (only,) = categories.tolist()
    is_positive = only == pos_label if pos_label is not None else not isinstance(only, str) and only > 0
    return np.array([1 if is_positive else -1], np.int8)


def _positive(categories: np.ndarray, sign: np.ndarray, pos_label: Any) -> Any:
    """The positive label as y has it; as the caller has it, or None, where y has it nowhere."""
    found = categories[sign > 0].tolist()
    return found[0] if found else pos_label.item() if isinstance(pos_label, np.generic) else pos_label


def _warn(categories: np.ndarray, looked: dict[str, Any], positive: Any) -> None:
    """Say which class is missing."""
    missing = [name for name, weight in zip(pairs.CLASSES, looked["weight"], strict=True) if not weight]
    weighed = " of a weight above 0" if looked["n_rows"][1:].all() else ""
    named = "" if positive is None else f" (positive: {positive!r})"
    found = ", ".join(repr(label) for label in categories.tolist()[:8])
    warnings.warn(
        f"y has no {' and no '.join(missing)} rows{weighed}{named}, its labels are {found}: the AUC is NaN",
        stacklevel=3,
    )


def _dataset(
    found: Found, n_rows: np.ndarray, method: str, positive: Any, limit: float, n_bins: int
) -> xr.Dataset:
    unlabelled, n_positive, n_negative = n_rows.tolist()
    values = (found.auc, found.bound, n_positive, n_negative, unlabelled)
    data = {
        name: ((), value, {"long_name": long_name, "units": "1", "description": description})
        for (name, (long_name, description)), value in zip(VARIABLES.items(), values, strict=True)
    }
    parameters = {"max_fpr": limit, **({"n_bins": n_bins} if method == "histogram" else {})}
    attrs = {
        "scaleshift_version": scaleshift.__version__,
        "method": method,
        "citation": CITATION if limit == 1 else f"{CITATION}; {PARTIAL}",
        "parameters": json.dumps(parameters, default=float),
        "positive": "" if positive is None else positive,
    }
    return xr.Dataset(data, attrs=attrs)
