"""Which options does a class take?  A misspelt one is told at once, not by a worker that does not start."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable
from typing import Any

from scaleshift.errors import ClusterError

# `connect` gives clients for programs that wait, on an event loop of their own.
NOT_TAKEN = {"self", "args", "kwargs", "asynchronous", "loop"}


def check(kind: str, options: Iterable[str], classes: Iterable[type], own: Iterable[str] = ()) -> None:
    """Raise ClusterError for the first option that none of the classes takes.

    Parameters
    ----------
    kind : str
        For the message.
    options : iterable of str
        Their names.
    classes : iterable of type
        Those that the options go on to; what their bases take counts.
    own : iterable of str
        Options of ours.

    Examples
    --------
    >>> from distributed import LocalCluster
    >>> check("local", ["n_worker"], [LocalCluster])
    Traceback (most recent call last):
    ...
    scaleshift.errors.ClusterError: 'local' has no option 'n_worker': did you mean 'n_workers'?
    """
    taken = {*own, "allowed_failures"}
    for base in {base for made in classes for base in made.__mro__ if "__init__" in vars(base)}:
        taken |= set(inspect.signature(vars(base)["__init__"]).parameters)
    for name in options:
        if name not in taken - NOT_TAKEN:
            raise ClusterError(f"{kind!r} has no option {name!r}{meant(name, taken - NOT_TAKEN)}")


def meant(name: str, known: Iterable[str]) -> str:
    """What a misspelt name may have been meant to be, as a part of a message.

    Examples
    --------
    >>> meant("slrum", ["local", "slurm"])
    ": did you mean 'slurm'?"
    """
    near = difflib.get_close_matches(name.lower(), sorted(known), n=1)
    return f": did you mean {near[0]!r}?" if near else "."


def said(error: Any) -> str:
    """What an error says, in one line.

    Examples
    --------
    >>> said(ValueError("two  lines"))
    'two lines'
    """
    return " ".join(str(error).split()) or type(error).__name__
