"""Is a cluster in reach: a Dask scheduler that answers, SLURM, Kubernetes?"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import dask

from scaleshift.cluster.existing import differences, public, reach, versions
from scaleshift.doctor.finding import Finding
from scaleshift.doctor.packages import installed
from scaleshift.errors import ClusterError

SECONDS = 3  # for a scheduler to answer


def clusters() -> Iterator[Finding]:
    """The scheduler that Dask was told of, and the managers that jobs could be sent to."""
    address = dask.config.get("scheduler-address", None)
    if address:
        yield from _scheduler(str(address))
    else:
        yield Finding("Dask scheduler", "missing", "DASK_SCHEDULER_ADDRESS is not set")
    yield _manager("SLURM", "sbatch" if shutil.which("sbatch") else "", "dask-jobqueue", "slurm")
    in_a_pod = "a pod's environment" if "KUBERNETES_SERVICE_HOST" in os.environ else ""
    sign = in_a_pod or ("kubectl" if shutil.which("kubectl") else "")
    yield _manager("Kubernetes", sign, "dask-kubernetes", "kubernetes")


def _scheduler(address: str) -> Iterator[Finding]:
    """Whether it answers, with what workers, and whether they hold the same versions."""
    shown = public(address)
    try:
        with reach(address, SECONDS, set_as_default=False) as client:
            threads = client.nthreads()
            here, there = versions(client)
    except Exception as error:  # of many kinds, by protocol; but for ours, they may tell the whole address
        value = str(error) if isinstance(error, ClusterError) else f"{shown}: {type(error).__name__}"
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
    unlike = differences(here, there)
    if unlike:
        advice = "give scheduler and workers this environment"
        yield Finding("versions there", "problem", ", ".join(unlike), advice, {"differ": unlike})
    else:
        yield Finding("versions there", "ok", "the same as here", facts={"differ": []})


def _manager(name: str, sign: str, package: str, extra: str) -> Finding:
    """A manager of jobs, the package that lets Dask use it, and the extra that has it."""
    version = installed(package)
    facts = {"found": bool(sign), "package": package, "installed": version}
    if not sign:
        return Finding(name, "missing", "not on this machine", facts=facts)
    if version is None:
        advice = f'pip install "scaleshift[{extra}]"'
        return Finding(name, "missing", f"{sign} found, {package} missing", advice, facts)
    return Finding(name, "ok", f"{sign} found, {package} {version}", facts=facts)
