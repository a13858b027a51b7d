"""What kinds of arrays may come in as X?  Whatever becomes a two-dimensional array of numbers."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import xarray as xr

from scaleshift.blocks.sparse_rows import csr_rows, is_sparse, refuse_kind
from scaleshift.errors import DataError
from scaleshift.kernels.reference import library


def matrix(X: Any, *, sparse: bool = False) -> tuple[Any, tuple[str, ...] | None]:
    """The array of X, rows x markers, and its marker names where it has them.

    Parameters
    ----------
    X : array-like, shape (n, n_markers)
        numpy, Dask and CuPy arrays stay as they are; pandas.DataFrame, xarray.DataArray and AnnData give
        their array and names; anything else goes through `numpy.asarray`.
    sparse : bool, default False
        Whether X may be of scipy.sparse, or a Dask array of such blocks, or AnnData with such an X.

    Returns
    -------
    array : numpy, Dask or CuPy array
        Of bools, integers or floats. Sparse X: `scipy.sparse.csr_array` of float32 or float64, or a Dask
        array of such blocks.
    names : tuple of str or None
        None too where columns are merely numbered.

    Raises
    ------
    DataError
        If X is not two-dimensional numbers, is masked, or sparse without `sparse`, or names a marker twice.

    Examples
    --------
    >>> array, names = matrix(pd.DataFrame({"CD3": [1.0], "CD19": [2.0]}))
    >>> array.tolist(), names
    ([[1.0, 2.0]], ('CD3', 'CD19'))
    """
    names: Any = None
    if all(hasattr(X, part) for part in ("X", "obs", "var_names")):  # AnnData
        names, X = X.var_names, X.X
    elif isinstance(X, xr.DataArray):
        names, X = X.indexes.get(X.dims[-1]) if X.dims else None, X.data
    elif isinstance(X, pd.DataFrame):
        names, X = _columns(X), _frame(X)
    elif hasattr(X, "to_dask_array"):
        raise DataError("X is a Dask data frame: pass X.to_dask_array(), which keeps its partitions")
    refuse_kind(X, sparse_too=sparse)
    X = _array(X)
    if isinstance(getattr(X, "_meta", X), np.ma.MaskedArray):
        raise DataError("X is a masked array: fill it first, with X.filled(numpy.nan)")
    if X.ndim != 2:
        raise DataError(
            f"X has {X.ndim} dimension(s), expected 2 (rows, markers). Reshape your data: X[:, None] makes "
            "it one marker, X[None] one row"
        )
    if X.dtype.kind == "c":
        raise DataError(
            f"X has dtype {X.dtype}, expected real numbers. Complex data not supported: pass X.real, or "
            "X.real and X.imag as markers of their own"
        )
    if X.dtype.kind not in "biuf":
        raise DataError(f"X has dtype {X.dtype}, expected numbers: convert it with X.astype('float32')")
    if X.shape[1] == 0:
        raise DataError(
            f"X has no columns, 0 feature(s) (shape={X.shape}) while a minimum of 1 is required: pass one a "
            "marker"
        )
    return csr_rows(X) if is_sparse(X) else X, marker_names(names)


def _array(X: Any) -> Any:
    """numpy, Dask and CuPy arrays as they are; what has no dtype goes through numpy."""
    if isinstance(X, np.matrix):
        return np.asarray(X)
    if isinstance(X, np.ndarray | da.Array) or hasattr(X, "toarray") or library(X) == "cupy":
        return X
    if hasattr(X, "dtype"):
        kind = f"{type(X).__module__}.{type(X).__name__}"
        raise DataError(f"X is a {kind}: pass numpy, or dask.array.from_array(X) to read it in blocks")
    try:
        return np.asarray(X)
    except ValueError as error:
        raise DataError(f"X is no table of numbers ({error}): give all rows the same length") from error


def check_same_rows(X: Any, values: Any, what: str) -> None:
    """Raise DataError where pandas names the rows of both, and names them differently.

    Taking them by position would silently give cells the labels of others.

    Examples
    --------
    >>> check_same_rows(pd.DataFrame([[1.0], [2.0]]), pd.Series(["a", "b"]), "label")
    """
    rows = X.index if isinstance(X, pd.DataFrame) else getattr(X, "obs_names", None)
    if rows is None or not isinstance(values, pd.Series) or len(rows) != len(values):
        return
    unnamed = isinstance(values.index, pd.RangeIndex) and not pd.api.types.is_integer_dtype(rows)
    if not unnamed and not rows.equals(values.index):
        raise DataError(
            f"X and {what} have rows of different names or order: bring them to the same with "
            f"{what}.loc[X.index], or pass {what}.to_numpy() if their positions agree"
        )


def marker_names(names: Any) -> tuple[str, ...] | None:
    """Names as a tuple of str; None for None and for numbers, which pandas gives unnamed columns."""
    if names is None or not all(isinstance(name, str) for name in names):
        return None
    markers = tuple(str(name) for name in names)
    repeated = pd.Index(markers)[pd.Index(markers).duplicated()]
    if len(repeated):
        places = [i for i, name in enumerate(markers) if name == repeated[0]]
        raise DataError(
            f"marker {repeated[0]!r} names columns {places} of X: rename them, names must be unique"
        )
    return markers


def _columns(frame: pd.DataFrame) -> pd.Index | None:
    """Names of the columns; None for those that pandas merely numbers."""
    if pd.api.types.is_integer_dtype(frame.columns):
        return None
    odd = [name for name in frame.columns if not isinstance(name, str)]
    if odd:
        raise DataError(f"X has the column name {odd[0]!r}, expected text: rename it, X.rename(columns=...)")
    return frame.columns


def _frame(frame: pd.DataFrame) -> np.ndarray:
    """Numbers of a data frame; float64 only if a column is, so that integers do not widen the rest."""
    for name, dtype in frame.dtypes.items():
        if not pd.api.types.is_numeric_dtype(dtype) or dtype.kind == "c":
            raise DataError(
                f"column {name!r} of X is {dtype}, expected numbers: pass it as sample or label, or drop it"
            )
    double = any(dtype in (np.float64, pd.Float64Dtype()) for dtype in frame.dtypes)
    return frame.to_numpy(np.float64 if double else np.float32, na_value=np.nan)
