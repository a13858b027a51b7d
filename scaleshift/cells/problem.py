"""What is worth saying about a file, a sheet or a choice, before and after a study comes in, and how?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Level = Literal["error", "warning", "note"]
SHOWN = 8  # names in one message


@dataclass(frozen=True)
class Problem:
    """One thing to say about one file.

    Attributes
    ----------
    level : "error", "warning" or "note"
        error: nothing can be read until it is mended or left out; warning: read, and the user should look;
        note: what was done.
    place : str
        The file, sheet or sample that it is about.
    text : str
        What was found, on one line, without the place.
    fix : str
        What to do about it, "" for a note.

    Examples
    --------
    >>> str(Problem("error", "a.fcs", "holds 2 data sets", "pass data_set=0 or data_set=1"))
    'a.fcs: holds 2 data sets; pass data_set=0 or data_set=1'
    """

    level: Level
    place: str
    text: str
    fix: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.text}" + (f"; {self.fix}" if self.fix else "")

    def to_json(self) -> dict[str, Any]:
        """As a dictionary of text."""
        return {"level": self.level, "place": self.place, "text": self.text, "fix": self.fix}


def several(items: Sequence[object], shown: int = SHOWN) -> str:
    """The first few of many, and how many more there are.

    Examples
    --------
    >>> several(["CD3", "CD4"]), several(range(1, 9), 5)
    ('CD3, CD4', '1, 2, 3, 4, 5 and 3 more')
    """
    more = f" and {len(items) - shown} more" if len(items) > shown else ""
    return ", ".join(str(item) for item in items[:shown]) + more
