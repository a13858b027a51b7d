"""What is a page of results made of?  Sections, each with words, pairs, tables and charts; knows no HTML.

A table's columns are of one of the kinds below, which say how a cell is drawn and by what it is sorted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from scaleshift.report.digits import NOTHING, interval


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Attributes
    ----------
    text : str
        What is read.
    value : float, optional
        What it is sorted by, and drawn at; None: it is sorted by its text.
    low, high : float, optional
        Ends of an interval, in the units of `value`.
    shares : sequence of float
        Of a column of shares: the lengths, from 0 to 1, one an entry of the table's legend.
    note : str
        Shown where a mouse rests on the cell.
    """

    text: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    shares: Sequence[float] = ()
    note: str = ""

    @property
    def has_interval(self) -> bool:
        """Whether both ends are known."""
        return self.low is not None and self.high is not None


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    heading : str
    kind : str
        "text"; "number"; "interval", a number with its interval, drawn between `start` and `end`; "shares", a
        stacked bar; "heat", a number whose size colours the cell, with full colour at `end`.
    start, end : float
    note : str
        What the numbers are; told below the table, since few rest a mouse on a heading.
    mark : float, optional
        A value to compare with, of a column of intervals: a thin line in every cell.
    """

    heading: str
    kind: Literal["text", "number", "interval", "shares", "heat"] = "text"
    start: float = 0.0
    end: float = 1.0
    note: str = ""
    mark: float | None = None

    def place(self, value: float) -> float:
        """Where a value lies between start and end, from 0 to 1."""
        return min(max((value - self.start) / ((self.end - self.start) or 1.0), 0.0), 1.0)


@dataclass(frozen=True)
class Download:
    """A file that the page holds."""

    name: str
    text: str


@dataclass(frozen=True)
class Grid:
    """A table that can be sorted and filtered.

    Attributes
    ----------
    caption : str
        What it shows, for those who hear it and above it.
    columns : sequence of Column
        The first one names the row.
    rows : sequence of sequence of Cell
    legend : sequence of (str, str)
        Style class and name of each share of a stacked bar.
    flagged : sequence of bool
        Rows that deserve caution; where there are some, they can be shown alone.
    download : Download, optional
    footnote : str
    """

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    legend: Sequence[tuple[str, str]] = ()
    flagged: Sequence[bool] = ()
    download: Download | None = None
    footnote: str = ""


@dataclass(frozen=True)
class Point:
    """A point of a chart, with its interval if it has one, and what is said of it."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    note: str = ""
    chosen: bool = False


@dataclass(frozen=True)
class Chart:
    """A curve with intervals: a number against another one. Its numbers stand in a table too.

    `logarithmic`: equal factors of x, which is above 0, are equally far apart.
    """

    caption: str
    x_label: str
    y_label: str
    points: Sequence[Point]
    logarithmic: bool = False


@dataclass(frozen=True)
class Words:
    """Paragraphs."""

    paragraphs: Sequence[str]


@dataclass(frozen=True)
class Lines:
    """Text as a terminal shows it, line by line, with letters of one width."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Points:
    """A list, each entry with an optional heading in front."""

    entries: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Pairs:
    """Names and values: methods, seeds, parameters."""

    entries: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Figures:
    """A few large numbers, each with what it is."""

    entries: Sequence[tuple[str, str]]


Part = Grid | Chart | Words | Lines | Points | Pairs | Figures


@dataclass(frozen=True)
class Section:
    """A heading with what stands below it.

    Attributes
    ----------
    heading : str
    parts : sequence of Part
    folded : bool
        Whether it is opened by a click: what most readers skip.
    """

    heading: str
    parts: Sequence[Part]
    folded: bool = False


def valued(value: float, shown: Callable[[float], str]) -> Cell:
    """A number as a cell, in the words of `shown`; NaN is a quantity that was not computed.

    Examples
    --------
    >>> valued(0.123, "{:.1f}".format).text, valued(float("nan"), "{:.1f}".format).text
    ('0.1', '-')
    """
    return Cell(NOTHING) if math.isnan(value) else Cell(shown(value), float(value))


def number(value: float, decimals: int = 1) -> Cell:
    """A number as a cell.

    Examples
    --------
    >>> number(3.14159).text, number(1234.0, 0).text
    ('3.1', '1,234')
    """
    return valued(value, f"{{:z,.{decimals}f}}".format)


def count(value: float) -> Cell:
    """A whole number as a cell."""
    return number(value, 0)


def ranged(value: float, low: float, high: float, shown: Callable[[float], str]) -> Cell:
    """A number with its interval; ends that are not known are left out.

    Examples
    --------
    >>> ranged(0.12, 0.1, 0.15, "{:.0%}".format).note
    '10% to 15%'
    """
    if math.isnan(value) or math.isnan(low) or math.isnan(high):
        return valued(value, shown)
    return Cell(shown(value), float(value), float(low), float(high), note=interval(low, high, shown))


def give_or_take(value: float, error: float, shown: Callable[[float], str]) -> Cell:
    """A number with its standard error, drawn on either side: that is less than an interval, and said so.

    Examples
    --------
    >>> give_or_take(0.912, 0.0123, "{:.3f}".format).note
    '± 0.012'
    """
    if math.isnan(value) or math.isnan(error):
        return valued(value, shown)
    return Cell(shown(value), float(value), float(value - error), float(value + error), note=f"± {error:.2g}")


def sentence(words: str) -> str:
    """Words as a sentence.

    Examples
    --------
    >>> sentence("far: share of rows")
    'Far: share of rows.'
    """
    return f"{words[:1].upper()}{words[1:]}."
