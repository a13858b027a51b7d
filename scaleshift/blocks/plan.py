"""What will a job cost?  Its passes, bytes, tasks, core-hours and memory, told before it runs.

An estimator says what it would do to a `planner.Planner`. Nothing here knows what is estimated.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from scaleshift.blocks.fitting import PROCESS_BYTES
from scaleshift.blocks.room import Room
from scaleshift.blocks.rows import as_rows
from scaleshift.blocks.sizes import core_time, count, duration, size
from scaleshift.errors import ChunkError, DataError, DoesNotFitError

KEPT = "kept rows"  # what a pass over prepared blocks in memory is over


@dataclass(frozen=True)
class Pass:
    """One pass over the rows. Seconds are of the processor; sums of all blocks where nothing else is said."""

    what: str
    over: tuple[str, ...]  # "X" and names of columns
    n_blocks: int
    n_tasks: int  # 0: a plain call
    n_bytes: int  # read, uncompressed; what is in memory already does not count
    n_bytes_stored: int | None  # read from disk, about; None where the store does not say
    read_seconds: float
    kernel_seconds: float
    finish_seconds: float  # of what is computed once for each key
    thread_bytes: int  # peak memory of a thread that works on blocks
    worker_bytes: int  # beside that of all its threads, once a worker: states that wait and merge, parameters
    state_bytes: int  # of one task's state
    travel_bytes: int  # of states that go from task to task, at most
    result_bytes: int  # what the driver gets
    fixed_bytes: int = 0  # of a thread's: what smaller blocks do not make smaller
    merge_bytes: int = 0  # of a worker: what states take as they merge, however small the blocks
    times: int = 1  # how often, as a rule; all numbers above are of one time
    at_most: int = 1  # how often, at most

    @property
    def cpu_seconds(self) -> float:
        """Reading, computing and finishing, every time."""
        return self.times * (self.read_seconds + self.kernel_seconds + self.finish_seconds)


@dataclass(frozen=True)
class Plan:
    """What a job will cost; `print` shows it as text. Made by `explain`."""

    job: str
    passes: tuple[Pass, ...]
    n_rows: int
    n_columns: int
    n_blocks: int
    block_rows: int  # of the block that was timed, the largest
    block_bytes: int  # of X
    n_threads: int  # of the workers in scope, or of this machine
    driver_seconds: float
    room: Room  # memory and threads of a worker in scope, or of this machine
    problems: tuple[str, ...]  # what does not fit, what would, and the way out

    @property
    def passes_over_x(self) -> int:
        """Passes that read X; the others go over a column of labels or samples."""
        return sum(part.times for part in self.passes if "X" in part.over)

    @property
    def n_bytes(self) -> int:
        """Bytes read by all passes, uncompressed."""
        return sum(part.times * part.n_bytes for part in self.passes)

    @property
    def n_bytes_stored(self) -> int | None:
        """Compressed bytes read from disk by all passes, about; None where the store does not say."""
        stored = [(part.times, part.n_bytes_stored) for part in self.passes]
        known = [times * part for times, part in stored if part is not None]
        return sum(known) if len(known) == len(stored) else None

    @property
    def cpu_seconds(self) -> float:
        """Seconds of one core."""
        return sum(part.cpu_seconds for part in self.passes) + self.driver_seconds

    @property
    def core_hours(self) -> float:
        """Hours of one core."""
        return self.cpu_seconds / 3600

    @property
    def elapsed_seconds(self) -> float:
        """Time on `n_threads` threads that never wait for a disk or network."""
        seconds = self.driver_seconds
        for part in self.passes:
            rounds = math.ceil(part.n_blocks / self.n_threads)
            seconds += part.cpu_seconds / max(part.n_blocks, 1) * rounds
        return seconds

    @property
    def thread_bytes(self) -> int:
        """Peak memory of a worker's thread, in the pass that needs most."""
        return max((part.thread_bytes for part in self.passes), default=0)

    @property
    def worker_bytes(self) -> int:
        """What a worker needs beside its threads, in the pass that needs most."""
        return max((part.worker_bytes for part in self.passes), default=0)

    @property
    def result_bytes(self) -> int:
        """What the driver holds in the end."""
        return max((part.result_bytes for part in self.passes), default=0)

    def check(self) -> Plan:
        """The plan itself, where the job fits.

        Returns
        -------
        Plan

        Raises
        ------
        DoesNotFitError
            Where it does not: lists what is too large for whom, and the chunks, threads, memory and features
            that would fit.

        Examples
        --------
        >>> import numpy as np
        >>> import scaleshift as ss
        >>> X = np.random.default_rng(0).normal(size=(1_000, 3))
        >>> ss.explain(ss.DFM(), X, np.repeat(["a", "b"], 500)).check().passes_over_x
        2
        """
        if self.problems:
            raise DoesNotFitError(f"{self.job} does not fit: {'; and '.join(self.problems)}")
        return self

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def explain(estimator: Any, X: Any, y: Any = None, sample: Any = None, **outcomes: Any) -> Plan:
    """Say what `fit` or `predict` will cost, before it runs.

    Label and sample columns may be counted, and one block is read: its kernels run twice each, for time and
    for memory.

    Parameters
    ----------
    estimator : estimator
        Not fitted: ``fit(X, y, sample)`` is explained. Fitted: ``predict(X, sample)``; of slicers the fit.
    X, y, sample : array-like
        As in `fit` or `predict`.
    **outcomes : array-like
        What else `fit` takes of each row: ``pred_probs``, ``losses`` and ``sample_weight`` of slicers.

    Returns
    -------
    Plan
        Passes over the data, bytes read, tasks, core-hours and peak memory as fields, and as text.

    Raises
    ------
    TypeError
        If the estimator is none of this package.
    DataError
        What the call itself would raise before its first pass; for `y` with a fitted estimator.
    ChunkError
        If a Dask array does not know its chunk sizes: counting them reads it.

    Examples
    --------
    >>> import numpy as np
    >>> import scaleshift as ss
    >>> X = np.random.default_rng(0).normal(size=(1_000, 3))
    >>> plan = ss.explain(ss.DFM(), X, np.repeat(["a", "b"], 500))
    >>> plan.passes_over_x
    2
    >>> print(str(plan).splitlines()[0])
    DFM.fit: 2 passes over X, 2 over a column alone
    """
    if not hasattr(estimator, "_plan") and not hasattr(estimator, "_plan_fit"):
        raise TypeError(f"{type(estimator).__name__} cannot be explained: pass an estimator such as DFM()")
    if hasattr(estimator, "_plan") and y is not None and _is_fitted(estimator):
        raise DataError(
            "the estimator is fitted, so predict(X, sample) is explained, which takes no y: leave y out, or "
            "pass sklearn.base.clone(estimator) for another fit"
        )
    for name, array in {"X": X, "y": y, "sample": sample}.items():
        if isinstance(array, da.Array) and np.isnan(array.shape[0]):
            raise ChunkError(
                f"{name} has chunks of unknown size, and counting them reads it all: call "
                f"{name}.compute_chunk_sizes() first"
            )
    if hasattr(estimator, "_plan_fit"):  # rows that have more than labels and samples
        return estimator._plan_fit(X, y, **outcomes)
    if outcomes:
        raise TypeError(
            f"{type(estimator).__name__} takes X, y and sample alone: leave {', '.join(outcomes)} out"
        )
    takes_sparse = get_tags(estimator).input_tags.sparse
    rows = as_rows(X, y, sample, invalid=getattr(estimator, "invalid", "raise"), sparse=takes_sparse)
    return estimator._plan(rows)


def _is_fitted(estimator: Any) -> bool:
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


# As text -----------------------------------------------------------------------------------------------


def _lines(plan: Plan) -> Iterator[str]:
    alone = sum(part.times for part in plan.passes if not {"X", KEPT} & set(part.over))
    kept = sum(part.times for part in plan.passes if KEPT in part.over)
    counts = [
        f"{count(plan.passes_over_x, 'pass', 'passes')} over X",
        *([f"{kept} over {KEPT}"] if kept else []),
        *([f"{alone} over a column alone"] if alone else []),
    ]
    yield f"{plan.job}: {', '.join(counts)}"
    blocks = count(plan.n_blocks, "block", "blocks")
    largest = f"{plan.block_rows:,} rows, {size(plan.block_bytes)}"
    yield f"{plan.n_rows:,} rows x {plan.n_columns} columns in {blocks}, the largest of {largest}"
    yield ""
    yield from _table(plan)
    yield ""
    yield from _totals(plan)
    yield from (f"does not fit: {problem}" for problem in plan.problems)


def _table(plan: Plan) -> Iterator[str]:
    rows = [("pass", "over", "reads", "on disk", "tasks", "core time", "memory a thread")]
    for number, part in enumerate(plan.passes, 1):
        stored = "?" if part.n_bytes_stored is None else size(part.n_bytes_stored)
        reads = (size(part.n_bytes), stored) if part.n_bytes else ("in memory", "")
        tasks = f"{part.n_tasks:,}" if part.n_tasks else "a call"
        spent = (duration(part.cpu_seconds), size(part.thread_bytes))
        rows.append((f"{number} {part.what}{_repeats(part)}", ", ".join(part.over), *reads, tasks, *spent))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        left = [f"{text:<{width}}" for text, width in zip(row[:2], widths, strict=False)]
        right = [f"{text:>{width}}" for text, width in zip(row[2:], widths[2:], strict=True)]
        yield "  ".join(["", *left, *right])


def _repeats(part: Pass) -> str:
    if part.at_most == 1:
        return ""
    return (
        f", {part.times} times"
        if part.at_most == part.times
        else f", {part.times} times, at most {part.at_most}"
    )


def _totals(plan: Plan) -> Iterator[str]:
    parts = {
        "reading": sum(part.times * part.read_seconds for part in plan.passes),
        "computing": sum(part.times * part.kernel_seconds for part in plan.passes),
        "finishing": sum(part.times * part.finish_seconds for part in plan.passes),
        "on the driver": plan.driver_seconds,
    }
    listed = ", ".join(f"{name} {duration(seconds)}" for name, seconds in parts.items() if seconds)
    yield f"time:    {core_time(plan.cpu_seconds)} ({listed})"
    threads = count(plan.n_threads, "thread", "threads")
    yield f"         about {duration(plan.elapsed_seconds)} on {threads}, without waits for the disk"
    if plan.n_bytes:
        stored = plan.n_bytes_stored
        from_disk = f"; about {size(stored)} on disk, by the chunk that was read" if stored else ""
        yield f"reads:   {size(plan.n_bytes)} uncompressed{from_disk}"
    threads_, worker = size(plan.thread_bytes), size(plan.worker_bytes)
    process = size(PROCESS_BYTES)
    yield f"memory:  {threads_} a thread and {worker} a worker at most, beside {process} of Python itself"
    state = max((part.state_bytes for part in plan.passes), default=0)
    travel = sum(part.times * part.travel_bytes for part in plan.passes)
    ends = f"the driver ends with {size(plan.result_bytes)}"
    yield f"states:  {size(state)} a task, {size(travel)} of them travel at most; {ends}"
