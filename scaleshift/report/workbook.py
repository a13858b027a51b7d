"""What does a result look like in Excel?  A sheet a question, in per cent as gates are read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from scaleshift.quantify.flags import JOINT, REASONS, codes
from scaleshift.report.about import about
from scaleshift.report.excel import Sheet, write_workbook
from scaleshift.report.hierarchy import Population, shares, shares_of_parent
from scaleshift.report.metadata import sample_columns

PER_CENT, WHOLE, PLAIN = "0.00", "0", "General"


class Column(NamedTuple):
    """A column of a sheet with a row a sample."""

    heading: Any
    format: str  # of its numbers
    values: np.ndarray  # (n_samples,)


def write(
    result: xr.Dataset, path: Path, shown: Path, gated: pd.DataFrame | None, of: list[Population] | None
) -> None:
    """Write a result as a workbook.

    Parameters
    ----------
    result : xarray.Dataset
        What a quantifier's predict returns.
    path : path
        The file to write.
    shown : path
        What errors call it.
    gated : pandas.DataFrame, optional
        What `compare_gated` gives.
    of : list of Population, optional
        The labels' hierarchy.
    """
    result = result.transpose("sample", "label", ...)
    hierarchy = [] if of is None else of
    n_cells, flag = (result[name].values for name in ("n_cells", "flag"))
    in_all = Column("n_cells", WHOLE, n_cells)
    percent = [*_shares(result, 100, PER_CENT), *_inner(result, hierarchy, 100, PER_CENT)]
    counts = [*_shares(result, n_cells, WHOLE), *_inner(result, hierarchy, n_cells, WHOLE)]
    sheets = [
        _wide("percent", result, [*percent, in_all, Column("flag", PLAIN, flag)]),
        _wide("counts", result, [*counts, in_all]),
    ]
    if np.isfinite(result["proportion_low"].values).any():
        sheets += [_wide(end, result, _shares(result, 100, PER_CENT, f"_{end}")) for end in ("low", "high")]
    if of is not None:
        sheets.append(_wide("percent of parent", result, _of_parent(result, of)))
    sheets.append(_flags(result))
    if gated is not None:
        sheets.append(_gated(gated))
    made = about(result, [sheet.name for sheet in sheets], gated, of is not None)
    write_workbook([*sheets, Sheet("about", ["about", "value"], made, [PLAIN, PLAIN])], path, shown)


def _wide(name: str, result: xr.Dataset, columns: Sequence[Column]) -> Sheet:
    """A sheet with one row a sample: its name, what describes it, then the columns."""
    taken = ["sample", *result["label"].values.tolist(), "unknown", "n_cells", "flag"]
    described = sample_columns(result, taken)
    every = [
        Column("sample", PLAIN, result["sample"].values),
        *(Column(heading, PLAIN, values) for heading, values in described.items()),
        *columns,
    ]
    rows = list(zip(*(column.values.tolist() for column in every), strict=True))
    return Sheet(name, [column.heading for column in every], rows, [column.format for column in every])


def _shares(result: xr.Dataset, factor: Any, format_: str, end: str = "") -> list[Column]:
    """Shares of the labels and the unknown share, or one end of their intervals, times a factor."""
    labels = result["label"].values.tolist()
    of_labels = zip(labels, result[f"proportion{end}"].values.T, strict=True)
    unknown = "unknown" if "unknown" not in labels else "unknown (no label)"
    return [
        *(Column(label, format_, factor * share) for label, share in of_labels),
        Column(unknown, format_, factor * result[f"unknown{end}"].values),
    ]


def _inner(result: xr.Dataset, of: list[Population], factor: Any, format_: str) -> list[Column]:
    """Shares of the populations that hold more than the cells of one label, times a factor."""
    inner = [(i, population.name) for i, population in enumerate(of) if population.members != [i]]
    share = shares(result["proportion"].values, of)
    return [Column(f"{name} (all)", format_, factor * share[:, i]) for i, name in inner]


def _of_parent(result: xr.Dataset, of: list[Population]) -> list[Column]:
    share = 100 * shares_of_parent(result["proportion"].values, of)
    below = [(i, population) for i, population in enumerate(of) if population.parent is not None]
    return [Column(f"{name}, % of {parent}", PER_CENT, share[:, i]) for i, (name, parent, _) in below]


def _flags(result: xr.Dataset) -> Sheet:
    rows = []
    for sample, flag in zip(result["sample"].values.tolist(), result["flag"].values.tolist(), strict=True):
        for reason, code in zip(filter(None, flag.split(JOINT)), codes(flag), strict=True):
            meaning = REASONS[code].meaning if code in REASONS else None
            rows.append([sample, code, reason, meaning])
    return Sheet("flags", ["sample", "letter", "reason", "what it means"], rows, [PLAIN] * 4)


def _gated(gated: pd.DataFrame) -> Sheet:
    per_cent = ("gated", "estimated", "low", "high", "difference")
    columns = [gated["sample"].tolist(), gated["label"].tolist()]
    columns += [(100 * gated[name]).tolist() for name in per_cent]
    columns.append([None if pd.isna(held) else bool(held) for held in gated["inside"]])
    headings = ["sample", "label", *per_cent, "inside"]
    rows = list(zip(*columns, strict=True))
    return Sheet("gated", headings, rows, [PLAIN, PLAIN, *[PER_CENT] * len(per_cent), PLAIN])
