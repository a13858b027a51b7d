"""How do expected errors look?  An interval a target, beside the error of the source."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from scaleshift.errors import DataError
from scaleshift.report import drawing
from scaleshift.report import error_words as words
from scaleshift.report.drawing import GREEN, HIGH, LINE, LOW
from scaleshift.report.error import required
from scaleshift.report.error_axis import Axis, axis_of
from scaleshift.report.files import write_png
from scaleshift.report.names import printable, short

if TYPE_CHECKING:  # importing matplotlib takes longer than all of scaleshift
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIRST, SOURCE, CROSS, BOUND = LOW, LINE, GREEN, HIGH
OBSERVED = "#000000"
OTHERS = ("#E69F00", "#CC79A7", "#56B4E9", "#6A3D9A", "#8C6D31", "#999999")
MARKERS = "sD^vPX*hd"  # arrows to the sides are what lies beyond the axis
BEYOND = "beyond the axis"
Line = tuple[str, float, str, str]
MOST_TARGETS = 40
LONGEST_NAME = 32  # characters
WIDTH, ROW, EXTRA, LEGEND_ROW = 7.6, 0.26, 1.15, 0.2  # inches
COLUMNS, MOST_CHARACTERS = 3, 80  # of the legend: with more in a row it has a column less


def error_plot(
    result: xr.Dataset, path: str | os.PathLike[str] | None = None, *, above: float | None = None
) -> Figure:
    """Expected errors as a picture: the first method's interval by target, other methods as markers.

    The errors of the source, in sample and by cross-validation, are lines from top to bottom: what stands
    to the right of them is worse. Of more than 40 targets, those with the largest errors are drawn. The axis
    goes as far as the engine's estimates and intervals and the observed errors, and to comparators of up to
    3 times that; what lies further out is drawn at its end, as an arrow.

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
    every = required(result)
    if not every.sizes["target"]:
        raise DataError("the result has no targets: there is nothing to draw")
    shown = _largest(every)
    n = shown.sizes["target"]
    figure = drawing.figure(WIDTH, ROW)
    axes = figure.subplots()
    lines = _lines(shown, above)
    axis = axis_of(shown, [value for _, value, _, _ in lines])
    _draw_lines(axes, lines, axis)
    _draw_others(axes, shown, axis)
    _draw_first(axes, shown, axis)
    _draw_observed(axes, shown)
    _finish(axes, shown, axis, every.sizes["target"])
    entries = axes.get_legend_handles_labels()[1]
    columns = COLUMNS - (sum(sorted(map(len, entries))[-COLUMNS:]) > MOST_CHARACTERS)
    figure.set_size_inches(WIDTH, n * ROW + EXTRA + LEGEND_ROW * -(-len(entries) // columns))
    figure.legend(loc="outside lower center", ncols=columns, fontsize=8, frameon=False)
    if path is not None:
        write_png(figure, path)
    return figure


def _largest(result: xr.Dataset) -> xr.Dataset:
    """All targets, or those with the largest errors, in the order in which they stand."""
    if result.sizes["target"] <= MOST_TARGETS:
        return result
    error = result["error"].transpose("target", "method").values[:, 0]
    return result.isel(target=np.sort(np.argsort(-np.nan_to_num(error, nan=-np.inf))[:MOST_TARGETS]))


def _lines(result: xr.Dataset, above: float | None) -> list[Line]:
    """Lines from top to bottom that are known: name, value, colour, style."""
    cross = "source, cross-validated" + (" (cv)" if "cv" in words.methods(result)[1:] else "")
    lines = [
        ("source, in sample", words.in_sample(result), SOURCE, "-"),
        (cross, words.cross_validated(result), CROSS, "--"),
        ("alarm above", np.nan if above is None else above, BOUND, ":"),
    ]
    return [line for line in lines if np.isfinite(line[1])]


def _draw_lines(axes: Axes, lines: list[Line], axis: Axis) -> None:
    for name, value, colour, style in lines:
        label = f"{name}: {words.number(value)}"
        if axis.has(np.array(value)):
            axes.axvline(value, color=colour, linestyle=style, linewidth=1.3, label=label, zorder=1)
        else:
            axes.plot([], [], color=colour, linestyle=style, linewidth=1.3, label=f"{label}, {BEYOND}")


def _draw_first(axes: Axes, result: xr.Dataset, axis: Axis) -> None:
    """Point and interval of each target; open where the estimate is not to be relied on."""
    error, low, high = (
        result[name].transpose("target", "method").values[:, 0]
        for name in ("error", "error_low", "error_high")
    )
    places = np.arange(len(error))
    unreliable = result["unreliable"].values.astype(bool) & np.isfinite(error) & axis.has(error)
    known = np.isfinite(low) & np.isfinite(high)
    axes.hlines(
        places[known],
        np.maximum(low[known], axis.low),
        np.minimum(high[known], axis.high),
        color=FIRST,
        linewidth=2.2,
        zorder=3,
    )
    name = printable(words.methods(result)[0])
    label = name if not known.any() else f"{name}, with interval"
    _points(axes, error, axis, label, marker="o", color=FIRST, markersize=6.5, zorder=4)
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


def _draw_others(axes: Axes, result: xr.Dataset, axis: Axis) -> None:
    error = result["error"].transpose("target", "method").values
    names = words.methods(result)
    drawn = [i for i in words.beside(result) if names[i] != "cv"]  # which is a line
    for n, i in enumerate(drawn):
        marker, colour = MARKERS[n % len(MARKERS)], OTHERS[n % len(OTHERS)]
        _points(axes, error[:, i], axis, printable(names[i]), marker, color=colour, markersize=4.5, zorder=6)


def _points(axes: Axes, error: np.ndarray, axis: Axis, label: str, marker: str, **style: Any) -> None:
    """One point a target; an arrow at the end of the axis where it lies beyond, each method at a height."""
    places, inside = np.arange(len(error)), axis.has(error)
    if np.isfinite(error[inside]).any() or inside.all():
        axes.plot(np.where(inside, error, np.nan), places, marker, label=label, **style)
    shift = 0.2 * (1 - sum(BEYOND in other for other in axes.get_legend_handles_labels()[1]) % 3)
    told: str | None = f"{label.removesuffix(', with interval')}, {BEYOND}"
    for arrow, end, out in (("<", axis.low, error < axis.low), (">", axis.high, error > axis.high)):
        if out.any():
            at, height = np.full(out.sum(), end), places[out] + shift
            axes.plot(at, height, arrow, clip_on=False, label=told, **style | {"markersize": 7})
            told = None


def _draw_observed(axes: Axes, result: xr.Dataset) -> None:
    """A stroke where the error was in fact, on as wide a line as its standard error."""
    if not words.has_observed(result):
        return
    error, se = result["observed"].values, np.nan_to_num(result["observed_se"].values)
    places = np.arange(len(error))
    axes.hlines(places, error - se, error + se, color=OBSERVED, linewidth=0.9, zorder=7)
    axes.plot(
        error, places, "|", color=OBSERVED, markersize=11, markeredgewidth=2, label="observed", zorder=8
    )


def _finish(axes: Axes, result: xr.Dataset, axis: Axis, n_targets: int) -> None:
    n = result.sizes["target"]
    names = [short(name, LONGEST_NAME) for name in result["target"].values]
    axes.set_yticks(np.arange(n), names, size=8, parse_math=False)
    axes.set_ylim(n - 0.4, -0.6)
    missing = np.flatnonzero(np.isnan(result["error"].transpose("target", "method").values[:, 0]))
    for place in missing.tolist():
        axes.annotate(
            "not known", (0.01, place), xycoords=("axes fraction", "data"), va="center", size=8, color="0.4"
        )
    axes.set_xlim(axis.low, axis.high)
    axes.set_xlabel(f"expected error ({words.of_loss(result)})", size=8, parse_math=False)
    title = "expected error by target"
    title += f": the {n} largest of {n_targets}" if n < n_targets else ""
    axes.set_title(title, size=9, loc="left")
    axes.grid(axis="x", color="0.92", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", labelsize=8)
    axes.tick_params(axis="y", length=0)
    axes.spines[["left", "right", "top"]].set_visible(False)
