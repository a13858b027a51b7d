"""What is being done, and how far is it?  Told by whoever does it, for whoever draws it.

The library tells its steps here, and knows nothing of bars; the command line listens. Without a listener
nothing happens.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(eq=False)
class Step:
    """Something that is being done; of several alike, how many are done."""

    what: str
    of: int = 0
    at_once: int = 0  # that are tasks of one pass
    done: int = 0


class Listener(Protocol):
    """Whoever wants to know."""

    def changed(self, steps: tuple[Step, ...]) -> None:
        """What is being done now, the innermost step last. Also called from other threads."""

    def submitted(self, client: Any, collections: tuple[Any, ...]) -> contextlib.AbstractContextManager[Any]:
        """A Dask scheduler computes these collections while the context lasts."""


_now: ContextVar[tuple[Step, ...]] = ContextVar("doing", default=())
_listeners: list[Listener] = []


@contextlib.contextmanager
def doing(what: str, of: int = 0, at_once: int = 0) -> Iterator[Callable[[int], None]]:
    """Tell that something is being done while the context lasts.

    Parameters
    ----------
    what : str
        A few words; of several things alike their name, "samples".
    of : int, default 0
        How many there are, where they are counted.
    at_once : int, default 0
        How many of them are tasks of one pass, which tells how far they are before it ends.

    Yields
    ------
    callable
        ``advance(n)``: so many more are done.

    Examples
    --------
    >>> with doing("answering"), doing("samples", of=3) as advance:
    ...     advance(2)
    ...     [step.what for step in steps()], steps()[-1].done
    (['answering', 'samples'], 2)
    """
    step = Step(what, of, at_once)

    def advance(n: int = 1) -> None:
        step.done += n
        _tell()

    token = _now.set((*_now.get(), step))
    _tell()
    try:
        yield advance
    finally:
        _now.reset(token)
        _tell()


def steps() -> tuple[Step, ...]:
    """What is being done in this context, the innermost step last."""
    return _now.get()


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell this listener while the context lasts."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextlib.contextmanager
def submitted(client: Any, collections: tuple[Any, ...]) -> Iterator[None]:
    """A Dask scheduler computes these collections while the context lasts."""
    with contextlib.ExitStack() as stack:
        for listener in _listeners:
            stack.enter_context(listener.submitted(client, collections))
        yield


def _tell() -> None:
    for listener in _listeners:
        listener.changed(_now.get())
