"""What does a user hear when workers, or the scheduler, are lost?  Which rows, why, and what to do."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from concurrent.futures import CancelledError
from typing import Any

import dask
from dask.task_spec import DataNode, Task
from dask.utils import format_bytes

from scaleshift.blocks.block import Loader
from scaleshift.errors import ClusterError

AGAIN = "run it again; with a checkpoint (--resume) it goes on from where it was"
CLOSED = ("closing", "closed")  # by itself too, after it failed to reconnect
MEMORY = "worker-restart-memory"  # what nannies tell the scheduler of workers that they end


def told(error: Exception, client: Any, collections: tuple[Any, ...] = ()) -> ClusterError | None:
    """The error in our words; None for one that is not of workers or a scheduler that are lost."""
    from distributed.comm import CommClosedError
    from distributed.scheduler import KilledWorker

    if isinstance(error, KilledWorker):
        return ClusterError(_killed(error, client, collections))
    if isinstance(error, CommClosedError | CancelledError):
        return ClusterError(_gone(error, client))
    of_dask = type(error).__module__.startswith("distributed")  # of a client that has closed itself
    if client.status != "running" and (of_dask or isinstance(error, OSError | RuntimeError)):
        return ClusterError(_gone(error, client))
    if isinstance(error, AttributeError | LookupError) and client.status in CLOSED:  # it asks what it has not
        return ClusterError(_gone(error, client))
    return None


def _gone(error: Exception, client: Any) -> str:
    """The scheduler cannot be reached any more, or knows nothing of the job."""
    address = client.scheduler.address if client.scheduler else client._start_arg  # that of a closed client
    scheduler = f"the scheduler {address}" if isinstance(address, str) else "the scheduler"
    if getattr(error, "reason", "unknown") in ("unknown", "scheduler-connection-lost"):
        return (
            f"{scheduler} was lost, and with it what its workers held: see that a scheduler and workers run, "
            f"connect to them, and {AGAIN}"
        )
    return f"{scheduler} has dropped the job ({str(error).splitlines()[0]}): {AGAIN}"


def _killed(error: Any, client: Any, collections: tuple[Any, ...]) -> str:
    """Workers have died, one after the other, of what is probably one task."""
    worker = error.last_worker
    place = place_of(collections, _suspects(client, error.task))
    limit = f"of {format_bytes(worker.memory_limit)} " if worker.memory_limit else ""
    if any(event["worker"] == worker.address for event in _events(client, MEMORY)):
        why = f"the memory {limit}was full"
    else:
        why = f"most often the memory {limit}was full; the log of {worker.address} tells more"
    return (
        f"{error.allowed_failures + 1} workers died one after the other as they worked on {place}: {why}. "
        f"Give workers more memory or fewer threads, or store smaller chunks; then {AGAIN}"
    )


def _suspects(client: Any, task: Any) -> set[Any]:
    """Tasks that every dead worker had which had this one: the scheduler blames any of them."""
    deaths = [set(event.get("processing-tasks", ())) for event in _events(client, "all")]
    with_it = [tasks for tasks in deaths if task in tasks]
    return set.intersection(*with_it) if with_it else {task}


def _events(client: Any, topic: str) -> list[dict[str, Any]]:
    """What the scheduler has noted; nothing where it cannot be asked, as the error is told all the same."""
    try:
        return [event for _, event in client.get_events(topic)]
    except Exception:
        return []


def place_of(collections: tuple[Any, ...], keys: set[Any]) -> str:
    """What tasks work on, as far as their graph tells: rows, of which study, what they weigh.

    Examples
    --------
    >>> import dask.array as da
    >>> from scaleshift.blocks import graph
    >>> from scaleshift.blocks.rows import as_rows
    >>> rows = as_rows(da.ones((6, 2), chunks=(3, 2)))
    >>> leaves = graph.on_blocks(len, rows, 1, da.ones((0, 0)), {})
    >>> place_of((leaves,), {(leaves.name, 1, 0)})
    'rows 3-5 (3 x 2 values a block)'
    """
    found: list[Any] = []
    for collection in dask.optimize(*collections):
        graph = dict(collection.__dask_graph__())
        alone = any("finalize" in str(key) for key in keys)  # Dask has fused all into one task
        found += _parts(list(graph.values()) if alone else [graph[key] for key in keys if key in graph])
    places = [part for part in found if _is_place(part)]
    if places:
        return _rows(places, found)
    tuples = [key for key in keys if isinstance(key, tuple)]
    if any(str(key[0]).startswith("merge-") for key in tuples):
        return "states that were merged"
    numbers = sorted({key[1] for key in tuples if isinstance(key[1], int)})
    return f"block {', '.join(map(str, numbers))}" if numbers else "one task"


def _rows(places: list[tuple[slice, ...]], parts: list[Any]) -> str:
    """Rows from first to last, of which study, and what a block of them weighs."""
    first, stop = min(place[0].start for place in places), max(place[0].stop for place in places)
    before = next((part.first for part in parts if isinstance(part, Loader)), 0)  # of rows that are a piece
    shape = [part.stop - part.start for part in max(places, key=len)]
    readers = [part for part in parts if hasattr(part, "source")]
    of, size = "", f"{' x '.join(map(str, shape))} values a block"
    if readers:
        of = f" of {readers[0].source.location}"
        row = max(math.prod(reader.stored[1:]) * reader.dtype.itemsize for reader in readers)
        size = f"{format_bytes(shape[0] * row)} a block"
    return f"rows {before + first}-{before + stop - 1}{of} ({size})"


def _is_place(part: Any) -> bool:
    return (
        isinstance(part, tuple)
        and len(part) == 2
        and all(isinstance(s, slice) and isinstance(s.start, int) and isinstance(s.stop, int) for s in part)
    )


def _parts(node: Any) -> Iterator[Any]:
    """All that a task is made of; also of tasks that travel inside it."""
    if isinstance(node, DataNode):
        yield from _parts(node.value)
    elif isinstance(node, Task):
        yield from _parts([node.func, *node.args, *node.kwargs.values()])
    elif isinstance(node, functools.partial):
        yield from _parts(node.args)
    elif isinstance(node, dict):
        yield from _parts(list(node.values()))
    elif isinstance(node, list | tuple):
        yield node
        for part in node:
            yield from _parts(part)
    elif hasattr(node, "inside"):
        yield from _parts(node.inside)
    else:
        yield node
