"""Workers that are jobs of a batch system, by dask-jobqueue."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
from distributed.core import Status
from distributed.security import Security

from scaleshift.cluster.existing import certificates
from scaleshift.cluster.machine import LOOPBACK
from scaleshift.cluster.options import check, check_counts, meant
from scaleshift.cluster.owner import Owner
from scaleshift.cluster.revival import Revival
from scaleshift.cluster.settings import ONE_BLAS_THREAD, as_environment, chosen
from scaleshift.errors import ClusterError, one_line

INSTALL = 'pip install "scaleshift[slurm]"'
BASE = "JobQueueCluster"
MARGIN = 120  # seconds before the walltime at which the last worker has handed its results on


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
    check_counts(made.__name__, options, ["jobs", "n_workers", "cores", "processes"])
    settings = chosen(options)
    options, jobs, folder = prepared(made, options, settings)
    with contextlib.ExitStack() as undone:  # an interrupt too must leave nothing behind
        if folder is not None:
            undone.callback(folder.cleanup)
        with dask.config.set(settings):
            cluster = _made(made, options)
        undone.callback(_close, cluster)
        _send(cluster, jobs)
        Revival(cluster).begin()
        client = Owner(cluster, folder)
        undone.pop_all()
    return client


def prepared(
    made: type, options: dict[str, Any], settings: dict[str, Any]
) -> tuple[dict[str, Any], int, tempfile.TemporaryDirectory[str] | None]:
    """What goes to the class, with our defaults; how many jobs; and where their certificates lie.

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
    options : dict
    jobs : int
    folder : tempfile.TemporaryDirectory or None
        None where the user has other certificates, or wants none.
    """
    name = options.get("config_name") or made.job_cls.default_config_name()  # type: ignore[attr-defined]
    options = {**options, "processes": _value(options, name, "processes") or 1}
    jobs = options.pop("jobs", 1)
    if "n_workers" in options:
        jobs = -(-options.pop("n_workers") // options["processes"])
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
    folder = None
    if options.get("security", True) is True:
        folder, options["security"] = _certificates(_value(options, name, "shared_temp_directory"))
    elif options["security"] is False:
        options["security"] = None
    return options, jobs, folder


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


def _certificates(shared: str | None) -> tuple[tempfile.TemporaryDirectory[str], Security]:
    """Certificates for these jobs alone, in a folder that only the owner reads and that ends with them.

    By default in the current folder: a job starts in the one that it was sent from.
    """
    parent = os.path.abspath(os.path.expanduser(os.path.expandvars(shared or ".")))
    if shlex.quote(parent) != parent:  # it stands in the job's script
        raise ClusterError(
            f"certificates for the jobs cannot lie in {parent!r}, a name that a shell would not read as it "
            "stands: give shared_temp_directory=, a folder that nodes see"
        )
    try:
        made = Security.temporary()
    except ImportError as error:
        raise ClusterError(f"TLS between jobs needs cryptography: {INSTALL}") from error
    try:
        folder = tempfile.TemporaryDirectory(prefix=".scaleshift-tls-", dir=parent)
    except OSError as error:
        raise ClusterError(
            f"certificates for the jobs cannot lie in {parent} ({error.strerror}): give "
            "shared_temp_directory=, a folder that nodes see"
        ) from error
    files = {}
    for part, text in made.get_tls_config_for_role("worker").items():
        if text is not None:
            files[part] = Path(folder.name, f"{part}.pem")
            files[part].write_text(text)
    return folder, certificates(None, files["ca_file"], files["cert"], files["key"])


def _class(given: Any) -> Any:
    """The class of dask-jobqueue by its name, or as it is given."""
    with kept_interrupts():
        try:
            import dask_jobqueue
        except ImportError as error:
            raise ClusterError(f"jobs need dask-jobqueue ({one_line(error)}): {INSTALL}") from error
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
            f"{command[0]} is not on this machine: {made.__name__} is for those that jobs are sent from; "
            "run this there, on a login node"
        )
    try:
        return made(**options)
    except (OSError, TypeError, ValueError) as error:
        raise ClusterError(f"{made.__name__}: {one_line(error)}") from error


def _close(cluster: Any) -> None:
    with contextlib.suppress(Exception):  # what went wrong first is told
        cluster.close()


def _send(cluster: Any, jobs: int) -> None:
    """Send the jobs now: `scale` does it later, and what the batch system says of them is lost then."""

    async def sent() -> None:
        for _ in range(jobs):
            cluster.worker_spec.update(cluster.new_worker_spec())
        await cluster._correct_state()

    try:
        cluster.sync(sent)
    except (OSError, RuntimeError, ValueError) as error:
        for job in cluster.workers.values():
            job.status = Status.failed  # or the cluster does not close
        raise ClusterError(f"the job was refused: {one_line(error)}") from error
