"""How is a model fitted again and again that needs all rows at once?  One task a refit, the rows shared.

The rows are gathered once, on the workers, into plain arrays that every refit reads: one object, which a
third of a worker's memory must hold. A worker that dies takes nothing with it: the scheduler knows how the
object and each result are made.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import uuid4

import dask
import numpy as np
from dask.core import flatten
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from dask.task_spec import List, Task, TaskRef
from dask.utils import format_bytes

from scaleshift.blocks import blas, computing, graph, room
from scaleshift.blocks.block import Block, Rows
from scaleshift.blocks.invalid import refuse_invalid
from scaleshift.blocks.travelled import aligned, unpacked
from scaleshift.doing import doing
from scaleshift.errors import DataError
from scaleshift.kernels.reference import to_numpy

WAVE = 3  # keys a thread: what is finished is kept after each wave
ROUND = 8  # keys after which one may stop: no wave, whose size is that of the cluster
SHARE = 1 / 3  # of a worker's memory, for the rows

Table = dict[str, np.ndarray]  # "x" (n, p), "row" (n,) absolute numbers, and columns by name
Result = dict[str, np.ndarray]
Function = Callable[..., Result]
Prepare = Callable[..., Block]


class Finished(Protocol):
    """Results of earlier calls."""

    def read(self) -> dict[int, Result]:
        """Those that are there, by key."""

    def add(self, results: Mapping[int, Result]) -> None:
        """Keep more of them."""


@dataclass(frozen=True)
class Gathered:
    """Rows as plain arrays, one object that refits share."""

    tables: Delayed  # {name: Table}
    n_rows: Mapping[str, int]  # that are in them
    n_invalid: Mapping[str, int]  # that were left out since they are not finite


def gather(data: Mapping[str, Rows], prepare: Prepare | None = None, **parameters: Any) -> Gathered:
    """Bring rows together as plain arrays for refits: read once, by tasks, one a block.

    Parameters
    ----------
    data : mapping of name to Rows
        With the columns that are needed.
    prepare : callable, optional
        ``prepare(name, block, **parameters) -> Block``, a module-level function: adds columns, and marks rows
        that are left out as not valid.
    **parameters
        Passed to `prepare`.

    Returns
    -------
    Gathered
        For `replicates`. On a cluster its arrays never come to the driver.

    Raises
    ------
    DataError
        If the rows weigh more than a third of a worker's memory (of this machine without a cluster), or are
        not finite where `rows.invalid` is "raise".

    Examples
    --------
    >>> from scaleshift.blocks.rows import as_rows
    >>> found = gather({"source": as_rows([[1.0], [np.nan]], invalid="drop")})
    >>> found.n_rows, found.n_invalid
    ({'source': 1}, {'source': 1})
    """
    _refuse_large(data)
    parts = [
        _table(functools.partial(_taken, prepare, name), rows, parameters) for name, rows in data.items()
    ]
    tables, counts = _persisted(
        dask.delayed(_together, pure=False)(list(data), parts), dask.delayed(_counted, pure=False)(parts)
    )
    told = dict(zip(data, graph.compute(counts), strict=True))
    for name, rows in data.items():
        refuse_invalid(rows, told[name]["by_column"])
    n_rows, n_invalid = (
        {name: int(found[what]) for name, found in told.items()} for what in ("n", "invalid")
    )
    return Gathered(tables, n_rows, n_invalid)


def replicates(
    function: Function,
    data: Mapping[str, Rows] | Gathered,
    keys: Sequence[int],
    *,
    kept: Finished | None = None,
    enough: Callable[[dict[int, Result]], bool] | None = None,
    **parameters: Any,
) -> dict[int, Result]:
    """Refits that know nothing of each other: one task each, on the cluster in scope or on threads.

    Parameters
    ----------
    function : callable
        ``function(tables, key, **parameters) -> {name: array}``, a module-level function or an object that
        can be pickled. `tables` has of each entry of `data` the arrays "x", (n, p), "row", (n,) absolute
        numbers, and the columns, labels as codes; they are shared: not to be written to. The arrays of all
        keys have the same names and shapes, and are small: the driver gets them.
    data : mapping of name to Rows, or Gathered
    keys : sequence of int
    kept : optional
        Finished keys, which are not computed again, as `scaleshift.blocks.resuming.KeptReplicates`.
    enough : callable, optional
        ``enough(results) -> bool``, asked of the first 8, 16, ... keys: whether the rest can be left out.
    **parameters
        Passed to `function`; objects that say so by `nbytes` enter a graph once.

    Returns
    -------
    dict of int to dict of name to numpy.ndarray
        In the order of `keys`, the same bits for any workers.

    Raises
    ------
    DataError
        As `gather` does; and what `function` raises.

    Examples
    --------
    >>> from scaleshift.blocks.rows import as_rows
    >>> def scaled(tables, key):
    ...     return {"sum": key * tables["source"]["x"].sum()}
    >>> found = replicates(scaled, {"source": as_rows([[1.0], [2.0]])}, [0, 1, 2])
    >>> [float(result["sum"]) for result in found.values()]
    [0.0, 3.0, 6.0]
    """
    keys = list(dict.fromkeys(map(int, keys)))
    found = {} if kept is None else {key: result for key, result in kept.read().items() if key in set(keys)}
    todo = [key for key in keys if key not in found]
    asked, stops = _stops(keys, found, enough, 0)
    if todo and not stops:
        gathered = data if isinstance(data, Gathered) else gather(data)
        shared = {
            name: _persisted(v)[0] if isinstance(v, Delayed) else v
            for name, v in graph.once(parameters).items()
        }
    at_once = len(todo) if kept is None and enough is None else WAVE * graph.n_threads()
    with doing("refits", len(keys), at_once) as advance:
        advance(len(found))
        while todo and not stops:
            wave, todo = todo[:at_once], todo[at_once:]
            results = _wave(function, gathered, wave, shared)
            found.update(results)
            advance(len(wave))
            if kept is not None:
                kept.add(results)
            asked, stops = _stops(keys, found, enough, asked)
    return {key: found[key] for key in (keys[:asked] if stops else keys)}


def _stops(
    keys: list[int], found: dict[int, Result], enough: Callable[[dict[int, Result]], bool] | None, asked: int
) -> tuple[int, bool]:
    """How many of the first keys were asked of, and whether they are enough: whole rounds, any waves."""
    while enough is not None and asked + ROUND < len(keys):
        first = keys[: asked + ROUND]
        if any(key not in found for key in first):
            break
        asked += ROUND
        if enough({key: found[key] for key in first}):
            return asked, True
    return asked, False


def _wave(
    function: Function, gathered: Gathered, keys: list[int], shared: dict[str, Any]
) -> dict[int, Result]:
    large = {name: value for name, value in shared.items() if isinstance(value, Delayed)}
    small = {name: value for name, value in shared.items() if name not in large}
    calls = [
        dask.delayed(functools.partial(_called, function, key, small), pure=False)(gathered.tables, **large)
        for key in keys
    ]
    with _no_warning():
        return dict(zip(keys, computing.compute(*calls), strict=True))


def _called(
    function: Function, key: int, small: dict[str, Any], tables: dict[str, Table], **large: Any
) -> Result:
    with blas.one_thread():
        found = function(tables, key, **small, **unpacked(large))
    return {name: np.asarray(value) for name, value in found.items()}


def _table(leaf: Callable[..., Any], rows: Rows, parameters: Mapping[str, Any]) -> Delayed:
    """One table, lazy: a task a block, and one that joins them."""
    rows = rows.as_dask()
    (leaves,) = dask.optimize(graph.on_blocks(leaf, rows, 1, np.empty((0, 0), object), parameters))
    key = f"gather-{uuid4().hex}"
    blocks = List(*map(TaskRef, flatten(leaves.__dask_keys__())))
    layers = HighLevelGraph.from_collections(key, {key: Task(key, _joined, blocks)}, [leaves])
    return Delayed(key, layers, layer=key)


def _taken(prepare: Prepare | None, name: str, block: Block, **parameters: Any) -> dict[str, Any]:
    """What of a block becomes part of the table: its rows that are finite and asked for."""
    block = block._replace(x=to_numpy(block.x))
    invalid = {"invalid": int((~block.valid).sum()), "by_column": block.invalid_by_column}
    if prepare is not None:
        block = prepare(name, block, **parameters)
    row = np.arange(block.start, block.start + len(block.valid))
    table = {"x": block.x, "row": row, **block.columns}
    if not block.valid.all():
        table = {name: values[block.valid] for name, values in table.items()}
    return {"table": table, **invalid}


def _joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    tables = [part["table"] for part in parts]
    return {
        "table": {name: _concatenated([table[name] for table in tables]) for name in tables[0]},
        "invalid": sum(part["invalid"] for part in parts),
        "by_column": sum(part["by_column"] for part in parts),
    }


def _concatenated(arrays: list[np.ndarray]) -> np.ndarray:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


class Tables(dict[str, Table]):
    """Arrays in places that suit BLAS, also where they have come from another worker.

    What comes over the wire lies at any byte. numpy keeps BLAS from such arrays and adds in an order of its
    own: other bits, and slowly.
    """

    def __reduce__(self) -> Any:
        return _together, (list(self), [{"table": table} for table in self.values()])


def _together(names: list[str], parts: list[dict[str, Any]]) -> Tables:
    """The tables by name: at first, and wherever they arrive."""
    tables = ({name: aligned(array) for name, array in part["table"].items()} for part in parts)
    return Tables(zip(names, tables, strict=True))


def _counted(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the driver is told of each table."""
    return [
        {"n": len(part["table"]["x"]), "invalid": part["invalid"], "by_column": part["by_column"]}
        for part in parts
    ]


def _persisted(*collections: Delayed) -> tuple[Delayed, ...]:
    """The same, computed once for all waves; a cluster makes what dies with a worker again."""
    with _no_warning():
        return computing.persist(*collections)


def _no_warning() -> Any:
    """Rows in memory go to the cluster in the graph, where they survive any worker: this is meant."""
    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TiB"})


def _refuse_large(data: Mapping[str, Rows]) -> None:
    sizes = {name: _nbytes(rows) for name, rows in data.items()}
    memory, whose = _memory()
    if sum(sizes.values()) > SHARE * memory:
        listed = ", ".join(f"{name} {format_bytes(size)}" for name, size in sizes.items())
        total = format_bytes(sum(sizes.values()))
        raise DataError(
            f"refits need all rows at once, {total} ({listed}): more than a third of the "
            f"{format_bytes(memory)} of {whose}. Give fewer rows, a random sample of them, or larger workers"
        )


def _nbytes(rows: Rows) -> int:
    """Bytes of the rows as plain arrays."""
    n, by_row = rows.x.shape[0], rows.n_markers * rows.x.dtype.itemsize + 8
    for column in rows.columns.values():
        width = int(np.prod(column.values.shape[1:], dtype=int))
        by_row += 8 if column.categories is not None else width * column.values.dtype.itemsize
    return int(n * by_row)


def _memory() -> tuple[int, str]:
    """Bytes that the smallest worker has, and whose they are."""
    limits = [worker["memory_limit"] for worker in computing.workers() if worker["memory_limit"]]
    if limits:
        return min(limits), "a worker"
    here = room.here()
    assert here.n_bytes is not None
    return here.n_bytes, here.whose
