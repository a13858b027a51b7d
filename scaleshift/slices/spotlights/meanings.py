"""Which values of the parameters of `SpotlightSlicer` have a meaning?"""

from __future__ import annotations

from scaleshift.kernels.spotlight import SHAPES
from scaleshift.parameters import is_whole
from scaleshift.slices.meanings import (
    COMMON,
    FROM_ONE,
    SWITCH,
    Meaning,
    exactly,
    one_of,
    or_none,
)

COMPAT = "spotlight"
LARGEST = 1e30  # of parameters that are multiplied

LARGEST = 1e30  # of parameters that are multiplied

SPOTLIGHT: dict[str, Meaning] = {
    "spotlight_size": (lambda value: 0 < value <= 1, "a share above 0, at most 1"),
    "num_steps": FROM_ONE,
    **COMMON,
    "learning_rate": (lambda value: 0 < value <= LARGEST, f"a number above 0, at most {LARGEST:g}"),
    "kernel": one_of(SHAPES),
    "barrier_scale": (lambda value: 0 <= value <= LARGEST, f"a number from 0 to {LARGEST:g}"),
    "patience": (lambda value: is_whole(value) and value >= 0, "a whole number from 0"),
    "decay": (lambda value: 0 < value <= 1, "a factor above 0, at most 1"),
    "flip": SWITCH,
    "compat": or_none(exactly(COMPAT)),
}
