"""Which slices were found, and what sets them apart?  In rows, for the terminal, and as a picture."""

from __future__ import annotations

import math
import os
import textwrap
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import xarray as xr
from rich import box
from rich.constrain import Constrain
from rich.table import Table
from rich.text import Text

from scaleshift.errors import DataError
from scaleshift.report import about, drawing
from scaleshift.report.files import replacing, write_csv, write_png
from scaleshift.report.names import printable, short
from scaleshift.report.printed import Printed

if TYPE_CHECKING:  # importing matplotlib takes longer than all of scaleshift
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NEEDED = (
    "size",
    "share",
    "error_rate",
    "error_low",
    "error_high",
    "loss",
    "p_value",
    "q_value",
    "flag",
    "words",
)
LOW, HIGH = "#0072B2", "#D55E00"  # of Okabe and Ito (2008), as in `plot`
GREY, PLAIN = "0.55", "#999999"
MOST_FEATURES = 8  # bars of a panel
MOST_PANELS = 24
MOST_NUMBERS = 12  # of slices that are written beside their bars
COLUMNS = 3  # of panels
PANEL_WIDTH, BAR, PANEL_EXTRA = 3.6, 0.2, 0.75  # inches
LONGEST_NAME = 24  # characters of a feature
Q_CAPTION = "q: share of false discoveries to expect among the slices up to that q"


def slice_table(result: xr.Dataset, path: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """Slices in rows, best first.

    Parameters
    ----------
    result : xarray.Dataset
        What a slicer's ``describe`` returns.
    path : path, optional
        Write the table there too, as CSV, under the rules of `table`.

    Returns
    -------
    pandas.DataFrame
        Column slice, then every number and text that the result has by slice, then the standardised
        difference of each feature in a column "difference: NAME". NaN is a quantity that is not known.

    Raises
    ------
    DataError
        If the result is another one.

    Examples
    --------
    >>> slice_table(_example())[["slice", "size", "error_rate", "difference: CD3"]]
       slice  size  error_rate  difference: CD3
    0      0  50.0         0.4              1.5
    """
    result = _required(result)
    names = [name for name, values in result.data_vars.items() if values.dims == ("slice",)]
    table = pd.DataFrame({"slice": result["slice"].values, **{str(n): result[n].values for n in names}})
    if "difference" in result:
        values = result["difference"].transpose("slice", "feature").values
        features = [f"difference: {name}" for name in result["feature"].values.tolist()]
        table = pd.concat([table, pd.DataFrame(values, columns=features)], axis=1)
    if path is not None:
        text = [str(n) for n in names if result[n].dtype.kind in "OUT"]
        with replacing(path, ".csv") as temporary:
            write_csv(table, temporary, text)
    return table


def slice_text(result: xr.Dataset, *, width: int | None = None) -> Printed:
    """Slices for the terminal, best first: numbers, then a sentence each.

    Names are shown as they are: markup in them has no effect.

    Parameters
    ----------
    result : xarray.Dataset
        What a slicer's ``describe`` returns.
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
    >>> print(slice_text(_example(), width=80))
    <BLANKLINE>
     slice  rows  share %  errors %  interval      q
     ───────────────────────────────────────────────
         0    50        5        40  30 to 50  0.002
    <BLANKLINE>
    errors overall: 10 %; intervals at 95 %; q: share of false discoveries to expect
    among the slices up to that q
    <BLANKLINE>
    0  5.0 % of rows
    """
    result = _required(result)
    errors = has_errors(result)
    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    outcome = ("errors %", "interval") if errors else ("mean loss", "elsewhere")
    for heading in ("slice", "rows", "share %", *outcome, "q"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for one in _slices(result):
        shown.add_row(*map(Text, _numbers(one, errors)))
    sentences = Table.grid(padding=(0, 2, 0, 0))
    sentences.add_column(justify="right", no_wrap=True)
    sentences.add_column(overflow="fold")
    for one in _slices(result):
        sentences.add_row(Text(str(one["slice"].item())), Text(printable(one["words"].item())))
        if one["flag"].item() not in one["words"].item():  # as a rule the sentence ends with it
            sentences.add_row(Text("!"), Text(printable(one["flag"].item()), "italic"))
    told = Text(caption(result, errors), "italic")
    return Printed(shown, told, Text(""), Constrain(sentences, width), width=width)


def _numbers(one: xr.Dataset, errors: bool) -> list[str]:
    """Cells of one slice."""
    cells = [str(one["slice"].item()), _count(one["size"].item()), per_cent(one["share"].item())]
    if errors:
        low, high = per_cent(one["error_low"].item()), per_cent(one["error_high"].item())
        cells += [per_cent(one["error_rate"].item()), "-" if low == high == "-" else f"{low} to {high}"]
    else:
        rest = one["loss"].item() - one["loss_gap"].item() if "loss_gap" in one else np.nan
        cells += ["-" if np.isnan(value) else f"{value:.3g}" for value in (one["loss"].item(), rest)]
    q = one["q_value"].item()
    return [*cells, "-" if np.isnan(q) else f"{q:.1g}" if q >= 1e-4 else "<1e-4"]


def caption(result: xr.Dataset, errors: bool) -> str:
    """What the numbers are of."""
    parts = []
    if errors and "overall_error_rate" in result:
        parts.append(f"errors overall: {100 * float(result['overall_error_rate']):.2g} %")
    level = about.number(result.attrs.get("level"))
    if errors and level is not None:
        parts.append(f"intervals at {100 * level:g} %")
    parts.append(Q_CAPTION)
    if "judged_by" in result.attrs:
        parts.append(f"judged by {result.attrs['judged_by']}")
    return printable("; ".join(parts))


# The picture -------------------------------------------------------------------------------------------


def slice_plot(result: xr.Dataset, path: str | os.PathLike[str] | None = None) -> Figure:
    """Slices as a picture: how often each is wrong, and which features set it apart.

    The first panel has the share of errors of each slice with its interval, and a dashed line at that of all
    rows (mean losses where there are no errors). Then comes a panel for each of the first 24 slices:
    standardised differences from all other rows, of the eight features that differ most.

    Parameters
    ----------
    result : xarray.Dataset
        What a slicer's ``describe`` returns.
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
    >>> [axes.get_title(loc="left") for axes in slice_plot(_example()).axes]
    ['errors by slice (dashed: all rows)', 'slice 0: 5 % of rows, 40 % wrong']
    """
    result = _required(result)
    panels = min(result.sizes["slice"], MOST_PANELS) if "difference" in result else 0
    columns = min(COLUMNS, panels + 1)
    rows = math.ceil((panels + 1) / columns)
    bars = max(min(MOST_FEATURES, max(result.sizes.get("feature", 0), result.sizes["slice"])), 3)
    height = rows * (bars * BAR + PANEL_EXTRA)
    figure = drawing.figure(columns * PANEL_WIDTH, height)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    _draw_errors(grid[0], result)
    for axes, one in zip(grid[1 : panels + 1], _slices(result), strict=False):
        _draw_profile(axes, one, _reach(result))
    for axes in grid[panels + 1 :]:
        axes.remove()
    if path is not None:
        write_png(figure, path)
    return figure


def _draw_errors(axes: Axes, result: xr.Dataset) -> None:
    """One bar a slice, its interval, and the line of all rows."""
    from matplotlib.ticker import PercentFormatter

    errors = has_errors(result)
    name, overall = ("error_rate", "overall_error_rate") if errors else ("loss", "overall_loss")
    values = np.nan_to_num(result[name].values)
    places = np.arange(len(values))
    axes.barh(places, values, color=PLAIN, height=0.7)
    if errors:
        low, high = result["error_low"].values, result["error_high"].values
        known = np.isfinite(low) & np.isfinite(high)
        axes.hlines(places[known], low[known], high[known], color="black", linewidth=1.2)
        axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    if overall in result and np.isfinite(float(result[overall])):
        axes.axvline(float(result[overall]), color=HIGH, linestyle="--", linewidth=1)
    every = math.ceil(len(places) / MOST_NUMBERS)
    axes.set_yticks(places[::every], [str(number) for number in result["slice"].values[::every]], size=8)
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.set_ylabel("slice", size=8)
    axes.set_xlabel("share of errors, with interval" if errors else "mean loss", size=8)
    _finish(axes, f"{'errors' if errors else 'losses'} by slice (dashed: all rows)")


def _draw_profile(axes: Axes, one: xr.Dataset, reach: float) -> None:
    """Bars of the features that differ most, the largest at the top."""
    difference = np.nan_to_num(one["difference"].values)
    chosen = np.argsort(-np.abs(difference), kind="stable")[:MOST_FEATURES]
    values = difference[chosen]
    axes.barh(np.arange(len(chosen)), values, color=[HIGH if v > 0 else LOW for v in values], height=0.7)
    names = [short(one["feature"].values[i], LONGEST_NAME) for i in chosen]
    axes.set_yticks(np.arange(len(chosen)), names, size=8, parse_math=False)
    axes.invert_yaxis()
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_xlim(-reach, reach)
    axes.set_xlabel("lower ← standardised difference → higher", size=8)
    _finish(axes, _title(one))


def _title(one: xr.Dataset) -> str:
    title = f"slice {one['slice'].item()}: {per_cent(one['share'].item())} % of rows"
    if np.isfinite(one["error_rate"].item()):
        title += f", {per_cent(one['error_rate'].item())} % wrong"
    elif np.isfinite(one["loss"].item()):
        title += f", mean loss {one['loss'].item():.3g}"
    doubt = textwrap.shorten(printable(one["flag"].item()), 48, placeholder="…")
    return f"{title}\n({doubt})" if doubt else title


def _finish(axes: Axes, title: str) -> None:
    axes.set_title(title, size=9, loc="left", parse_math=False)
    axes.tick_params(axis="x", labelsize=8)
    axes.tick_params(axis="y", length=0)
    axes.spines[["left", "right", "top"]].set_visible(False)


def _reach(result: xr.Dataset) -> float:
    """Half the width of all panels' axes."""
    largest = np.nanmax(np.abs(result["difference"].values), initial=0.0)
    return float(min(max(largest * 1.08, 0.5), 20.0))


# Small things ------------------------------------------------------------------------------------------


def _required(result: xr.Dataset) -> xr.Dataset:
    """The result in memory: it is small, and lazy where it was opened from a store."""
    if "slice" not in result.dims or not all(name in result for name in NEEDED):
        raise DataError(
            f"this describes no slices: it has the variables {sorted(map(str, result))}, expected "
            f"{list(NEEDED)} over (slice); pass the Dataset that a slicer's describe returns"
        )
    return result.compute()


def _slices(result: xr.Dataset) -> list[xr.Dataset]:
    return [result.isel(slice=i) for i in range(result.sizes["slice"])]


def has_errors(result: xr.Dataset) -> bool:
    """Whether it is known of some slice which rows are wrong; else there are losses alone."""
    return bool(np.isfinite(result["error_rate"].values).any())


def _count(size: float) -> str:
    """Rows, which are whole unless they were weighted."""
    return "-" if np.isnan(size) else f"{size:.0f}" if float(size).is_integer() else f"{size:.1f}"


def per_cent(share: float) -> str:
    """With two digits that say something."""
    if np.isnan(share):
        return "-"
    return f"{100 * share:.0f}" if share >= 0.0995 else f"{100 * share:.2g}"


def _example() -> xr.Dataset:
    """One slice, for the examples of this page."""
    numbers = {"size": 50.0, "share": 0.05, "error_rate": 0.4, "error_low": 0.3, "error_high": 0.5}
    numbers |= {"loss": 1.0, "p_value": 0.001, "q_value": 0.002}
    texts = {"flag": "", "words": "5.0 % of rows"}
    found = xr.Dataset({name: ("slice", [value]) for name, value in {**numbers, **texts}.items()})
    found["difference"] = (("slice", "feature"), [[1.5, -0.2]])
    found["overall_error_rate"] = 0.1
    return found.assign_coords(slice=[0], feature=["CD3", "CD19"]).assign_attrs(level=0.95)
