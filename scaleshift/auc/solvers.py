"""Which solvers are there?  A new one is a function of a `Job`, and an entry here."""

from __future__ import annotations

from collections.abc import Callable

from scaleshift.auc.descending import sht
from scaleshift.auc.solving import Job, Solved, moments, screen, stream

SOLVERS: dict[str, Callable[[Job], Solved]] = {
    "moments": moments,
    "stream": stream,
    "screen": screen,
    "sht": sht,
}
SPARSE = ("stream", "screen")  # those that take sparse rows
