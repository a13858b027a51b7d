"""How good are slices?  Against planted ones: is each found, and is what was found one of them?"""

from __future__ import annotations

import functools
from typing import Any

import dask.array as da
import numpy as np
import xarray as xr
from sklearn.metrics import average_precision_score

from scaleshift.blocks import passes
from scaleshift.blocks.block import Block
from scaleshift.blocks.rows import as_rows, with_numbers
from scaleshift.errors import DataError
from scaleshift.parameters import check, is_whole

__all__ = ["average_precision", "discovery_rate", "false_discovery_rate", "precision_at_k", "score"]

FOUND = 0.8  # precision from which a planted slice counts as found


def precision_at_k(membership: Any, planted: Any, k: int = 10) -> Any:
    """Share of planted rows among the `k` rows that belong most to a slice.

    Where rows tie for the last places, it is the expected share over all ways to break the tie: it depends
    neither on the order of the rows nor on luck. One pass that keeps the `k` highest values of a slice only.

    Parameters
    ----------
    membership : array-like, shape (n,) or (n, n_slices)
        How much each row belongs to each slice, as `predict_proba` tells it, or any score. numpy or Dask.
    planted : array-like of bool, shape (n,) or (n, n_planted)
        Which rows belong to each planted slice. numpy or Dask.
    k : int, default 10

    Returns
    -------
    float or numpy.ndarray, shape (n_slices, n_planted)
        One-dimensional arguments have no axis in it.

    Raises
    ------
    DataError
        For NaN, fewer than `k` rows, or a `planted` that is not 0 or 1.

    Examples
    --------
    >>> precision_at_k([0.9, 0.8, 0.8, 0.1], [True, True, False, False], k=2)
    0.75
    """
    found, _ = _precision(membership, planted, k)
    return _as_given(found, membership, planted)


def average_precision(membership: Any, planted: Any) -> Any:
    """Average precision of a slice's memberships as a search for a planted slice.

    Rows that tie enter together: the numbers are those of scikit-learn's `average_precision_score`.

    Parameters
    ----------
    membership : array-like, shape (n,) or (n, n_slices)
        In memory: all rows are sorted.
    planted : array-like of bool, shape (n,) or (n, n_planted)

    Returns
    -------
    float or numpy.ndarray, shape (n_slices, n_planted)
        NaN for a planted slice without rows. One-dimensional arguments have no axis in it.

    Raises
    ------
    DataError
        For Dask arrays, NaN, or a `planted` that is not 0 or 1.

    Examples
    --------
    >>> average_precision([0.9, 0.5, 0.1, 0.0], [True, False, False, True])
    0.75
    """
    for name, values in {"membership": membership, "planted": planted}.items():
        if _is_lazy(values):
            raise DataError(
                f"{name} is a Dask array, and average precision sorts all rows: pass {name}.compute(), or "
                "use precision_at_k, which needs the first rows alone"
            )
    slices, truth = _columns(membership, "membership"), _columns(planted, "planted")
    _check_same(slices, truth)
    _check_finite(slices)
    _check_binary(truth)
    return _as_given(_average(slices, truth), membership, planted)


def discovery_rate(membership: Any, planted: Any, k: int = 10, threshold: float = FOUND) -> float:
    """Share of the planted slices that were found: some slice's precision at `k` reaches the threshold.

    Parameters
    ----------
    membership : array-like, shape (n,) or (n, n_slices)
    planted : array-like of bool, shape (n,) or (n, n_planted)
    k : int, default 10
    threshold : float, default 0.8

    Returns
    -------
    float
        NaN where none was planted. A planted slice without rows is none.

    Examples
    --------
    >>> membership = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.6], [0.2, 0.5]])
    >>> discovery_rate(membership, [True, True, False, False], k=2)
    1.0
    """
    _check_threshold(threshold)
    precision, real = _precision(membership, planted, k)
    return _mean(precision.max(axis=0)[real] >= threshold)


def false_discovery_rate(membership: Any, planted: Any, k: int = 10, threshold: float = FOUND) -> float:
    """Share of the slices that are no planted one: with each, their precision at `k` is below the threshold.

    Parameters
    ----------
    membership : array-like, shape (n,) or (n, n_slices)
    planted : array-like of bool, shape (n,) or (n, n_planted)
    k : int, default 10
    threshold : float, default 0.8

    Returns
    -------
    float
        1 where none was planted.

    Examples
    --------
    >>> membership = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.6], [0.2, 0.5]])
    >>> false_discovery_rate(membership, [True, True, False, False], k=2)
    0.5
    """
    _check_threshold(threshold)
    precision, _ = _precision(membership, planted, k)
    return _mean((precision < threshold).all(axis=1))


def score(slicer_proba: Any, planted: Any, k: int = 10, threshold: float = FOUND) -> xr.Dataset:
    """All of these, by slice and planted slice.

    Parameters
    ----------
    slicer_proba : array-like, shape (n,) or (n, n_slices)
        What `predict_proba` gives.
    planted : array-like of bool, shape (n,) or (n, n_planted)
    k : int, default 10
    threshold : float, default 0.8

    Returns
    -------
    xarray.Dataset
        precision_at_k, average_precision (slice, planted), the latter without Dask input only; best_slice,
        found (planted); false_discovery (slice); discovery_rate, false_discovery_rate.

    Examples
    --------
    >>> membership = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.6], [0.2, 0.5]])
    >>> result = score(membership, [True, True, False, False], k=2)
    >>> result["precision_at_k"].values.tolist(), int(result["best_slice"].item())
    ([[1.0], [0.0]], 0)
    """
    _check_threshold(threshold)
    precision, real = _precision(slicer_proba, planted, k)
    found = real & (precision.max(axis=0) >= threshold)
    false = (precision < threshold).all(axis=1)
    data: dict[str, Any] = {
        "precision_at_k": (("slice", "planted"), precision, _about("precision", f"expected, at k = {k}")),
        "best_slice": ("planted", precision.argmax(axis=0), _about("best slice", "by precision at k")),
        "found": ("planted", found, _about("found", f"some slice's precision at k is at least {threshold}")),
        "false_discovery": ("slice", false, _about("false discovery", "the slice meets no planted one")),
        "discovery_rate": ((), _mean(found[real]), _about("discovery rate", "of planted slices")),
        "false_discovery_rate": ((), _mean(false), _about("false discovery rate", "of slices")),
    }
    if not _is_lazy(slicer_proba) and not _is_lazy(planted):
        average = _average(_columns(slicer_proba, "membership"), _columns(planted, "planted"))
        about = _about("average precision", "rows that tie enter together, as in scikit-learn")
        data["average_precision"] = (("slice", "planted"), average, about)
    coordinates = {"slice": np.arange(precision.shape[0]), "planted": np.arange(precision.shape[1])}
    return xr.Dataset(data, coordinates, {"k": k, "threshold": threshold})


# The first rows of each slice, in one pass --------------------------------------------------------------


def _precision(membership: Any, planted: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Expected precision at k, (n_slices, n_planted), and which planted slices have rows, (n_planted,)."""
    check("k", k, lambda value: is_whole(value) and value >= 1, "a whole number from 1")
    slices, truth = _columns(membership, "membership"), _columns(planted, "planted")
    _check_same(slices, truth)
    if slices.shape[0] < k:
        raise DataError(f"there are {slices.shape[0]} rows, fewer than k={k}: choose a smaller k")
    rows = with_numbers(as_rows(slices, invalid="drop"), planted=truth)
    merge = functools.partial(merge_first, k=k)
    first = passes.total(first_rows, rows.only("planted"), None, merge=merge, k=k)
    if first["invalid"]:
        raise DataError(f"membership is NaN or infinite in {first['invalid']} rows: mend or leave them out")
    return np.stack([_expected(n, sums, k) for _, n, sums in first["slices"]]), first["planted"] > 0


def first_rows(block: Block, k: int) -> dict[str, Any]:
    """Of each slice the highest values, how many rows have each, and how many of these are planted."""
    planted = block.columns["planted"].astype(np.float64)
    planted = planted[:, None] if planted.ndim == 1 else planted
    _check_binary(planted)
    slices = []
    for values in block.x[block.valid].astype(np.float64).T:
        value, code = np.unique(-values, return_inverse=True)
        n = np.bincount(code, minlength=len(value)).astype(np.float64)
        sums = np.zeros((len(value), planted.shape[1]))
        np.add.at(sums, code, planted[block.valid])
        slices.append(_shortened(value, n, sums, k))
    return {"slices": slices, "planted": planted.sum(axis=0), "invalid": int((~block.valid).sum())}


def merge_first(a: dict[str, Any], b: dict[str, Any], k: int) -> dict[str, Any]:
    """Of the rows of both: equal values count as one."""
    slices = []
    for one, other in zip(a["slices"], b["slices"], strict=True):
        value, code = np.unique(np.concatenate([one[0], other[0]]), return_inverse=True)
        n, sums = np.zeros(len(value)), np.zeros((len(value), one[2].shape[1]))
        np.add.at(n, code, np.concatenate([one[1], other[1]]))
        np.add.at(sums, code, np.concatenate([one[2], other[2]]))
        slices.append(_shortened(value, n, sums, k))
    return {"slices": slices, **{name: a[name] + b[name] for name in ("planted", "invalid")}}


def _shortened(value: np.ndarray, n: np.ndarray, sums: np.ndarray, k: int) -> tuple[np.ndarray, ...]:
    """Values up to the one that the k-th row has."""
    enough = int(np.searchsorted(np.cumsum(n), k)) + 1
    return value[:enough], n[:enough], sums[:enough]


def _expected(n: np.ndarray, sums: np.ndarray, k: int) -> np.ndarray:
    """Planted rows among the first k, (n_planted,): of rows that tie for the last places, in proportion."""
    before = np.cumsum(n) - n
    taken = np.clip(k - before, 0, n) / n
    return taken @ sums / k


# Arguments ----------------------------------------------------------------------------------------------


def _is_lazy(values: Any) -> bool:
    return isinstance(getattr(values, "data", values), da.Array)


def _columns(values: Any, name: str) -> Any:
    """Two-dimensional numbers, numpy or Dask."""
    if isinstance(values, xr.DataArray):
        values = values.data
    values = values if isinstance(values, da.Array) else np.asarray(values)
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or not values.shape[1]:
        raise DataError(f"{name} has the shape {values.shape}: expected (n,) or (n, m)")
    if values.dtype.kind not in "biuf":
        raise DataError(f"{name} has dtype {values.dtype}: expected numbers or bools")
    return values


def _as_given(found: np.ndarray, membership: Any, planted: Any) -> Any:
    """Without the axes that one-dimensional arguments do not have."""
    if np.ndim(planted) == 1:
        found = found[:, 0]
    if np.ndim(membership) == 1:
        found = found[0]
    return found if np.ndim(found) else float(found)


def _check_same(slices: Any, truth: Any) -> None:
    if slices.shape[0] != truth.shape[0]:
        raise DataError(
            f"membership has {slices.shape[0]} rows, planted has {truth.shape[0]}: pass as many of both"
        )


def _check_finite(slices: np.ndarray) -> None:
    bad = np.flatnonzero(~np.isfinite(slices).all(axis=1))
    if len(bad):
        raise DataError(f"membership is NaN or infinite in {len(bad)} rows: mend or leave them out")


def _check_binary(planted: np.ndarray) -> None:
    if not np.isin(planted, (0, 1)).all():
        raise DataError("planted has values beside 0 and 1: pass a column of bools for each planted slice")


def _check_threshold(threshold: Any) -> None:
    check("threshold", threshold, lambda value: 0 < value <= 1, "a number above 0, to 1")


def _mean(values: Any) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _average(slices: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """(n_slices, n_planted), NaN where no row is planted."""
    found = np.full((slices.shape[1], truth.shape[1]), np.nan)
    for column in np.flatnonzero(truth.any(axis=0)):
        for row, values in enumerate(slices.T):
            found[row, column] = average_precision_score(truth[:, column], values)
    return found


def _about(long_name: str, description: str) -> dict[str, str]:
    return {"long_name": long_name, "units": "1", "description": description}
