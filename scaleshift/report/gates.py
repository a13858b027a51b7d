"""How near are the estimates to the gates?  What `compare_gated` gives, as a table, as text, as a picture."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from rich import box
from rich.table import Table
from rich.text import Text

from scaleshift.errors import DataError
from scaleshift.report import drawing
from scaleshift.report.digits import NOTHING, interval, per_cent
from scaleshift.report.drawing import GREY
from scaleshift.report.files import save_csv, write_png
from scaleshift.report.gated import summarize_gated
from scaleshift.report.names import short
from scaleshift.report.printed import Printed
from scaleshift.report.proportion_bars import PALETTE

if TYPE_CHECKING:  # importing matplotlib takes longer than all of scaleshift
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = ("sample", "label", "gated", "estimated", "low", "high", "difference", "inside")
MARKERS = "osD^vPX*"
MOST_ROWS = 60  # that are listed, those that differ most; the table has all
MOST_INTERVALS = 200  # more of them hide each other
LONGEST_NAME = 28  # characters
SIDE, LEGEND_ROW = 5.0, 0.2  # inches
CAPTION = "per cent of all cells; difference in percentage points, the largest first"


def gated_table(frame: pd.DataFrame, path: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """The table itself, written as CSV where a path is given.

    Parameters
    ----------
    frame : pandas.DataFrame
        What `compare_gated` gives.
    path : path, optional
        Write the table there too, as CSV, under the rules of `table`.

    Returns
    -------
    pandas.DataFrame

    Raises
    ------
    DataError
        If it is another one.

    Examples
    --------
    >>> gated_table(_example()).shape
    (2, 8)
    """
    return save_csv(_required(frame), path)


def gated_text(frame: pd.DataFrame, *, width: int | None = None) -> Printed:
    """Gated and estimated shares for the terminal, those that differ most first, and a sentence on all.

    Parameters
    ----------
    frame : pandas.DataFrame
        What `compare_gated` gives.
    width : int, optional
        Characters a line; default: those of the terminal.

    Returns
    -------
    Printed
        For `print`, or for a `rich.console.Console` of that width.

    Raises
    ------
    DataError
        If it is another one.

    Examples
    --------
    >>> print(gated_text(_example(), width=80))
    proportions differ by 5.0 percentage points on average, by 10.0 at most; 50 % of
    the intervals hold the gated share
    <BLANKLINE>
     sample  label  gated  estimated  difference        interval
     ───────────────────────────────────────────────────────────
     S1      B       20.0       30.0       +10.0  25.0 to 35.0 !
     S1      T       70.0       70.0         0.0    65.0 to 75.0
    <BLANKLINE>
    per cent of all cells; difference in percentage points, the largest first
    !: the interval does not hold the gated share
    """
    frame = _required(frame)
    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for heading in ("sample", "label"):
        shown.add_column(heading, overflow="fold")
    for heading in ("gated", "estimated", "difference", "interval"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for row in largest_first(frame)[:MOST_ROWS].to_dict("records"):
        shown.add_row(*map(Text, _cells(row)))
    notes = [f"and {len(frame) - MOST_ROWS} more: see the table"] if len(frame) > MOST_ROWS else []
    notes += [CAPTION, "!: the interval does not hold the gated share"]
    return Printed(
        Text(str(summarize_gated(frame)), "bold"),
        shown,
        *(Text(note, "italic") for note in notes),
        width=width,
    )


def gated_plot(frame: pd.DataFrame, path: str | os.PathLike[str] | None = None) -> Figure:
    """Estimated against gated shares: a dot and its interval for each sample and label, a colour a label.

    Dots on the line are right. The scale is that of square roots, so that rare labels are seen too. Of more
    than 200 dots the intervals are left out.

    Parameters
    ----------
    frame : pandas.DataFrame
        What `compare_gated` gives.
    path : path, optional
        Save the figure there too. The suffix must be ``.png``; a file that is there is replaced as a whole.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot: needs no display and is freed like any object.

    Raises
    ------
    DataError
        If it is another one, no sample has both shares, the suffix is not ``.png`` or the folder is missing.

    Examples
    --------
    >>> figure = gated_plot(_example())
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['B', 'T']
    """
    every = _required(frame)
    known = every[every["difference"].notna()]
    if known.empty:
        raise DataError("no sample has both, gated and estimated shares: there is nothing to draw")
    labels = [label for label in dict.fromkeys(every["label"]) if (known["label"] == label).any()]
    columns = -(-len(labels) * LEGEND_ROW // (SIDE - 0.5))
    names = [short(label, LONGEST_NAME) for label in labels]
    legend = columns * (max(map(len, names)) * drawing.CHARACTER + 0.5)
    figure = drawing.figure(SIDE + legend, SIDE)
    axes = figure.subplots()
    with_intervals = len(known) <= MOST_INTERVALS
    for i, label in enumerate(labels):
        _draw(axes, known[known["label"] == label], i, with_intervals)
    _scale(axes, known)
    axes.set_ylabel("estimated share" + ", with interval" * with_intervals, size=drawing.SIZE)
    drawing.finish(axes, str(summarize_gated(known)).replace("; ", "\n"), grid="both")
    axes.tick_params(axis="y", labelsize=drawing.SIZE)
    entries = figure.legend(axes.lines[: len(labels)], map(str, range(len(labels))), frameon=False,
                            loc="outside right upper", ncols=int(columns))  # fmt: skip
    for entry, name in zip(entries.get_texts(), names, strict=True):  # set afterwards: "_" would be left out
        entry.set(text=name, parse_math=False, size=drawing.SIZE)
    if path is not None:
        write_png(figure, path)
    return figure


def _draw(axes: Axes, one: pd.DataFrame, label: int, with_intervals: bool) -> None:
    colour, marker = PALETTE[label % len(PALETTE)], MARKERS[label // len(PALETTE) % len(MARKERS)]
    drawn = one[one["low"].notna() & one["high"].notna() & with_intervals]
    axes.vlines(
        drawn["gated"], drawn["low"].clip(lower=0), drawn["high"], color=colour, linewidth=1, alpha=0.6
    )
    axes.plot(one["gated"], one["estimated"].clip(lower=0), marker, color=colour, markersize=5,
              clip_on=False, markeredgecolor="0.3", markeredgewidth=0.4)  # fmt: skip


def _scale(axes: Axes, known: pd.DataFrame) -> None:
    """Square roots on both axes, from 0 to the largest share, and the line of what is right."""
    from matplotlib.ticker import FixedLocator, NullLocator, PercentFormatter

    high = min(float(known[["gated", "estimated", "high"]].max().max()) * 1.05, 1.02)
    ticks = [t for t in (0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1) if t <= high]
    ticks = ticks if len(ticks) > 3 else (np.linspace(0, 1, 5) ** 2 * high).tolist()
    for axis, set_scale, limit in (
        (axes.xaxis, axes.set_xscale, axes.set_xlim),
        (axes.yaxis, axes.set_yscale, axes.set_ylim),
    ):
        set_scale("function", functions=(lambda x: np.sqrt(np.maximum(x, 0)), lambda x: np.asarray(x) ** 2))
        limit(0, high)
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(PercentFormatter(1))
    axes.axline((0, 0), (high, high), color=GREY, linewidth=1, zorder=0)
    axes.set_xlabel("gated share of all cells", size=drawing.SIZE)


def largest_first(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows that differ most stand first, those where a share is missing last."""
    return frame.iloc[np.argsort(-frame["difference"].abs().fillna(-1).to_numpy(), kind="stable")]


def _required(frame: pd.DataFrame) -> pd.DataFrame:
    lacking = [name for name in COLUMNS if name not in frame]
    if lacking:
        raise DataError(
            f"this compares no gates: it lacks {', '.join(lacking)}; pass what compare_gated gives"
        )
    return frame


def _cells(row: Mapping[Hashable, Any]) -> list[str]:
    """Of one sample and label."""
    difference = row["difference"]
    outside = pd.notna(row["inside"]) and not row["inside"]
    return [
        *(short(row[name], LONGEST_NAME) for name in ("sample", "label")),
        *(per_cent(row[name]) for name in ("gated", "estimated")),
        NOTHING if np.isnan(difference) else f"{100 * difference:+z.1f}".replace("+0.0", "0.0"),
        f"{interval(row['low'], row['high'], per_cent)} {'!' if outside else ' '}",
    ]


def _example() -> pd.DataFrame:
    """Two labels of a sample, for the examples of this page."""
    shares = [[0.2, 0.3, 0.25, 0.35, 0.1], [0.7, 0.7, 0.65, 0.75, 0.0]]
    numbers = pd.DataFrame(shares, columns=list(COLUMNS[2:7]))
    frame = pd.concat([pd.DataFrame({"sample": ["S1", "S1"], "label": ["B", "T"]}), numbers], axis=1)
    return frame.assign(inside=pd.array([False, True], "boolean"))
