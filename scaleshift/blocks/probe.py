"""What does one block cost?  It is read, and worked on, here and now: seconds of the processor, and memory.

The only place where a plan touches the rows, and it touches no other block.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.task_spec import DataNode, Task

from scaleshift.blocks import blas, computing, graph, room
from scaleshift.blocks.block import Rows
from scaleshift.blocks.sparse_rows import nbytes, refuse_block
from scaleshift.errors import ChunkError

FEW_ROWS = 100  # enough to compile a kernel for


@dataclass(frozen=True)
class Measured:
    """What a call gave and took."""

    result: Any
    seconds: float  # of the processor
    n_bytes: int  # its peak memory, the result included

    @property
    def result_bytes(self) -> int:
        """What the result, an array, takes."""
        return nbytes(self.result)


def measured(function: Callable[[], Any]) -> Measured:
    """Call a function twice, for its memory and for its time: what compiles or opens has happened by then.

    Examples
    --------
    >>> found = measured(lambda: np.zeros(1_000_000))
    >>> found.result.nbytes, found.n_bytes >= 8_000_000
    (8000000, True)
    """
    with blas.one_thread():
        tracing = tracemalloc.is_tracing()
        if not tracing:
            tracemalloc.start()
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        function()
        _, peak = tracemalloc.get_traced_memory()
        if not tracing:
            tracemalloc.stop()
        start = time.process_time()
        result = function()
        return Measured(result, time.process_time() - start, peak - before)


class OneBlock:
    """The largest block of some rows; each array of it is read when first needed."""

    def __init__(self, rows: Rows):
        sizes = (rows.x.shape[0],) if rows.is_one_block else rows.x.chunks[0]
        self.number = int(np.argmax(sizes))
        self.n_rows = sizes[self.number]
        self.start = sum(sizes[: self.number])
        free = room.free_here()
        n_bytes = self.n_rows * rows.x.shape[1] * rows.x.dtype.itemsize
        # What a sparse block takes is not known before it is read.
        if not (rows.is_one_block or rows.is_sparse) and n_bytes > free / room.COPIES:
            fit = int(self.n_rows * free / (room.COPIES * n_bytes))
            raise ChunkError(
                f"one block of {self.n_rows} rows takes {n_bytes / 1e9:.1f} GB, and {free / 1e9:.1f} GB are "
                f"free here: make smaller chunks of rows, a {room.COPIES}th of a worker's memory or less; "
                f"what would fit: chunks of {fit:,} rows or fewer"
            )
        self._read: dict[str, Measured] = {}

    def read(self, rows: Rows) -> list[Measured]:
        """X and the columns of these rows, which must have the blocks it was made for."""
        return [self.x(rows), *(self.column(rows, name) for name in rows.columns)]

    def x(self, rows: Rows) -> Measured:
        """X."""
        if "" not in self._read:
            self._read[""] = measured(lambda: self._part(rows.x))
            if not rows.is_sparse:
                refuse_block(self._read[""].result)
        return self._read[""]

    def column(self, rows: Rows, name: str) -> Measured:
        """One column."""
        if name not in self._read:
            self._read[name] = measured(lambda: self._part(rows.columns[name].values))
        return self._read[name]

    def work(self, leaf: Callable[..., Any], rows: Rows, parameters: Mapping[str, Any]) -> Measured:
        """What the leaf of a pass makes of the block."""
        arrays = [found.result for found in self.read(rows)]

        def on(n: int) -> Any:
            return leaf(rows.loader(*(array[:n] for array in arrays), start=self.start), **parameters)

        on(FEW_ROWS)
        return measured(lambda: on(self.n_rows))

    def _part(self, array: Any) -> Any:
        if not isinstance(array, da.Array):
            return array
        part = array.blocks[self.number] if array.ndim == 1 else array.blocks[self.number, 0]
        (part,) = dask.compute(part, scheduler="synchronous") if _is_here(part) else computing.compute(part)
        return part


def _is_here(array: da.Array) -> bool:
    """Whether no worker holds what the array is made of."""
    if graph.client() is None:
        return True
    from distributed import futures_of

    return not futures_of(array)


def sources(array: Any) -> list[Any]:
    """The arrays that a block of a Dask array is cut from; none where a function makes it."""
    if not isinstance(array, da.Array):
        return [array]
    (part,) = dask.optimize(array.blocks[(0,) * array.ndim])
    return list(_arrays(dict(part.__dask_graph__())))


def _arrays(node: Any) -> Iterator[Any]:
    if isinstance(node, DataNode):
        yield from _arrays(node.value)
    elif isinstance(node, Task):
        yield from _arrays([*node.args, *node.kwargs.values()])
    elif isinstance(node, dict):
        yield from _arrays(list(node.values()))
    elif isinstance(node, list | tuple):
        for part in node:
            yield from _arrays(part)
    elif hasattr(node, "shape") and hasattr(node, "dtype"):
        yield node


def n_tasks(collection: da.Array) -> int:
    """How many tasks a compute of this runs, after all fusing."""
    (collection,) = dask.optimize(collection)
    return sum(isinstance(node, Task) for node in dict(collection.__dask_graph__()).values())
