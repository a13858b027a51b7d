"""How do expected errors look?  An interval a target, beside the error of the source."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from scaleshift.errors import DataError
from scaleshift.report import error_words as words
from scaleshift.report.error import required
from scaleshift.report.files import write_png
from scaleshift.report.table import printable, short

if TYPE_CHECKING:  # importing matplotlib takes longer than all of scaleshift
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIRST, SOURCE, CROSS, BOUND = "#0072B2", "#444444", "#009E73", "#D55E00"  # of Okabe and Ito (2008)
OTHERS = ("#E69F00", "#CC79A7", "#56B4E9", "#000000", "#8C6D31", "#999999")
MARKERS = "sD^vPX*<>"
MOST_TARGETS = 40
LONGEST_NAME = 32  # characters
WIDTH, ROW, EXTRA, LEGEND_ROW, COLUMNS = 7.6, 0.26, 1.15, 0.2, 3  # inches; entries of the legend in a row


def error_plot(
    result: xr.Dataset, path: str | os.PathLike[str] | None = None, *, above: float | None = None
) -> Figure:
    """Expected errors as a picture: the first method's interval by target, other methods as markers.

    The errors of the source, in sample and by cross-validation, are lines from top to bottom: what stands
    to the right of them is worse. Of more than 40 targets, those with the largest errors are drawn.

    Parameters
    ----------
    result : xarray.Dataset
        What ``predict`` of a `PredictionError` returns.
    path : path, optional
        Save the figure there too. The suffix must be ``.png``; a file that is there is replaced as a whole.
    above : float, optional
        The bound of an alarm, drawn as a line.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot: needs no display and is freed like any object.

    Raises
    ------
    DataError
        If the result is another one, the suffix is not ``.png`` or the folder is missing.

    Examples
    --------
    >>> from scaleshift.report.error import _example
    >>> figure = error_plot(_example())
    >>> [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    ['site B']
    """
    from matplotlib.figure import Figure

    every = required(result)
    if not every.sizes["target"]:
        raise DataError("the result has no targets: there is nothing to draw")
    shown = _largest(every)
    n = shown.sizes["target"]
    entries = 3 + len(words.beside(shown)) + (above is not None)
    height = n * ROW + EXTRA + LEGEND_ROW * -(-entries // COLUMNS)
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.subplots()
    _draw_source(axes, shown, above)
    _draw_others(axes, shown)
    _draw_first(axes, shown)
    _finish(axes, shown, every.sizes["target"])
    figure.legend(loc="outside lower center", ncols=COLUMNS, fontsize=8, frameon=False)
    if path is not None:
        write_png(figure, path)
    return figure


def _largest(result: xr.Dataset) -> xr.Dataset:
    """All targets, or those with the largest errors, in the order in which they stand."""
    if result.sizes["target"] <= MOST_TARGETS:
        return result
    error = result["error"].transpose("target", "method").values[:, 0]
    return result.isel(target=np.sort(np.argsort(-np.nan_to_num(error, nan=-np.inf))[:MOST_TARGETS]))


def _draw_source(axes: Axes, result: xr.Dataset, above: float | None) -> None:
    lines = [
        ("source, in sample", words.in_sample(result), SOURCE, "-"),
        ("source, cross-validated", words.cross_validated(result), CROSS, "--"),
        ("alarm above", np.nan if above is None else above, BOUND, ":"),
    ]
    for name, value, colour, style in lines:
        if np.isfinite(value):
            label = f"{name}: {words.number(value)}"
            axes.axvline(value, color=colour, linestyle=style, linewidth=1.3, label=label, zorder=1)


def _draw_first(axes: Axes, result: xr.Dataset) -> None:
    """Point and interval of each target; open where the estimate is not to be relied on."""
    error, low, high = (
        result[name].transpose("target", "method").values[:, 0]
        for name in ("error", "error_low", "error_high")
    )
    places, unreliable = np.arange(len(error)), result["unreliable"].values.astype(bool)
    known = np.isfinite(low) & np.isfinite(high)
    axes.hlines(places[known], low[known], high[known], color=FIRST, linewidth=2.2, zorder=3)
    name = printable(words.methods(result)[0]).replace("_", " ")
    label = name if not known.any() else f"{name}, with interval"
    axes.plot(error, places, "o", color=FIRST, markersize=6.5, label=label, zorder=4)
    if unreliable.any():
        axes.plot(
            error[unreliable],
            places[unreliable],
            "o",
            color=FIRST,
            markerfacecolor="white",
            markersize=6.5,
            label="not to be relied on",
            zorder=5,
        )


def _draw_others(axes: Axes, result: xr.Dataset) -> None:
    error = result["error"].transpose("target", "method").values
    names, places = words.methods(result), np.arange(len(error))
    for n, i in enumerate(words.beside(result)):
        marker, colour = MARKERS[n % len(MARKERS)], OTHERS[n % len(OTHERS)]
        label = printable(names[i]).replace("_", " ")
        axes.plot(error[:, i], places, marker, color=colour, markersize=4.5, label=label, zorder=6)


def _finish(axes: Axes, result: xr.Dataset, n_targets: int) -> None:
    n = result.sizes["target"]
    names = [short(name, LONGEST_NAME) for name in result["target"].values]
    axes.set_yticks(np.arange(n), names, size=8, parse_math=False)
    axes.set_ylim(n - 0.4, -0.6)
    missing = np.flatnonzero(np.isnan(result["error"].transpose("target", "method").values[:, 0]))
    for place in missing.tolist():
        axes.annotate(
            "not known", (0.01, place), xycoords=("axes fraction", "data"), va="center", size=8, color="0.4"
        )
    low = axes.get_xlim()[0]
    axes.set_xlim(left=min(low, 0) if (result["error"] < 0).any() else 0)
    axes.set_xlabel(f"expected error ({words.of_loss(result)})", size=8, parse_math=False)
    title = "expected error by target"
    title += f": the {n} largest of {n_targets}" if n < n_targets else ""
    axes.set_title(title, size=9, loc="left")
    axes.grid(axis="x", color="0.92", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", labelsize=8)
    axes.tick_params(axis="y", length=0)
    axes.spines[["left", "right", "top"]].set_visible(False)
