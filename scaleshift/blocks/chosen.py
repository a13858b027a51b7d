"""How do some rows of lazy columns stay lazy?  Their number by block is counted; nothing else is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dask.array as da
import numpy as np

from scaleshift.blocks import graph, states
from scaleshift.blocks.rows import aligned


def chosen(mask: da.Array, columns: Sequence[da.Array]) -> list[da.Array]:
    """The rows of columns for which a mask holds: one pass over the mask.

    Parameters
    ----------
    mask : dask.array.Array of bool, shape (n,)
    columns : sequence of dask.array.Array, shape (n,) or (n, m)

    Returns
    -------
    list of dask.array.Array
        Blocks of known sizes, some of which may have no rows.

    Examples
    --------
    >>> values = da.arange(5, chunks=2)
    >>> (found,) = chosen(values != 2, [values])
    >>> found.chunks, found.compute().tolist()
    (((2, 1, 1),), [0, 1, 3, 4])
    """
    counted = graph.reduce_column(_n_of_block, states.merge_tally, mask)["blocks"]
    sizes = tuple(n for _, n in counted)
    return [_taken(column, mask, sizes) for column in columns]


def _n_of_block(mask: np.ndarray) -> dict[str, Any]:
    return {"blocks": [((), int(mask.sum()))]}


def _taken(column: da.Array, mask: da.Array, sizes: tuple[int, ...]) -> da.Array:
    column = aligned(column, mask, "a column")
    beside = mask[:, None] if column.ndim == 2 else mask
    chunks = (sizes, *column.chunks[1:])
    return da.map_blocks(_rows, column, beside, dtype=column.dtype, chunks=chunks, meta=column._meta)


def _rows(column: np.ndarray, mask: np.ndarray) -> np.ndarray:
    return column[mask.reshape(len(column))]
