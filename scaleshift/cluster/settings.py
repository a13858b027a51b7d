"""What do workers and schedulers that we start do differently from Dask's own defaults, and why?"""

from __future__ import annotations

from typing import Any

import dask

# Dask's names. What the user's configuration sets otherwise than Dask does stays as the user has it.
SETTINGS: dict[str, Any] = {
    # Preemptible nodes: a task may have been on ten workers that died before it is held to be the cause.
    "distributed.scheduler.allowed-failures": 10,
    # No spilling: a pass holds a few blocks a worker, so memory that fills up is a mistake in the plan, and a
    # disk on the way would hide it behind hours of waiting.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    # A worker that is nearly full takes no further task, and is started anew before the kernel kills it.
    "distributed.worker.memory.pause": 0.8,
    "distributed.worker.memory.terminate": 0.95,
    # Dask keeps the last thousand messages of each connection, parameters and results in them, and the last
    # hundred graphs, for whoever looks for a fault: hundreds of megabytes after a night of small jobs.
    "distributed.admin.low-level-log-length": 50,
    "distributed.diagnostics.computations.max-history": 10,
}
# On this machine workers are there at once: where all stay full, or are gone, for so long, none will come.
ON_THIS_MACHINE: dict[str, Any] = {"distributed.scheduler.no-workers-timeout": "5 minutes"}
# Dask gives the threads: BLAS threads of their own would oversubscribe the cores.
ONE_BLAS_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
}


def chosen(options: dict[str, Any], more: dict[str, Any] | None = None) -> dict[str, Any]:
    """The settings that hold here: takes ``allowed_failures`` from the options.

    Parameters
    ----------
    options : dict
        Options of `connect`; ``allowed_failures`` is removed from them.
    more : dict, optional
        Settings beside `SETTINGS`.

    Returns
    -------
    dict
        Value by Dask's name.

    Examples
    --------
    >>> chosen({"allowed_failures": 3})["distributed.scheduler.allowed-failures"]
    3
    >>> with dask.config.set({"distributed.worker.memory.spill": 0.6}):
    ...     chosen({})["distributed.worker.memory.spill"]
    0.6
    """
    from distributed.config import defaults  # Dask's own

    found = {}
    for name, value in {**SETTINGS, **(more or {})}.items():
        users = dask.config.get(name)
        found[name] = value if users == dask.config.get(name, config=defaults) else users
    if "allowed_failures" in options:
        found["distributed.scheduler.allowed-failures"] = options.pop("allowed_failures")
    return found


def as_environment(settings: dict[str, Any]) -> dict[str, str]:
    """The variables by which Dask reads these settings in processes that are started elsewhere.

    Examples
    --------
    >>> as_environment({"distributed.worker.memory.spill": False})
    {'DASK_DISTRIBUTED__WORKER__MEMORY__SPILL': 'False'}
    """
    return {
        "DASK_" + name.replace(".", "__").replace("-", "_").upper(): str(value)
        for name, value in settings.items()
    }
