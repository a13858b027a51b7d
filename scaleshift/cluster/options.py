"""Which options does a class take?  A misspelt one is told at once, not by a worker that does not start."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from typing import Any

from scaleshift.errors import ClusterError
from scaleshift.spelling import nearest

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


def check_counts(kind: str, options: Mapping[str, Any], names: Iterable[str]) -> None:
    """Raise ClusterError for the first of these options that is below 1; what is no number is left to Dask.

    Examples
    --------
    >>> check_counts("local", {"n_workers": 0}, ["n_workers"])
    Traceback (most recent call last):
    ...
    scaleshift.errors.ClusterError: 'local': n_workers=0 is none: give 1 or more
    """
    for name in names:
        value = options.get(name)
        if isinstance(value, int | float) and not value >= 1:
            what = "none" if value == 0 else "no number of them"
            raise ClusterError(f"{kind!r}: {name}={value} is {what}: give 1 or more")


def meant(name: str, known: Iterable[str]) -> str:
    """What a misspelt name may have been meant to be, as a part of a message.

    Examples
    --------
    >>> meant("slrum", ["local", "slurm"])
    ": did you mean 'slurm'?"
    >>> meant("host:8786", ["local", "slurm"])
    ": did you mean 'tcp://host:8786'?"
    """
    if re.fullmatch(r"[^\s/]+:\d+", name):
        return f": did you mean 'tcp://{name}'?"
    near = nearest(name, sorted(known))
    return f": did you mean {near!r}?" if near else "."
