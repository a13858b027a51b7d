"""Which values of a slicer's parameters have a meaning?  Questions, each with what is expected in words."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

import numpy as np

from scaleshift.parameters import is_switch, is_whole

Meaning = tuple[Callable[[Any], bool], str]


def or_none(meaning: Meaning) -> Meaning:
    """The same, or None."""
    meaningful, expected = meaning
    return lambda value: value is None or meaningful(value), f"None or {expected}"


def one_of(values: Container[Any]) -> Meaning:
    """One of some values."""
    return lambda value: value in values, f"one of {values}"


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
