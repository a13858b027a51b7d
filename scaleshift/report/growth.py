"""Which slices grew, and what does that cost?  In rows, and for the terminal."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import xarray as xr
from rich import box
from rich.constrain import Constrain
from rich.table import Table
from rich.text import Text

from scaleshift.errors import DataError
from scaleshift.report.digits import chance, interval, rough_per_cent, three
from scaleshift.report.files import save_csv
from scaleshift.report.names import printable
from scaleshift.report.printed import Printed
from scaleshift.report.slices import Q_CAPTION

NEEDED = ("share_source", "share_target", "growth", "growth_low", "growth_high", "q_value", "error_source",
          "error_target", "cost_of_growth", "cost_of_change", "flag", "words", "summary")  # fmt: skip


def growth_table(result: xr.Dataset, path: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """Slices in rows: their shares of both, growth, errors and what they cost.

    Parameters
    ----------
    result : xarray.Dataset
        What `scaleshift.slices.compare` returns.
    path : path, optional
        Write the table there too, as CSV, under the rules of `table`.

    Returns
    -------
    pandas.DataFrame
        Column slice, then every number and text that the result has by slice.

    Raises
    ------
    DataError
        If the result is another one.

    Examples
    --------
    >>> growth_table(_example())[["slice", "share_source", "share_target", "growth"]]
       slice  share_source  share_target  growth
    0      0           0.1           0.3     0.2
    """
    result = required(result)
    names = [name for name, values in result.data_vars.items() if values.dims == ("slice",)]
    columns = {"slice": result["slice"].values, **{str(name): result[name].values for name in names}}
    return save_csv(pd.DataFrame(columns), path)


def growth_text(result: xr.Dataset, *, width: int | None = None) -> Printed:
    """Slices for the terminal: shares before and now, the cost, and a sentence each.

    Parameters
    ----------
    result : xarray.Dataset
        What `scaleshift.slices.compare` returns.
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
    >>> print(growth_text(_example(), width=80))
    errors 10 % before, 19 % now
    <BLANKLINE>
     slice  share %    growth      q  errors %   cost
     ────────────────────────────────────────────────
         0  10 → 30  15 to 25  0.001   60 → 61  +10.0
    <BLANKLINE>
    cost: of growth, in points of error
    q: share of false discoveries to expect among the slices up to that q
    <BLANKLINE>
    0  grew
    """
    result = required(result)
    errors = of_errors(result)
    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for heading in ("slice", "share %", "growth", "q", "errors %" if errors else "mean loss", "cost"):
        shown.add_column(heading, justify="right", no_wrap=heading in ("slice", "q", "cost"), overflow="fold")
    sentences = Table.grid(padding=(0, 2, 0, 0))
    sentences.add_column(justify="right", no_wrap=True)
    sentences.add_column(overflow="fold")
    for one in (result.isel(slice=i) for i in range(result.sizes["slice"])):
        shown.add_row(*map(Text, _numbers(one, errors)))
        sentences.add_row(Text(str(one["slice"].item())), Text(printable(one["words"].item())))
        if one["flag"].item() not in one["words"].item():
            sentences.add_row(Text("!"), Text(printable(one["flag"].item()), "italic"))
    cost = "cost: of growth, in points of error" if errors else "cost: of growth, in units of the loss"
    notes = [Text(cost, "italic"), Text(Q_CAPTION, "italic"), Text("")]
    head = Text(printable(result["summary"].item()), "bold")
    return Printed(head, shown, *notes, Constrain(sentences, width), width=width)


def required(result: xr.Dataset) -> xr.Dataset:
    """The result in memory.

    Raises
    ------
    DataError
        If it is another one.
    """
    lacking = [name for name in NEEDED if name not in result]
    if lacking or "slice" not in result.dims:
        raise DataError(
            f"this compares no slices: it lacks {', '.join(lacking) or 'slices'}; pass what "
            "scaleshift.slices.compare returns"
        )
    return result.compute()


def of_errors(result: xr.Dataset) -> bool:
    """Whether errors are shares of wrong rows; losses else."""
    return bool(result.attrs.get("measure", "share of errors") == "share of errors")


def _numbers(one: xr.Dataset, errors: bool) -> list[str]:
    """Cells of one slice."""
    value = {name: float(one[name]) for name in NEEDED[:10]}
    told, cost = rough_per_cent if errors else three, value["cost_of_growth"]
    return [
        str(one["slice"].item()),
        f"{rough_per_cent(value['share_source'])} → {rough_per_cent(value['share_target'])}",
        interval(value["growth_low"], value["growth_high"], rough_per_cent),
        chance(value["q_value"]),
        f"{told(value['error_source'])} → {told(value['error_target'])}",
        "-" if np.isnan(cost) else f"{100 * cost:+.1f}" if errors else f"{cost:+.3g}",
    ]


def _example() -> xr.Dataset:
    """One slice, for the examples of this page."""
    values = (0.1, 0.3, 0.2, 0.15, 0.25, 0.001, 0.6, 0.61, 0.1, 0.003)
    found = xr.Dataset({name: ("slice", [value]) for name, value in zip(NEEDED, values, strict=False)})
    found = found.assign(flag=("slice", [""]), words=("slice", ["grew"])).assign_coords(slice=[0])
    overall = {"overall_error_source": 0.1, "overall_error_target": 0.19}
    return found.assign({**overall, "summary": "errors 10 % before, 19 % now"})
