"""What does a result look like in Excel?  A sheet a question, in per cent as gates are read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from scaleshift.quantify.flags import JOINT, REASONS, codes
from scaleshift.report.excel import Sheet, write_workbook
from scaleshift.report.gated import summarize_gated
from scaleshift.report.hierarchy import Population, shares_of_parent

PER_CENT, WHOLE, PLAIN = "0.00", "0", "General"
SHEETS = {
    "percent": "per cent of all the sample's cells; unknown: cells unlike every label of the source",
    "counts": "estimated cells: the share times the sample's cells, which need not be whole",
    "low": "lower ends of the intervals of the sheet percent, cell by cell",
    "high": "upper ends of the intervals of the sheet percent, cell by cell",
    "percent of parent": "per cent of the cells of the population above; empty where that is empty",
    "flags": "why a sample deserves caution, a row a reason",
    "gated": "per cent that the gates found beside the estimate; difference in percentage points",
}


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
    sheets = [_percent(result), _counts(result)]
    if np.isfinite(result["proportion_low"].values).any():
        sheets += [_ends(result, "low"), _ends(result, "high")]
    if of is not None:
        sheets.append(_of_parent(result, of))
    sheets.append(_flags(result))
    if gated is not None:
        sheets.append(_gated(gated))
    sheets.append(_about(result, [sheet.name for sheet in sheets], gated))
    write_workbook(sheets, path, shown)


def _percent(result: xr.Dataset) -> Sheet:
    samples, labels = _names(result)
    columns = [
        samples,
        *(100 * result["proportion"].values).T.tolist(),
        (100 * result["unknown"].values).tolist(),
        result["n_cells"].values.tolist(),
        result["flag"].values.tolist(),
    ]
    headings = ["sample", *labels, _unknown(labels), "n_cells", "flag"]
    formats = [PLAIN, *[PER_CENT] * (len(labels) + 1), WHOLE, PLAIN]
    return Sheet("percent", headings, _rows(columns), formats)


def _counts(result: xr.Dataset) -> Sheet:
    samples, labels = _names(result)
    n_cells = result["n_cells"].values
    columns = [
        samples,
        *(result["proportion"].values * n_cells[:, None]).T.tolist(),
        (result["unknown"].values * n_cells).tolist(),
        n_cells.tolist(),
    ]
    headings = ["sample", *labels, _unknown(labels), "n_cells"]
    return Sheet("counts", headings, _rows(columns), [PLAIN, *[WHOLE] * (len(labels) + 2)])


def _ends(result: xr.Dataset, end: str) -> Sheet:
    samples, labels = _names(result)
    columns = [
        samples,
        *(100 * result[f"proportion_{end}"].values).T.tolist(),
        (100 * result[f"unknown_{end}"].values).tolist(),
    ]
    headings = ["sample", *labels, _unknown(labels)]
    return Sheet(end, headings, _rows(columns), [PLAIN, *[PER_CENT] * (len(labels) + 1)])


def _of_parent(result: xr.Dataset, of: list[Population]) -> Sheet:
    samples, _ = _names(result)
    share = 100 * shares_of_parent(result["proportion"].values, of)
    below = [column for column, population in enumerate(of) if population.parent is not None]
    headings = ["sample", *(f"{of[column].name}, % of {of[column].parent}" for column in below)]
    columns = [samples, *share[:, below].T.tolist()]
    return Sheet("percent of parent", headings, _rows(columns), [PLAIN, *[PER_CENT] * len(below)])


def _flags(result: xr.Dataset) -> Sheet:
    rows = []
    samples, _ = _names(result)
    for sample, flag in zip(samples, result["flag"].values.tolist(), strict=True):
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
    return Sheet("gated", headings, _rows(columns), [PLAIN, PLAIN, *[PER_CENT] * len(per_cent), PLAIN])


def _about(result: xr.Dataset, names: list[str], gated: pd.DataFrame | None) -> Sheet:
    """What the sheets hold, and how the result was made."""
    rows: list[list[Any]] = [[f"sheet {name!r}", SHEETS[name]] for name in names]
    if "low" not in names:
        rows.append(["intervals", "none were computed"])
    if "unknown_baseline" in result:
        rows.append(
            [
                "unknown_baseline",
                f"{100 * float(result['unknown_baseline']):.2f} %: may be how samples differ",
            ]
            if np.isfinite(result["unknown_baseline"])
            else ["unknown_baseline", None]
        )
    if gated is not None:
        rows.append(["gated", str(summarize_gated(gated))])
    for name, value in result.attrs.items():
        rows += _attribute(str(name), value)
    return Sheet("about", ["about", "value"], rows, [PLAIN, PLAIN])


def _attribute(name: str, value: Any) -> Iterator[list[Any]]:
    """Rows of one attribute: one for each parameter and source sample, which stand there as JSON."""
    if name not in ("parameters", "source_samples"):
        yield [name, value]
        return
    found = json.loads(value)
    if isinstance(found, Mapping):
        yield from ([f"parameter {key}", _text(item)] for key, item in found.items())
    else:
        yield from (["source sample", item] for item in found)


def _text(value: Any) -> Any:
    return value if isinstance(value, str | bool | int | float) else json.dumps(value)


def _names(result: xr.Dataset) -> tuple[list[Any], list[Any]]:
    return result["sample"].values.tolist(), result["label"].values.tolist()


def _unknown(labels: list[Any]) -> str:
    """Heading of the unknown share, which a label may be called too."""
    return "unknown" if "unknown" not in labels else "unknown (no label)"


def _rows(columns: list[list[Any]]) -> list[tuple[Any, ...]]:
    return list(zip(*columns, strict=True))
