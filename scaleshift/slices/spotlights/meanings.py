"""Which values of the parameters of `SpotlightSlicer` have a meaning?"""

from __future__ import annotations

import numpy as np

from scaleshift.kernels.spotlight import SHAPES
from scaleshift.parameters import is_whole
from scaleshift.slices.meanings import (
    COMMON,
    FROM_ONE,
    FROM_ZERO,
    SWITCH,
    Meaning,
    exactly,
    one_of,
    or_none,
)

COMPAT = "spotlight"

SPOTLIGHT: dict[str, Meaning] = {
    "spotlight_size": (lambda value: 0 < value <= 1, "a share above 0, at most 1"),
    "num_steps": FROM_ONE,
    **COMMON,
    "learning_rate": (lambda value: 0 < value < np.inf, "a number above 0"),
    "kernel": one_of(SHAPES),
    "barrier_scale": FROM_ZERO,
    "patience": (lambda value: is_whole(value) and value >= 0, "a whole number from 0"),
    "decay": (lambda value: 0 < value <= 1, "a factor above 0, at most 1"),
    "flip": SWITCH,
    "compat": or_none(exactly(COMPAT)),
}
