"""What is a page of results made of?  Sections, each with words, pairs, tables and charts; knows no HTML.

A table's columns are of one of the kinds below, which say how a cell is drawn and by what it is sorted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

DASH = "–"  # between the ends of an interval
NOTHING = "-"  # a quantity that was not computed


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
        What the numbers are.
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


Part = Grid | Chart | Words | Points | Pairs | Figures


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


def number(value: float, digits: int = 1) -> Cell:
    """A number as a cell; NaN is a quantity that was not computed.

    Examples
    --------
    >>> number(3.14159).text, number(float("nan")).text
    ('3.1', '-')
    """
    known = not math.isnan(value)
    return Cell(f"{value:z,.{digits}f}" if known else NOTHING, value if known else None)


def count(value: float) -> Cell:
    """A whole number as a cell."""
    return number(value, 0)


def ranged(text: str, value: float, low: float, high: float, shown: tuple[str, str]) -> Cell:
    """A number with its interval; ends that are not known are left out.

    Examples
    --------
    >>> ranged("12.0", 0.12, 0.1, 0.15, ("10.0", "15.0")).note
    '10.0 to 15.0'
    """
    if math.isnan(value):
        return Cell(NOTHING)
    if math.isnan(low) or math.isnan(high):
        return Cell(text, value)
    return Cell(text, value, low, high, note=f"{shown[0]} to {shown[1]}")


def sentence(words: str) -> str:
    """Words as a sentence.

    Examples
    --------
    >>> sentence("far: share of rows")
    'Far: share of rows.'
    """
    return f"{words[:1].upper()}{words[1:]}."
