"""What do proportions look like?  One stacked bar a sample, the unknown share in grey."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr

from scaleshift.report import drawing
from scaleshift.report.drawing import FLAG_COLOUR, LONGEST_FIGURE, READABLE
from scaleshift.report.files import write_png
from scaleshift.report.names import short
from scaleshift.report.proportions import require

if TYPE_CHECKING:  # importing matplotlib takes longer than all of scaleshift
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito (2008), told apart with every common colour blindness.
PALETTE = ("#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7")
# More labels than colours: the palette again, lighter, darker, then dotted. (tint, hatch) a round.
ROUNDS = ((0.0, ""), (0.55, ""), (-0.4, ""), (0.0, "..."), (-0.4, "..."))
EDGE: dict[str, Any] = {"edgecolor": "white", "linewidth": 0.4}
UNKNOWN: dict[str, Any] = {"facecolor": "#D9D9D9", "hatch": "/////", **EDGE}
LONGEST_NAME = 40  # characters of a name that are drawn
CHARACTER = 0.085  # inches, at 9 points
LEGEND_ROW = 0.22  # inches, at 9 points


def proportion_plot(result: xr.Dataset, path: str | os.PathLike[str] | None = None) -> Figure:
    """Proportions as stacked bars, one a sample, from the first sample at the top.

    Colours are told apart with every common colour blindness, up to 35 labels. The unknown share is grey
    and hatched, where it was estimated. A sample without an estimate has no bar and says so; a sample with
    a flag has an exclamation mark at the end of its bar (`table` gives the reason).

    Parameters
    ----------
    result : xarray.Dataset
        What a quantifier's ``predict`` returns, with dimensions (sample, label). Read are ``proportion``,
        ``unknown`` and ``flag``.
    path : path, optional
        Save the figure there too. The suffix must be ``.png``; a file that is there is replaced as a whole.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot: needs no display and is freed like any object.

    Raises
    ------
    DataError
        If the result lacks a variable, the suffix is not ``.png`` or the folder is missing.

    Examples
    --------
    >>> result = xr.Dataset(
    ...     {
    ...         "proportion": (("sample", "label"), [[0.2, 0.5], [0.3, 0.7]]),
    ...         "unknown": ("sample", [0.3, 0.0]),
    ...         "flag": ("sample", ["unknown population", ""]),
    ...     },
    ...     coords={"sample": ["S1", "S2"], "label": ["B", "T"]},
    ... )
    >>> figure = proportion_plot(result)
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['B', 'T', 'unknown', 'flagged']
    """
    require(result, "proportion", "unknown", "flag")
    samples = [short(name, LONGEST_NAME) for name in result["sample"].values]
    labels = [short(name, LONGEST_NAME) for name in result["label"].values]
    layout = _layout(samples, labels)
    figure = drawing.figure(layout.width, layout.height)
    axes = figure.add_subplot()
    entries = _draw_bars(axes, result, labels, layout) + _mark_samples(axes, result, layout)
    _draw_axes(axes, samples, layout)
    _draw_legend(figure, entries, layout)
    if path is not None:
        write_png(figure, path)
    return figure


class _Layout(NamedTuple):
    """Sizes in inches; the font's in points."""

    step: float  # from one bar to the next
    width: float
    height: float
    legend_columns: int

    @property
    def font(self) -> float:
        return min(max(0.7 * 72 * self.step, 5.5), 9.0)

    @property
    def mark(self) -> float:
        """Size of what stands at every bar, in points: marks of neighbours do not cover each other."""
        return min(self.font + 1, max(72 * self.step, 1.0))

    @property
    def edge(self) -> float:
        """Width of the lines around bars, in points: none where it would cover them."""
        return 0.4 if 72 * self.step > 4 else 0.0


def _layout(samples: list[str], labels: list[str]) -> _Layout:
    """Sizes by the number of samples and labels and the length of their names."""
    n = max(len(samples), 1)
    step = 0.26 if n <= 60 else max(0.13, 0.26 * 60 / n)
    n_entries = len(labels) + 2  # and unknown, flagged
    height = max(n * step + 0.9, n_entries / 2 * LEGEND_ROW + 0.4, 2.0)
    height = min(height, LONGEST_FIGURE)  # more samples than that takes get thinner bars
    legend_columns = math.ceil(n_entries * LEGEND_ROW / (height - 0.4))
    name_width = max(map(len, samples), default=0) * CHARACTER
    legend_width = legend_columns * (max(map(len, [*labels, "unknown"])) * CHARACTER + 0.6)
    return _Layout(min(step, (height - 0.9) / n), name_width + 5.5 + legend_width, height, legend_columns)


def _draw_bars(
    axes: Axes, result: xr.Dataset, labels: list[str], layout: _Layout
) -> list[tuple[Artist, str]]:
    """Draw the shares; return the legend's entries."""
    from matplotlib.collections import PolyCollection
    from matplotlib.patches import Patch

    shares = result["proportion"].transpose("sample", "label").values
    unknown = result["unknown"].values
    names, styles = list(labels), [_style(i) for i in range(len(labels))]
    if not np.isnan(unknown).all():
        shares = np.column_stack([shares, unknown])
        names, styles = [*names, "unknown"], [*styles, UNKNOWN]
    shares = np.nan_to_num(shares)
    # A plain inverse can give negative shares: they are stacked to the left of zero.
    ends = np.where(shares >= 0, shares.clip(min=0).cumsum(axis=1), shares.clip(max=0).cumsum(axis=1))
    for start, end, style in zip((ends - shares).T, ends.T, styles, strict=True):
        drawn = style | {"linewidth": layout.edge}
        axes.add_collection(PolyCollection(_rectangles(start, end), **drawn), autolim=False)
    axes.set_xlim(min(0.0, ends.min(initial=0)), max(1.0, ends.max(initial=1)))
    return [(Patch(**style), name) for name, style in zip(names, styles, strict=True)]


def _rectangles(start: np.ndarray, end: np.ndarray) -> list[np.ndarray]:
    """Corners of one label's bars, n_samples times (4, 2): drawn at once, unlike barh's."""
    row = np.arange(len(start))
    x = np.stack([start, end, end, start], axis=1)
    y = np.stack([row - 0.4, row - 0.4, row + 0.4, row + 0.4], axis=1)
    return list(np.stack([x, y], axis=2))


def _mark_samples(axes: Axes, result: xr.Dataset, layout: _Layout) -> list[tuple[Artist, str]]:
    """Write out missing estimates and flags; return the legend's entries."""
    from matplotlib.lines import Line2D

    missing = result["proportion"].isnull().all("label").values
    for i in np.flatnonzero(missing).tolist():
        axes.text(
            0.008, i, "no estimate", va="center_baseline", style="italic", color="0.35", size=layout.mark
        )
    flagged = [i for i, flag in enumerate(result["flag"].values) if flag]
    for i in flagged:
        axes.text(
            1.006,
            i,
            "!",
            transform=axes.get_yaxis_transform(),  # x from 0 to 1 across the axes, y by sample
            va="center_baseline",
            weight="bold",
            color=FLAG_COLOUR,
            size=layout.mark,
        )
    marker = Line2D([], [], marker="$!$", color=FLAG_COLOUR, linestyle="none")
    return [(marker, "flagged")] if flagged else []


def _draw_axes(axes: Axes, samples: list[str], layout: _Layout) -> None:
    from matplotlib.ticker import PercentFormatter

    n = len(samples)
    every = math.ceil(READABLE / layout.step)
    axes.set_yticks(range(0, n, every), samples[::every], size=layout.font, parse_math=False)
    rows = max(n, (layout.height - 0.9) / 0.4)  # few samples: bars stay bars, no blocks
    axes.set_ylim((n - 1 + rows) / 2, (n - 1 - rows) / 2)
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    axes.set_xlabel("share of all cells")
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", top=n > 30, labeltop=n > 30)
    axes.spines[["left", "right", "top"]].set_visible(False)


def _draw_legend(figure: Figure, entries: list[tuple[Artist, str]], layout: _Layout) -> None:
    handles, names = zip(*entries, strict=True)
    legend = figure.legend(
        handles,
        map(str, range(len(names))),
        loc="outside right upper",
        ncols=layout.legend_columns,
        frameon=False,
    )
    # Set afterwards: matplotlib leaves out entries that start with "_".
    for entry, name in zip(legend.get_texts(), names, strict=True):
        entry.set(text=name, parse_math=False, size=9)


def _style(label: int) -> dict[str, Any]:
    """Face colour and hatch of a label's bars, by its position."""
    from matplotlib.colors import to_rgb

    tint, hatch = ROUNDS[label // len(PALETTE) % len(ROUNDS)]
    colour = np.array(to_rgb(PALETTE[label % len(PALETTE)]))
    colour += tint * (1 - colour) if tint > 0 else tint * colour
    return {"facecolor": tuple(colour), "hatch": hatch, **EDGE}
