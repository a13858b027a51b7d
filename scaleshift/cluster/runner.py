"""Scheduler, workers and script as tasks of one srun, by dask-jobqueue's SLURMRunner."""

from __future__ import annotations

import os
import signal
from typing import Any

import dask

from scaleshift.cluster.existing import certificates
from scaleshift.cluster.jobs import INSTALL
from scaleshift.cluster.machine import LOOPBACK
from scaleshift.cluster.options import check
from scaleshift.cluster.owner import Owner
from scaleshift.cluster.settings import chosen
from scaleshift.errors import ClusterError, one_line


def slurm_runner(options: dict[str, Any]) -> Owner:
    """Become scheduler or worker, and end with the script; or go on, in the one task that is the client.

    Parameters
    ----------
    options : dict
        ``ca``, ``cert``, ``key`` or ``security`` for TLS, which needs files that all tasks see;
        ``allowed_failures`` as in `connect`; the rest goes on to SLURMRunner.

    Returns
    -------
    Owner

    Raises
    ------
    ClusterError
        Without the package, outside of srun, or with fewer than 3 tasks.
    """
    before = signal.getsignal(signal.SIGINT)
    try:
        from dask_jobqueue.slurm import SLURMRunner, WorldTooSmallException
    except ImportError as error:
        raise ClusterError(f"'slurm-runner' needs dask-jobqueue ({one_line(error)}): {INSTALL}") from error
    check("slurm-runner", options, [SLURMRunner], own=["security", "ca", "cert", "key"])
    # A job that is queued again after its node was taken keeps its number: not the file of the time before.
    run = "-".join(os.environ.get(name, "0") for name in ("SLURM_STEP_ID", "SLURM_RESTART_COUNT"))
    options = {"scheduler_file": f"scheduler-{{job_id}}-{run}.json", **options}
    settings = chosen(options)
    security = certificates(*(options.pop(name, None) for name in ("security", "ca", "cert", "key")))
    tls = {"security": security, "protocol": "tls"} if security.require_encryption else {}
    options["scheduler_options"] = {
        "dashboard_address": LOOPBACK,
        **tls,
        **options.get("scheduler_options", {}),
    }
    options["worker_options"] = {"dashboard_address": LOOPBACK, **tls, **options.get("worker_options", {})}
    try:
        with dask.config.set(settings):
            runner: Any = SLURMRunner(**options)  # tasks that are not the client end in here
    except (RuntimeError, WorldTooSmallException) as error:
        raise ClusterError(f"'slurm-runner': {one_line(error)}") from error
    signal.signal(signal.SIGINT, before)  # dask-jobqueue takes it, to end the other tasks
    if tls:
        runner.scheduler_comm.connection_args = security.get_connection_args("client")
        runner.security = security
    return Owner(runner, security=security)
