"""Where do embeddings, targets, predictions and losses come from?  A table and names of columns, or arrays.

A table is a pandas DataFrame, an xarray Dataset, an AnnData object or any mapping of names to columns; of a
cells dataset the markers are the embeddings, and the labels the targets, unless others are named. What comes
out are rows, as every pass takes them, and what kind of outcome they have (`outcomes`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import xarray as xr

from scaleshift.blocks import labels, passes
from scaleshift.blocks.block import Column, Invalid, Rows
from scaleshift.blocks.inputs import check_same_rows
from scaleshift.blocks.rows import as_rows, known_length, with_numbers
from scaleshift.errors import DataError
from scaleshift.spelling import suggestion

N_LOOKED_AT = 100  # values of a column that may hold a row of numbers each
# What the columns are called where the caller does not say: the names of domino's own documentation.
DEFAULTS = {"embeddings": "embedding", "targets": "target", "pred_probs": "pred_probs"}


@dataclass(frozen=True)
class Given:
    """What the caller gave, as arrays: None for what is missing."""

    embeddings: Any
    targets: Any = None
    pred_probs: Any = None
    losses: Any = None
    sample_weight: Any = None

    @property
    def is_empty(self) -> bool:
        """Whether there are no rows, as far as that is known."""
        if hasattr(self.embeddings, "to_dask_array"):  # a Dask data frame, which is refused later
            return False
        shape = getattr(self.embeddings, "shape", None)
        shape = np.shape(self.embeddings) if shape is None else shape
        return bool(len(shape)) and shape[0] == 0


def given(
    data: Any,
    embeddings: Any,
    targets: Any,
    pred_probs: Any,
    losses: Any = None,
    sample_weight: Any = None,
) -> Given:
    """Look up what is named, and take arrays as they are.

    Parameters
    ----------
    data : DataFrame, Dataset, AnnData, mapping or None
    embeddings, targets, pred_probs, losses, sample_weight : str, array-like or None
        Names of columns of `data`, or arrays. A default name that `data` does not have counts as missing,
        but for the embeddings.

    Raises
    ------
    DataError
        If a name that the caller chose is not in `data`, or embeddings are missing.

    Examples
    --------
    >>> table = {"embedding": np.ones((2, 3)), "target": [0, 1]}
    >>> found = given(table, "embedding", "target", "pred_probs")
    >>> found.targets, found.pred_probs is None
    ([0, 1], True)
    """
    if data is not None and not hasattr(data, "keys") and not _is_annotated(data):
        raise DataError(
            f"data is a {_type_name(data)}: expected a pandas DataFrame, a Dataset, AnnData, a dict of "
            "columns. Arrays go by name, as embeddings=, targets=, pred_probs= and losses="
        )
    asked = {
        "embeddings": embeddings,
        "targets": targets,
        "pred_probs": pred_probs,
        "losses": losses,
        "sample_weight": sample_weight,
    }
    found = {name: _even(name, _look_up(data, name, value)) for name, value in asked.items()}
    if found["embeddings"] is None:
        raise DataError(
            "no embeddings were given: pass data= with a column 'embedding', or embeddings= as (n, d) numbers"
        )
    refuse_other_order(data, found)
    return Given(**found)


def _type_name(data: Any) -> str:
    """A type as one tells it from others of the same name: "dask_expr.DataFrame"."""
    package = type(data).__module__.split(".")[0]
    return type(data).__name__ if package in ("builtins", "numpy") else f"{package}.{type(data).__name__}"


def _even(name: str, value: Any) -> Any:
    """The same value; lists whose rows are not of one length are refused."""
    if isinstance(value, list | tuple):
        try:
            np.shape(value)
        except ValueError as error:
            raise DataError(f"{name} are rows of different lengths{_odd_row(value)}") from error
    return value


def _odd_row(rows: Any) -> str:
    """Where rows begin to be of another length than the first one."""
    shapes = [np.shape(row) for row in rows]
    odd = next((i for i, shape in enumerate(shapes) if shape != shapes[0]), None)
    if odd is None:
        return ": expected as many numbers in each"
    return f": row {odd} has the shape {shapes[odd]}, row 0 has {shapes[0]}; mend it, or leave it out"


def refuse_other_order(data: Any, found: Mapping[str, Any]) -> None:
    """Refuse what pandas names the rows of in another order: by position it would belong to other rows."""
    x = found["embeddings"]
    for rows in (table for table in (x, data) if isinstance(table, pd.DataFrame) or _is_annotated(table)):
        for name, values in found.items():
            if values is not x:
                column = isinstance(values, pd.DataFrame) and values.shape[1]
                check_same_rows(rows, values.iloc[:, 0] if column else values, name)


def _look_up(data: Any, name: str, value: Any) -> Any:
    """A column of the table, or the array that was given."""
    if not isinstance(value, str):
        return value
    if data is None:
        if value == DEFAULTS.get(name):
            return None
        raise DataError(
            f"{name}={value!r} names a column, and there is no data= to look it up in: pass data=, or values"
        )
    column = _column(data, value)
    if column is None and (value != DEFAULTS.get(name) or name == "embeddings"):
        known = _names(data)
        raise DataError(f"data has no column {value!r} for {name}{suggestion(value, known)}")
    return column


def _column(data: Any, name: str) -> Any:
    """One column of a table, None where it has none of that name."""
    if _is_annotated(data):
        if name in data.obsm:
            return data.obsm[name]
        if name in data.obs:
            return data.obs[name]
        return data.X if name in ("X", DEFAULTS["embeddings"]) else None
    if isinstance(data, pd.DataFrame):
        if name not in data.columns:
            return None
        return _stacked(data[name], name)
    if isinstance(data, xr.Dataset):
        return data[name] if name in data.variables else _of_cells(data, name)
    return _stacked(data[name], name) if name in _names(data) else None


def _is_annotated(data: Any) -> bool:
    """Whether a table is AnnData."""
    return all(hasattr(data, part) for part in ("obs", "obsm", "X"))


def _of_cells(cells: xr.Dataset, name: str) -> Any:
    """What stands for a default name in a cells dataset: markers, or labels as codes."""
    if name == DEFAULTS["embeddings"] and "X" in cells.data_vars:
        return cells["X"]
    if name == DEFAULTS["targets"] and "label_code" in cells.data_vars and cells.sizes.get("label", 0):
        labels.check_fingerprint(cells["label_code"].attrs, cells["label"].values, "label")
        return Column(cells["label_code"].data, cells["label"].values, coded=True)
    return None


def _names(data: Any) -> list[str]:
    if _is_annotated(data):
        return [*map(str, data.obsm), *map(str, data.obs), "X"]
    if isinstance(data, xr.Dataset):
        return [str(name) for name in data.variables]
    found = data.columns if hasattr(data, "columns") else data.keys()
    return [str(name) for name in found]


def _stacked(column: Any, name: str) -> Any:
    """A column whose every value is a row of numbers, as tables of embeddings have it, as one array."""
    if not hasattr(column, "ndim") and hasattr(column, "__array__"):  # of another library of tables
        column = np.asarray(column)
    if getattr(getattr(column, "dtype", None), "kind", "") == "O" and column.ndim == 1 and len(column):
        values = column.to_numpy() if isinstance(column, pd.Series) else column
        if any(isinstance(value, np.ndarray | list | tuple) for value in values[:N_LOOKED_AT]):
            return _stack(values, name)
    return column


def _stack(values: np.ndarray, name: str) -> np.ndarray:
    """Rows that are arrays or lists, as one array."""
    rows = [np.asarray(value) for value in values]
    if any(row.shape != rows[0].shape for row in rows):
        raise DataError(f"the column {name!r} has rows of different lengths{_odd_row(rows)}")
    return np.stack(rows)


# As rows -----------------------------------------------------------------------------------------------


def rows_of(found: Given, invalid: Invalid) -> Rows:
    """Embeddings as rows, with the weights and losses beside them."""
    rows = as_rows(found.embeddings, invalid=invalid)
    rows = replace(rows, columns={})  # nobody asks for their samples
    numbers = {"loss": found.losses, "weight": found.sample_weight}
    for name, values in numbers.items():
        if values is not None:
            rows = with_numbers(rows, **{name: one_dimensional(values, name)})
    return rows


def one_dimensional(values: Any, name: str) -> Any:
    """Numbers of one dimension; a single column is one."""
    values = values.data if isinstance(values, xr.DataArray) else values
    values = values if hasattr(values, "ndim") else np.asarray(values)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values.iloc[:, 0] if isinstance(values, pd.DataFrame) else values[:, 0]
    if values.ndim != 1:
        raise DataError(f"{name} has the shape {tuple(values.shape)}: expected one number a row")
    return values


def label_column(values: Any, what: str, classes: np.ndarray | None = None) -> Column:
    """Labels of any type as a column of codes; a column stays as it is.

    Without `classes` these are the values found: categoricals keep their order, all else is sorted as numpy
    and scikit-learn do it, so that columns of probabilities are theirs.

    Raises
    ------
    DataError
        If a label is none of `classes`.
    """
    if isinstance(values, Column):
        return _same_classes(values, what, classes)
    if isinstance(values, xr.DataArray):
        values = values.data
    if isinstance(values, da.Array):
        if values.ndim != 1:
            raise DataError(f"{what}s have {values.ndim} dimensions: expected one value a row")
        values = known_length(values)
        if classes is None:
            found, _ = passes.values(Column(values))
            classes = np.sort(labels.order(found, what))
        return Column(values, classes)
    codes, categories = labels.factorize(values, what)
    if classes is None:
        is_categorical = isinstance(getattr(values, "dtype", None), pd.CategoricalDtype)
        classes = categories if is_categorical else np.sort(categories)
    try:
        position = np.append(labels.encode(categories, classes, what), -1).astype(labels.CODE)
    except DataError as error:
        raise DataError(
            f"{error}; leave these rows out, or fit again with targets as a pandas Categorical that lists it"
        ) from error
    return Column(position[codes], classes, coded=True)


def _same_classes(column: Column, what: str, classes: np.ndarray | None) -> Column:
    """The column, if its categories are the classes."""
    has = [] if column.categories is None else column.categories.tolist()
    if classes is not None and has != classes.tolist():
        raise DataError(
            f"{what}s are of the classes {', '.join(map(str, has))}, expected {', '.join(map(str, classes))} "
            "in this order"
        )
    return column
