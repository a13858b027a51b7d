"""What does a quantifier answer, in rows?  As a pandas table, as CSV, as a workbook, and for the terminal."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from scaleshift.errors import DataError
from scaleshift.report.digits import interval, per_cent
from scaleshift.report.files import replacing, write_csv
from scaleshift.report.hierarchy import Population, populations, shares, shares_of_parent
from scaleshift.report.legend import legend, letters
from scaleshift.report.metadata import sample_columns
from scaleshift.report.names import printable
from scaleshift.report.printed import Printed

BY_LABEL = ("proportion", "proportion_low", "proportion_high", "proportion_known")
BY_SAMPLE = (
    "unknown",
    "unknown_low",
    "unknown_high",
    "distance",
    "misfit",
    "p_value",
    "n_cells",
    "n_invalid",
    "flag",
)
HEADING_WIDTH = 10  # characters of a label above its column of shares
CAPTION = "per cent of all cells"
NOT_COMPUTED = "; - : not computed"
INTERVALS = {  # by what of the source was drawn again
    "cells": "±: to the interval's farther end; noise of cells alone, not of samples",
    "samples": "±: to the interval's farther end; noise of cells, and of the source's samples",
}
NO_ROOM = "there are intervals, but no room for them: see the CSV, or a wider terminal"


def proportion_table(
    result: xr.Dataset,
    path: str | os.PathLike[str] | None = None,
    *,
    gated: pd.DataFrame | None = None,
    parents: Mapping[Any, Any] | None = None,
) -> pd.DataFrame:
    """Proportions in long form: one row a sample and label, in the result's order.

    Parameters
    ----------
    result : xarray.Dataset
        What a quantifier's ``predict`` returns, with dimensions (sample, label).
    path : path, optional
        Write the table there too; a file that is there is replaced as a whole. As CSV (``.csv``): in the
        file only, text that a spreadsheet would run as a formula (it starts with ``= + - @``, a tab or a
        carriage return) gets an apostrophe in front. Or as a workbook (``.xlsx``,
        with openpyxl): one row a sample and one column a label, in per cent, on the sheets percent, counts,
        low, high, percent of parent, flags, gated and about. The same result gives the same bytes.
    gated : pandas.DataFrame, optional
        What `compare_gated` gives: a column `gated`, and a sheet.
    parents : mapping, optional
        Gate hierarchy: name of a population to its parent's, as in ``{"CD4": "T", "T": "lymphocytes"}``. A
        population holds its own cells and those of all below. Inner populations get rows too, without an
        interval.

    Returns
    -------
    pandas.DataFrame
        n_samples * n_labels rows; columns sample, label, proportion, proportion_low, proportion_high,
        proportion_known, count (estimated number of cells), unknown, unknown_low, unknown_high, distance,
        misfit, p_value, n_cells, n_invalid, flag. With `gated` also gated; with `parents` also parent and
        proportion_of_parent (NaN where the parent is empty), and rows of inner populations after each
        sample's labels. Last come the result's coordinates on `sample` (donor, day, ...); one that is
        called like a column of the table gets "sample_" in front. NaN is a quantity that was not computed.

    Raises
    ------
    DataError
        If the result lacks a variable, the suffix is another, the folder or openpyxl is missing, Excel
        could not hold the table, or `parents` run in a circle.

    Examples
    --------
    >>> share = xr.DataArray([[0.2, 0.5]], coords={"sample": ["S1"], "label": ["B", "T"]})
    >>> one = xr.DataArray([0.3], coords={"sample": ["S1"]})
    >>> result = xr.Dataset({**dict.fromkeys(BY_LABEL, share), **dict.fromkeys(BY_SAMPLE, one)})
    >>> proportion_table(result)[["sample", "label", "proportion", "unknown"]]
      sample label  proportion  unknown
    0     S1     B         0.2      0.3
    1     S1     T         0.5      0.3
    """
    require(result, *BY_LABEL, *BY_SAMPLE)
    of = None if parents is None else populations(result["label"].values.tolist(), parents)
    long = _long_form(result, of)
    if gated is not None:
        keys = pd.MultiIndex.from_frame(long[["sample", "label"]])
        long["gated"] = gated.set_index(["sample", "label"])["gated"].reindex(keys).to_numpy()
    of_samples = sample_columns(result, long.columns)
    n_rows = len(long) // max(result.sizes["sample"], 1)  # of each sample
    long = long.assign(**{name: np.repeat(values, n_rows) for name, values in of_samples.items()})
    if path is not None:
        with replacing(path, ".csv", ".xlsx") as temporary:
            if temporary.suffix.lower() == ".csv":
                names = [name for name in ("sample", "label", "parent", "flag") if name in long]
                write_csv(long, temporary, [*names, *of_samples])
            else:
                from scaleshift.report import workbook

                workbook.write(result, temporary, Path(path), gated, of)
    return long


def _long_form(result: xr.Dataset, of: list[Population] | None) -> pd.DataFrame:
    """One row a sample and population: labels, then the inner nodes of a hierarchy."""
    found = result[[*BY_LABEL, *BY_SAMPLE]].reset_coords(drop=True).transpose("sample", "label", ...)
    columns = ["sample", "label", *BY_LABEL, "count", *BY_SAMPLE]
    if of is not None:
        found = _with_populations(found, of)
        columns[-len(BY_SAMPLE) : -len(BY_SAMPLE)] = ["parent", "proportion_of_parent"]
    found["count"] = found["proportion"] * found["n_cells"]
    return found.to_dataframe(dim_order=["sample", "label"]).reset_index()[columns]


def _with_populations(result: xr.Dataset, of: list[Population]) -> xr.Dataset:
    """The result with inner populations behind its labels, and what share of its parent each one is."""
    n_labels = result.sizes["label"]
    wider = result.reindex(label=pd.Index([population.name for population in of], dtype=object))
    for name in ("proportion", "proportion_known"):
        wider[name][:, n_labels:] = shares(result[name].values, of)[:, n_labels:]
    wider["parent"] = ("label", np.array([population.parent for population in of], dtype=object))
    wider["proportion_of_parent"] = (("sample", "label"), shares_of_parent(result["proportion"].values, of))
    return wider


def proportion_text(result: xr.Dataset, *, width: int | None = None) -> Printed:
    """Proportions for the terminal, in per cent.

    One row a sample with the labels as columns where that fits, else one row a sample and label, with the
    interval. Flags are letters; below the table stand the reasons in words, and what each letter means.
    Names are shown as they are: markup in them has no effect.

    Parameters
    ----------
    result : xarray.Dataset
        What a quantifier's ``predict`` returns, with dimensions (sample, label).
    width : int, optional
        Characters a line; default: those of the terminal.

    Returns
    -------
    Printed
        The table, its caption and the legend: for `print`, or for a `rich.console.Console` of that width.

    Raises
    ------
    DataError
        If the result lacks a variable.

    Examples
    --------
    >>> share = xr.DataArray([[0.2, 0.5]], coords={"sample": ["S1"], "label": ["B", "T"]})
    >>> one = xr.DataArray([0.3], coords={"sample": ["S1"]})
    >>> result = xr.Dataset({**dict.fromkeys(BY_LABEL, share), **dict.fromkeys(BY_SAMPLE, one)})
    >>> result["flag"] = ("sample", ["few cells: 12"])
    >>> [column.header.plain for column in proportion_text(result, width=80).renderables[0].columns]
    ['sample', 'B', 'T', 'unknown', 'flag']
    """
    require(result, *BY_LABEL, *BY_SAMPLE)
    width = Console().width if width is None else width
    layouts = (_wide(result, intervals=True), _wide(result), _long(result))
    columns = next((columns for columns in layouts if _fits(columns, width)), layouts[-1])
    shown = Table()
    for column in columns:
        justify: JustifyMethod = "left" if column.is_text else "right"
        shown.add_column(Text(column.name), justify=justify, no_wrap=not column.wraps, overflow="fold")
    for row in zip(*(column.cells for column in columns), strict=True):
        shown.add_row(*map(Text, row))
    names, flags = ([printable(value) for value in result[name].values] for name in ("sample", "flag"))
    captions = [Text(caption, "italic") for caption in _captions(result, columns)]
    return Printed(shown, *captions, legend(names, flags), width=width)


def require(result: xr.Dataset, *names: str) -> None:
    """Raise a DataError if `result` is not what a quantifier's predict returns."""
    missing = [name for name in names if name not in result]
    if missing or not {"sample", "label"} <= set(result.dims):
        raise DataError(
            f"this is no result of predict: it has the variables {sorted(map(str, result))} "
            f"and the dimensions {sorted(map(str, result.dims))}, expected variables {list(names)} over "
            "(sample, label); pass the Dataset that a quantifier's predict returns"
        )


def _captions(result: xr.Dataset, columns: list[_Column]) -> Iterator[str]:
    """What the table's numbers are, and what an unknown share is compared with."""
    cells = [cell for column in columns for cell in column.cells]
    yield CAPTION + (NOT_COMPUTED if "-" in cells else "")
    if any("±" in cell for cell in cells):
        yield INTERVALS[result.attrs.get("resampled", "cells")]
    elif np.isfinite(result["proportion_low"].values).any() and not any(" to " in cell for cell in cells):
        yield NO_ROOM
    usual = float(result.get("unknown_baseline", np.nan))
    if not np.isnan(usual):
        yield f"unknown up to {100 * usual:.1f} may be how samples differ"


class _Column(NamedTuple):
    name: str
    cells: list[str]
    is_text: bool = False
    wraps: bool = False


def _wide(result: xr.Dataset, intervals: bool = False) -> list[_Column]:
    """Columns of the terminal table with one row a sample; with `intervals` half of each one's length."""
    of_label = [result.isel(label=i) for i in range(result.sizes["label"])]
    return [
        _Column("sample", [printable(name) for name in result["sample"].values], is_text=True),
        *(
            _Column(_heading(printable(one["label"].item())), _shares(one, "proportion", intervals))
            for one in of_label
        ),
        _Column("unknown", _shares(result, "unknown", intervals)),
        _Column("flag", [letters(flag) for flag in result["flag"].values], is_text=True),
    ]


def _long(result: xr.Dataset) -> list[_Column]:
    """Columns with one row a sample and label; what belongs to the sample stands in its first row."""
    rows = proportion_table(result)
    is_first = np.arange(len(rows)) % max(result.sizes["label"], 1) == 0
    ends = zip(rows["proportion_low"], rows["proportion_high"], strict=True)

    def once(cells: list[str]) -> list[str]:
        return [cell if first else "" for cell, first in zip(cells, is_first, strict=True)]

    return [
        _Column("sample", once([printable(name) for name in rows["sample"]]), is_text=True, wraps=True),
        _Column("label", [printable(label) for label in rows["label"]], is_text=True, wraps=True),
        _Column("share", [per_cent(share) for share in rows["proportion"]]),
        _Column("interval", [interval(low, high, per_cent) for low, high in ends]),
        _Column("unknown", once([per_cent(share) for share in rows["unknown"]])),
        _Column("flag", once([letters(flag) for flag in rows["flag"]]), is_text=True),
    ]


def _heading(label: str) -> str:
    """A label on lines of at most HEADING_WIDTH, broken after blanks, hyphens and underscores only."""
    lines = [""]
    for part in re.findall(r"[^\s_-]*[\s_-]*", label):
        if lines[-1] and cell_len((lines[-1] + part).rstrip()) > HEADING_WIDTH:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def _shares(result: xr.Dataset, name: str, intervals: bool) -> list[str]:
    """Shares by sample, with the distance to the farther end of each interval where there are intervals."""
    share = result[name]
    reach = np.maximum((result[f"{name}_high"] - share).values, (share - result[f"{name}_low"]).values)
    shares = [per_cent(value) for value in share.values]
    if not intervals or np.isnan(reach).all():
        return shares
    lengths = ["" if np.isnan(r) else f"±{per_cent(r)}" for r in reach]
    width = max(map(len, lengths))
    return [f"{share} {length:>{width}}" for share, length in zip(shares, lengths, strict=True)]


def _fits(columns: list[_Column], width: int) -> bool:
    """Whether the columns stand side by side uncut."""
    widths = [max(map(cell_len, [*column.name.split("\n"), *column.cells])) for column in columns]
    return sum(widths) + 3 * len(columns) + 1 <= width
