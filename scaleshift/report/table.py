"""What does a result say in rows? As a pandas table, as CSV, and as a table for the terminal."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from rich.cells import cell_len
from rich.console import Console, Group, JustifyMethod
from rich.table import Table
from rich.text import Text

from scaleshift.errors import DataError
from scaleshift.report.legend import legend, letters

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
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
HEADING_WIDTH = 10  # characters of a label above its column of shares
CAPTION = "per cent of all cells"
NOT_COMPUTED = "; - : not computed"
INTERVALS = {  # by what of the source was drawn again
    "cells": "±: to the interval's farther end; noise of cells alone, not of samples",
    "samples": "±: to the interval's farther end; noise of cells, and of the source's samples",
}
NO_ROOM = "there are intervals, but no room for them: see the CSV, or a wider terminal"


def table(result: xr.Dataset, path: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """Proportions in long form: one row a sample and label, in the result's order.

    Parameters
    ----------
    result : xarray.Dataset
        What a quantifier's ``predict`` returns, with dimensions (sample, label).
    path : path, optional
        Write the table there too, as CSV. The suffix must be ``.csv``; a file that is there is replaced
        as a whole. In the file only, a sample, label or flag text that a spreadsheet would run as a
        formula (it starts with ``= + - @``, a tab or a carriage return) gets an apostrophe in front.

    Returns
    -------
    pandas.DataFrame
        n_samples * n_labels rows; columns sample, label, proportion, proportion_low, proportion_high,
        proportion_known, unknown, unknown_low, unknown_high, distance, misfit, p_value, n_cells, n_invalid,
        flag. NaN is a quantity that was not computed.

    Raises
    ------
    DataError
        If the result lacks a variable, the suffix is not ``.csv`` or the folder is missing.

    Examples
    --------
    >>> share = xr.DataArray([[0.2, 0.5]], coords={"sample": ["S1"], "label": ["B", "T"]})
    >>> one = xr.DataArray([0.3], coords={"sample": ["S1"]})
    >>> result = xr.Dataset({**dict.fromkeys(BY_LABEL, share), **dict.fromkeys(BY_SAMPLE, one)})
    >>> table(result)[["sample", "label", "proportion", "unknown"]]
      sample label  proportion  unknown
    0     S1     B         0.2      0.3
    1     S1     T         0.5      0.3
    """
    require(result, *BY_LABEL, *BY_SAMPLE)
    long = result[[*BY_LABEL, *BY_SAMPLE]].to_dataframe(dim_order=["sample", "label"]).reset_index()
    long = long[["sample", "label", *BY_LABEL, *BY_SAMPLE]]
    if path is not None:
        with replacing(path, ".csv") as temporary:
            safe = long.assign(**{name: long[name].map(_no_formula) for name in ("sample", "label", "flag")})
            safe.to_csv(temporary, index=False)
    return long


def text(result: xr.Dataset, *, width: int | None = None) -> Group:
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
    rich.console.Group
        The table, its caption and the legend, to be printed by a `rich.console.Console` of that width.

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
    >>> [column.header.plain for column in text(result, width=80).renderables[0].columns]
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
    return Group(shown, *captions, legend(names, flags))


def require(result: xr.Dataset, *names: str) -> None:
    """Raise a DataError if `result` is not what a quantifier's predict returns."""
    missing = [name for name in names if name not in result]
    if missing or not {"sample", "label"} <= set(result.dims):
        raise DataError(
            f"this is no result of predict: it has the variables {sorted(map(str, result))} "
            f"and the dimensions {sorted(map(str, result.dims))}, expected variables {list(names)} over "
            "(sample, label); pass the Dataset that a quantifier's predict returns"
        )


@contextmanager
def replacing(path: str | os.PathLike[str], suffix: str) -> Iterator[Path]:
    """Give a temporary path beside `path`, which replaces it once it is written, or vanishes."""
    target = Path(path)
    if target.suffix.lower() != suffix:
        raise DataError(f"{target}: only {suffix} is written so far; give a name that ends in {suffix}")
    if not target.parent.is_dir():
        raise DataError(f"{target}: there is no folder {target.parent}; create it first")
    temporary = target.with_name(f".{target.stem}.{os.getpid()}{suffix}")
    try:
        yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def printable(name: object) -> str:
    """A name as one line of visible characters: names come from files and may hold control codes."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(name))


def _no_formula(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value


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
    rows = table(result)
    is_first = np.arange(len(rows)) % max(result.sizes["label"], 1) == 0
    low, high = _per_cent(rows["proportion_low"]), _per_cent(rows["proportion_high"])

    def once(cells: list[str]) -> list[str]:
        return [cell if first else "" for cell, first in zip(cells, is_first, strict=True)]

    return [
        _Column("sample", once([printable(name) for name in rows["sample"]]), is_text=True, wraps=True),
        _Column("label", [printable(label) for label in rows["label"]], is_text=True, wraps=True),
        _Column("share", _per_cent(rows["proportion"])),
        _Column("interval", [a if a == b == "-" else f"{a} to {b}" for a, b in zip(low, high, strict=True)]),
        _Column("unknown", once(_per_cent(rows["unknown"]))),
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


def _per_cent(shares: np.ndarray | pd.Series) -> list[str]:
    return ["-" if np.isnan(share) else f"{100 * float(share):z.1f}" for share in shares]


def _shares(result: xr.Dataset, name: str, intervals: bool) -> list[str]:
    """Shares by sample, with the distance to the farther end of each interval where there are intervals."""
    share = result[name]
    reach = np.maximum((result[f"{name}_high"] - share).values, (share - result[f"{name}_low"]).values)
    shares = _per_cent(share.values)
    if not intervals or np.isnan(reach).all():
        return shares
    lengths = ["" if np.isnan(r) else f"±{100 * r:.1f}" for r in reach]
    width = max(map(len, lengths))
    return [f"{share} {length:>{width}}" for share, length in zip(shares, lengths, strict=True)]


def _fits(columns: list[_Column], width: int) -> bool:
    """Whether the columns stand side by side uncut."""
    widths = [max(map(cell_len, [*column.name.split("\n"), *column.cells])) for column in columns]
    return sum(widths) + 3 * len(columns) + 1 <= width
