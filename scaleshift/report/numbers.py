"""How are a few numbers shown that stand for all rows: an AUC, the error of one target?"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import xarray as xr
from rich.table import Table
from rich.text import Text

from scaleshift.errors import DataError
from scaleshift.report import drawing
from scaleshift.report.drawing import GREY, LOW
from scaleshift.report.files import save_csv, write_png
from scaleshift.report.names import printable
from scaleshift.report.printed import Printed

if TYPE_CHECKING:  # importing matplotlib takes longer than all of scaleshift
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEADING = ("auc", "error", "norm")  # the number that all is about
ENDS = ("_low", "_high", "_se")  # of intervals
WIDTH, EXTRA, LEAST = 5.2, 0.9, 0.35  # inches


def numbers_table(result: xr.Dataset, path: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """Numbers in rows, with what each one is.

    Parameters
    ----------
    result : xarray.Dataset
        What `scaleshift.roc_auc`, ``observed`` of a `PredictionError` or a function of `scaleshift.error`
        returns.
    path : path, optional
        Write the table there too, as CSV, under the rules of `table`.

    Returns
    -------
    pandas.DataFrame
        Columns quantity, value, meaning and description.

    Raises
    ------
    DataError
        If the result is another one.

    Examples
    --------
    >>> import scaleshift as ss
    >>> numbers_table(ss.roc_auc([0, 1], [0.1, 0.4]))[["quantity", "value"]].head(2)
      quantity  value
    0      auc    1.0
    1    bound    0.0
    """
    result = _required(result)
    rows = [
        [str(name), of.item(), of.attrs.get("long_name", ""), of.attrs.get("description", "")]
        for name, of in result.data_vars.items()
    ]
    return save_csv(pd.DataFrame(rows, columns=["quantity", "value", "meaning", "description"]), path)


def numbers_text(result: xr.Dataset, *, width: int | None = None) -> Printed:
    """Numbers for the terminal, a line each.

    Parameters
    ----------
    result : xarray.Dataset
        As for `numbers_table`.
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
    >>> import scaleshift as ss
    >>> print(numbers_text(ss.error.average_confidence([[0.9, 0.1], [0.3, 0.7]]), width=70))
    error              0.2  error on the target
    confidence_target  0.8  confidence on the target
    """
    result = _required(result)
    shown = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    shown.add_column(no_wrap=True)
    shown.add_column(justify="right", no_wrap=True)
    shown.add_column(overflow="fold")
    for name, of in result.data_vars.items():
        shown.add_row(*map(Text, (printable(name), _shown(of), printable(of.attrs.get("long_name", "")))))
    return Printed(shown, width=width)


def numbers_plot(result: xr.Dataset, path: str | os.PathLike[str] | None = None) -> Figure:
    """The number that all is about, with its interval or bound, and others of its kind below.

    Parameters
    ----------
    result : xarray.Dataset
        As for `numbers_table`.
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
    >>> import scaleshift as ss
    >>> figure = numbers_plot(ss.error.average_confidence([[0.9, 0.1], [0.3, 0.7]]))
    >>> [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    ['error on the target']
    """
    result = _required(result)
    leading = next(name for name in LEADING if name in result)
    names = [str(n) for n in result.data_vars if str(n).startswith(leading) and not str(n).endswith(ENDS)]
    called = [str(result[name].attrs.get("long_name", name)) for name in names]
    named = drawing.rows(called)
    figure = drawing.figure(named.name_width + WIDTH, max(named.height, LEAST) + EXTRA)
    axes = figure.subplots()
    values = np.array([float(result[name]) for name in names])
    low, high = _interval(result, leading)
    drawing.interval(axes, [0], [low], [high], LOW)
    axes.plot(values, np.arange(len(values)), "o", color=LOW, markersize=6.5, zorder=3)
    for place, value in enumerate(values.tolist()):
        if np.isnan(value):
            drawing.say(axes, place, "not known", named)
        else:
            axes.annotate(f"{value:.4g}", (value, place), (0, 6), textcoords="offset points", size=8, ha="center")
    drawing.name_rows(axes, named)
    _scale(axes, leading, np.array([*values, low, high]))
    axes.set_xlabel(_about(result), size=drawing.SIZE, parse_math=False)
    drawing.finish(axes, called[0])
    if path is not None:
        write_png(figure, path)
    return figure


def _required(result: xr.Dataset) -> xr.Dataset:
    if result.dims or not any(name in result for name in LEADING):
        raise DataError(
            f"these are not numbers of all rows: it has the variables {sorted(map(str, result))} over "
            f"({', '.join(map(str, result.dims))}); pass what roc_auc, or a function of scaleshift.error, returns"
        )
    return result.compute()


def _interval(result: xr.Dataset, leading: str) -> tuple[float, float]:
    """Ends of the interval: as given, or by a standard error or bound; NaN without any."""
    value = float(result[leading])
    if f"{leading}_low" in result:
        return float(result[f"{leading}_low"]), float(result[f"{leading}_high"])
    off = 1.96 * float(result[f"{leading}_se"]) if f"{leading}_se" in result else np.nan
    off = float(result["bound"]) if "bound" in result else off
    return value - off, value + off


def _scale(axes: Axes, leading: str, ends: np.ndarray) -> None:
    """From 0; of an AUC to 1, from that of chance where it is above."""
    if leading != "auc":
        drawing.from_zero(axes, ends)
        return
    axes.set_xlim(0.48 if np.nan_to_num(ends, nan=1.0).min() >= 0.5 else -0.02, 1.02)
    axes.axvline(0.5, color=GREY, linewidth=1, zorder=0)


def _about(result: xr.Dataset) -> str:
    """Of how many rows, and of which label."""
    told = [f"positive: {result.attrs['positive']}"] if result.attrs.get("positive", "") != "" else []
    counts = {"n_positive": "positive rows", "n_negative": "negative rows", "n_rows": "rows"}
    told += [f"{int(result[name])} {words}" for name, words in counts.items() if name in result]
    if "bound" in result and float(result["bound"]) > 0:
        told.append("line: what it may be off by")
    told += ["line: 95 % interval, of independent rows"] if "error_se" in result else []
    return printable("; ".join(told))


def _shown(of: xr.DataArray) -> str:
    """A number with the digits that say something; counts are whole."""
    value = of.item()
    return f"{value:.5g}" if isinstance(value, float) else str(value)
