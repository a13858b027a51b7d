"""What are the embeddings of rows by a user's function?  Block by block, in one pass, lazily."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from scaleshift.blocks import graph, passes
from scaleshift.blocks.block import Block
from scaleshift.blocks.rows import as_rows, first_rows
from scaleshift.errors import DataError
from scaleshift.kernels.reference import to_numpy
from scaleshift.parameters import check, is_whole
from scaleshift.user_objects import call, name_of

FEW_ROWS = 8  # that a function is tried on


def embed(
    function: Callable[[np.ndarray], Any], X: Any, *, n_columns: int | None = None, dtype: Any = np.float32
) -> Any:
    """Embed rows by a function, such as the last layer but one of a network.

    Parameters
    ----------
    function : callable
        ``function(x)``, (n, n_markers) numpy -> (n, k) finite numbers, row by row: what it gives for a row
        must not depend on the other rows of the block. It is called on blocks, from several threads at a
        time, and travels to the workers of a cluster.
    X : array-like, shape (n, n_markers), or a cells dataset
        numpy, Dask, CuPy, pandas, xarray or AnnData.
    n_columns : int, optional
        Columns of an embedding, k. Where left out the function is called now, on the first few rows of the
        first block, which is read for it.
    dtype : dtype, default float32
        Of the embeddings.

    Returns
    -------
    numpy.ndarray or dask.array.Array, shape (n, k)
        Lazy, one task a block, for Dask arrays, lazy xarray and cells datasets; else computed.

    Raises
    ------
    DataError
        If the function fails, or gives another number of rows or columns, one dimension, or what is not
        finite: names the function and the rows. For a lazy X the rows are met when it is computed.

    Examples
    --------
    >>> import numpy as np
    >>> from scaleshift.slices import embed
    >>> def squares(x):
    ...     return np.column_stack([x, x**2])
    >>> embed(squares, [[1.0], [2.0], [3.0]]).tolist()
    [[1.0, 1.0], [2.0, 4.0], [3.0, 9.0]]
    """
    if not callable(function):
        raise DataError(f"function is a {type(function).__name__}: expected a callable, (n, d) -> (n, k)")
    check("n_columns", n_columns, lambda v: v is None or (is_whole(v) and v >= 1), "a whole number from 1")
    if np.dtype(dtype).kind != "f":
        raise DataError(f"dtype={dtype!r}: embeddings are float32 or float64")
    rows = as_rows(X).only()
    if n_columns is None:
        n_columns = _columns(function, first_rows(rows, FEW_ROWS), np.dtype(dtype))
    asked = {"function": function, "n_columns": n_columns, "to": np.dtype(dtype)}
    result = passes.map_rows(embed_leaf, rows, n_columns, dtype=dtype, **asked)
    return graph.compute(result, in_memory=True) if rows.in_memory else result


def embed_leaf(
    block: Block, function: Callable[[np.ndarray], Any], n_columns: int, to: np.dtype
) -> np.ndarray:
    """Embeddings of the rows of a block, (n, n_columns)."""
    x = to_numpy(block.x)
    if not len(x):
        return np.empty((0, n_columns), to)
    return _embedded(function, x, block.start, n_columns, to)


def _columns(function: Callable[[np.ndarray], Any], x: np.ndarray, to: np.dtype) -> int:
    """Columns that a function gives, by calling it."""
    if not len(x):
        raise DataError(f"X has no rows to call {name_of(function)} on: pass n_columns=")
    return int(_embedded(function, x, 0, None, to).shape[1])


def _embedded(
    function: Callable[[np.ndarray], Any], x: np.ndarray, start: int, n_columns: int | None, to: np.dtype
) -> np.ndarray:
    """What a function gives for some rows, checked."""
    what, expected = name_of(function), "k" if n_columns is None else n_columns
    rows = f"for the rows {start} to {start + len(x) - 1}"
    try:
        found = call(function, x)
    except DataError as error:
        raise DataError(f"{error} {rows}") from error.__cause__
    found = call(np.asarray, found)
    if found.ndim != 2 or found.dtype.kind not in "biuf":
        hint = "; reshape a single column with [:, None]" if found.ndim == 1 else ""
        raise DataError(
            f"{what} gave an array of shape {found.shape} and dtype {found.dtype} {rows}: expected numbers "
            f"of shape ({len(x)}, {expected}){hint}"
        )
    if len(found) != len(x):
        raise DataError(f"{what} gave {len(found)} rows {rows}: expected as many as it got, {len(x)}")
    if found.shape[1] != (n_columns or found.shape[1]) or not found.shape[1]:
        raise DataError(f"{what} gave {found.shape[1]} columns {rows}: expected {n_columns or 'some'}")
    with np.errstate(over="ignore"):
        found = found.astype(to)
    finite = np.isfinite(found).all(axis=1)
    if not finite.all():
        first = ", ".join(str(start + int(row)) for row in np.flatnonzero(~finite)[:5])
        raise DataError(
            f"{what} gave NaN or infinite values ({to}) for {int((~finite).sum())} of the rows {start} to "
            f"{start + len(x) - 1}, first {first}: mend the function, or leave these rows out"
        )
    return found
