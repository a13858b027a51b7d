"""Which cluster does ``--scheduler`` ask for, and with what options?"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scaleshift.errors import ClusterError

# What `cluster.connect` calls each. "local" is not among them: threads of the command itself.
KINDS = {
    "processes": "local",
    "cuda": "cuda",
    "slurm": "slurm",
    "slurm-runner": "slurm-runner",
    "jobqueue": "jobqueue",
    "kubernetes": "kubernetes",
}


@contextlib.contextmanager
def on(scheduler: str) -> Iterator[None]:
    """Be on the cluster that --scheduler asks for; end what was started, also at Ctrl-C and SIGTERM.

    Parameters
    ----------
    scheduler : str
        A key of `KINDS`, with ``:FILE`` for a YAML file of options; an address; or a scheduler file.

    Raises
    ------
    ClusterError
        With the option in front of what `cluster.connect` says.
    """
    from scaleshift import cluster

    with _terminated():
        try:
            where, options = asked(scheduler)
            client = cluster.connect(where, **options)
        except ClusterError as error:
            raise ClusterError(f"--scheduler {_shown(scheduler)}: {error}") from error
        with client:
            yield


def asked(scheduler: str) -> tuple[str, dict[str, Any]]:
    """What `cluster.connect` gets.

    Examples
    --------
    >>> asked("processes")
    ('local', {})
    >>> asked("tcp://host:8786")
    ('tcp://host:8786', {})
    """
    kind, colon, path = scheduler.partition(":")
    if kind not in KINDS:
        return scheduler, {}
    return KINDS[kind], read_options(Path(path)) if colon else {}


def read_options(path: Path) -> dict[str, Any]:
    """Options by name from a YAML file: plain data, of which nothing is run here.

    Parameters
    ----------
    path : Path
        A mapping, ``cores: 8``.

    Returns
    -------
    dict

    Raises
    ------
    ClusterError
        Where there is no such file, or it holds something else.
    """
    import yaml

    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ClusterError(f"{path}: {error.strerror}") from error
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise ClusterError(f"{path} is no YAML: {' '.join(str(error).split())}") from error
    if not isinstance(found, dict):
        raise ClusterError(f"{path} must hold options by name, like `cores: 8`, and not {_kind(found)}")
    for name in found:
        if not isinstance(name, str):
            raise ClusterError(f"{path}: {name!r} is no name of an option")
    return found


def _kind(found: Any) -> str:
    return "nothing" if found is None else f"a {type(found).__name__}"


def _shown(scheduler: str) -> str:
    from scaleshift.cluster.existing import public

    return public(scheduler) if "://" in scheduler else scheduler


@contextlib.contextmanager
def _terminated() -> Iterator[None]:
    """End by an exception at SIGTERM, as batch systems send it: pods and jobs would stay without."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _: Any) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
