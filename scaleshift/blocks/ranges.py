"""How do rows come together by ranges of one column?  Cut at the same values in all blocks, a task a range.

The one shuffle of the project, of a few narrow columns. Blocks are joined to runs, about as many as there are
ranges; each run cuts its rows by range, and each range is one task over the pieces of all runs, which also
knows what all ranges add up to: no second pass tells it what lies above. The driver gets one answer a range.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

import dask.array as da
import numpy as np
from dask.highlevelgraph import HighLevelGraph
from dask.task_spec import List, Task, TaskRef

from scaleshift.blocks import graph, room
from scaleshift.blocks.block import Rows

RANGE_ROWS = 500_000  # rows of a range, about
MAX_RANGES = 100  # and of runs: their product is the number of pieces that travel
DRAWN = 100  # rows drawn for a cut: ranges differ in size by a tenth

Table = dict[str, np.ndarray]  # columns of equal length, (m,) each
Join = Callable[[list[Table]], Table]
Answer = Callable[[Table, Table, int], Any]


def n_ranges(rows: Rows) -> int:
    """Into how many ranges rows are divided: one where they are one block.

    Examples
    --------
    >>> from scaleshift.blocks.rows import as_rows
    >>> n_ranges(as_rows(np.zeros((1_200_000, 1), np.int8)))
    3
    """
    return 1 if rows.is_one_block else min(-(-max(rows.x.shape[0], 1) // RANGE_ROWS), MAX_RANGES)


def cuts(drawn: np.ndarray, n: int) -> np.ndarray:
    """Values that cut drawn ones into `n` parts, as equal as ties allow: at most n - 1, ascending.

    Examples
    --------
    >>> cuts(np.array([5, 1, 2, 4, 3, 6]), 3).tolist(), cuts(np.array([1, 1, 1, 9]), 4).tolist()
    ([3, 5], [1, 9])
    """
    places = np.arange(1, n) * len(drawn) // n
    return np.unique(np.sort(drawn)[places]) if len(drawn) else drawn


def answers(
    leaf: Callable[..., Table],
    join: Join,
    answer: Answer,
    rows: Rows,
    by: str,
    cuts: np.ndarray,
    parameters: Mapping[str, Any],
) -> list[Any]:
    """What `passes.by_range` gives: a plain call for one block, else one compute."""
    if rows.is_one_block:
        run = cut_run(join, by, cuts, [leaf(rows.loader(rows.x, *rows.arrays, start=0), **parameters)])
        return [answer(piece, run["totals"], number) for number, piece in enumerate(run["pieces"])]
    room.refuse_blocks(rows, graph.client)
    leaves = graph.on_blocks(leaf, rows, 1, np.empty((0, 0), object), parameters)
    lazy = exchange(leaves, join, answer, by, cuts, n_ranges(rows))
    return graph.compute(lazy, in_memory=rows.in_memory)["answers"]


def exchange(
    leaves: da.Array, join: Join, answer: Answer, by: str, cuts: np.ndarray, n_runs: int
) -> da.Array:
    """The answers of all ranges as one lazy object: n_runs times n_ranges pieces change places."""
    name, n_blocks = f"ranges-{uuid4().hex}", leaves.numblocks[0]
    tasks: dict[Any, Any] = {}
    runs = np.array_split(np.arange(n_blocks), min(n_runs, n_blocks))
    ranges = range(len(cuts) + 1)
    for r, blocks in enumerate(runs):
        references = List(*(TaskRef((leaves.name, int(block), 0)) for block in blocks))
        _add(tasks, (name, "run", r), cut_run, join, by, cuts, references)
        _add(tasks, (name, "pieces", r), operator.itemgetter("pieces"), TaskRef((name, "run", r)))
        _add(tasks, (name, "sums", r), operator.itemgetter("totals"), TaskRef((name, "run", r)))
        for p in ranges:
            _add(tasks, (name, "piece", r, p), operator.itemgetter(p), TaskRef((name, "pieces", r)))
    _add(tasks, (name, "totals"), add, List(*(TaskRef((name, "sums", r)) for r in range(len(runs)))))
    for p in ranges:
        pieces = List(*(TaskRef((name, "piece", r, p)) for r in range(len(runs))))
        _add(tasks, (name, "answer", p), _answer, join, answer, p, pieces, TaskRef((name, "totals")))
    _add(tasks, (name,), _collected, List(*(TaskRef((name, "answer", p)) for p in ranges)))
    below: list[Any] = [leaves]
    layers = HighLevelGraph.from_collections(name, tasks, below)
    return da.Array(layers, name, chunks=(), meta=np.empty((), object))


def _add(tasks: dict[Any, Any], key: Any, function: Callable[..., Any], *arguments: Any) -> None:
    tasks[key] = Task(key, function, *arguments)


def cut_run(join: Join, by: str, cuts: np.ndarray, tables: list[Table]) -> dict[str, Any]:
    """The rows of consecutive blocks by range, and what their other columns add up to in each.

    Examples
    --------
    >>> def join(tables):
    ...     table = {name: np.concatenate([t[name] for t in tables]) for name in tables[0]}
    ...     order = np.argsort(table["at"], kind="stable")
    ...     return {name: values[order] for name, values in table.items()}
    >>> run = cut_run(join, "at", np.array([2]), [{"at": np.array([2, 1]), "n": np.array([10, 20])}])
    >>> run["totals"]["n"].tolist(), run["pieces"][1]["at"].tolist()
    ([20, 10], [2])
    """
    table = join(tables)
    ends = [*np.searchsorted(table[by], cuts, side="left").tolist(), len(table[by])]
    parts = [slice(first, end) for first, end in zip([0, *ends], ends, strict=False)]
    pieces = [{name: values[part] for name, values in table.items()} for part in parts]
    summed = [name for name in table if name != by]
    return {"pieces": pieces, "totals": {name: _sums([p[name] for p in pieces]) for name in summed}}


def _sums(pieces: list[np.ndarray]) -> np.ndarray:
    """Sum of each piece: whole numbers stay whole, whatever their width."""
    dtype = np.float64 if pieces[0].dtype.kind == "f" else np.int64
    return np.array([piece.sum(dtype=dtype) for piece in pieces])


def add(sums: list[Table]) -> Table:
    """Column by column."""
    return {name: np.sum([part[name] for part in sums], axis=0) for name in sums[0]}


def _collected(found: list[Any]) -> dict[str, Any]:
    return {"answers": found}  # a bare list Dask would take for nested blocks


def _answer(join: Join, answer: Answer, number: int, pieces: list[Table], totals: Table) -> Any:
    return answer(join(pieces), totals, number)
