"""How do steps get over the data that need each other's result?  The state goes from task to task.

A run is what one task does: steps whose blocks together weigh little, or one step. It reads these blocks
itself, so that nothing is read ahead of the state, unless they are held in memory already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import dask
import numpy as np
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from dask.task_spec import Task, TaskRef

from scaleshift.blocks import graph, room, states
from scaleshift.blocks.block import Block, Kept, Rows
from scaleshift.blocks.travelled import aligned, unpacked
from scaleshift.errors import DataError
from scaleshift.kernels.reference import namespace

RUN_BYTES = 64_000_000  # of the blocks that one task reads for several steps
State = dict[str, np.ndarray]
Step = slice | np.ndarray  # absolute rows: consecutive ones, or their numbers


def edges(n_rows: int, block_size: int) -> np.ndarray:
    """Where the blocks of steps begin, and the last ends: the remainder joins the last block.

    Examples
    --------
    >>> edges(67, 20).tolist(), edges(5, 20).tolist()
    ([0, 20, 40, 67], [0, 5])
    """
    return np.append(np.arange(max(n_rows // block_size, 1)) * block_size, n_rows)


@dataclass(frozen=True)
class Run:
    """What one task does."""

    steps: list[Step] = field(default_factory=list)
    blocks: set[int] = field(default_factory=set)  # which it needs


def plan(
    sizes: tuple[int, ...], row_bytes: int, order: np.ndarray | None, block_size: int | None
) -> list[Run]:
    """Steps in their order, put into runs; `sizes` are the rows of each block of the data."""
    ends = np.cumsum(sizes)
    heavy = np.array(sizes) * row_bytes
    runs: list[Run] = []
    for step in _steps(ends, row_bytes, order, block_size):
        blocks = _blocks(step, ends)
        together = runs[-1].blocks | blocks if runs else blocks
        if not runs or (heavy[list(together)].sum() > RUN_BYTES and not blocks <= runs[-1].blocks):
            runs.append(Run())
        runs[-1].steps.append(step)
        runs[-1].blocks.update(blocks)
    return runs


def _steps(
    ends: np.ndarray, row_bytes: int, order: np.ndarray | None, block_size: int | None
) -> Iterator[Step]:
    n_rows = int(ends[-1])
    if block_size is not None:
        cut = edges(n_rows, block_size)
        numbers = np.arange(len(cut) - 1) if order is None else checked(order, len(cut) - 1, "block")
        yield from (slice(int(cut[number]), int(cut[number + 1])) for number in numbers)
    elif order is None:
        starts = np.append(0, ends[:-1])
        yield from (slice(int(a), int(b)) for a, b in zip(starts, ends, strict=True) if b > a)
    else:
        numbers = checked(order, n_rows, "row")
        size = max(RUN_BYTES // max(row_bytes, 1), 1)
        yield from (numbers[first : first + size] for first in range(0, len(numbers), size))


def checked(order: Any, n: int, what: str) -> np.ndarray:
    """Numbers of blocks or rows; DataError for those that there are none of."""
    numbers = np.asarray(order)
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
        raise DataError(f"order: expected {what} numbers, one dimension of whole numbers")
    if numbers.size and (numbers.min() < 0 or numbers.max() >= n):
        worst = int(numbers.min() if numbers.min() < 0 else numbers.max())
        raise DataError(f"order names {what} {worst}: there are {n} of them, numbered from 0")
    return numbers.astype(np.int64)


def _blocks(step: Step, ends: np.ndarray) -> set[int]:
    """Blocks of the data that have rows of a step."""
    if isinstance(step, np.ndarray):
        return set(np.unique(np.searchsorted(ends, step, "right")).tolist())
    first, last = np.searchsorted(ends, [step.start, step.stop - 1], "right").tolist()
    return set(range(first, last + 1))


@dataclass(frozen=True)
class Walk:
    """A run of steps over blocks that `read` gives by number: what a task, or a plain call, executes."""

    kernel: Callable[..., State]
    run: Run
    ends: np.ndarray  # (n_blocks,) of the data
    refuses: bool  # rows that are not finite

    def __call__(self, state: State, read: Callable[[int], Block], parameters: Mapping[str, Any]) -> State:
        """The state after the run; the one that came is not changed."""
        state = {name: np.array(value) for name, value in state.items()}
        several, at_hand = len(self.run.steps) > 1, dict[int, Block]()

        def block(number: int) -> Block:
            found = at_hand.get(number) or read(number)
            if self.refuses:
                states.refuse_rows(found)
            if several:
                at_hand[number] = found
            return found

        for step in self.run.steps:
            if isinstance(step, slice):
                parts = [self._part(block(i), i, step) for i in sorted(_blocks(step, self.ends))]
                rows = _joined(parts)
            else:
                rows = self._gathered(step, block)
            state = self.kernel(rows, state, **parameters)
        return state

    def _start(self, number: int) -> int:
        return int(self.ends[number - 1]) if number else 0

    def _part(self, block: Block, number: int, step: slice) -> Block:
        start = self._start(number)
        if start >= step.start and self.ends[number] <= step.stop:
            return block
        return block.rows(slice(max(step.start - start, 0), step.stop - start))

    def _gathered(self, step: np.ndarray, block: Callable[[int], Block]) -> Block:
        """The rows of these numbers; one block of the data at a time."""
        home = np.searchsorted(self.ends, step, "right")
        places, parts = [], []
        for number in sorted(_blocks(step, self.ends)):
            place = np.flatnonzero(home == number)
            places.append(place)
            parts.append(_taken(block(number), step[place] - self._start(number)))
        return _taken(_joined(parts), np.argsort(np.concatenate(places), kind="stable"))


def _taken(block: Block, rows: np.ndarray) -> Block:
    columns = {name: values[rows] for name, values in block.columns.items()}
    return block._replace(x=block.x[rows], columns=columns, valid=block.valid[rows])


def _joined(parts: list[Block]) -> Block:
    if len(parts) == 1:
        return parts[0]
    xp = namespace(parts[0].x)
    names = parts[0].columns
    return Block(
        xp.concatenate([part.x for part in parts]),
        {name: np.concatenate([part.columns[name] for part in parts]) for name in names},
        parts[0].start,
        np.concatenate([part.valid for part in parts]),
        np.sum([part.invalid_by_column for part in parts], axis=0),
    )


def chain(
    kernel: Callable[..., State],
    state: State,
    rows: Rows | Kept,
    order: Any = None,
    *,
    block_size: int | None = None,
    **parameters: Any,
) -> State:
    """Take sequential steps over the rows: plain calls for one block in memory, else one compute.

    Parameters
    ----------
    kernel : callable
        ``kernel(block, state, **parameters) -> state``, a module-level function. It may change the arrays of
        the state in place.
    state : dict of str to small numpy.ndarray
        Before the first step; it is not changed.
    rows : Rows or Kept
    order : array of int, optional
        With `block_size` the block of each step, (n_steps,); None takes every block once, in row order.
        Without, the numbers of the rows that are visited, (n_visits,); None takes all rows as they lie.
    block_size : int, optional
        Rows of a step: there are max(n // block_size, 1) blocks in row order, and the remainder joins the
        last. A step's rows come as one block, whatever the chunks. None is for kernels that go row by row:
        they get rows in pieces of any length. Rows in an order of their own come in pieces of 64 MB, and each
        piece reads every block of the data that it has rows of.
    **parameters
        Passed to the kernel.

    Returns
    -------
    dict of str to numpy.ndarray
        The state after the last step.

    Raises
    ------
    DataError
        If rows are not finite and `rows.invalid` is "raise", or the order names what there is not.

    Notes
    -----
    A task takes the steps of a run: consecutive ones whose blocks weigh 64 MB together, or one step. It reads
    these blocks itself, but for those that are held in memory.

    Examples
    --------
    >>> from scaleshift.blocks.rows import as_rows
    >>> def halved(block, state):
    ...     return {"w": state["w"] / 2 + block.x.sum()}
    >>> found = chain(halved, {"w": np.zeros(())}, as_rows([[1.0], [2.0], [4.0]]), [0, 1], block_size=1)
    >>> float(found["w"])
    2.5
    """
    of = rows.rows if isinstance(rows, Kept) else rows
    sizes = (of.x.shape[0],) if rows.is_one_block else of.x.chunks[0]
    row_bytes = of.n_markers * of.x.dtype.itemsize
    ends, refuses = np.cumsum(sizes), rows.invalid == "raise"
    runs = plan(sizes, row_bytes, order, block_size)
    if rows.is_one_block:
        block = rows.loader(rows.x, *rows.arrays, start=0)
        for run in runs:
            state = Walk(kernel, run, ends, refuses)(state, lambda _: block, parameters)
        return state
    room.refuse_blocks(rows, graph.client, at_most=1)
    walks = [Walk(kernel, run, ends, refuses) for run in runs]
    return graph.compute(_linked(walks, state, rows, parameters), rows.in_memory) if walks else state


def _linked(walks: list[Walk], state: State, rows: Rows | Kept, parameters: Mapping[str, Any]) -> Delayed:
    parameters = graph.once(parameters)
    (leaves,) = dask.optimize(graph.on_blocks(_itself, rows, 1, np.empty((0, 0), object), {}))
    source = dict(leaves.__dask_graph__())
    elsewhere = any(key not in source for node in source.values() for key in node.dependencies)
    name = f"chain-{uuid4().hex}"
    tasks: dict[Any, Any] = {}
    before: Any = state
    for number, walk in enumerate(walks):
        keys = {i: (leaves.name, i, 0) for i in walk.run.blocks}
        key = (name, number)
        given = graph.references(parameters)
        if elsewhere:  # on workers, which cannot travel inside a task
            held = [TaskRef(block) for block in keys.values()]
            tasks[key] = Task(key, _walk_held, walk, list(keys), before, *held, **given)
        else:
            inner = graph.needed(source, list(keys.values()))
            tasks[key] = Task(key, _walk_read, walk, _Source(inner, keys), before, **given)
        before = TaskRef(key)
    below = [*([leaves] if elsewhere else []), *graph.delayed_ones(parameters)]
    layers = HighLevelGraph.from_collections(name, tasks, below)
    return Delayed((name, len(walks) - 1), layers, layer=name)


def _itself(block: Block) -> Block:
    return block


class _Source:
    """Reads blocks inside a task, one at a time, by a small graph of their own."""

    def __init__(self, tasks: dict[Any, Any], keys: dict[int, Any]):
        self.inside, self.keys = tasks, keys

    def __call__(self, number: int) -> Block:
        key = self.keys[number]
        block: Block = dask.get(graph.needed(self.inside, [key]), key)
        return block


def _walk_read(walk: Walk, source: _Source, state: State, **parameters: Any) -> State:
    return walk(state, source, unpacked(parameters))


def _walk_held(walk: Walk, numbers: list[int], state: State, *blocks: Block, **parameters: Any) -> State:
    at_hand = dict(zip(numbers, aligned(blocks), strict=True))
    return walk(state, at_hand.__getitem__, unpacked(parameters))
