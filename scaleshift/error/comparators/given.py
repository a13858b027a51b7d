"""Which arrays does a comparator take?  Probabilities with their outcomes, or columns: checked, as rows.

Checks of values run inside the pass that sums them, so that lazy arrays are read once; what they find is
worded here.
"""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import xarray as xr

import scaleshift
from scaleshift.blocks import labels
from scaleshift.blocks.block import Block, Column, Rows
from scaleshift.blocks.rows import as_rows, known_length, with_columns, with_numbers
from scaleshift.errors import DataError
from scaleshift.kernels.reference import to_numpy

ROUNDING = 1e-5  # by which probabilities of a row may miss 1: those of a softmax in single precision do
NEVER = np.iinfo(np.int64).max  # row number where there is none
WRONG = {
    "not_finite": "{name} has NaN or infinite values in {count} rows, first in row {first}: mend them, or "
    "leave these rows out",
    "outside": "{name} has values outside 0 to 1 in {count} rows, first in row {first}: pass probabilities, "
    "as predict_proba gives them",
    "sum": "{name} has {count} rows that do not sum to 1, first row {first}: pass one column a class, as "
    "predict_proba gives them",
    "negative": "{name} is negative in {count} rows, first in row {first}: expected numbers from 0",
    "not_whole": "{name} is no whole number in {count} rows, first in row {first}: number the folds",
}

State = dict[str, Any]


def proba_rows(proba: Any, name: str, y: Any = None, y_name: str = "y", classes: Any = None) -> Rows:
    """Rows whose X are probabilities, with codes of their outcomes in the column of `y_name`.

    Raises
    ------
    DataError
        If `proba` is no table of two columns at least, or empty; `y` has another length; or `classes` are
        not one a column, or not distinct. Values are checked by the pass: `refuse`.
    """
    shape = tuple(proba.shape) if hasattr(proba, "shape") else np.shape(proba)
    if len(shape) != 2 or shape[1] < 2:
        raise DataError(
            f"{name} has the shape {shape}: expected one row a case and one column a class; of two classes "
            "with one number a row, pass numpy.column_stack([1 - p, p])"
        )
    rows = as_rows(proba, invalid="drop")
    _refuse_empty(rows, name)
    if y is None:
        return rows.only()
    values = _one_dimensional(y, y_name)
    _refuse_other_length({name: rows.x.shape[0], y_name: len(values)})
    if not isinstance(values, da.Array):
        values = labels.as_array(values)
    return with_columns(rows.only(), **{y_name: Column(values, _classes(classes, shape[1], name))})


def refuse_other_classes(source: Rows, proba_target: Any) -> None:
    """Raise where the target's probabilities have other columns than the source's."""
    shape = np.shape(proba_target)
    if len(shape) == 2 and shape[1] != source.x.shape[1]:
        raise DataError(
            f"proba_target has {shape[1]} columns, proba_source {source.x.shape[1]}: pass the probabilities "
            "of one classifier"
        )


def column_rows(**columns: Any) -> Rows:
    """Rows of numbers by name, without an X.

    Raises
    ------
    DataError
        If they are not one-dimensional numbers of one length, or empty.
    """
    values = {name: _one_dimensional(given, name) for name, given in columns.items()}
    _refuse_other_length({name: len(given) for name, given in values.items()})
    n = len(next(iter(values.values())))
    lazy = next((given for given in values.values() if isinstance(given, da.Array)), None)
    x = np.zeros((n, 1), np.int8)
    if lazy is not None:
        x = da.zeros((n, 1), chunks=(lazy.chunks[0], 1), dtype=np.int8)
    rows = as_rows(x)
    _refuse_empty(rows, next(iter(columns)))
    return with_numbers(rows, **values).only(*columns)


def refuse_lazy(X: Any, name: str, what: str) -> None:
    """Raise for a Dask array where rows are needed in memory: computing it silently may not fit."""
    if isinstance(X.data if isinstance(X, xr.DataArray) else X, da.Array):
        raise DataError(
            f"{name} is lazy, and {what} needs rows in memory: pass some rows of it, "
            f"{name}[:10_000].compute(), in random order"
        )


def matrix_of(X: Any, name: str) -> np.ndarray:
    """A table of finite numbers in memory, float64."""
    found = np.asarray(X)
    if found.ndim != 2 or found.dtype.kind not in "biuf" or not found.size:
        raise DataError(
            f"{name} is {found.dtype} of shape {found.shape}: expected numbers, one row a case, not empty"
        )
    found = found.astype(np.float64)
    bad = ~np.isfinite(found).all(axis=1)
    if bad.any():
        raise DataError(
            WRONG["not_finite"].format(name=name, count=int(bad.sum()), first=int(np.flatnonzero(bad)[0]))
        )
    return found


# Inside a pass --------------------------------------------------------------------------------------------


def proba_of(block: Block) -> tuple[np.ndarray, State]:
    """Probabilities of a block in float64, (n, K), and what is wrong with them."""
    proba = to_numpy(block.x).astype(np.float64)
    outside = ((proba < -ROUNDING) | (proba > 1 + ROUNDING)).any(axis=1)
    off = abs(proba.sum(axis=1) - 1) > ROUNDING
    fine = block.valid
    found = {"not_finite": ~fine, "outside": fine & outside, "sum": fine & ~outside & off}
    return proba, wrong(found, block.start)


def wrong(masks: dict[str, np.ndarray], start: int) -> State:
    """How many rows each mask marks, and the number of the first, by the kind of `WRONG`."""
    found = {}
    for kind, mask in masks.items():
        first = start + int(mask.argmax()) if mask.any() else NEVER
        found[f"wrong_{kind}"] = np.array([np.count_nonzero(mask), first])
    return found


def merged(a: State, b: State) -> State:
    """Sums of two blocks, with what is wrong in either."""
    both = {}
    for name in a:
        if name.startswith("wrong_"):
            both[name] = np.array([a[name][0] + b[name][0], min(a[name][1], b[name][1])])
        else:
            both[name] = a[name] + b[name]
    return both


def refuse(state: State, name: str) -> None:
    """Raise for what is wrong in any row."""
    for kind, words in WRONG.items():
        count, first = state.get(f"wrong_{kind}", (0, NEVER))
        if count:
            raise DataError(words.format(name=name, count=int(count), first=int(first)))


# What comes out -------------------------------------------------------------------------------------------


def dataset(
    values: dict[str, float], words: dict[str, tuple[str, str]], method: str, citation: str
) -> xr.Dataset:
    """Numbers as a dataset; `words` are long name and description of each."""
    data = {
        name: ((), value, {"long_name": words[name][0], "units": "1", "description": words[name][1]})
        for name, value in values.items()
    }
    version = scaleshift.__version__
    return xr.Dataset(data, attrs={"scaleshift_version": version, "method": method, "citation": citation})


def _classes(classes: Any, n_classes: int, name: str) -> np.ndarray:
    if classes is None:
        return np.arange(n_classes)
    found = labels.as_array(classes)
    if found.shape != (n_classes,) or len(set(found.tolist())) != n_classes:
        raise DataError(
            f"classes are {found.tolist()[:8]}, and {name} has {n_classes} columns: pass one distinct label "
            "a column, as the classes_ of a classifier"
        )
    return found


def _one_dimensional(values: Any, name: str) -> Any:
    if isinstance(values, xr.DataArray):
        values = values.data
    if hasattr(values, "to_dask_array"):
        raise DataError(f"{name} is a column of a Dask data frame: pass {name}.to_dask_array()")
    n_dimensions = values.ndim if hasattr(values, "ndim") else np.ndim(values)
    if n_dimensions != 1:
        raise DataError(f"{name} has {n_dimensions} dimensions: expected one value a row")
    return known_length(values) if isinstance(values, da.Array) else values


def _refuse_other_length(lengths: dict[str, int]) -> None:
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} {n}" for name, n in lengths.items())
        raise DataError(f"rows differ in number ({found}): pass one value a row of each")


def _refuse_empty(rows: Rows, name: str) -> None:
    if not rows.x.shape[0]:
        raise DataError(f"{name} has no rows: pass one at least")
