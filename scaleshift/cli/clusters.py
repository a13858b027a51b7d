"""Which cluster does ``--scheduler`` ask for, and with what options?"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scaleshift.errors import ClusterError

if TYPE_CHECKING:
    from distributed import Client

# What `cluster.connect` calls each. "local" is not among them: threads of the command itself.
KINDS = {
    "processes": "local",
    "cuda": "cuda",
    "slurm": "slurm",
    "slurm-runner": "slurm-runner",
    "jobqueue": "jobqueue",
    "kubernetes": "kubernetes",
}

# Where Python would take the files: the command line has Dask's configuration alone.
OF_THE_SHELL = "run `. cluster/tls/environment` with SCALESHIFT_TLS=FOLDER in this shell"


@contextlib.contextmanager
def on(scheduler: str) -> Iterator[Client]:
    """Be on the cluster that --scheduler asks for; end what was started, also where `stopping.heard` raises.

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
    from scaleshift.cluster.existing import GIVE

    try:
        where, options = asked(scheduler)
        client = cluster.connect(where, **options)
    except ClusterError as error:
        told = str(error).replace(GIVE, OF_THE_SHELL)
        raise ClusterError(f"--scheduler {_shown(scheduler)}: {told}") from error
    log = logging.getLogger("distributed.client")
    log.addFilter(_is_news)
    try:
        with client:
            yield client
    finally:
        log.removeFilter(_is_news)


def _is_news(record: logging.LogRecord) -> bool:
    """Not a scheduler that was lost: the error of the verb tells it."""
    return not record.msg.startswith("Failed to reconnect")


def asked(scheduler: str) -> tuple[str, dict[str, Any]]:
    """What `cluster.connect` gets; ClusterError where there is no such kind.

    Examples
    --------
    >>> asked("processes")
    ('local', {})
    >>> asked("tcp://host:8786")
    ('tcp://host:8786', {})
    """
    if "://" in scheduler or scheduler.endswith(".json"):
        return scheduler, {}
    from scaleshift.cluster.options import meant

    kind, colon, path = scheduler.partition(":")
    if kind == "local":
        raise ClusterError(
            "local is threads of this machine, and takes no options: did you mean 'processes'?"
        )
    if kind not in KINDS:
        known = ["local", *KINDS]
        named = scheduler if path.isdecimal() else kind  # a port
        raise ClusterError(
            f"no kind of cluster is called {named!r}{meant(named, known)} There are {', '.join(known)}, "
            "addresses like tcp://host:8786, and scheduler files, *.json"
        )
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
    import yaml  # slow, and seldom needed

    try:
        text = path.read_text(encoding="utf-8")
        found, twice = yaml.safe_load(text), _twice(yaml.compose(text, yaml.SafeLoader))
    except OSError as error:
        raise ClusterError(f"{path}: {error.strerror}") from error
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise ClusterError(f"{path} is no YAML: {' '.join(str(error).split())}") from error
    if not isinstance(found, dict):
        raise ClusterError(f"{path} must hold options by name, like `cores: 8`, and not {_kind(found)}")
    if twice is not None:
        raise ClusterError(f"{path}: {twice} is there twice")
    for name in found:
        if not isinstance(name, str):
            raise ClusterError(f"{path}: {name!r} is no name of an option")
    return found


def _twice(node: Any) -> str | None:
    """A key that a mapping has twice, of which YAML keeps the last without a word."""
    nodes, seen = [node], set()
    while nodes:
        node = nodes.pop()
        if node is None or id(node) in seen or isinstance(node.value, str):
            continue
        seen.add(id(node))  # an alias may lead back
        if node.id == "sequence":
            nodes += node.value
            continue
        keys = [key.value for key, _ in node.value if isinstance(key.value, str)]
        if len(set(keys)) < len(keys):
            return next(key for key in keys if keys.count(key) > 1)
        nodes += [value for _, value in node.value]
    return None


def _kind(found: Any) -> str:
    return "nothing" if found is None else f"a {type(found).__name__}"


def _shown(scheduler: str) -> str:
    from scaleshift.cluster.existing import public

    return public(scheduler) if "://" in scheduler else scheduler
