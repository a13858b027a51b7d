"""Does a parameter have a value with a meaning?  Whatever it is: a string, None, an array, any object."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from scaleshift.errors import DataError
from scaleshift.spelling import meant

LONGEST = 80  # characters of a value in a message


def check(name: str, value: Any, meaningful: Callable[[Any], Any], expected: str | Sequence[Any]) -> None:
    """Refuse a value that is not `meaningful`, or that this cannot even be asked of.

    Of several names that are `expected`, the one that was meant is suggested.

    Examples
    --------
    >>> check("level", 0.9, lambda value: 0 < value < 1, "a number between 0 and 1")
    >>> check("level", "high", lambda value: 0 < value < 1, "a number between 0 and 1")
    Traceback (most recent call last):
    scaleshift.errors.DataError: level='high': expected a number between 0 and 1
    >>> check("solver", "moment", ("moments", "stream").__contains__, ("moments", "stream"))
    Traceback (most recent call last):
    scaleshift.errors.DataError: solver='moment': expected one of moments, stream; did you mean 'moments'?
    """
    try:
        fine = bool(meaningful(value))
    except (TypeError, ValueError, OverflowError):  # not to be compared with a number, or an array
        fine = False
    if not fine:
        told = expected if isinstance(expected, str) else f"one of {', '.join(map(str, expected))}"
        hint = meant(value, expected) if isinstance(value, str) and not isinstance(expected, str) else ""
        raise DataError(f"{name}={shown(value)}: expected {told}{hint}")


def shown(value: Any) -> str:
    """A value as it is written in Python, in one line that is not too long.

    Examples
    --------
    >>> shown("high"), len(shown(list(range(1000))))
    ("'high'", 80)
    """
    return cut(repr(value))


def cut(text: str) -> str:
    r"""A text in one line that is not too long.

    Examples
    --------
    >>> cut("two\nlines")
    'two lines'
    """
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."


def check_switch(name: str, value: Any) -> None:
    """Refuse what is neither True nor False.

    Examples
    --------
    >>> check_switch("soft", "no")
    Traceback (most recent call last):
    scaleshift.errors.DataError: soft='no': expected True or False
    """
    check(name, value, is_switch, "True or False")


def check_replicates(n_bootstrap: Any) -> None:
    """Refuse a number of replicates of which no interval can be made."""
    check(
        "n_bootstrap",
        n_bootstrap,
        lambda n: isinstance(n, int | np.integer) and n >= 0 and n != 1,
        "0, or a number of replicates from 2",
    )


def check_level(level: Any) -> None:
    """Refuse what is no level of an interval."""
    check("level", level, lambda value: 0 < value < 1, "a number between 0 and 1")


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number, and no bool.

    Examples
    --------
    >>> is_whole(3), is_whole(3.0), is_whole(True)
    (True, False, False)
    """
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_switch(value: Any) -> bool:
    """Whether a value is True or False, or a whole number that stands for one.

    Examples
    --------
    >>> is_switch(False), is_switch(1), is_switch(2), is_switch("no")
    (True, True, False, False)
    """
    return isinstance(value, bool | int | np.bool_ | np.integer) and value in (0, 1)
