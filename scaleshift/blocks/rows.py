"""What a user passes as X, y and sample -> aligned row blocks.

The only place that rechunks a column to its rows, merges chunks along the markers, counts unknown
chunks and encodes labels (contract "Rows").
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import xarray as xr

from scaleshift.blocks import graph, labels, passes, room
from scaleshift.blocks.block import Column, Invalid, Rows, to_dask
from scaleshift.blocks.inputs import check_same_rows, matrix
from scaleshift.blocks.sparse_rows import refuse_block
from scaleshift.blocks.treatment import treatment_of
from scaleshift.errors import ChunkError, DataError
from scaleshift.kernels.reference import to_numpy

BLOCK_ROWS = 65_536  # in-memory input is cut into blocks of so many rows


def as_rows(
    X: Any, y: Any = None, sample: Any = None, *, invalid: Invalid = "raise", sparse: bool = False
) -> Rows:
    """Align X with its labels and samples.

    Parameters
    ----------
    X : array-like, shape (n, n_markers), or a cells dataset
        numpy, Dask (any chunks), CuPy, pandas, xarray, AnnData. A cells dataset brings its labels and
        samples along.
    y : array-like, shape (n,), optional
        Labels; NaN, None and pandas.NA mean unlabelled. In place of the dataset's own.
    sample : array-like, shape (n,), optional
        Which sample a row belongs to. In place of the dataset's own.
    invalid : {"raise", "drop"}, default "raise"
        What to do with rows that hold NaN or infinite values.
    sparse : bool, default False
        Whether the caller takes sparse rows: X may then be of scipy.sparse (any format), AnnData with such
        an X, or a Dask array whose meta is of scipy.sparse. Blocks are `scipy.sparse.csr_array` of float32
        or float64 then, and those of dense X numpy arrays as ever.

    Returns
    -------
    Rows
        With a column "label" if there are labels, and "sample": one sample "all" where none are given.

    Raises
    ------
    DataError
        Wrong dimensions or dtype; sparse X without `sparse`; labels of mixed types. A row without a
        sample is found by the first pass.
    ChunkError
        If a Dask column cannot be aligned with X.

    Examples
    --------
    >>> import numpy as np
    >>> as_rows(np.ones((4, 2)), y=[1, 0, None, 1]).categories("label").tolist()
    [0, 1]
    """
    if not isinstance(invalid, str) or invalid not in ("raise", "drop"):
        raise DataError(f"invalid={invalid!r}: expected 'raise' or 'drop'")
    given = {"label": y, "sample": sample}
    columns: dict[str, Column] = {}
    treatment = treatment_of(X)
    if isinstance(X, xr.Dataset):
        columns, given = _dataset_columns(X, given)
        X = X["X"]
    table = X
    x, markers = matrix(X, sparse=sparse)
    x = known_chunks(x)
    for name, values_ in given.items():
        if values_ is not None:
            check_same_rows(table, values_, name)
            columns[name] = _column(values_, name)
    in_memory = not isinstance(x, da.Array)
    if in_memory and any(isinstance(c.values, da.Array) for c in columns.values()):
        x, in_memory = to_dask(x, _cut(x.shape[0])), False
    if in_memory and x.shape[0] > BLOCK_ROWS:
        x = to_dask(x, _cut(x.shape[0]))
    if "sample" not in columns:
        columns["sample"] = Column(_zeros(x), np.array(["all"]), coded=True)
    columns = {name: replace(c, values=aligned(c.values, x, name)) for name, c in columns.items()}
    return Rows(x, columns, markers, invalid, None, in_memory, treatment=treatment)


def with_numbers(rows: Rows, **numbers: Any) -> Rows:
    """The same rows with more columns: numbers, or several of them a row, aligned with X.

    Parameters
    ----------
    rows : Rows
    **numbers : array-like, shape (n,) or (n, m)
        numpy, Dask or pandas, by the name of the column.

    Raises
    ------
    DataError
        If they are no numbers, or have more than two dimensions.
    ChunkError
        If they have not as many rows as X.

    Examples
    --------
    >>> import numpy as np
    >>> rows = with_numbers(as_rows(np.ones((2, 1))), proba=[[0.1, 0.9], [0.5, 0.5]])
    >>> rows.columns["proba"].values.shape
    (2, 2)
    """
    return with_columns(rows, **{name: Column(_numbers(values, name)) for name, values in numbers.items()})


def with_columns(rows: Rows, **columns: Column) -> Rows:
    """The same rows with more columns, aligned with X; a lazy column makes blocks of rows in memory.

    Raises
    ------
    ChunkError
        If a column has not as many rows as X.

    Examples
    --------
    >>> import numpy as np
    >>> codes = Column(np.array([0, 1]), np.array(["B", "T"]), coded=True)
    >>> with_columns(as_rows(np.ones((2, 1))), predicted=codes).categories("predicted").tolist()
    ['B', 'T']
    """
    if rows.is_one_block and any(isinstance(column.values, da.Array) for column in columns.values()):
        rows = replace(rows.as_dask(), in_memory=False)
    beside = {name: replace(c, values=aligned(c.values, rows.x, name)) for name, c in columns.items()}
    return replace(rows, columns={**rows.columns, **beside})


def first_rows(rows: Rows, n: int) -> np.ndarray:
    """A few rows of the first block that has some: what a user's function is tried on.

    Parameters
    ----------
    rows : Rows
    n : int

    Returns
    -------
    numpy.ndarray, shape (at most n, n_markers)
        Values that are not finite are 0, as in the blocks of a pass. The block is read.

    Examples
    --------
    >>> first_rows(as_rows([[1.0], [np.nan], [3.0]]), 2).tolist()
    [[1.0], [0.0]]
    """
    x = rows.x
    if isinstance(x, da.Array):
        room.refuse_blocks(rows, graph.client, at_most=1)
        number = next((i for i, size in enumerate(x.chunks[0]) if size), 0)
        x = graph.compute(x.blocks[number, 0][:n], rows.in_memory)
        if not rows.is_sparse:
            refuse_block(x)
    x = to_numpy(x[:n] if rows.take is None else x[:n, rows.take])
    return np.nan_to_num(x, nan=0, posinf=0, neginf=0) if x.dtype.kind == "f" else x


def refuse_masked(values: Any, name: str) -> None:
    """Raise DataError of a masked array, in memory or lazy: what lies under its mask would count.

    Examples
    --------
    >>> refuse_masked([1, 2], "y")
    """
    if isinstance(getattr(values, "_meta", values), np.ma.MaskedArray):
        raise DataError(f"{name} is a masked array: fill it first, with {name}.filled(...)")


def _numbers(values: Any, name: str) -> Any:
    """An array of numbers, of one dimension or two."""
    refuse_masked(values, name)
    if isinstance(values, xr.DataArray):
        values = values.data
    if isinstance(values, pd.DataFrame | pd.Series):
        values = _plain(values)
    if not isinstance(values, da.Array):
        values = to_numpy(values)
    if values.dtype.kind not in "biuf":
        raise DataError(f"{name} has dtype {values.dtype}, expected numbers")
    if values.ndim not in (1, 2):
        raise DataError(f"{name} has {values.ndim} dimensions, expected 1 or 2: numbers a row of X")
    if isinstance(values, da.Array):
        values = known_length(values)
        return values.rechunk({1: -1}) if values.ndim == 2 else values
    return values


def _plain(table: pd.DataFrame | pd.Series) -> np.ndarray:
    """Numbers of a table; pandas.NA, which only its own dtypes hold, as NaN."""
    dtypes = table.dtypes if isinstance(table, pd.DataFrame) else [table.dtype]
    own = any(isinstance(dtype, pd.api.extensions.ExtensionDtype) for dtype in dtypes)
    if own and all(pd.api.types.is_numeric_dtype(dtype) for dtype in dtypes):
        return table.to_numpy(dtype=np.float64, na_value=np.nan)
    return table.to_numpy()


def _dataset_columns(cells: xr.Dataset, given: dict[str, Any]) -> tuple[dict[str, Column], dict[str, Any]]:
    """Labels and samples of a cells dataset, where the caller gave none."""
    if "X" not in cells:
        found = ", ".join(map(str, cells.data_vars)) or "none"
        raise DataError(f"the dataset has no variable X; it has {found}: see scaleshift.as_cells")
    columns = {}
    for name in given:
        code = f"{name}_code"
        if given[name] is None and code in cells and cells.sizes.get(name, 0):
            labels.check_fingerprint(cells[code].attrs, cells[name].values, name)
            columns[name] = Column(cells[code].data, cells[name].values, coded=True)
    return columns, given


def known_chunks(x: Any) -> Any:
    """Rows with known chunk sizes and all markers in one chunk; arrays in memory as they are."""
    if not isinstance(x, da.Array):
        return x
    if np.isnan(x.shape[0]):
        x = x.copy().compute_chunk_sizes()  # one counting pass
    if x.numblocks[1] > 1:
        warnings.warn(
            f"X has {x.numblocks[1]} chunks along the markers: they are merged block by block, which copies "
            "the data; store all markers in one chunk",
            stacklevel=4,
        )
        x = x.rechunk({1: -1})
    return x


def _column(values: Any, name: str) -> Column:
    """Labels in memory become codes at once; lazy ones cost a pass over them and are encoded in the tasks."""
    refuse_masked(values, name)
    if isinstance(values, xr.DataArray):
        values = values.data
    if not isinstance(values, da.Array):
        codes, categories = labels.factorize(values, name)
        # As narrow as they can be: beside a Dask X they travel in the graph.
        narrow = np.min_scalar_type(-len(categories) - 1)
        return Column(codes.astype(narrow), categories, coded=True)
    if values.ndim != 1:
        raise DataError(f"{name}s have {values.ndim} dimensions: expected one value a row")
    values = known_length(values)
    found, counts = passes.values(Column(values))
    categories = labels.order(found, name)
    by_category = np.zeros(len(categories), np.int64)
    by_category[labels.encode(found, categories, name)] = counts
    return Column(values, categories, counts=by_category)


def _zeros(x: Any) -> Any:
    """One code a row without a row-sized array on the driver."""
    if isinstance(x, da.Array):
        return da.zeros(x.shape[0], chunks=(x.chunks[0],), dtype=labels.CODE)
    return np.zeros(x.shape[0], labels.CODE)


def known_length(values: da.Array) -> da.Array:
    """A lazy column whose blocks have known sizes: one counting pass where they have not."""
    return values.copy().compute_chunk_sizes() if np.isnan(values.shape[0]) else values


def aligned(values: Any, x: Any, name: str) -> Any:
    """A column with the row chunks of X."""
    if len(values) != x.shape[0]:
        raise ChunkError(f"{name} has {len(values)} values, X has {x.shape[0]} rows: pass one a row")
    if not isinstance(x, da.Array):
        return values
    if isinstance(values, da.Array):
        return values if values.chunks[0] == x.chunks[0] else values.rechunk({0: x.chunks[0]})
    return to_dask(values, x.chunks[0])


def _cut(n: int) -> tuple[int, ...]:
    return (BLOCK_ROWS,) * (n // BLOCK_ROWS) + ((n % BLOCK_ROWS,) if n % BLOCK_ROWS or not n else ())
