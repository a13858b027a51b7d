"""How does a page stand beside the tables that it shows?  Written last; that of an earlier run goes first.

A run that is killed in between leaves no page at all, and none that shows other numbers than the tables.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scaleshift.errors import DataError

PAGE = "report.html"
MARK = b'<meta name="generator" content="scaleshift">'
HEAD = 1_000  # bytes in which the mark stands


def refuse_foreign(output: Path) -> None:
    """Raise DataError where a page stands that is not ours: many programs write one of that name."""
    path = output / PAGE
    if os.path.lexists(path) and not is_ours(path):
        raise DataError(
            f"{path} is there, and scaleshift did not write it: choose another --output, or move it away"
        )


def is_ours(path: Path) -> bool:
    """Whether a file is a page as `scaleshift.report.page` makes it."""
    try:
        if not path.is_file():  # to open a pipe would wait
            return False
        with path.open("rb") as file:
            return MARK in file.read(HEAD)
    except OSError:
        return False


@contextlib.contextmanager
def after_all(output: Path, *results: Any) -> Iterator[None]:
    """Write the page of these results once what is written meanwhile is there."""
    from scaleshift import report

    refuse_foreign(output)
    (output / PAGE).unlink(missing_ok=True)
    yield
    report.page(list(results), output / PAGE)
