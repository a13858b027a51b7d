"""A scheduler that is there already: does it answer, by TLS if asked, with the same versions?"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import ssl
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from distributed import Client, comm
from distributed.comm.registry import get_backend
from distributed.security import Security
from tornado.iostream import StreamClosedError

from scaleshift.errors import ClusterError

GIVE = "give ca=, cert= and key="
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
    client = reach(address, SECONDS if timeout is None else timeout, security, **options)
    try:
        compare(client, public(address))
    except BaseException:
        client.close()
        raise
    return client


def reach(address: str, seconds: float, security: Security | None = None, **options: Any) -> Client:
    """A client of the scheduler at an address; ClusterError, without what may be secret in it, elsewhere."""
    _check_address(address)
    security = security or certificates(None, None, None, None)
    if address.startswith("tls://") and not security.get_connection_args("client").get("ssl_context"):
        raise ClusterError(
            f"{public(address)} wants TLS, and there are no certificates: {GIVE}, or set "
            "distributed.comm.tls.ca-file, .client.cert and .client.key in Dask's configuration"
        )
    if security.require_encryption and address.startswith(("tcp://", "ws://")):
        raise ClusterError(f"{public(address)} is without TLS, and certificates ask for it: write tls://")
    # Asked first: a Client that fails stays behind half made; where it is garbage-collected as another one
    # starts, both wait forever for one lock.
    try:
        with ThreadPoolExecutor(1) as thread:  # where no event loop runs, as it does in a notebook
            thread.submit(asyncio.run, _ask(address, seconds, security)).result()
        with warnings.catch_warnings(action="ignore"):  # of versions, which `compare` tells
            return Client(address, timeout=seconds, security=security, **options)
    except (OSError, ValueError) as error:
        raise ClusterError(_reason(address, seconds, error)) from error


async def _ask(address: str, seconds: float, security: Security) -> None:
    arguments = security.get_connection_args("client")
    answering = await asyncio.wait_for(comm.connect(address, timeout=seconds, **arguments), seconds + 1)
    await answering.close()


def certificates(
    security: Any, ca: str | Path | None, cert: str | Path | None, key: str | Path | None
) -> Security:
    """What TLS needs, from files or from Dask's configuration; ClusterError where they cannot be read."""
    given = {"tls_ca_file": ca, "tls_client_cert": cert, "tls_client_key": key}
    files = {name: str(Path(path).expanduser()) for name, path in given.items() if path is not None}
    if security is not None and files:
        raise ClusterError("give either security= or ca=, cert=, key=: not both")
    for path in files.values():
        if not Path(path).exists():
            raise ClusterError(f"the certificates cannot be read: {path}: No such file or directory")
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


def compare(client: Client, shown: str) -> None:
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


def _check_address(address: str) -> None:
    try:
        scheme, place = comm.parse_address(address)
        get_backend(scheme)
        if scheme != "inproc":
            comm.parse_host_port(place)
    except ValueError as error:
        raise ClusterError(
            f"{public(address)} is no address of a scheduler: write one like tcp://host:8786"
        ) from error


def _written(path: Path) -> str:
    """The address in a scheduler file."""
    try:
        address = json.loads(path.read_text(encoding="utf-8"))["address"]
    except OSError as error:
        raise ClusterError(
            f"{path}: {error.strerror}; `dask scheduler --scheduler-file {path}` writes it"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise ClusterError(
            f"{path} is no scheduler file: it holds no address ({error}); `dask scheduler "
            f"--scheduler-file {path}` writes one"
        ) from error
    return str(address)


def _reason(address: str, seconds: float, error: BaseException) -> str:
    """Why nobody could be talked to, by what stands at the root of the error.

    The errors' own words are left out: they hold the whole address.
    """
    shown = public(address)
    causes = [error]
    while (deeper := causes[-1].__cause__ or causes[-1].__context__) is not None:
        causes.append(deeper)
    return f"no Dask scheduler answers at {shown}: {_cause(causes, address, seconds)}"


def _cause(causes: list[BaseException], address: str, seconds: float) -> str:
    def among(*kinds: type[BaseException]) -> BaseException | None:
        return next((cause for cause in causes if isinstance(cause, kinds)), None)

    if address.startswith("inproc://"):
        return "it is not in this process"
    if among(ssl.SSLCertVerificationError):
        return "TLS is refused here, since it shows a certificate that ca= has not signed"
    hung_up = among(ConnectionResetError, BrokenPipeError, StreamClosedError, ssl.SSLEOFError)
    refused = among(ssl.SSLError, ValueError)  # the second of a connection that a failed handshake has closed
    if address.startswith("tls://") and (hung_up or (refused and "ALERT" in str(refused))):
        return "TLS is refused there, as it is where its own ca has not signed the certificate given as cert="
    if refused:
        return "what listens there does not talk TLS; is it tcp://?"
    if hung_up:
        return f"it hung up; if it wants TLS, write tls:// and {GIVE}"
    return _silence(address, seconds)


def _silence(address: str, seconds: float) -> str:
    """What a bare connection meets: Dask's last attempt may have ended by the clock."""
    try:
        socket.create_connection(comm.parse_host_port(comm.parse_address(address)[1]), timeout=1).close()
    except ConnectionRefusedError:
        return "nobody listens there"
    except socket.gaierror:
        return "there is no host of this name"
    except OSError as error:
        return f"it is not reached ({error.strerror or 'no answer'})"
    return f"what listens there said nothing within {seconds:g} s"
