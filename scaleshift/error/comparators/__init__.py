"""What do other methods say of a target?  By name, each ``(held, target) -> Answer``; and on plain arrays."""

from __future__ import annotations

from collections.abc import Callable

from scaleshift.error.comparators import answering
from scaleshift.error.family import Answer
from scaleshift.error.held_out import HeldOut, Seen

Comparator = Callable[[HeldOut, Seen], Answer]

NORM = "projection_norm"  # no error: a variable of its own in a result
COMPARATORS: dict[str, Comparator] = {
    "importance_weighted": answering.importance_weighted,
    "importance_weighted_cv": answering.importance_weighted_cv,
    "average_confidence": answering.average_confidence,
    "difference_of_confidence": answering.difference_of_confidence,
    "average_thresholded_confidence": answering.average_thresholded_confidence,
}
