"""What does the user's own object or function give?  Its failures carry its name."""

from __future__ import annotations

from collections.abc import Callable
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
        raise DataError(f"{name}.{method} failed ({type(error).__name__}: {one_line(error)})") from error


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """What `function(*arguments)` gives.

    Raises
    ------
    DataError
        Whatever it raises, with its name; the cause stands behind it.

    Examples
    --------
    >>> call(len, 1)
    Traceback (most recent call last):
    scaleshift.errors.DataError: len failed (TypeError: object of type 'int' has no len())
    """
    try:
        return function(*arguments)
    except Exception as error:
        raise DataError(f"{name_of(function)} failed ({type(error).__name__}: {one_line(error)})") from error


def one_line(error: Exception) -> str:
    r"""What an error says, in one line.

    Examples
    --------
    >>> one_line(ValueError("two\nlines"))
    'two lines'
    """
    return " ".join(str(error).split())


def name_of(function: Callable[..., Any]) -> str:
    """What a function is called, or the class of a callable object.

    Examples
    --------
    >>> from functools import partial
    >>> name_of(len), name_of(partial(len))
    ('len', 'partial')
    """
    return str(getattr(function, "__qualname__", type(function).__name__))
