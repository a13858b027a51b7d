"""How does a result for the terminal become text where no terminal draws it, as with `print`?"""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console, Group


class Printed(Group):
    """Parts for rich, one below the other, that are plain text for `print` and `str`.

    Parameters
    ----------
    *parts : rich renderables
    width : int, optional
        Characters a line of the text; default: those of the terminal.

    Examples
    --------
    >>> print(Printed("one", "two"))
    one
    two
    """

    def __init__(self, *parts: Any, width: int | None = None) -> None:
        super().__init__(*parts)
        self.width = width

    def __str__(self) -> str:
        """The lines, without colour."""
        screen = io.StringIO()
        Console(file=screen, width=self.width or Console().width, color_system=None).print(self)
        return "\n".join(line.rstrip() for line in screen.getvalue().splitlines())

    __repr__ = __str__  # a prompt shows what `print` does, as with tables of pandas
