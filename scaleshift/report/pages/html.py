"""How do the parts of a page become one HTML file?  With a template that escapes every name.

The page holds its style and script itself, and a policy that lets it load and send nothing.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from scaleshift.report.names import printable, short
from scaleshift.report.pages import cells, charts, colours
from scaleshift.report.pages.parts import Cell, Grid, Section

if TYPE_CHECKING:
    from jinja2 import Environment

MOST_ROWS, MOST_CELLS = 3_000, 60_000  # of a table, for a browser's sake; its download has all


def rendered(title: str, lead: str, sections: Sequence[Section]) -> str:
    """A page as HTML; the same parts give the same bytes.

    Parameters
    ----------
    title, lead : str
        Heading of the page, and the sentence below it.
    sections : sequence of Section

    Examples
    --------
    >>> from scaleshift.report.pages.parts import Words
    >>> page = rendered("A <b>", "one", [Section("Why", [Words(["because"])])])
    >>> "<h1>A &lt;b&gt;</h1>" in page, "http:" in page
    (True, False)
    """
    script = _file("page.js")
    return (
        _templates()
        .get_template("page.html")
        .render(
            title=title,
            lead=lead,
            sections=sections,
            style=_file("page.css") + colours.rules(),
            script=script,
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        )
    )


@cache
def _templates() -> Environment:
    import jinja2

    found = jinja2.Environment(
        loader=jinja2.FunctionLoader(_file),  # files of ours, beside this one: never a user's
        autoescape=True,
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    found.filters.update(packed=_packed, drawn=charts.drawn, kind=_kind, short=_short, shown=_shown)
    found.globals.update(cell=cells.drawn)
    return found


def _shown(grid: Grid) -> Sequence[Sequence[Cell]]:
    """Rows that stand on the page."""
    return grid.rows[: max(1, min(MOST_ROWS, MOST_CELLS // max(1, len(grid.columns))))]


def _kind(part: Any) -> str:
    return type(part).__name__


def _short(name: str) -> str:
    return short(name, cells.LONGEST_NAME)


def _finalized(value: Any) -> Any:
    """Names come from files: control codes in them become boxes, before they are escaped."""
    return printable(value) if type(value) is str else value


@cache
def _file(name: str) -> str:
    return (resources.files(__package__) / "templates" / name).read_text(encoding="utf-8")


def _packed(text: str) -> str:
    """Text as base64 of gzip, without a time: a table of thousands of rows becomes small."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
