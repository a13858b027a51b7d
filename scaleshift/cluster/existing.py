"""A scheduler that is there already: does it answer, by TLS if asked, with the same versions?"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from distributed import Client, comm
from distributed.security import Security

from scaleshift.errors import ClusterError

SECONDS = 10  # for a scheduler to answer
# Beside those that Dask compares: where these differ, workers give other numbers or fail.
COMPARED = ("scaleshift", "numba", "scikit-learn", "scipy", "xarray", "zarr")
# Where these differ, tasks cannot be read, or are not the ones that were sent.
SAME = ("python", "dask", "distributed", "scaleshift")


def beside(given: Any, options: dict[str, Any]) -> Client:
    """Another client of the scheduler that a client or a cluster has: it closes without them."""
    from distributed.deploy import Cluster

    if isinstance(given, Client):
        target, security = given.cluster or given.scheduler.address, given.security
    elif isinstance(given, Cluster):
        target, security = given, getattr(given, "security", None)
    else:
        raise ClusterError(
            f"a cluster is a kind, an address, a Client or a Cluster, and not a {type(given).__name__}"
        )
    return Client(target, **{"security": security, **options})


def at(
    where: str,
    *,
    security: Any = None,
    ca: str | Path | None = None,
    cert: str | Path | None = None,
    key: str | Path | None = None,
    timeout: float | None = None,
    **options: Any,
) -> Client:
    """A client of the scheduler at an address, or of the one that wrote a scheduler file.

    Parameters
    ----------
    where : str
        ``tcp://host:port``, ``tls://host:port``, or the path of a scheduler file.
    security : distributed.Security, optional
        What TLS needs; Dask's configuration where left out.
    ca, cert, key : path-like, optional
        Files in PEM in place of ``security``: of the authority, of this client, and of its key (where the
        certificate's file does not hold it).
    timeout : float, optional
        Seconds for the scheduler to answer; `SECONDS` where left out.
    **options
        As `distributed.Client` takes them.

    Returns
    -------
    distributed.Client

    Raises
    ------
    ClusterError
        Where nobody answers, TLS is refused, or versions differ too much.
    """
    address = where if "://" in where else _written(Path(where))
    security = certificates(security, ca, cert, key)
    if address.startswith("tls://") and not security.get_connection_args("client").get("ssl_context"):
        raise ClusterError(
            f"{public(address)} wants TLS, and there are no certificates: give ca=, cert= and key=, or set "
            "distributed.comm.tls.ca-file, .client.cert and .client.key in Dask's configuration"
        )
    client = reach(address, SECONDS if timeout is None else timeout, security=security, **options)
    try:
        _compare(client, public(address))
    except BaseException:
        client.close()
        raise
    return client


def reach(address: str, seconds: float, *, security: Security | None = None, **options: Any) -> Client:
    """A client of the scheduler at an address; ClusterError, without what may be secret in it, elsewhere."""
    security = security or Security()
    # Asked first: a Client that fails stays behind half made; where it is garbage-collected as another one
    # starts, both wait forever for one lock.
    try:
        with ThreadPoolExecutor(1) as thread:  # where no event loop runs, as it does in a notebook
            thread.submit(asyncio.run, _ask(address, seconds, security)).result()
    except (TimeoutError, OSError, ValueError) as error:
        raise ClusterError(_reason(public(address), seconds, error)) from error
    with warnings.catch_warnings(action="ignore"):  # of versions, which `differences` tells too
        return Client(address, timeout=seconds, security=security, **options)


async def _ask(address: str, seconds: float, security: Security) -> None:
    arguments = security.get_connection_args("client")
    answering = await asyncio.wait_for(comm.connect(address, timeout=seconds, **arguments), seconds)
    await answering.close()


def certificates(
    security: Any, ca: str | Path | None, cert: str | Path | None, key: str | Path | None
) -> Security:
    """What TLS needs, from files or from Dask's configuration; ClusterError where they cannot be read."""
    given = {"tls_ca_file": ca, "tls_client_cert": cert, "tls_client_key": key}
    files = {name: str(Path(path).expanduser()) for name, path in given.items() if path is not None}
    if security is not None and files:
        raise ClusterError("give either security= or ca=, cert=, key=: not both")
    try:
        # One certificate serves whichever role this process has.
        for role in ("scheduler", "worker"):
            files |= {name.replace("client", role): path for name, path in files.items() if "client" in name}
        security = security or Security(**files, **({"require_encryption": True} if files else {}))
        security.get_connection_args("client")  # reads the files
    except (OSError, ssl.SSLError) as error:
        named = ", ".join(dict.fromkeys(files.values())) or "those of Dask's configuration"
        raise ClusterError(f"the certificates cannot be read ({error}): check {named}") from error
    return security


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
    return [f"{name} ({text})" for name, text in _unlike(here, there)]


def versions(client: Client) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Version by package here, and in the scheduler and each of its workers."""
    found: Any = client.get_versions(check=False, packages=list(COMPARED))
    nodes = [found["scheduler"], *found["workers"].values()]
    return found["client"]["packages"], [node["packages"] for node in nodes if node]


def _compare(client: Client, shown: str) -> None:
    """ClusterError where versions differ so that work would fail; a warning where numbers might differ."""
    unlike = dict(_unlike(*versions(client)))
    if not unlike:
        return
    advice = "give scheduler and workers this environment"
    text = ", ".join(f"{name} ({versions})" for name, versions in unlike.items())
    if any(name in unlike for name in SAME):
        raise ClusterError(f"scheduler or workers of {shown} have other versions: {text}; {advice}")
    warnings.warn(f"workers of {shown} have other versions: {text}; {advice}", UserWarning, stacklevel=4)


def _unlike(here: dict[str, Any], there: Iterable[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    others = list(there)
    for name, version in sorted(here.items()):
        found = {_comparable(name, other.get(name)) for other in others}
        found.discard(_comparable(name, version))
        if found:
            yield name, f"{_comparable(name, version)} here, {', '.join(sorted(found))}"


def _comparable(name: str, version: str | None) -> str:
    version = version or "none"
    return ".".join(version.split(".")[:2]) if name == "python" else version


def _written(path: Path) -> str:
    """The address in a scheduler file."""
    try:
        address = json.loads(path.read_text(encoding="utf-8"))["address"]
    except OSError as error:
        raise ClusterError(
            f"{path}: {error.strerror}; `dask scheduler --scheduler-file {path}` writes it"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise ClusterError(f"{path} is no scheduler file: it holds no address ({error})") from error
    return str(address)


def _reason(shown: str, seconds: float, error: BaseException) -> str:
    """Why nobody could be talked to, by what stands at the root of the error."""
    causes = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None:
        causes.append(cause)
    told = " / ".join(f"{type(e).__name__}: {e}" for e in causes)
    return f"no Dask scheduler answers at {shown} within {seconds:g} s ({told})"
