"""Workers that are jobs of a batch system, by dask-jobqueue."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import threading
from collections.abc import Iterator
from typing import Any

import dask

from scaleshift.cluster.machine import LOOPBACK
from scaleshift.cluster.options import check, meant, said
from scaleshift.cluster.owner import Owner
from scaleshift.cluster.settings import ONE_BLAS_THREAD, as_environment, chosen
from scaleshift.errors import ClusterError

INSTALL = 'pip install "scaleshift[slurm]"'
BASE = "JobQueueCluster"
MARGIN = 120  # seconds before the walltime at which the last worker has handed its results on
REVIVE = 10_000  # milliseconds between two looks for jobs that have ended


def jobqueue(options: dict[str, Any]) -> Owner:
    """Jobs of any class of dask-jobqueue.

    Parameters
    ----------
    options : dict
        ``cluster`` is the class or its name; ``jobs``, or Dask's ``n_workers``, how many to send;
        ``allowed_failures`` as in `connect`; the rest goes on to the class.

    Returns
    -------
    Owner

    Raises
    ------
    ClusterError
        Without the package, without such a class, or where options are missing.
    """
    made = _class(options.get("cluster"))
    options = {name: value for name, value in options.items() if name != "cluster"}
    check(made.__name__, options, [made, made.job_cls], own=["jobs"])
    settings = chosen(options)
    options, jobs = prepared(made, options, settings)
    with dask.config.set(settings):
        cluster = _made(made, options)
    try:
        cluster.scale(**jobs)
        _send(cluster)
        _revive(cluster)
    except BaseException:  # an interrupt too
        cluster.close()
        raise
    return Owner(cluster)


def prepared(
    made: type, options: dict[str, Any], settings: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What goes to the class, with our defaults; and how much to scale to.

    Parameters
    ----------
    made : type
        A class of dask-jobqueue.
    options : dict
        As the user gives them.
    settings : dict
        Of `scaleshift.cluster.settings`.

    Returns
    -------
    options, scale : dict
    """
    options = {"processes": 1, "security": True, **options}
    jobs = {"n": options.pop("n_workers")} if "n_workers" in options else {"jobs": options.pop("jobs", 1)}
    name = options.get("config_name") or made.job_cls.default_config_name()  # type: ignore[attr-defined]
    options["scheduler_options"] = {"dashboard_address": LOOPBACK, **options.get("scheduler_options", {})}
    exported = {**ONE_BLAS_THREAD, **as_environment(settings)}
    options["job_script_prologue"] = [
        *(f"export {variable}={value}" for variable, value in exported.items()),
        *_configured(options, name, "job_script_prologue"),  # the user's come last, and win
    ]
    arguments = list(_configured(options, name, "worker_extra_args"))
    if "--dashboard-address" not in arguments:
        arguments += ["--dashboard-address", LOOPBACK]
    if "--lifetime" not in arguments:
        arguments += lifetime(name, _value(options, name, "walltime"))
    options["worker_extra_args"] = arguments
    if options["security"] is True and not _value(options, name, "shared_temp_directory"):
        options["shared_temp_directory"] = _folder()
    elif not options["security"]:
        options["security"] = None
    return options, jobs


def lifetime(name: str, walltime: str | None) -> list[str]:
    """Arguments by which a worker ends a little before its job's time is up, and hands its results on.

    Parameters
    ----------
    name : str
        The batch system, as dask-jobqueue's configuration calls it.
    walltime : str or None
        As the batch system writes it.

    Returns
    -------
    list of str
        Empty without a walltime, or where it is written in a way that is not known here.

    Examples
    --------
    >>> lifetime("slurm", "01:00:00")
    ['--lifetime', '3240s', '--lifetime-stagger', '240s']
    """
    seconds = _seconds(name, str(walltime or ""))
    if seconds is None:
        return []
    # Not all at once: those that end hand their results to those that stay.
    stagger, margin = min(240, seconds // 10), min(MARGIN, seconds // 10)
    return ["--lifetime", f"{seconds - margin - stagger}s", "--lifetime-stagger", f"{stagger}s"]


def _seconds(name: str, walltime: str) -> int | None:
    """The walltime in seconds: ``[D-]HH:MM:SS``; SLURM has MM, MM:SS, D-HH and D-HH:MM too, LSF HH:MM."""
    match = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", walltime)
    if match is None:
        return None
    days, *parts = match.groups()
    numbers = [int(part) for part in parts if part is not None]
    if days is not None or len(numbers) == 3:
        units: tuple[int, ...] = (3600, 60, 1)
    else:
        units = {"slurm": (60, 1), "lsf": (3600, 60) if len(numbers) == 2 else (60,)}.get(name, ())
    if len(units) < len(numbers):
        return None
    return int(days or 0) * 86400 + sum(n * unit for n, unit in zip(numbers, units, strict=False))


def _value(options: dict[str, Any], name: str, key: str) -> Any:
    """What the options say, else dask-jobqueue's configuration."""
    given = options.get(key)
    return dask.config.get(f"jobqueue.{name}.{key.replace('_', '-')}", None) if given is None else given


def _configured(options: dict[str, Any], name: str, key: str) -> list[str]:
    return [str(part) for part in _value(options, name, key) or []]


def _folder() -> str:
    """The current folder, for certificates: a job starts in the folder that it was sent from."""
    folder = os.getcwd()
    if shlex.quote(folder) != folder:  # it would stand in the job's script
        raise ClusterError(
            f"certificates for the jobs cannot lie in {folder!r}, a name that a shell would not read as it "
            "stands: give shared_temp_directory=, a folder that nodes see"
        )
    return folder


def _class(given: Any) -> Any:
    """The class of dask-jobqueue by its name, or as it is given."""
    with kept_interrupts():
        try:
            import dask_jobqueue
        except ImportError as error:
            raise ClusterError(f"jobs need dask-jobqueue ({said(error)}): {INSTALL}") from error
    known = sorted(name for name in vars(dask_jobqueue) if name.endswith("Cluster") and name != BASE)
    found = getattr(dask_jobqueue, given) if given in known else given
    if not (isinstance(found, type) and issubclass(found, dask_jobqueue.JobQueueCluster)):
        hint = meant(str(given), known)
        raise ClusterError(
            f"cluster={given!r} is no class of dask-jobqueue{hint} There are {', '.join(known)}"
        )
    return found


@contextlib.contextmanager
def kept_interrupts() -> Iterator[None]:
    """Importing dask-jobqueue replaces Python's answer to Ctrl-C by one that ends the process: not here."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    answer = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, answer)


def _made(made: Any, options: dict[str, Any]) -> Any:
    """The cluster, without jobs yet."""
    command = shlex.split(made.job_cls.submit_command or "")
    if command and shutil.which(command[0]) is None:
        raise ClusterError(
            f"{command[0]} is not on this machine: {made.__name__} is for those that jobs are sent from"
        )
    try:
        return made(**options)
    except ImportError as error:  # of cryptography
        raise ClusterError(
            f"TLS between jobs: {error}; {INSTALL}, or security=None on a network of your own"
        ) from error
    except (OSError, TypeError, ValueError) as error:
        raise ClusterError(f"{made.__name__}: {said(error)}") from error


def _send(cluster: Any) -> None:
    """Send the jobs now: what the batch system says of them is lost else."""

    async def sent() -> None:
        await cluster

    try:
        cluster.sync(sent)
    except (OSError, RuntimeError, ValueError) as error:
        raise ClusterError(f"the job was refused: {said(error)}") from error


def _revive(cluster: Any) -> None:
    """Send a job again where one has ended, at its walltime or with its node: Dask alone does not."""
    from tornado.ioloop import PeriodicCallback

    began: set[Any] = set()  # jobs whose workers were there
    missed: set[Any] = set()  # those that the last look missed: a nanny may be starting a worker anew

    def look() -> None:
        there = {worker.name for worker in cluster.scheduler.workers.values()}
        wanted = len(cluster.worker_spec)
        missing = set()
        for job, spec in list(cluster.worker_spec.items()):
            if there.intersection(f"{job}{suffix}" for suffix in spec.get("group", [""])):
                began.add(job)
            elif job in missed:
                del cluster.worker_spec[job]
            elif job in began:
                missing.add(job)
        missed.clear()
        missed.update(missing)
        if len(cluster.worker_spec) < wanted:
            cluster.scale(jobs=wanted)

    again = PeriodicCallback(look, REVIVE)
    cluster.periodic_callbacks["jobs that have ended"] = again  # stops with the cluster
    cluster.loop.add_callback(again.start)
