"""How do errors differ over replicates?  In rows, in quantiles, and as histograms."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import xarray as xr
from rich import box
from rich.table import Table
from rich.text import Text

from scaleshift.errors import DataError
from scaleshift.report import drawing
from scaleshift.report.drawing import HIGH, LINE, LOW
from scaleshift.report.files import save_csv, write_png
from scaleshift.report.names import short
from scaleshift.report.printed import Printed

if TYPE_CHECKING:  # importing matplotlib takes longer than all of scaleshift
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SOURCE = "source, in sample"
QUANTILES = (0.025, 0.5, 0.975)
MOST_PANELS, MOST_BINS = 24, 40
COLUMNS, PANEL_WIDTH, PANEL_HEIGHT, EXTRA = 3, 2.9, 1.5, 0.6  # inches
LONGEST_NAME = 32  # characters


def replicate_table(result: xr.Dataset, path: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """Errors of replicates in rows: those of the source, then those of each target.

    Parameters
    ----------
    result : xarray.Dataset
        ``replicates_`` of a `PredictionError`.
    path : path, optional
        Write the table there too, as CSV, under the rules of `table`.

    Returns
    -------
    pandas.DataFrame
        Columns target ("source, in sample", then the targets), replicate, error. No rows where the error has
        a closed form.

    Raises
    ------
    DataError
        If the result is another one.

    Examples
    --------
    >>> replicate_table(_example()).shape
    (100, 3)
    """
    names, errors = _series(result)
    n = errors.shape[1]
    columns = {"target": np.repeat(np.array(names, object), n), "replicate": np.tile(np.arange(n), len(names))}
    return save_csv(pd.DataFrame({**columns, "error": errors.ravel()}), path)


def replicate_text(result: xr.Dataset, *, width: int | None = None) -> Printed:
    """Means and quantiles over the replicates, for the terminal.

    Parameters
    ----------
    result : xarray.Dataset
        ``replicates_`` of a `PredictionError`.
    width : int, optional
        Characters a line; default: those of the terminal.

    Returns
    -------
    Printed
        For `print`, or for a `rich.console.Console` of that width.

    Raises
    ------
    DataError
        If the result is another one.

    Examples
    --------
    >>> print(replicate_text(_example(), width=70))
    errors of 50 replicates
    <BLANKLINE>
     target             mean      sd    2.5 %   median  97.5 %
     ─────────────────────────────────────────────────────────
     source, in sample   0.5  0.2946  0.02551      0.5  0.9745
     site B             0.75  0.1473   0.5128     0.75  0.9872
    """
    names, errors = _series(result)
    head = f"errors of {errors.shape[1]} replicates"
    if not errors.shape[1]:
        return Printed(Text(f"{head}: they have a closed form", "bold"), width=width)
    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    shown.add_column("target", overflow="fold")
    for heading in ("mean", "sd", "2.5 %", "median", "97.5 %"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for name, values in zip(names, errors, strict=True):
        numbers = [values.mean(), values.std(ddof=1) if len(values) > 1 else np.nan, *np.quantile(values, QUANTILES)]
        cells = ["-" if np.isnan(number) else f"{number:.4g}" for number in numbers]
        shown.add_row(*map(Text, (short(name, LONGEST_NAME), *cells)))
    return Printed(Text(head, "bold"), shown, width=width)


def replicate_plot(result: xr.Dataset, path: str | os.PathLike[str] | None = None) -> Figure:
    """Histograms of the errors over replicates: of the source, and of each target.

    All have one axis; a line is the mean. Of more than 23 targets the first are drawn.

    Parameters
    ----------
    result : xarray.Dataset
        ``replicates_`` of a `PredictionError`.
    path : path, optional
        Save the figure there too. The suffix must be ``.png``; a file that is there is replaced as a whole.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot: needs no display and is freed like any object.

    Raises
    ------
    DataError
        If the result is another one, the errors have a closed form, the suffix is not ``.png`` or the folder
        is missing.

    Examples
    --------
    >>> [axes.get_title(loc="left") for axes in replicate_plot(_example()).axes]
    ['source, in sample', 'site B']
    """
    names, errors = _series(result)
    known = errors[np.isfinite(errors)]
    if not known.size:
        raise DataError(
            "there are no replicates to draw: the errors of this model have a closed form; draw what predict "
            "returns"
        )
    shown = names[:MOST_PANELS]
    columns = min(len(shown), COLUMNS)
    lines = math.ceil(len(shown) / columns)
    figure = drawing.figure(columns * PANEL_WIDTH, lines * PANEL_HEIGHT + EXTRA)
    grid = figure.subplots(lines, columns, squeeze=False, sharex=True).ravel()
    n_bins = int(np.clip(np.sqrt(errors.shape[1]) * 2, 5, MOST_BINS))
    edges = np.histogram_bin_edges(known, n_bins)
    for axes, name, values in zip(grid, shown, errors, strict=False):
        _draw(axes, name, values[np.isfinite(values)], edges)
    for axes in grid[len(shown) :]:
        axes.remove()
    more = f"; {len(names) - len(shown)} more targets are not drawn" if len(names) > len(shown) else ""
    figure.supxlabel(f"error of a replicate, {errors.shape[1]} of them (line: mean){more}", size=drawing.SIZE)
    if path is not None:
        write_png(figure, path)
    return figure


def _draw(axes: Axes, name: str, values: np.ndarray, edges: np.ndarray) -> None:
    axes.hist(values, edges, color=LINE if name == SOURCE else LOW, alpha=0.75)
    if values.size:
        axes.axvline(values.mean(), color=HIGH, linewidth=1.5)
    drawing.finish(axes, short(name, LONGEST_NAME))
    axes.set_yticks([])
    axes.tick_params(axis="x", labelbottom=True)


def _series(result: xr.Dataset) -> tuple[list[str], np.ndarray]:
    """Names, and errors of replicates, (1 + n_targets, n_replicates)."""
    if "in_b" not in result or "replicate" not in result.dims:
        raise DataError(
            f"these are no replicates: it has the variables {sorted(map(str, result))}; pass the replicates_ of "
            "a PredictionError"
        )
    result = result.compute()
    names, errors = [SOURCE], [result["in_b"].values]
    if "err_b" in result:
        names += [str(name) for name in result["target"].values]
        errors += list(result["err_b"].transpose("target", "replicate").values)
    return names, np.stack(errors)


def _example() -> xr.Dataset:
    """Fifty replicates of one target, for the examples of this page."""
    errors = np.linspace(0, 1, 50)
    found = xr.Dataset({"in_b": ("replicate", errors), "err_b": (("target", "replicate"), [(1 + errors) / 2])})
    return found.assign_coords(target=["site B"])
