"""How do slices grow, at a glance?  Shares and errors before and now, and what both cost."""

from __future__ import annotations

import os
import textwrap
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from scaleshift.report import drawing
from scaleshift.report.drawing import HIGH, LINE, LOW, ORANGE, Rows
from scaleshift.report.files import write_png
from scaleshift.report.growth import of_errors, required

if TYPE_CHECKING:  # importing matplotlib takes longer than all of scaleshift
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_SLICES = 100
PANEL_WIDTH, EXTRA = 2.9, 1.5  # inches


def growth_plot(result: xr.Dataset, path: str | os.PathLike[str] | None = None) -> Figure:
    """Slices before and now: a row each, with its share, its error, and what growth and change cost.

    On the left the share of the source (open) and that of the target (filled), in the middle the same of the
    errors, dashed lines at those of all rows; on the right what the slice adds to the error of the target:
    by its growth, and by having become worse. Of more than 100 slices the first are drawn.

    Parameters
    ----------
    result : xarray.Dataset
        What `scaleshift.slices.compare` returns.
    path : path, optional
        Save the figure there too. The suffix must be ``.png``; a file that is there is replaced as a whole.

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
    >>> from scaleshift.report.growth import _example
    >>> [axes.get_title(loc="left") for axes in growth_plot(_example()).axes]
    ['share of rows', 'share of errors', 'cost']
    """
    every = required(result)
    result = every.isel(slice=slice(MOST_SLICES))
    errors = of_errors(result)
    named = drawing.rows([f"slice {number}" for number in result["slice"].values])
    figure = drawing.figure(named.name_width + 3 * PANEL_WIDTH, max(named.height, 0.6) + EXTRA)
    shares, of_slices, costs = figure.subplots(1, 3)
    _draw_change(shares, result["share_source"].values, result["share_target"].values, named)
    _draw_change(of_slices, result["error_source"].values, result["error_target"].values, named)
    for name, colour in (("overall_error_source", LOW), ("overall_error_target", HIGH)):
        overall = float(result.get(name, np.nan))
        if np.isfinite(overall):
            of_slices.axvline(overall, color=colour, linestyle="--", linewidth=1, zorder=0)
    _draw_costs(costs, result, named)
    titles = ("share of rows", "share of errors" if errors else "mean loss", "cost")
    for axes, title in zip((shares, of_slices, costs), titles, strict=True):
        drawing.name_rows(axes, named, shown=axes is shares)
        _in_per_cent(axes, always=axes is shares, errors=errors)
        drawing.finish(axes, title)
    said = textwrap.fill(str(every["summary"].item()), 120)
    more = every.sizes["slice"] - result.sizes["slice"]
    said += f"\nthe first {MOST_SLICES} slices, {more} more are not drawn" if more else ""
    figure.suptitle(said, size=9, x=0.01, ha="left", parse_math=False)
    figure.legend(*_entries(shares, costs), loc="outside lower left", ncols=4, fontsize=8, frameon=False)
    if path is not None:
        write_png(figure, path)
    return figure


def _draw_change(axes: Axes, before: np.ndarray, now: np.ndarray, named: Rows) -> None:
    """A line from before to now, with a dot at either end."""
    places = np.arange(len(before))
    drawing.interval(axes, places, np.fmin(before, now), np.fmax(before, now), LINE, linewidth=1.2)
    axes.plot(before, places, "o", color=LOW, markerfacecolor="white", markersize=6, label="source")
    axes.plot(now, places, "o", color=HIGH, markersize=5, label="target")
    for place in np.flatnonzero(np.isnan(before) & np.isnan(now)).tolist():
        drawing.say(axes, place, "not known", named)
    drawing.from_zero(axes, np.concatenate([before, now]))


def _draw_costs(axes: Axes, result: xr.Dataset, named: Rows) -> None:
    """Two bars a slice, of growth and of change."""
    places = np.arange(result.sizes["slice"])
    for shift, name, colour in ((-0.19, "growth", LOW), (0.19, "change", ORANGE)):
        cost = result[f"cost_of_{name}"].values
        axes.barh(places + shift, np.nan_to_num(cost), height=0.36, color=colour, label=f"cost of {name}")
    neither = result["cost_of_growth"].isnull().values & result["cost_of_change"].isnull().values
    for place in np.flatnonzero(neither).tolist():
        drawing.say(axes, place, "not known", named)
    axes.axvline(0, color="black", linewidth=0.8)
    drawing.from_zero(axes, result[["cost_of_growth", "cost_of_change"]].to_array().values.ravel())


def _in_per_cent(axes: Axes, always: bool, errors: bool) -> None:
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    axes.xaxis.set_major_locator(MaxNLocator(4))
    if always or errors:
        axes.xaxis.set_major_formatter(PercentFormatter(1))


def _entries(*panels: Axes) -> tuple[list, list]:  # type: ignore[type-arg]
    """Handles and names of all panels' legends."""
    found = [axes.get_legend_handles_labels() for axes in panels]
    return [handle for handles, _ in found for handle in handles], [name for _, names in found for name in names]
