"""What do all pictures share?  Colours, sizes, names beside rows, heat maps, and how a panel is finished."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from scaleshift.report.names import short

if TYPE_CHECKING:  # importing matplotlib takes longer than all of scaleshift
    from matplotlib.axes import Axes

    from scaleshift.report.picture import Picture

LOW, HIGH = "#0072B2", "#D55E00"  # of Okabe and Ito (2008), told apart with every common colour blindness
GREEN, ORANGE, LINE, GREY = "#009E73", "#E69F00", "#444444", "0.75"
FLAG_COLOUR = "#B2182B"
LONGEST_FIGURE = 26.5  # inches, 4 000 dots
LONGEST_NAME = 32  # characters
CHARACTER = 0.075  # inches, at 8 points
READABLE = 0.11  # inches: names that are closer cannot be read
SIZE = 8  # points


class Rows(NamedTuple):
    """Named rows of a panel, the first at the top."""

    names: list[str]
    step: float  # inches from one to the next

    @property
    def height(self) -> float:
        """In inches, of all."""
        return max(len(self.names), 1) * self.step

    @property
    def name_width(self) -> float:
        """In inches, of the longest name."""
        return max(map(len, self.names), default=0) * CHARACTER

    @property
    def size(self) -> float:
        """Of the letters, in points."""
        return min(SIZE, max(0.7 * 72 * self.step, 5.5))


def rows(names: Sequence[Any], room: float = LONGEST_FIGURE - 1.5, longest: int = LONGEST_NAME) -> Rows:
    """Rows of these names: narrower ones where there are many.

    Parameters
    ----------
    names : sequence
    room : float
        Inches that they may take.
    longest : int
        Characters of a name that are shown.
    """
    n = max(len(names), 1)
    step = 0.26 if n <= 60 else max(0.13, 0.26 * 60 / n)
    return Rows([short(name, longest) for name in names], min(step, room / n))


def figure(width: float, height: float) -> Picture:
    """An empty figure of so many inches, made without pyplot."""
    from scaleshift.report.picture import Picture

    return Picture(figsize=(width, height), layout="constrained")


def name_rows(axes: Axes, named: Rows, shown: bool = True) -> None:
    """Put names beside rows 0, 1, ...: as they are, without mathematics, and not closer than can be read."""
    n, every = len(named.names), math.ceil(READABLE / named.step)
    names = named.names[::every] if shown else [""] * len(range(0, n, every))
    axes.set_yticks(range(0, n, every), names, size=named.size, parse_math=False)
    axes.set_ylim(max(n, 1) - 0.4, -0.6)


def finish(axes: Axes, title: str, grid: str = "x") -> None:
    """Title, small ticks, a light grid along "x", "y" or neither, no frame."""
    axes.set_title(title, size=9, loc="left", parse_math=False)
    axes.tick_params(axis="x", labelsize=SIZE)
    axes.tick_params(axis="y", length=0)
    axes.spines[["left", "right", "top"]].set_visible(False)
    if grid:
        axes.grid(axis=grid, color="0.92", linewidth=0.8)
    axes.set_axisbelow(True)


def say(axes: Axes, place: float, words: str, named: Rows) -> None:
    """Write in a row what there is instead of a number."""
    axes.text(
        0.01,
        place,
        words,
        transform=axes.get_yaxis_transform(),  # x from 0 to 1 across the axes, y by row
        va="center",
        size=named.size,
        style="italic",
        color="0.35",
        parse_math=False,
    )


def interval(axes: Axes, places: Any, low: Any, high: Any, colour: str, **style: Any) -> None:
    """Lines from low to high, where both are known."""
    places, low, high = (np.asarray(values, float) for values in (places, low, high))
    known = np.isfinite(low) & np.isfinite(high)
    axes.hlines(places[known], low[known], high[known], **{"color": colour, "linewidth": 2, **style})


def heat(
    axes: Axes, values: np.ndarray, named: Rows, columns: Sequence[Any], reach: float, lowest: float | None = None
) -> Any:
    """Cells coloured from blue (low) to orange (high), hatched where there is no number.

    Parameters
    ----------
    axes : Axes
    values : numpy.ndarray, shape (n_rows, n_columns)
    named : Rows
    columns : sequence
        Their names.
    reach : float
        The largest number that has a colour of its own.
    lowest : float, optional
        The smallest; -reach without it, and white is 0 then.
    """
    from matplotlib.colors import LinearSegmentedColormap

    colours = [LOW, "#FFFFFF", HIGH] if lowest is None else ["#FFFFFF", LOW]
    shades = LinearSegmentedColormap.from_list("heat", colours)
    axes.set_facecolor("0.93")
    axes.patch.set(hatch="////", edgecolor="0.8")
    edges = np.arange(values.shape[1] + 1) - 0.5, np.arange(values.shape[0] + 1) - 0.5
    drawn = axes.pcolormesh(
        *edges, np.ma.masked_invalid(values), cmap=shades, vmin=-reach if lowest is None else lowest, vmax=reach,
        edgecolors="white", linewidth=0.5 if named.step > 0.1 else 0,
    )  # fmt: skip
    name_rows(axes, named)
    axes.set_ylim(max(len(named.names), 1) - 0.5, -0.5)
    shown = [short(name, LONGEST_NAME) for name in columns]
    turned = max(map(len, shown), default=0) > 3
    axes.set_xticks(range(len(shown)), shown, rotation=90 if turned else 0, size=SIZE, parse_math=False)
    return drawn


def from_zero(axes: Axes, ends: np.ndarray) -> None:
    """An axis from 0, or the lowest number below, to the highest; numbers that are not known do not count."""
    known = ends[np.isfinite(ends)]
    low, high = (known.min(initial=0.0), known.max(initial=0.0)) if known.size else (0.0, 1.0)
    reach = (high - low) or 1.0
    axes.set_xlim(low - 0.04 * reach, high + 0.06 * reach)


def write_numbers(axes: Axes, values: np.ndarray, dark: float, digits: int = 1) -> None:
    """Numbers into the cells of a heat map, white above `dark`."""
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            colour = "white" if abs(value) > dark else "0.25"
            axes.text(column, row, f"{value:z.{digits}f}", ha="center", va="center", size=6.5, color=colour)
