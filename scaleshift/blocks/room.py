"""How much memory may a job take?  That of the worker that has least a thread, or of this machine.

What is known not to fit is refused before a pass starts, from the sizes of its blocks and states alone: a
worker that dies of it an hour later says nothing of why.
"""

from __future__ import annotations

import contextlib
import functools
import math
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
import numpy as np
import psutil

from scaleshift.blocks import computing
from scaleshift.blocks.block import Kept, Rows
from scaleshift.blocks.sizes import count, size
from scaleshift.errors import DoesNotFitError

COPIES = 4  # of a block that a pass may hold at a time: raw, picked, packed and checked
SMALL = 2**26  # bytes that fit anywhere: nobody is asked
ONE_AT_A_TIME = ("sync", "synchronous", "single-threaded")  # Dask's names
LIMITS = (  # of a container, by cgroups of either version
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory.high",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)
SECONDS = 60  # workers come and go: how long what a scheduler said is believed

_asked: weakref.WeakKeyDictionary[Any, tuple[float, Room]] = weakref.WeakKeyDictionary()


@dataclass(frozen=True)
class Room:
    """Memory and threads that the blocks of a pass share."""

    n_bytes: int | None  # of the worker that has least a thread, or of this machine; None: not known
    n_threads: int  # of the same
    n_workers: int = 1
    whose: str = "this machine"

    @property
    def is_cluster(self) -> bool:
        """Whether others than this process compute."""
        return self.whose != "this machine"


def here() -> Room:
    """Room on this machine, as far as this process may use it: a container's limit counts.

    Examples
    --------
    >>> room = here()
    >>> room.n_bytes > 0, room.n_threads > 0, room.whose
    (True, True, 'this machine')
    """
    if dask.config.get("scheduler", None) in ONE_AT_A_TIME:
        return Room(limit(), 1)
    pool = getattr(dask.config.get("pool", None), "_max_workers", None)
    return Room(limit(), pool or dask.config.get("num_workers", None) or dask.system.CPU_COUNT)


def of(client: Any) -> Room:
    """The workers of a client, or this machine where there is none; asked once in a while."""
    if client is None:
        return here()
    when, found = _asked.get(client, (-np.inf, None))
    if found is None or time.monotonic() - when > SECONDS:
        workers = computing.workers()
        shares = [(w["memory_limit"] or None, w["nthreads"]) for w in workers] or [(None, 1)]
        tightest = min(shares, key=lambda share: share[0] / share[1] if share[0] else np.inf)
        found = Room(*tightest, max(len(workers), 1), "a worker")
        if workers:  # those that are still to come are asked again
            _asked[client] = (time.monotonic(), found)
    return found


def free_here() -> int:
    """Bytes that are free on this machine, within the limit of a container.

    Examples
    --------
    >>> 0 < free_here() <= here().n_bytes
    True
    """
    found = psutil.virtual_memory()
    if limit() == found.total:
        return int(found.available)
    return int(min(found.available, max(limit() - psutil.Process().memory_info().rss, 0)))


@functools.cache
def limit() -> int:
    """Memory of this machine, or that of the container; not what is kept for it (memory.low) at the least.

    Examples
    --------
    >>> limit() <= psutil.virtual_memory().total
    True
    """
    found = [psutil.virtual_memory().total]
    for path in LIMITS:
        with contextlib.suppress(OSError, ValueError):  # there is no such file, or it says "max"
            found.append(int(Path(path).read_text()))
    return min(n_bytes for n_bytes in found if n_bytes > 0)


def refuse_blocks(rows: Rows | Kept, client: Callable[[], Any], at_most: int | None = None) -> None:
    """Raise where blocks that are worked on at once, one a thread, are more than the memory there is.

    Parameters
    ----------
    rows : Rows or Kept
    client : callable
        Gives the client in scope, or None; asked where blocks are large.
    at_most : int, optional
        How many are worked on at once; as a rule one a thread.

    Raises
    ------
    DoesNotFitError
        Names the blocks, whose memory, and the chunks, threads and memory that would fit.
    """
    if isinstance(rows, Kept):
        if rows.held:
            return
        rows = rows.rows
    if rows.is_one_block or rows.in_memory or rows.is_sparse:  # views; what sparse blocks take is not known
        return
    by_row = _row_bytes(rows)
    if max(rows.x.chunks[0], default=0) * by_row <= SMALL:
        return
    _refuse(functools.partial(_too_large, rows.x.chunks[0], by_row, at_most), client)


def _too_large(chunks: tuple[int, ...], by_row: int, at_most: int | None, room: Room) -> str | None:
    """What is wrong with blocks that are shared evenly by the workers, the largest first."""
    at_once = sorted(chunks, reverse=True)[:: room.n_workers][: at_most or room.n_threads]
    block, together = at_once[0] * by_row, sum(at_once) * by_row
    if room.n_bytes is None or together <= room.n_bytes:
        return None
    fit = int(room.n_bytes / (COPIES * room.n_threads * by_row))
    threads = int(room.n_bytes / (COPIES * block))
    ways = [
        f"chunks of {fit:,} rows or fewer",
        *([count(threads, "thread", "threads")] if threads else []),
        f"{size(COPIES * together)} of memory",
    ]
    alike = at_once[-1] == at_once[0]
    rows = (
        f"{at_once[0]:,} rows, {size(block)} each"
        if alike
        else f"up to {at_once[0]:,} rows, {size(together)} in all"
    )
    return (
        f"{count(len(at_once), 'block', 'blocks')} of {rows}, would be worked on at once by {room.whose}, "
        f"which has {size(room.n_bytes)}; what would fit: {', or '.join(ways)}"
    )


def refuse_states(n_bytes: int, n_leaves: int, fan_in: int, client: Callable[[], Any]) -> None:
    """Raise where the states that are merged at once are more than the memory there is.

    Parameters
    ----------
    n_bytes : int
        Of one state; all have this size.
    n_leaves : int
        States of blocks, or of runs of them.
    fan_in : int
        How many are merged at once.
    client : callable
        As in `refuse_blocks`.

    Raises
    ------
    DoesNotFitError
        Names the states, whose memory, and the memory that would fit.
    """
    if n_bytes * fan_in <= SMALL:
        return
    _refuse(functools.partial(_too_many, n_bytes, n_leaves, fan_in), client)


def _too_many(n_bytes: int, n_leaves: int, fan_in: int, room: Room) -> str | None:
    at_once = min(n_leaves, max(fan_in, room.n_threads))
    if room.n_bytes is None or at_once * n_bytes <= room.n_bytes:
        return None
    return (
        f"{at_once} states of {size(n_bytes)} each would be held at once by {room.whose}, which has "
        f"{size(room.n_bytes)}; what would fit: states of {size(room.n_bytes / (2 * at_once))} (fewer "
        f"features, classes or folds), or {size(2 * at_once * n_bytes)} of memory; scaleshift.explain "
        "tells which pass has them"
    )


def _refuse(wrong: Callable[[Room], str | None], client: Callable[[], Any]) -> None:
    """Raise what is wrong with the room, and still is when it is asked for anew: workers come and go."""
    there = client()
    told = wrong(of(there))
    if told and there is not None:
        _asked.pop(there, None)
        told = wrong(of(there))
    if told:
        raise DoesNotFitError(told)


def _row_bytes(rows: Rows) -> int:
    arrays = [rows.x, *rows.arrays]
    return int(sum(math.prod(array.shape[1:]) * array.dtype.itemsize for array in arrays))
