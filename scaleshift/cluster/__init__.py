"""Where does the work run?  `connect` gives a Dask client of what is there, or of what it starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from scaleshift.errors import ClusterError

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["KINDS", "connect"]


def _local(options: dict[str, Any]) -> Any:
    from scaleshift.cluster import machine

    return machine.local(options)


def _cuda(options: dict[str, Any]) -> Any:
    from scaleshift.cluster import machine

    return machine.cuda(options)


def _slurm(options: dict[str, Any]) -> Any:
    from scaleshift.cluster import jobs

    return jobs.jobqueue({"cluster": "SLURMCluster", **options})


def _jobqueue(options: dict[str, Any]) -> Any:
    from scaleshift.cluster import jobs

    return jobs.jobqueue(options)


def _slurm_runner(options: dict[str, Any]) -> Any:
    from scaleshift.cluster import runner

    return runner.slurm_runner(options)


def _kubernetes(options: dict[str, Any]) -> Any:
    from scaleshift.cluster import kubernetes

    return kubernetes.kubernetes(options)


# What can be started; each is imported when it is asked for, with the packages that it needs.
KINDS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "local": _local,
    "cuda": _cuda,
    "slurm": _slurm,
    "slurm-runner": _slurm_runner,
    "jobqueue": _jobqueue,
    "kubernetes": _kubernetes,
}


def connect(where: Any = "local", **options: Any) -> Client:
    """Be on a Dask cluster: start one, or go to one that is there.

    While the client is open, everything in scaleshift computes there. ``close``, or the end of ``with``, ends
    what was started here, processes and jobs, and nothing else.

    Parameters
    ----------
    where : str, distributed.Client or distributed.deploy.Cluster, default "local"
        - "local": processes of this machine, one a core, that listen on 127.0.0.1 only. Other users of the
          machine reach that address too: where they could, give ``security=True``.
        - "cuda": one process a GPU of this machine, by dask-cuda (extras ``cu12`` and ``cu13``).
        - "slurm": jobs that are sent by ``sbatch``, by dask-jobqueue (extra ``slurm``); "jobqueue": those of
          any of its classes, ``cluster="PBSCluster"``.
        - "slurm-runner": for a script that runs under ``srun`` with 3 tasks or more: one is the scheduler,
          one goes on with the script, the others are workers.
        - "kubernetes": pods, by the operator of dask-kubernetes (extra ``kubernetes``). What it would send is
          tested; it was never run on a real cluster.
        - an address, ``tcp://host:8786`` or ``tls://host:8786``, or the JSON file that ``dask scheduler
          --scheduler-file`` writes.
        - a client or a cluster: another client of the same scheduler.
    **options
        Go on to what is started: to `distributed.LocalCluster`, `dask_cuda.LocalCUDACluster`, the class of
        dask_jobqueue, `dask_jobqueue.slurm.SLURMRunner`, or
        `dask_kubernetes.operator.KubeCluster`. Of our own are:

        - ``allowed_failures`` (what is started; default 10): workers that may die over one task.
        - ``jobs`` ("slurm", "jobqueue"; default 1): jobs to send, and to send again where one ends.
        - ``ca``, ``cert``, ``key`` (addresses, "slurm-runner"): files of certificates, in PEM; ``security``
          is a `distributed.Security` in place of them; else Dask's configuration counts.
        - ``timeout`` (addresses; default 10): seconds for the scheduler to answer.

    Returns
    -------
    distributed.Client

    Raises
    ------
    ClusterError
        Where there is no such kind, a package is missing, nobody answers, TLS is refused, or the scheduler
        and its workers run other versions than are here.

    Notes
    -----
    What is started gets the settings of `scaleshift.cluster.settings`: workers do not spill to disk, BLAS has
    one thread, nodes may be taken away ten times. What Dask's configuration or an option says otherwise wins.

    Jobs talk by TLS, with certificates that are made for them and lie, readable by their owner alone, in
    ``shared_temp_directory`` (default: the current folder, which nodes must see). KubeCluster of
    dask-kubernetes knows no TLS: see there.

    Examples
    --------
    >>> import scaleshift as ss
    >>> with ss.cluster.connect("local", n_workers=1, threads_per_worker=1) as client:
    ...     client.submit(sum, [1, 2]).result()
    3
    """
    from scaleshift.cluster import existing
    from scaleshift.cluster import options as options_of

    if not isinstance(where, str):
        return existing.beside(where, options)
    if where in KINDS:
        return KINDS[where](options)
    if "://" in where or where.endswith(".json"):
        return existing.at(where, **options)
    raise ClusterError(
        f"no kind of cluster is called {where!r}{options_of.meant(where, KINDS)} There are "
        f"{', '.join(KINDS)}, addresses like tcp://host:8786, and scheduler files, *.json"
    )
