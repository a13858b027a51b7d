"""What does a verb say when it is stopped?  One line, which tells how to go on; Ctrl-C and SIGTERM alike."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import click

WAY = "scaleshift.cli.stopping"  # where the verb's words stand in click's `meta`
CODES = {128 + signal.SIGINT: "interrupted", 128 + signal.SIGTERM: "terminated"}


OURS = (signal.SIG_DFL, signal.default_int_handler)  # handlers that are replaced, none of an application


class Stopped(KeyboardInterrupt):
    """A signal: SIGTERM, as SLURM and Kubernetes send it, is given way to as Ctrl-C is."""

    def __init__(self, number: int):
        super().__init__(number)
        self.number = number


def goes_on(way: Callable[[], str]) -> None:
    """Keep what a verb says of how to go on: words that are made when it is stopped, which may be none."""
    click.get_current_context().meta[WAY] = way


def from_checkpoint(context: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """Callback of --checkpoint: the words of a verb that has it."""

    def way() -> str:
        if path is None:
            return (
                "nothing of the fit is kept; with --checkpoint PATH the same command goes on where it was "
                "stopped"
            )
        if not path.is_dir() or not any(path.iterdir()):
            return f"{path} holds nothing yet; the same command begins anew"
        return f"the same command goes on from {path}"

    goes_on(way)
    return path


def checkpoint(what: str) -> Callable[[Any], Any]:
    """The option --checkpoint of a verb that keeps this."""
    return click.option(
        "--checkpoint",
        type=click.Path(file_okay=False, path_type=Path),
        callback=from_checkpoint,
        help=f"Folder for {what}: the same command goes on from there after it was killed.",
    )


@contextlib.contextmanager
def heard() -> Iterator[None]:
    """Ctrl-C and SIGTERM raise `Stopped` while this lasts; a second one ends the process at once."""
    before = {}
    if threading.current_thread() is threading.main_thread():  # no other can set handlers
        found = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        before = {number: handler for number, handler in found.items() if handler in OURS}
    for number in before:
        signal.signal(number, _stop)
    log = logging.getLogger("asyncio")
    was_disabled = log.disabled
    try:
        yield
    finally:
        log.disabled = was_disabled
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(number: int, frame: Any) -> NoReturn:
    signal.signal(number, signal.SIG_DFL)
    logging.getLogger("asyncio").disabled = True  # it shows what a Dask client gives up with a traceback
    raise Stopped(number)


def behind(error: BaseException) -> Stopped | None:
    """The signal that an error has come of: classes that are being made, and imports, raise others for it.

    Examples
    --------
    >>> error = RuntimeError("Error calling __set_name__ on a property")
    >>> behind(error) is None
    True
    >>> error.__cause__ = Stopped(2)
    >>> behind(error)
    Stopped(2)
    """
    seen: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in seen:
        if isinstance(cause, Stopped):
            return cause
        seen.append(cause)
        cause = cause.__cause__ or cause.__context__
    return None


def told(context: click.Context, stop: KeyboardInterrupt) -> click.exceptions.Exit:
    """Print the line; the exit code is that of a shell for a process which the signal has ended."""
    code = 128 + (stop.number if isinstance(stop, Stopped) else signal.SIGINT)
    words = context.meta.get(WAY, str)()
    if sys.stderr.isatty():
        click.echo(err=True)  # the terminal has printed ^C
    click.echo(f"{CODES[code]}: {words}" if words else CODES[code], err=True)
    return click.exceptions.Exit(code)


def leave(code: int) -> NoReturn:
    """End the process now: Python would wait for threads that are still at work on a block or a refit."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
