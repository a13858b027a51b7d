"""Which values of a slicer's parameters have a meaning?  Questions, each with what is expected in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from scaleshift.parameters import is_switch, is_whole

Meaning = tuple[Callable[[Any], bool], str | tuple[Any, ...]]


def or_none(meaning: Meaning) -> Meaning:
    """The same, or None."""
    meaningful, expected = meaning
    either = f"None or {expected}" if isinstance(expected, str) else (None, *expected)
    return lambda value: value is None or meaningful(value), either


def one_of(values: Iterable[Any]) -> Meaning:
    """One of some values."""
    known = tuple(values)
    return lambda value: value in known, known


def exactly(word: str) -> Meaning:
    """A word."""
    return lambda value: value == word, repr(word)


FROM_ONE: Meaning = (lambda value: is_whole(value) and value >= 1, "a whole number from 1")
FROM_ZERO: Meaning = (lambda value: 0 <= value < np.inf, "a number from 0")
SWITCH: Meaning = (is_switch, "True or False")

# Of every slicer.
COMMON: dict[str, Meaning] = {
    "n_slices": FROM_ONE,
    "n_pca_components": or_none(FROM_ONE),
    "holdout": (lambda value: 0 <= value < 1, "a share from 0, below 1"),
}
