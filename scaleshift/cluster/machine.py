"""Workers on this machine: processes of its cores, or of its GPUs."""

from __future__ import annotations

import importlib.util
import multiprocessing
from typing import Any

import dask
from distributed import LocalCluster, Nanny, Worker

from scaleshift.cluster import leaving
from scaleshift.cluster.options import check, check_counts
from scaleshift.cluster.owner import Owner
from scaleshift.cluster.settings import ON_THIS_MACHINE, ONE_BLAS_THREAD, chosen
from scaleshift.errors import ClusterError, one_line

LOOPBACK = "127.0.0.1:0"  # any free port, for this machine alone
# Tasks give numpy and leave nothing on the device; results of the host stay in memory, as they do elsewhere.
NOTHING_SPILLED = {"device_memory_limit": 0, "data": dict}
ELSE = "`scaleshift doctor` says what is there; 'local' takes the cores"
GUARD = 'a script starts processes at its top level, which each runs again: use `if __name__ == "__main__":`'
INSTALL = 'pip install "scaleshift[cu13]", or [cu12], as the driver has it'


def local(options: dict[str, Any]) -> Owner:
    """Processes of this machine, one a core, as `distributed.LocalCluster` has them.

    Parameters
    ----------
    options : dict
        Go on to LocalCluster and its workers, but for ``allowed_failures``.

    Returns
    -------
    Owner
    """
    _refuse_inside_a_start()
    check("local", options, [LocalCluster, Nanny, Worker])
    check_counts("local", options, ["n_workers", "threads_per_worker"])
    options = dict(options)
    settings = chosen(options, ON_THIS_MACHINE)
    if not {"n_workers", "threads_per_worker"} & set(options):
        options["n_workers"] = dask.system.CPU_COUNT
    if options.get("processes", True):  # nannies hand both on to the workers that they start, also later ones
        environment = {**ONE_BLAS_THREAD, **options.get("env", {})}
        options = {"config": {**settings, **_leaving()}, **options, "env": environment}
    return _started(LocalCluster, {**_loopback(options), **options}, settings)


def cuda(options: dict[str, Any]) -> Owner:
    """One process with one thread a GPU, as `dask_cuda.LocalCUDACluster` has them.

    Nothing of ours stays on the device between tasks, so nothing is spilled from it. With RMM installed it
    serves CuPy from a pool of 80 % of the device's memory.

    Parameters
    ----------
    options : dict
        Go on to LocalCUDACluster and its workers, but for ``allowed_failures``.

    Returns
    -------
    Owner

    Raises
    ------
    ClusterError
        Without dask-cuda, or without a GPU.
    """
    try:
        import pynvml  # dask-cuda needs it too
        from dask_cuda import LocalCUDACluster
    except ImportError as error:
        raise ClusterError(f"'cuda' needs dask-cuda ({one_line(error)}): {INSTALL}") from error
    _refuse_inside_a_start()
    check("cuda", options, [LocalCUDACluster, Nanny, Worker])
    check_counts("cuda", options, ["n_workers", "threads_per_worker"])
    try:
        pynvml.nvmlInit()
        found = pynvml.nvmlDeviceGetCount()
    except pynvml.NVMLError as error:
        raise ClusterError(f"'cuda' finds no NVIDIA driver ({one_line(error)}): {ELSE}") from error
    if not found:
        raise ClusterError(f"'cuda' finds no GPU: {ELSE}")
    options = dict(options)
    settings = chosen(options, ON_THIS_MACHINE)
    options = {**_loopback(options), **NOTHING_SPILLED, **_pool(), **options}
    return _started(LocalCUDACluster, options, settings)


def _started(made: Any, options: dict[str, Any], settings: dict[str, Any]) -> Owner:
    with dask.config.set(settings):
        try:
            cluster = made(**options)
        except (OSError, RuntimeError, TypeError, ValueError) as error:
            told = f"{made.__name__}: {one_line(error)}"
            if "Nanny failed" in told:
                told = f"{told.rstrip('.')}, as it does where {GUARD}"
            raise ClusterError(told) from error
        return Owner(cluster)


def _refuse_inside_a_start() -> None:
    """Raise in a process that is being started, and runs the script to that end: it would start others."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise ClusterError(GUARD)


def _loopback(options: dict[str, Any]) -> dict[str, Any]:
    """What each process serves over HTTP, for this machine alone; LocalCluster sees to the rest."""
    if options.get("processes", True):
        return {"dashboard_address": LOOPBACK}  # workers serve at the host that they are given
    return {"dashboard_address": LOOPBACK, "worker_dashboard_address": LOOPBACK}


def _leaving() -> dict[str, Any]:
    """Beside what the user has every worker load."""
    return {"distributed.worker.preload": [*dask.config.get("distributed.worker.preload"), leaving.__name__]}


def _pool() -> dict[str, Any]:
    """Of RMM, where it is installed: the extras bring CuPy, which has a pool of its own."""
    if importlib.util.find_spec("rmm") is None:
        return {}
    return {"rmm_pool_size": 0.8, "rmm_allocator_external_lib_list": "cupy"}
