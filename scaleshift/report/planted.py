"""Were the planted slices found?  Slices against planted ones, as a table, as text, as a picture."""

from __future__ import annotations

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
from scaleshift.report.files import save_csv, write_png
from scaleshift.report.printed import Printed

if TYPE_CHECKING:  # importing matplotlib takes longer than all of scaleshift
    from matplotlib.figure import Figure

NEEDED = ("precision_at_k", "best_slice", "found", "false_discovery", "discovery_rate", "false_discovery_rate")
COLUMN, EXTRA, BAR = 0.45, 1.3, 1.2  # inches
MOST = 60  # slices, and planted ones, that are drawn


def planted_table(result: xr.Dataset, path: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """A row for each slice and planted slice.

    Parameters
    ----------
    result : xarray.Dataset
        What `scaleshift.slices.metrics.score` returns.
    path : path, optional
        Write the table there too, as CSV, under the rules of `table`.

    Returns
    -------
    pandas.DataFrame
        Columns slice, planted, precision_at_k, average_precision (where there is one), found, false_discovery.

    Raises
    ------
    DataError
        If the result is another one.

    Examples
    --------
    >>> planted_table(_example())[["slice", "planted", "precision_at_k", "found"]]
       slice  planted  precision_at_k  found
    0      0        0             1.0   True
    1      1        0             0.0   True
    """
    result = _required(result)
    names = [name for name in ("precision_at_k", "average_precision") if name in result]
    long = result[[*names, "found", "false_discovery"]].to_dataframe(dim_order=["slice", "planted"])
    return save_csv(long.reset_index(), path)


def planted_text(result: xr.Dataset, *, width: int | None = None) -> Printed:
    """For the terminal: the share that was found, and the best slice for each planted one.

    Parameters
    ----------
    result : xarray.Dataset
        What `scaleshift.slices.metrics.score` returns.
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
    >>> print(planted_text(_example(), width=60))
    found 100 % of the planted slices; 50 % of the slices meet no planted one
    <BLANKLINE>
     planted  best slice  precision at 2  found
     ──────────────────────────────────────────
           0           0            1.00  yes
    """
    result = _required(result)
    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for heading in ("planted", "best slice", f"precision at {result.attrs.get('k', 'k')}"):
        shown.add_column(heading, justify="right", no_wrap=True)
    shown.add_column("found")
    precision = result["precision_at_k"].transpose("slice", "planted").values
    for i, best in enumerate(result["best_slice"].values.tolist()):
        told = "yes" if result["found"].values[i] else "no"
        shown.add_row(*map(Text, (str(i), str(best), f"{precision[best, i]:.2f}", told)))
    return Printed(Text(_head(result), "bold"), shown, width=width)


def planted_plot(result: xr.Dataset, path: str | os.PathLike[str] | None = None) -> Figure:
    """Precision of each slice as a search for each planted one, as a heat map.

    A planted slice that was found is told by a tick before its number. Of more than 60 the first are drawn.

    Parameters
    ----------
    result : xarray.Dataset
        What `scaleshift.slices.metrics.score` returns.
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
    >>> [tick.get_text() for tick in planted_plot(_example()).axes[0].get_xticklabels()]
    ['found: 0']
    """
    every = _required(result)
    result = every.isel(slice=slice(MOST), planted=slice(MOST))
    precision = result["precision_at_k"].transpose("slice", "planted").values
    named = drawing.rows([f"slice {number}" for number in result["slice"].values])
    found = zip(result["planted"].values.tolist(), result["found"].values.tolist(), strict=True)
    columns = [f"found: {number}" if met else f"not: {number}" for number, met in found]
    width = max(named.name_width + len(columns) * COLUMN + BAR, 4.4)
    figure = drawing.figure(width, max(named.height, 0.8) + EXTRA)
    axes = figure.subplots()
    drawn = drawing.heat(axes, precision, named, columns, 1.0, lowest=0.0)
    if named.step > 0.2:
        drawing.write_numbers(axes, precision, dark=0.6, digits=2)
    bar = figure.colorbar(drawn, ax=axes, aspect=12, shrink=min(1.0, 2.5 / named.height), anchor=(0, 1))
    bar.set_label(f"precision at {result.attrs.get('k', 'k')}", size=drawing.SIZE)
    bar.ax.tick_params(labelsize=drawing.SIZE)
    axes.set_xlabel("planted slices", size=drawing.SIZE)
    drawing.finish(axes, _head(every).replace("; ", "\n"), grid="")
    axes.spines["bottom"].set_visible(False)
    if path is not None:
        write_png(figure, path)
    return figure


def _head(result: xr.Dataset) -> str:
    found, false = float(result["discovery_rate"]), float(result["false_discovery_rate"])
    share = "none was planted" if np.isnan(found) else f"found {100 * found:.0f} % of the planted slices"
    return f"{share}; {100 * false:.0f} % of the slices meet no planted one"


def _required(result: xr.Dataset) -> xr.Dataset:
    lacking = [name for name in NEEDED if name not in result]
    if lacking or not {"slice", "planted"} <= set(result.dims):
        raise DataError(
            f"these are no scores of slices: it lacks {', '.join(lacking) or 'slices'}; pass what "
            "scaleshift.slices.metrics.score returns"
        )
    return result.compute()


def _example() -> xr.Dataset:
    """Two slices, one of which is the planted one, for the examples of this page."""
    from scaleshift.slices.metrics import score

    return score(np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.6], [0.2, 0.5]]), [[1], [1], [0], [0]], k=2)
