"""What error is to be expected on each target?  In rows, and for the terminal."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from rich import box
from rich.cells import cell_len
from rich.console import Console, JustifyMethod, RenderableType
from rich.constrain import Constrain
from rich.table import Table
from rich.text import Text

from scaleshift.errors import DataError
from scaleshift.report import error_words as words
from scaleshift.report.digits import interval
from scaleshift.report.excel import Sheet, write_workbook
from scaleshift.report.files import replacing, write_csv
from scaleshift.report.names import printable, short
from scaleshift.report.printed import Printed

BY_METHOD = ("error", "error_low", "error_high", "error_drawn", "mc_error")
BY_TARGET = ("n_rows", "n_invalid", "effective_sample_size", "far", "unreliable", "flag")
OBSERVED = ("observed", "observed_se", "n_observed")  # by target, where outcomes are known after all
TEXT = ["target", "method", "flag", "reason"]
LONGEST_NAME = 32  # of a target
MOST_ROWS = 60  # targets that are listed; the CSV has all
Column = tuple[str, list[str]]  # heading and cells


def error_table(result: xr.Dataset, path: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """Expected errors in long form: one row a target and method, in the result's order.

    Parameters
    ----------
    result : xarray.Dataset
        What ``predict`` of a `PredictionError` returns.
    path : path, optional
        Write the table there too, as CSV or as a workbook (``.xlsx``, with openpyxl), under the rules of
        `table`. The workbook has a second sheet of the result's attributes.

    Returns
    -------
    pandas.DataFrame
        n_targets * n_methods rows; columns target, method, error, error_low, error_high, error_drawn,
        mc_error, error_in_sample, n_rows, n_invalid, effective_sample_size, far, unreliable, flag; and
        observed, observed_se, n_observed, and reason, why there is no answer, where the result has them. NaN
        is a quantity that was not computed.

    Raises
    ------
    DataError
        If the result is another one, the suffix is another, the folder or openpyxl is missing.

    Examples
    --------
    >>> error_table(_example())[["target", "method", "error", "error_in_sample"]]
       target      method  error  error_in_sample
    0  site B      direct   0.12             0.07
    1  site B  decomposed   0.13             0.07
    """
    result = required(result)
    columns = ["target", "method", *BY_METHOD, "error_in_sample", *BY_TARGET]
    columns += [name for name in (*OBSERVED, "reason") if name in result]
    found = result[columns[2:]].reset_coords(drop=True)
    long = found.to_dataframe(dim_order=["target", "method"]).reset_index()[columns]
    if path is not None:
        with replacing(path, ".csv", ".xlsx") as temporary:
            if temporary.suffix.lower() == ".csv":
                write_csv(long, temporary, [name for name in TEXT if name in long])
            else:
                write_workbook(_sheets(long, result), temporary, Path(path))
    return long


def _sheets(long: pd.DataFrame, result: xr.Dataset) -> list[Sheet]:
    """The table, and where it comes from."""
    headings = [str(name) for name in long]
    rows = [list(row) for row in long.itertuples(index=False)]
    about = [[str(name), str(value)] for name, value in result.attrs.items()]
    general = ["General"] * len(headings)
    return [Sheet("error", headings, rows, general), Sheet("about", ["what", "is"], about, general[:2])]


def error_text(result: xr.Dataset, *, width: int | None = None) -> Printed:
    """Expected errors for the terminal: a row a target, the first method with its interval, others beside.

    Flags are letters, which are told in words below the table. Of a single target a sentence says it all.
    Names are shown as they are: markup in them has no effect.

    Parameters
    ----------
    result : xarray.Dataset
        What ``predict`` of a `PredictionError` returns.
    width : int, optional
        Characters a line; default: those of the terminal. Where the methods do not stand side by side, each
        has a row.

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
    >>> print(error_text(_example(), width=80))
    expected error on 'site B': 0.120 (0.100 to 0.150), source 0.0700
    share of wrong labels; source: in sample 0.0700
    <BLANKLINE>
     target  direct   95 % interval  decomposed  rows  far  flag
     ───────────────────────────────────────────────────────────
     site B   0.120  0.100 to 0.150       0.130   900  2 %  a
    <BLANKLINE>
    far: share of rows that are further out than 99 % of the source's
    <BLANKLINE>
     a  few effective rows: 12
    """
    result = required(result)
    room = Console().width if width is None else width
    single = result.sizes["target"] == 1
    head = words.sentence(result) if single else f"expected error on {result.sizes['target']} targets"
    parts: list[RenderableType] = [
        Text(head, "bold"),
        Text("; ".join([words.of_loss(result), *words.of_source(result)]), "italic"),
    ]
    known, first = words.phrases(result), result.isel(target=slice(MOST_ROWS))
    wide = _wide(first, known)
    parts.append(_drawn(wide if _fits(wide, room) else _long(first, known)))
    if result.sizes["target"] > MOST_ROWS:
        parts.append(Text(f"and {result.sizes['target'] - MOST_ROWS} more: see the CSV"))
    parts += [*(Text(line, "italic") for line in captions(result, single))]
    lettered = words.legend(result, known)
    if lettered:
        parts += [Text(""), Constrain(_grid(lettered), room)]
    return Printed(*parts, width=width)


def required(result: xr.Dataset) -> xr.Dataset:
    """The result in memory.

    Raises
    ------
    DataError
        If it is another one.
    """
    needed = (*BY_METHOD, *BY_TARGET, "error_in_sample")
    lacking = [name for name in needed if name not in result]
    if lacking or not {"target", "method"} <= set(result.dims) or not result.sizes["method"]:
        raise DataError(
            f"this tells no expected errors: it lacks {', '.join(lacking) or 'targets or methods'}; pass "
            "what predict or update of a PredictionError returns"
        )
    return result.compute()


def _wide(result: xr.Dataset, known: dict[str, str]) -> list[Column]:
    """A row a target, methods side by side."""
    names = words.methods(result)
    error = result["error"].transpose("target", "method").values
    columns = [_targets(result), (printable(names[0]), [words.number(value) for value in error[:, 0]])]
    columns.append((_interval_heading(result), _intervals(result)[:, 0].tolist()))
    for i in words.beside(result):
        columns.append((printable(names[i]), [words.number(value) for value in error[:, i]]))
    return [*columns, *_observed(result), *_of_rows(result, known)]


def _long(result: xr.Dataset, known: dict[str, str]) -> list[Column]:
    """A row a target and method, one of what was observed; what is the target's stands in its first row."""
    shown, names = [0, *words.beside(result)], [printable(name) for name in words.methods(result)]
    error, intervals = result["error"].transpose("target", "method").values, _intervals(result)
    of_rows = _of_rows(result, known)
    rows: list[list[str]] = []
    for i, target in enumerate(_targets(result)[1]):
        own = [cells[i] for _, cells in of_rows]
        for j in shown:
            told = [names[j], words.number(error[i, j]), intervals[i, j]]
            rows.append([target, *told, *own] if j == shown[0] else ["", *told, *[""] * len(own)])
        if words.has_observed(result) and result["n_observed"].values[i]:
            value, _, se = words.observed(*_observed_of(result, i)).partition(" ")
            n = f"{result['n_observed'].values[i]:.0f}"
            rows.append(["", "observed", value, se, n, *[""] * (len(own) - 1)])
    headings = ["target", "method", "error", _interval_heading(result), *(heading for heading, _ in of_rows)]
    return [(heading, [row[i] for row in rows]) for i, heading in enumerate(headings)]


def _targets(result: xr.Dataset) -> Column:
    return "target", [short(name, LONGEST_NAME) for name in result["target"].values]


def _of_rows(result: xr.Dataset, known: dict[str, str]) -> list[Column]:
    """What is told of the rows of each target."""
    far = ["-" if np.isnan(share) else f"{100 * share:.0f} %" for share in result["far"].values]
    flags = zip(result["flag"].values, result["unreliable"].values, strict=True)
    return [
        ("rows", [f"{n:.0f}" for n in result["n_rows"].values]),
        ("far", far),
        ("flag", [words.letters(flag, unreliable, known) for flag, unreliable in flags]),
    ]


def _observed(result: xr.Dataset) -> list[Column]:
    """Observed errors, and of how many rows they are; nothing where no outcome is known."""
    if not words.has_observed(result):
        return []
    told = [words.observed(*_observed_of(result, i)) for i in range(result.sizes["target"])]
    return [
        ("observed", told),
        ("of rows", [f"{n:.0f}" if n else "-" for n in result["n_observed"].values]),
    ]


def _observed_of(result: xr.Dataset, place: int) -> tuple[float, float]:
    """Error and standard error of one target."""
    return float(result["observed"].values[place]), float(result["observed_se"].values[place])


def _intervals(result: xr.Dataset) -> np.ndarray:
    """Texts, (n_targets, n_methods)."""
    low, high = (result[name].transpose("target", "method").values for name in ("error_low", "error_high"))
    found = np.empty(low.shape, object)
    for place in np.ndindex(low.shape):
        found[place] = interval(float(low[place]), float(high[place]), words.number)
    return found


def _interval_heading(result: xr.Dataset) -> str:
    level = words.level(result)
    return "interval" if level is None else f"{100 * level:g} % interval"


def _drawn(columns: list[Column]) -> Table:
    left, folding = ("target", "method", "flag"), ("target", "flag")
    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for heading, _ in columns:
        justify: JustifyMethod = "left" if heading in left else "right"
        shown.add_column(Text(heading), justify=justify, no_wrap=heading not in folding, overflow="fold")
    for row in zip(*(cells for _, cells in columns), strict=True):
        shown.add_row(*map(Text, row))
    return shown


def _fits(columns: list[Column], room: int) -> bool:
    widths = [max(map(cell_len, [*heading.split("\n"), *cells])) for heading, cells in columns]
    return sum(widths) + 2 * len(columns) + 1 <= room


def captions(result: xr.Dataset, single: bool) -> list[str]:
    """What the columns are, and how exact the numbers."""
    captions = ["far: share of rows that are further out than 99 % of the source's"]
    if np.isnan(result["error"].values).any() or np.isnan(result["far"].values).any():
        captions[0] += "; - : not computed"
    if words.has_observed(result):
        captions.append("observed: on rows whose outcome is known, ± standard error if independent")
    if "cv" in words.methods(result):
        captions.append("cv: cross-validated on the source; it does not see the target")
    silent = words.silent(result)
    if silent:
        captions.append(f"without an answer: {', '.join(map(printable, silent))}")
    inexact = np.nan_to_num(result["mc_error"].values).max(initial=0)
    if inexact > 0:
        captions.append(f"Monte-Carlo standard error of an estimate: up to {words.number(inexact)}")
    invalid = result["n_invalid"].values
    if invalid.any():
        captions.append(f"rows left out, with NaN or infinite values: {invalid.sum():.0f}")
    return [*captions, *(words.of_features(result) if single else [])]


def _grid(rows: list[tuple[str, str]]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for letter, told in rows:
        grid.add_row(Text(f" {letter}"), Text(told))
    return grid


def _example() -> xr.Dataset:
    """One target and two methods, for the examples of this page."""
    by_method = {"error": [[0.12, 0.13]], "error_low": [[0.1, 0.11]], "error_high": [[0.15, 0.16]]}
    by_method |= {"error_drawn": [[0.12, 0.13]], "mc_error": [[0.0, 0.0]]}
    by_target = {"n_rows": [900], "n_invalid": [0], "effective_sample_size": [12.0], "far": [0.02]}
    by_target |= {"unreliable": [False], "flag": ["few effective rows: 12"]}
    return xr.Dataset(
        {
            **{name: (("target", "method"), values) for name, values in by_method.items()},
            **{name: ("target", values) for name, values in by_target.items()},
            "error_in_sample": ("method", [0.07, 0.07]),
        },
        coords={"target": ["site B"], "method": ["direct", "decomposed"]},
        attrs={"loss": "counting", "parameters": '{"level": 0.95}'},
    )
