"""How do arrays, tables and AnnData objects become a cells dataset? X stays as it is."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import xarray as xr

from scaleshift.blocks import passes
from scaleshift.blocks.block import Column
from scaleshift.blocks.inputs import check_same_rows, marker_names, matrix
from scaleshift.blocks.labels import CODE, encode, factorize, order
from scaleshift.cells.manifest import typed
from scaleshift.cells.schema import (
    LABEL,
    RESERVED,
    SAMPLE,
    UNLABELLED,
    cells_dataset,
    text_index,
)
from scaleshift.errors import DataError
from scaleshift.spelling import suggestion

ONE_SAMPLE = "all"


def as_cells(X: Any, sample: Any = None, label: Any = None, marker: Any = None) -> xr.Dataset:
    """Cells dataset from data in memory, or from a lazy Dask array, in any order of cells.

    Parameters
    ----------
    X : array-like, shape (n_cells, n_markers)
        numpy, Dask (kept lazy), CuPy (kept on its device), pandas.DataFrame (columns are markers),
        2-D xarray.DataArray, or AnnData. float32 and float64 stay, other numbers become float32.
    sample : array-like or str, optional
        The sample of each cell, shape (n_cells,), or the name of a column of the DataFrame or of
        AnnData's `obs`. Default: one sample named "all". No value may be missing.
    label : array-like or str, optional
        The label of each cell, likewise; NaN, None and pandas.NA mean unlabelled. Default: no labels.
    marker : sequence of str, optional
        Marker names, shape (n_markers,). Default: the names that X has, else "0", "1", ...

    Returns
    -------
    xarray.Dataset
        `X (cell, marker)`, `sample_code (cell)` and `label_code (cell)` int32, coordinates `marker`,
        `sample`, `label`; samples and labels keep their type, categoricals their order. Other columns of
        AnnData's `obs` that hold text, numbers or bools, one value a sample, become coordinates on
        `sample`, with NaN or None where a sample has none; those that vary within a sample, or are called
        like a part of the layout, are left out.

    Raises
    ------
    DataError
        If X is not two-dimensional numbers, lengths do not match, a marker stands twice, a name is
        not known, or a sample is missing.

    Examples
    --------
    >>> cells = as_cells([[1, 2], [3, 4], [5, 6]], label=["T", None, "B"], marker=["CD3", "CD19"])
    >>> cells["label"].values.tolist(), cells["label_code"].values.tolist()
    (['B', 'T'], [1, -1, 0])
    """
    obs = X if isinstance(X, pd.DataFrame) else getattr(X, "obs", None)
    check_same_rows(X, sample, SAMPLE)
    check_same_rows(X, label, LABEL)
    if isinstance(X, pd.DataFrame):
        X = X.drop(columns=_column_names(X, sample=sample, label=label))
    values, names = matrix(X)
    values = _floats(values)
    n_cells, n_markers = values.shape
    markers = _markers(names if marker is None else marker, n_markers)
    sample_code, samples = _codes(sample, SAMPLE, n_cells, obs)
    label_code, labels = _codes(label, LABEL, n_cells, obs)
    if sample is None:
        sample_code, samples = np.zeros(n_cells, CODE), np.array([ONE_SAMPLE])
    # Lazy ones are checked when they are read.
    missing = np.flatnonzero(sample_code < 0) if isinstance(sample_code, np.ndarray) else np.array([])
    if missing.size:
        raise DataError(
            f"sample is missing for {missing.size} cells (first: row {missing[0]}): "
            "every cell needs a sample; give it a name or drop these rows"
        )
    described = None if isinstance(X, pd.DataFrame) else obs
    metadata = _metadata(described, sample_code, len(samples), but=(sample, label))
    return cells_dataset(
        values, sample_code, label_code, marker=markers, sample=samples, label=labels, metadata=metadata
    )


def _column_names(frame: pd.DataFrame, **given: Any) -> list[str]:
    """Those of the given arguments that name a column, once they are known to."""
    names = {what: name for what, name in given.items() if isinstance(name, str)}
    for what, name in names.items():
        if name not in frame.columns:
            raise DataError(f"{what}={name!r} names no column{suggestion(name, frame.columns)}")
    return list(names.values())


def _floats(values: Any) -> Any:
    """float32 or float64, of the kind of array that came in, with at least one cell."""
    if np.isnan(values.shape[0]):
        values = values.copy().compute_chunk_sizes()  # one counting pass
    if not values.shape[0]:
        raise DataError(f"X has shape {values.shape}, expected at least one cell")
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float32)


def _markers(names: Any, n_markers: int) -> np.ndarray:
    markers = text_index(range(n_markers) if names is None else names)
    if len(markers) != n_markers:
        raise DataError(f"marker has {len(markers)} names, X has {n_markers} columns: give one name a column")
    marker_names(markers)
    return markers


def _codes(values: Any, what: str, n_cells: int, obs: pd.DataFrame | None) -> tuple[Any, np.ndarray]:
    """Codes and categories of one column, given as values or as the name of a column of `obs`."""
    if values is None:
        return np.full(n_cells, UNLABELLED, CODE), text_index([])
    if isinstance(values, str):
        if obs is None:
            raise DataError(f"{what}={values!r} is a name, but X has no columns: give one {what} a cell")
        values = obs[_column_names(obs, **{what: values})[0]]
    lazy = isinstance(values, da.Array)
    codes, categories = _lazy_codes(values, what) if lazy else factorize(values, what)
    if len(codes) != n_cells:
        raise DataError(f"{what} has {len(codes)} values, X has {n_cells} cells: give one {what} a cell")
    return codes, categories if len(categories) else text_index([])


def _metadata(obs: Any, sample_code: Any, n_samples: int, but: tuple[Any, ...]) -> dict[str, np.ndarray]:
    """Columns of AnnData's `obs` with one value a sample: name -> values, (n_samples,)."""
    if not isinstance(obs, pd.DataFrame) or not isinstance(sample_code, np.ndarray):
        return {}
    found = values_by_sample(obs, sample_code, n_samples, but)
    return {name: typed(values) for name, values in found.items()}


def values_by_sample(
    obs: pd.DataFrame, sample_code: np.ndarray, n_samples: int, but: tuple[Any, ...] = ()
) -> dict[str, tuple[Any, ...]]:
    """Columns of a table of cells that have one value in each sample.

    Parameters
    ----------
    obs : pandas.DataFrame, n_cells rows
    sample_code : numpy.ndarray of int, shape (n_cells,)
    n_samples : int
    but : tuple
        Names of columns to leave out, as are those called like a part of the layout.

    Returns
    -------
    dict
        Name to n_samples values, plain text, numbers or bools, None where a sample has none.

    Examples
    --------
    >>> obs = pd.DataFrame({"arm": ["x", "x", "y"], "depth": [1, 2, 2], "label": ["T", "T", "T"]})
    >>> values_by_sample(obs, np.array([0, 0, 1]), 2)
    {'arm': ('x', 'y')}
    """
    taken = {*RESERVED, *(name for name in but if isinstance(name, str))}
    present, first = np.unique(sample_code, return_index=True)
    row_of = np.zeros(n_samples, np.intp)
    row_of[present] = first
    found = {}
    for name, column in obs.items():
        if not isinstance(name, str) or name in taken:
            continue
        if _one_value_a_sample(column, sample_code, row_of):
            known = dict(zip(present.tolist(), map(_scalar, column.iloc[first]), strict=True))
            values = tuple(known.get(code) for code in range(n_samples))
            if _one_kind(values):
                found[name] = values
    return found


def _one_value_a_sample(column: pd.Series, sample_code: np.ndarray, row_of: np.ndarray) -> bool:
    """Whether all cells of each sample have the same value, or none of them one."""
    try:
        codes, _ = pd.factorize(column)
    except TypeError:  # lists and the like
        return False
    return bool((codes == codes[row_of[sample_code]]).all())


def _scalar(value: Any) -> Any:
    """A value as plain Python; None where it is missing."""
    value = value.item() if isinstance(value, np.generic) else value
    return None if pd.api.types.is_scalar(value) and pd.isna(value) else value


def _one_kind(values: tuple[Any, ...]) -> bool:
    """Whether values are text, numbers or bools, with one of these among them, and not mixed."""
    kinds = {type(value) for value in values if value is not None}
    return bool(kinds) and (kinds <= {int, float} or kinds in ({str}, {bool}))


def _lazy_codes(values: da.Array, what: str) -> tuple[da.Array, np.ndarray]:
    """Codes that stay lazy; their categories cost one pass over the column."""
    if np.isnan(values.shape[0]):
        values = values.copy().compute_chunk_sizes()
    found, _ = passes.values(Column(values))
    categories = order(found, what)
    codes = da.map_blocks(encode, values, categories, what, dtype=CODE, meta=np.empty(0, CODE))
    return codes, categories
