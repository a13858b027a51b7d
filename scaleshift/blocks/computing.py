"""How is a graph computed where workers, and the scheduler, may go?  What is lost is told in our words.

Every compute of the library goes through here, and every question to the scheduler.
"""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import dask

from scaleshift import doing
from scaleshift.blocks import blas, lost
from scaleshift.blocks.travelled import aligned

WAIT = 10.0  # seconds without any worker after which this is said


def compute(*collections: Any, in_memory: bool = False) -> tuple[Any, ...]:
    """Results of lazy collections; `in_memory` stays on Dask's threads, also beside a cluster."""
    with blas.one_thread(), in_our_words(*collections, in_memory=in_memory):
        found: tuple[Any, ...] = aligned(dask.compute(*collections, **_scheduler(in_memory)))
    return found


def persist(*collections: Any, in_memory: bool = False) -> tuple[Any, ...]:
    """The same collections, whose parts are computed once and stay in memory."""
    with blas.one_thread(), in_our_words(*collections, in_memory=in_memory):
        found: tuple[Any, ...] = dask.persist(*collections, **_scheduler(in_memory))
    return found


def _scheduler(in_memory: bool) -> dict[str, str]:
    return {"scheduler": "threads"} if in_memory else {}


def client() -> Any:
    """The distributed client in scope that `dask.compute` asks, or None."""
    chosen = dask.config.get("scheduler", None)
    if hasattr(chosen, "scheduler_info"):
        return chosen
    if chosen not in (None, "dask.distributed", "distributed"):
        return None
    try:
        from distributed import get_client

        return get_client()
    except ValueError:
        return None


def nthreads() -> dict[str, int]:
    """Threads of each worker, by its address; none without a client."""
    found = client()
    with in_our_words():
        return dict(found.nthreads()) if found else {}


def workers() -> list[dict[str, Any]]:
    """What the scheduler knows of each worker; none without a client."""
    found = client()
    with in_our_words():
        return list(found.scheduler_info(n_workers=-1)["workers"].values()) if found else []


@contextlib.contextmanager
def in_our_words(*collections: Any, in_memory: bool = False) -> Iterator[None]:
    """Raise a ClusterError where workers or the scheduler are lost; warn where there are no workers.

    Parameters
    ----------
    *collections : dask collections
        What is computed, by which the error tells the rows that are concerned.
    in_memory : bool
        Whether no cluster takes part.
    """
    used = None if in_memory else client()
    if used is None:
        yield
        return
    done = threading.Event()
    if collections:
        threading.Thread(target=_watch, args=(used, done), daemon=True, name="scaleshift-watch").start()
    try:
        with doing.submitted(used, collections) if collections else contextlib.nullcontext():
            yield
    except Exception as error:
        told = lost.told(error, used, collections)
        if told is None:
            raise
        raise told from error
    finally:
        done.set()


def _watch(used: Any, done: threading.Event) -> None:
    """Say once that a job waits for workers that there are none of."""
    while not done.wait(WAIT):
        try:
            # A worker that is started anew is back at the second look.
            if used.nthreads() or done.wait(WAIT / 10) or used.nthreads():
                continue
        except Exception:  # lost altogether, which the pass itself tells
            return
        warnings.warn(
            f"the scheduler {used.scheduler.address} has no workers: the job waits until some join. Start "
            "them (dask worker ADDRESS), or see what has become of them, or of their jobs in the queue",
            stacklevel=1,
        )
        return
