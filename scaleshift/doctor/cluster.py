"""Is a cluster in reach: a Dask scheduler that answers, SLURM, Kubernetes?"""

from __future__ import annotations

import os
import re
import shutil
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import dask

from scaleshift.doctor.finding import Finding
from scaleshift.doctor.packages import installed

SECONDS = 3  # for a scheduler to answer
# Beside those that Dask compares: where these differ, workers give other numbers or fail.
COMPARED = ("scaleshift", "numba", "scikit-learn", "scipy", "xarray", "zarr")


def clusters() -> Iterator[Finding]:
    """The scheduler that Dask was told of, and the managers that jobs could be sent to."""
    address = dask.config.get("scheduler-address", None)
    if address:
        yield from _scheduler(str(address))
    else:
        yield Finding("Dask scheduler", "missing", "DASK_SCHEDULER_ADDRESS is not set")
    yield _manager("SLURM", "sbatch" if shutil.which("sbatch") else "", "dask-jobqueue")
    in_a_pod = "a pod's environment" if "KUBERNETES_SERVICE_HOST" in os.environ else ""
    yield _manager(
        "Kubernetes", in_a_pod or ("kubectl" if shutil.which("kubectl") else ""), "dask-kubernetes"
    )


def public(address: str) -> str:
    """An address without what may be secret in it: user, password, path.

    Examples
    --------
    >>> public("tls://me:secret@host:8786/token?key=1")
    'tls://host:8786'
    """
    protocol, mark, rest = address.partition("://")
    if not mark:
        protocol, rest = "", address
    host = re.split("[/?#]", rest.rpartition("@")[2])[0]
    return f"{protocol}{mark}{host}"


def differences(here: dict[str, Any], there: Iterable[dict[str, Any]]) -> list[str]:
    """Packages whose versions differ between this process and others.

    Parameters
    ----------
    here : dict
        Version by package.
    there : iterable of dict
        The same of other processes.

    Returns
    -------
    list of str

    Examples
    --------
    >>> differences({"numpy": "2.4.0", "python": "3.11.1"}, [{"numpy": "2.3.0", "python": "3.11.9"}])
    ['numpy (2.4.0 here, 2.3.0)']
    """
    others = list(there)
    found = []
    for name, version in sorted(here.items()):
        versions = {_comparable(name, other.get(name)) for other in others}
        versions.discard(_comparable(name, version))
        if versions:
            found.append(f"{name} ({_comparable(name, version)} here, {', '.join(sorted(versions))})")
    return found


def _comparable(name: str, version: str | None) -> str:
    version = version or "none"
    return ".".join(version.split(".")[:2]) if name == "python" else version


def _scheduler(address: str) -> Iterator[Finding]:
    """Whether it answers, with what workers, and whether they hold the same versions."""
    from scaleshift.blocks import graph

    shown = public(address)
    try:
        # The warnings of Client say what `differences` says.
        with (
            warnings.catch_warnings(action="ignore"),
            graph.connect(address, SECONDS, set_as_default=False) as client,
        ):
            threads = client.nthreads()
            versions = client.get_versions(check=False, packages=list(COMPARED))
    except Exception as error:  # of many kinds, by protocol; their messages may hold the whole address
        value = f"no scheduler answers at {shown} within {SECONDS} s ({type(error).__name__})"
        advice = "start it, or correct DASK_SCHEDULER_ADDRESS or Dask's setting scheduler-address"
        yield Finding("Dask scheduler", "problem", value, advice, {"address": shown, "answers": False})
        return
    counts = {"workers": len(threads), "threads": sum(threads.values())}
    yield Finding(
        "Dask scheduler",
        "ok",
        f"{shown} answers: {counts['workers']} workers, {counts['threads']} threads",
        "" if threads else "start workers",
        {"address": shown, "answers": True, **counts},
    )
    there = [versions["scheduler"], *versions["workers"].values()]
    unlike = differences(versions["client"]["packages"], (node["packages"] for node in there if node))
    if unlike:
        advice = "give scheduler and workers this environment"
        yield Finding("versions there", "problem", ", ".join(unlike), advice, {"differ": unlike})
    else:
        yield Finding("versions there", "ok", "the same as here", facts={"differ": []})


def _manager(name: str, sign: str, package: str) -> Finding:
    """A manager of jobs, and the package that lets Dask use it."""
    version = installed(package)
    facts = {"found": bool(sign), "package": package, "installed": version}
    if not sign:
        return Finding(name, "missing", "not on this machine", facts=facts)
    if version is None:
        return Finding(name, "missing", f"{sign} found, {package} missing", f"pip install {package}", facts)
    return Finding(name, "ok", f"{sign} found, {package} {version}", facts=facts)
