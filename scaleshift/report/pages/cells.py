"""How does a cell of a table become HTML?  By the kind of its column; every name is escaped."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from scaleshift.report.names import printable, short
from scaleshift.report.pages.parts import Cell, Column

LONGEST_NAME = 80  # characters of a row's or a column's name; downloads have all of it
LONGEST_NOTE = 24  # characters below a number
SEEN = 0.0002  # of a bar: shorter shares have no width on a screen


def drawn(cell: Cell, column: Column, legend: Sequence[tuple[str, str]], names_row: bool) -> Markup:
    """A cell of a row; the first one names the row.

    Examples
    --------
    >>> drawn(Cell("<S1>"), Column("sample"), [], names_row=True)
    Markup('<th scope="row">&lt;S1&gt;</th>')
    >>> drawn(Cell("12.0", 0.12), Column("B cells", "number"), [], names_row=False)
    Markup('<td class="n" data-v="0.12">12.0</td>')
    """
    if column.kind == "shares":
        return Markup('<td class="shares" aria-hidden="true">{}</td>').format(_bar(cell, legend))
    classes, given = _number(cell, column) if column.kind != "text" else ("", Markup(""))
    below = cell.note if cell.has_interval or column.kind == "heat" else ""  # seen without a mouse
    if cell.note and not below:
        given += Markup(' title="{}"').format(printable(cell.note))
    if classes:
        given = Markup(' class="{}"').format(classes) + given
    text = Markup.escape(short(cell.text, LONGEST_NAME) if names_row else printable(cell.text))
    if below:
        line = Markup("<b>{}</b> <small>{}</small>" if cell.has_interval else "{} <small>{}</small>")
        text = line.format(text, short(below, LONGEST_NOTE))
    tag = Markup('<th scope="row"{}>{}</th>') if names_row else Markup("<td{}>{}</td>")
    return tag.format(given, text)


def _number(cell: Cell, column: Column) -> tuple[str, Markup]:
    """Style classes of a number, and the attributes by which it is sorted and drawn."""
    if cell.value is None:
        return "n", Markup("")
    given = Markup(' data-v="{}"').format(f"{cell.value:.6g}")
    if column.kind == "heat":
        side = " heat low" if cell.value < 0 else " heat"
        return "n" + side, given + _style([("s", column.place(abs(cell.value)))])
    if cell.has_interval:
        at = [("v", cell.value), ("l", cell.low), ("h", cell.high), ("m", column.mark)]
        return ("n i" if column.mark is None else "n i m"), given + _style(
            [(name, column.place(x)) for name, x in at if x is not None]
        )
    return "n", given


def _style(variables: Sequence[tuple[str, float]]) -> Markup:
    text = ";".join(f"--{name}:{_percent(share)}" for name, share in variables)
    return Markup(' style="{}"').format(text)


def _bar(cell: Cell, legend: Sequence[tuple[str, str]]) -> Markup:
    piece = Markup('<i class="{}" style="width:{}%" title="{} {:.1f} %"></i>')
    return Markup("").join(
        piece.format(style, _percent(share), printable(name), 100 * share)
        for share, (style, name) in zip(cell.shares, legend, strict=True)
        if share > SEEN
    )


def _percent(share: float) -> str:
    """A share for the style, with no more digits than a screen has dots."""
    return f"{100 * share:.2f}".rstrip("0").rstrip(".")
