"""How do the compared methods rank? The league table in rows, as CSV, and for the terminal."""

from __future__ import annotations

import os
import textwrap

import numpy as np
import pandas as pd
import xarray as xr
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from scaleshift.errors import DataError
from scaleshift.report.files import replacing, write_csv
from scaleshift.report.names import printable
from scaleshift.report.printed import Printed

COLUMNS = ("error", "error_se", "unknown_error", "coverage", "seconds", "flag")
WIDE = 100  # characters a line from which standard errors have room
HEADING_WIDTH = 7
CAPTION = "sums of the absolute errors of the classes' shares, in per cent; best first"
SPREAD = "±: standard error over what is left out, or over draws"
SCORE = "score: what the recommendation goes by; covered: intervals that hold the truth, per cent"


def league(result: xr.Dataset, path: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """League table in long form: one row a method and setting, best method first.

    Parameters
    ----------
    result : xarray.Dataset
        What `scaleshift.quantify.compare` returns.
    path : path, optional
        Write the table there too, as CSV, under the rules of `table`.

    Returns
    -------
    pandas.DataFrame
        Columns method, recommended, score, setting, error, error_se, unknown_error, coverage, seconds, flag.
        NaN is a number that there is none of: `flag` says why.

    Raises
    ------
    DataError
        If the result is another one.

    Examples
    --------
    >>> index = {"method": ["cc", "mlls"], "setting": ["sample left out"]}
    >>> number = xr.DataArray([[0.2], [0.1]], coords=index)
    >>> result = xr.Dataset({**dict.fromkeys(COLUMNS, number), "score": number[:, 0]})
    >>> advice = {"recommendation": "mlls", "reason": "the least error"}
    >>> league(result.assign_attrs(advice))[["method", "recommended", "setting", "error"]]
      method  recommended          setting  error
    0   mlls         True  sample left out    0.1
    1     cc        False  sample left out    0.2
    """
    best_first = ranked(result)
    rows = best_first[list(COLUMNS)].reset_coords(drop=True).to_dataframe(dim_order=["method", "setting"])
    rows = rows.reset_index()
    rows.insert(1, "recommended", rows["method"] == str(result.attrs["recommendation"]))
    rows.insert(2, "score", np.repeat(best_first["score"].values, best_first.sizes["setting"]))
    if path is not None:
        with replacing(path, ".csv") as temporary:
            write_csv(rows, temporary, ["method", "setting", "flag"])
    return rows


def league_text(result: xr.Dataset, *, width: int | None = None) -> Printed:
    """League table for the terminal, best method first, the recommendation underneath.

    Parameters
    ----------
    result : xarray.Dataset
        What `scaleshift.quantify.compare` returns.
    width : int, optional
        Characters a line; default: those of the terminal. Under 100 the standard errors are left out.

    Returns
    -------
    Printed
        Errors in per cent, what could not be computed, and the recommendation with its reason: for `print`,
        or for a `rich.console.Console` of that width.

    Raises
    ------
    DataError
        If the result is another one.

    Examples
    --------
    >>> index = {"method": ["cc", "mlls"], "setting": ["sample left out"]}
    >>> number = xr.DataArray([[0.2], [0.1]], coords=index)
    >>> result = xr.Dataset({**dict.fromkeys(COLUMNS, number), "score": number[:, 0]})
    >>> result["flag"] = xr.full_like(number, "", dtype=object)
    >>> advice = {"recommendation": "mlls", "reason": "the least error"}
    >>> league_text(result.assign_attrs(advice)).renderables[-1].plain
    'recommended: mlls, the least error'
    """
    best_first = ranked(result)
    spread = (Console().width if width is None else width) >= WIDE
    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    shown.add_column("method", no_wrap=True)
    for heading in ("score", *map(str, best_first["setting"].values.tolist()), "covered", "CPU s"):
        lines = textwrap.wrap(printable(heading), HEADING_WIDTH)
        shown.add_column(Text("\n".join(lines)), justify="right", no_wrap=True)
    for i in range(best_first.sizes["method"]):
        shown.add_row(*map(Text, _row(best_first.isel(method=i), spread)))
    notes = [Text(note, "italic") for note in (CAPTION, *([SPREAD] if spread else []), SCORE)]
    flags = [Text(line) for line in _flags(best_first)]
    advice = Text(printable(f"recommended: {result.recommendation or 'none'}, {result.reason}"), "bold")
    return Printed(shown, *notes, *flags, advice, width=width)


def ranked(result: xr.Dataset) -> xr.Dataset:
    """The same with the best method first; those without a score come last."""
    missing = [name for name in (*COLUMNS, "score") if name not in result]
    if missing or not {"recommendation", "reason"} <= set(result.attrs):
        raise DataError(
            f"this is no league table: it lacks {', '.join(missing) or 'a recommendation'}; pass what "
            "scaleshift.quantify.compare returns"
        )
    return result.isel(method=np.argsort(result["score"].values, kind="stable")).transpose("method", ...)


def _row(one: xr.Dataset, with_spread: bool) -> list[str]:
    """Cells of one method."""
    cells = [printable(one["method"].item()), _per_cent(float(one["score"]))]
    for error, spread in zip(one["error"].values, one["error_se"].values, strict=True):
        shown = with_spread and not np.isnan(spread)
        cells.append(_per_cent(error) + (f" ±{100 * spread:.1f}" if shown else ""))
    known = one["coverage"].values[np.isfinite(one["coverage"].values)]
    coverage = f"{100 * known.mean():.0f}" if known.size else "-"
    return [*cells, coverage, f"{one['seconds'].values.sum():.1f}"]


def _flags(best_first: xr.Dataset) -> list[str]:
    """One line for each thing that went wrong: method, settings, reason."""
    lines = []
    for one in (best_first.isel(method=i) for i in range(best_first.sizes["method"])):
        by_reason: dict[str, list[str]] = {}
        for setting, flag in zip(one["setting"].values.tolist(), one["flag"].values.tolist(), strict=True):
            if flag:
                by_reason.setdefault(flag, []).append(setting)
        for flag, settings in by_reason.items():
            where = "everywhere" if len(settings) == one.sizes["setting"] else ", ".join(settings)
            lines.append(printable(f"{one['method'].item()} ({where}): {flag}"))
    return lines


def _per_cent(error: float) -> str:
    return "-" if np.isnan(error) else f"{100 * float(error):.1f}"
