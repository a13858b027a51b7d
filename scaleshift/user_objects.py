"""What does a method of the user's own object give?  Its failures carry its name."""

from __future__ import annotations

from typing import Any

from scaleshift.errors import DataError


def ask(thing: Any, method: str, *arguments: Any) -> Any:
    """What `thing.method(*arguments)` gives.

    Raises
    ------
    DataError
        Whatever it raises, with the names of its class and method; the cause stands behind it.

    Examples
    --------
    >>> ask([3, 1], "index", 1)
    1
    >>> ask([3, 1], "index", 2)
    Traceback (most recent call last):
    scaleshift.errors.DataError: list.index failed (ValueError: 2 is not in list)
    """
    try:
        return getattr(thing, method)(*arguments)
    except Exception as error:
        name = type(thing).__name__
        raise DataError(f"{name}.{method} failed ({type(error).__name__}: {error})") from error
