"""What does a pass cost, told from one block?  What `passes` would do, on one block, times the blocks.

An estimator that wants to be explained has a method ``_plan(rows) -> Plan``, which tells a `Planner` what the
estimator would ask of `passes`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from dask.sizeof import sizeof

from scaleshift.blocks import fitting, graph, passes, probe, room, states, statistics
from scaleshift.blocks.block import Block, Rows
from scaleshift.blocks.leaves import Work, drawing, summing
from scaleshift.blocks.plan import KEPT, Pass, Plan
from scaleshift.blocks.probe import Measured, OneBlock
from scaleshift.blocks.sparse_rows import is_sparse
from scaleshift.blocks.states import Finish, Kernel, Merge, Stratum
from scaleshift.blocks.statistics import Layout

TIMED_KEYS = 8  # keys that are finished for their time


@dataclass(frozen=True)
class States:
    """Bytes of the states of a pass."""

    waiting: int  # of one block or run, until it is merged
    largest: int  # of a merged one, at most
    result: int  # what the driver gets


@dataclass(frozen=True)
class Finished:
    """What finishing the keys costs."""

    seconds: float = 0.0  # of all keys
    n_bytes: int = 0  # peak of one
    shared_bytes: int = 0  # what every worker needs for it


@dataclass(frozen=True)
class PlannedKept:
    """Prepared blocks, of which one was made."""

    arrays: Mapping[str, Any]  # what they are made of
    read: list[Measured]
    prepared: Measured
    n_bytes: int  # of those that one worker holds
    held: bool

    @property
    def holds(self) -> Finished:
        """What they take of a worker's memory."""
        return Finished(shared_bytes=self.n_bytes)


class Planner:
    """Collects the passes of a job; its methods are those of `passes`, with a name for the pass.

    Parameters
    ----------
    job : str
        What is explained.
    rows : Rows
    way_out : str
        What to do where states are too large.
    fewer : callable, optional
        As `fitting.problems` takes it; it can be set when it is known.
    """

    def __init__(self, job: str, rows: Rows, way_out: str, fewer: Callable[[float], str] | None = None):
        self.job, self.rows, self.way_out, self.fewer = job, rows, way_out, fewer
        self.block = OneBlock(rows)
        self.room = self._room()
        self.n_rows = rows.x.shape[0]
        self.n_blocks = 1 if rows.is_one_block else rows.x.numblocks[0]
        self.driver_seconds = 0.0
        self.passes: list[Pass] = []
        self.problems: list[str] = []
        for name, column in rows.columns.items():
            if column.counts is not None:  # lazy values, whose distinct ones `as_rows` had to find
                self._column(f"distinct {name}s", name, states.distinct_leaf, states.merge_distinct)

    def plan(self) -> Plan:
        """What was collected."""
        x = self.rows.x
        fit = fitting.fit_of(self.passes, self.room, self.block.n_rows)
        return Plan(
            self.job,
            tuple(self.passes),
            n_rows=self.n_rows,
            n_columns=x.shape[1],
            n_blocks=self.n_blocks,
            block_rows=self.block.n_rows,
            block_bytes=_block_bytes(self.block, self.rows),
            n_threads=1 if self.rows.is_one_block else graph.n_threads(),
            driver_seconds=self.driver_seconds,
            room=self.room,
            problems=tuple([*self.problems, *fitting.problems(fit, self.way_out, self.fewer)]),
        )

    def _room(self) -> room.Room:
        """Where the passes will run: memory that is free, of workers what they have in all."""
        found = None if self.rows.in_memory else graph.client()
        there = room.of(found)
        if found is None:
            n_threads = 1 if self.rows.is_one_block else there.n_threads
            there = replace(there, n_bytes=room.free_here(), n_threads=n_threads)
        return there

    def tally(self, what: str, name: str) -> None:
        """A pass of `passes.tally`."""
        column = replace(self.rows.columns[name], values=None, counts=None)
        self._column(what, name, functools.partial(states.tally_leaf, column), states.merge_tally)

    def sample(self, what: str, rows: Rows, n: np.ndarray, by: Stratum, finish: Finish | None = None) -> None:
        """A pass of `passes.sample`."""
        plain = summing(states.smallest, rows, None, merge=functools.partial(states.merge_smallest, n))
        parameters = {"n": n, "by": by, "seed": 0, "stream": "sample"}
        found = self.block.work(plain.leaf, rows, parameters)
        drawn = found.result["state"]
        a_row = sizeof(drawn) // max(len(drawn["code"]), 1)
        if finish is None:
            every = int(n.sum()) * a_row
            self._add(what, rows, plain, found, parameters, States(sizeof(drawn), every, every))
            return
        # Those of keys that end in the block do not leave it; of the others one at most lies over its end
        # where samples are contiguous.
        waiting = min(sizeof(drawn), int(n.max(initial=0)) * a_row)
        answers = 8 * statistics.size(finish.layout) * int(np.count_nonzero(finish.n_rows))
        work = drawing(n, finish)
        finished = _finished_draw(drawn, finish)
        self._add(what, rows, work, found, parameters, States(waiting, waiting, answers), finished)

    def total(
        self,
        what: str,
        rows: Rows,
        kernel: Kernel,
        layout: Layout,
        *,
        keyed: str | None = None,
        finish: Finish | None = None,
        **parameters: Any,
    ) -> None:
        """A pass of `passes.total`."""
        work = summing(kernel, rows, layout, keyed=keyed, finish=finish)
        # Finishing is measured apart: how many keys lie in this block alone says little of the others.
        plain = summing(kernel, rows, layout, keyed=keyed)
        found = self.block.work(plain.leaf, rows, parameters)
        if finish is None:
            n_bytes = States(sizeof(found.result), 8 * work.width, 8 * work.width)
            self._add(what, rows, work, found, parameters, n_bytes)
            return
        state, a_key = found.result, 8 * statistics.size(layout)
        incomplete = int((state["n_rows"] < finish.n_rows[state["key"]]).sum()) * a_key
        answers = 8 * statistics.size(finish.layout) * int(np.count_nonzero(finish.n_rows))
        n_bytes = States(incomplete, incomplete, answers)
        self._add(what, rows, work, found, parameters, n_bytes, _finished(state, layout, finish))

    def merged(self, what: str, rows: Rows, kernel: Kernel, merge: Merge, **parameters: Any) -> None:
        """A pass of `passes.total` with a `merge`, whose states all have one size."""
        work = summing(kernel, rows, None, merge=merge)
        found = self.block.work(work.leaf, rows, parameters)
        n_bytes = sizeof(found.result)
        self._add(what, rows, work, found, parameters, States(n_bytes, n_bytes, n_bytes))

    def keep(
        self, what: str, rows: Rows, prepare: Callable[..., Block], row_bytes: int, **parameters: Any
    ) -> PlannedKept:
        """A call of `passes.keep`: a pass where the blocks fit in memory."""
        found = self.block.work(prepare, rows, parameters)
        n_bytes = self.n_rows * row_bytes
        held = rows.is_one_block or passes.fits(n_bytes, rows.in_memory)
        arrays = {"X": rows.x, **{name: column.values for name, column in rows.columns.items()}}
        a_worker = n_bytes // graph.n_workers() if held else 0
        kept = PlannedKept(arrays, self.block.read(rows), found, a_worker, held)
        if held and not rows.is_one_block:
            none = States(0, 0, 0)
            self._append(what, arrays, kept.read, found, none, self.n_blocks, self.n_blocks, kept.holds)
        return kept

    def on_kept(
        self,
        what: str,
        kept: PlannedKept,
        kernel: Callable[..., Any],
        *,
        times: int = 1,
        at_most: int = 1,
        **parameters: Any,
    ) -> Measured:
        """Passes of `passes.total` or `passes.sample` over kept blocks; what one block gave and took."""
        block = kept.prepared.result
        kernel(block, **parameters)  # compiles
        one = found = probe.measured(lambda: kernel(block, **parameters))
        width = sizeof(found.result)
        n_bytes = States(width, width, width)
        n_tasks = 0 if self.rows.is_one_block else self.n_blocks + graph.n_merges(self.n_blocks)
        if not kept.held:
            seconds, peak = found.seconds + kept.prepared.seconds, found.n_bytes + kept.prepared.n_bytes
            found = Measured(None, seconds, peak)
        arrays, read = ({KEPT: None}, []) if kept.held else (kept.arrays, kept.read)
        self._append(what, arrays, read, found, n_bytes, self.n_blocks, n_tasks, kept.holds)
        self.passes[-1] = replace(self.passes[-1], times=times, at_most=max(times, at_most))
        return one

    def _column(self, what: str, name: str, leaf: Callable[[Any], Any], merge: Merge) -> None:
        values = self.rows.columns[name].values
        read = self.block.column(self.rows, name)
        leaf(read.result[: probe.FEW_ROWS])
        found = probe.measured(lambda: leaf(read.result))
        n_tasks = 0 if self.rows.is_one_block else probe.n_tasks(graph.column_reduction(leaf, merge, values))
        state = sizeof(found.result)
        largest = state if merge is states.merge_distinct else state * self.n_blocks
        self._append(
            what, {name: values}, [read], found, States(state, largest, largest), self.n_blocks, n_tasks
        )

    def _add(
        self,
        what: str,
        rows: Rows,
        work: Work,
        found: Measured,
        parameters: Mapping[str, Any],
        n_bytes: States,
        finished: Finished = Finished(),
    ) -> None:
        arrays = {"X": rows.x, **{name: column.values for name, column in rows.columns.items()}}
        n_leaves, n_tasks = 1, 0
        if not rows.is_one_block:
            leaves, root = graph.reduction(work.leaf, work.merge, rows, parameters, work.width, work.shared)
            n_leaves, n_tasks = leaves.numblocks[0], probe.n_tasks(root)
        shared = sum(getattr(value, "nbytes", 0) for value in parameters.values())
        finished = replace(finished, shared_bytes=finished.shared_bytes + shared)
        self._append(what, arrays, self.block.read(rows), found, n_bytes, n_leaves, n_tasks, finished)

    def _append(
        self,
        what: str,
        arrays: Mapping[str, Any],
        read: list[Measured],
        found: Measured,
        n_bytes: States,
        n_leaves: int,
        n_tasks: int,
        finished: Finished = Finished(),
    ) -> None:
        blocks = self.n_rows / max(self.block.n_rows, 1)
        outside = {name: array for name, array in arrays.items() if _is_read(array)}
        stored = [self._stored(array) for array in outside.values()]
        held = [part for name, part in zip(arrays, read, strict=False) if name in outside]
        block = sum(part.result_bytes for part in held)
        reading = max((part.n_bytes - part.result_bytes for part in held), default=0)
        stack = math.ceil(math.log2(max(self.n_blocks / n_leaves, 1)))  # of states, in a run of blocks
        thread_bytes = block + max(reading, found.n_bytes + finished.n_bytes) + stack * n_bytes.waiting
        self.passes.append(
            Pass(
                what,
                tuple(arrays),
                self.n_blocks,
                n_tasks,
                n_bytes=sum(
                    _whole(array, part, blocks) for array, part in zip(outside.values(), held, strict=True)
                ),
                n_bytes_stored=None if None in stored else sum(part for part in stored if part is not None),
                read_seconds=sum(part.seconds for part in held) * blocks,
                kernel_seconds=found.seconds * blocks,
                finish_seconds=finished.seconds,
                thread_bytes=thread_bytes,
                worker_bytes=_beside(n_leaves, n_bytes, thread_bytes, self.room) + finished.shared_bytes,
                state_bytes=n_bytes.waiting,
                travel_bytes=_travelling(n_leaves, n_bytes),
                result_bytes=n_bytes.result,
                merge_bytes=_merging(n_leaves, n_bytes) + finished.shared_bytes,
                fixed_bytes=(1 + stack) * n_bytes.waiting + finished.n_bytes,
            )
        )

    def _stored(self, array: Any) -> int | None:
        """Compressed bytes of an array's chunks, told from that of one block; None if the store is silent."""
        source: Any = next(iter(probe.sources(array)), None)
        if not hasattr(source, "stored_bytes"):
            return None
        sizes = array.chunks[0]
        whole = len(set(sizes[:-1])) <= 1  # else parts of chunks are shown, and whole chunks read
        n_chunks = self.n_rows / self.block.n_rows if whole else len(sizes)
        return int(source.stored_bytes(self.block.start) * n_chunks)


def _finished(state: dict[str, np.ndarray], layout: Layout, finish: Finish) -> Finished:
    """Cost of finishing, from the keys that have most rows in the block."""
    keys = np.argsort(-state["n_rows"], kind="stable")[:TIMED_KEYS]
    if not keys.size:
        return Finished(shared_bytes=finish.nbytes)

    def timed() -> None:
        finish.function(statistics.unpack(state["state"][keys], layout))

    timed()  # compiles
    found = probe.measured(timed)
    n_keys = np.count_nonzero(finish.n_rows)
    return Finished(found.seconds / keys.size * n_keys, found.n_bytes, finish.nbytes)


def _finished_draw(drawn: dict[str, np.ndarray], finish: Finish) -> Finished:
    """Cost of finishing, from the key of which the block gave most rows."""
    code, n = np.unique(drawn["code"], return_counts=True)
    if not code.size:
        return Finished(shared_bytes=finish.nbytes)
    here = drawn["code"] == code[n.argmax()]
    one = {name: array[here] for name, array in drawn.items()}
    finish.function(one)  # compiles
    found = probe.measured(lambda: finish.function(one))
    return Finished(found.seconds * np.count_nonzero(finish.n_rows), found.n_bytes, finish.nbytes)


def _is_read(array: Any) -> bool:
    """Whether blocks of it come from outside of this process's memory."""
    if array is None:  # kept blocks
        return False
    if getattr(array, "name", "").startswith("zeros"):  # the codes of the one sample of rows without samples
        return False
    found = probe.sources(array)
    return not found or not all(isinstance(source, np.ndarray) or is_sparse(source) for source in found)


def _block_bytes(block: OneBlock, rows: Rows) -> int:
    """Bytes of the block of X: those of a sparse one are known once it was read."""
    if rows.is_sparse:
        return block.x(rows).result_bytes
    return block.n_rows * rows.x.shape[1] * rows.x.dtype.itemsize


def _whole(array: Any, part: Measured, blocks: float) -> int:
    """Bytes of an array, those of a sparse one told from its largest block."""
    return int(part.result_bytes * blocks) if is_sparse(array) else array.nbytes


def _beside(n_leaves: int, n_bytes: States, thread_bytes: int, there: room.Room) -> int:
    """Memory of states beside that of threads which all work on blocks: those that wait, or a merge.

    A thread that merges works on no block. A last merge, of few states, starts when no block is left.
    """
    levels = list(_levels(n_leaves, n_bytes))
    first, *later = [min(n, graph.FAN_IN) * one // there.n_workers for n, one in levels] or [0]
    waiting = max(first - there.n_threads * n_bytes.waiting, 0) + sum(later)
    merging = _merging(n_leaves, n_bytes) + sum(later)
    idle = there.n_threads if n_leaves <= graph.FAN_IN else 1
    return max(waiting, merging - idle * thread_bytes)


def _levels(n_leaves: int, n_bytes: States) -> Iterator[tuple[int, int]]:
    """How many states each level of the tree merges, and the bytes of one."""
    one = n_bytes.waiting
    while n_leaves > 1:
        yield n_leaves, one
        n_leaves, one = math.ceil(n_leaves / graph.FAN_IN), min(n_bytes.largest, one * graph.FAN_IN)


def _merging(n_leaves: int, n_bytes: States) -> int:
    """Memory of one merge, or of the states that wait for it: its inputs, and two levels of the tree."""
    if n_leaves == 1:
        return 0
    n, levels = min(graph.FAN_IN, n_leaves), math.ceil(math.log(n_leaves, graph.FAN_IN))
    one = min(n_bytes.largest, n_bytes.waiting * graph.FAN_IN ** (levels - 1))
    return n * one + n * one * 3 // 4


def _travelling(n_leaves: int, n_bytes: States) -> int:
    """Bytes of the states of all levels of the tree."""
    return sum(n * one for n, one in _levels(n_leaves, n_bytes))
