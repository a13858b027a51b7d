"""What does the user's own object or function give?  Its failures carry its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from scaleshift.errors import DataError, one_line


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


def name_of(function: Callable[..., Any]) -> str:
    """What a function is called, or the class of a callable object.

    Examples
    --------
    >>> from functools import partial
    >>> name_of(len), name_of(partial(len))
    ('len', 'partial')
    """
    return str(getattr(function, "__qualname__", type(function).__name__))


def told(estimator: Any) -> str:
    """What an estimator is, with all its parameters, for a fingerprint; of functions the names.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> told(LogisticRegression(class_weight={"a": 2.0})) == told(LogisticRegression(class_weight={"a": 3.0}))
    False
    """
    if not hasattr(estimator, "get_params"):
        return type(estimator).__qualname__
    parameters = estimator.get_params(deep=False)
    listed = ", ".join(f"{name}={_value(value)}" for name, value in sorted(parameters.items()))
    return f"{type(estimator).__qualname__}({listed})"


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(sorted(f'{_value(key)}: {_value(part)}' for key, part in value.items()))}}}"
    if isinstance(value, np.ndarray | np.generic):
        return repr(value.tolist())
    if hasattr(value, "get_params") and not isinstance(value, type):
        return told(value)
    return repr(value) if isinstance(value, str | int | float | bool | None) else name_of(value)
