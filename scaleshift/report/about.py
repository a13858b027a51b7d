"""How was a result made?  The rows of a workbook's last sheet: its sheets, selection, treatment, method."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from scaleshift.report.gated import summarize_gated

SHEETS = {
    "percent": "per cent of all the sample's cells; unknown: cells unlike every label of the source",
    "counts": "estimated cells: the share times the sample's cells, which need not be whole",
    "low": "lower ends of the intervals of the sheet percent, cell by cell",
    "high": "upper ends of the intervals of the sheet percent, cell by cell",
    "percent of parent": "per cent of the cells of the population above; empty where that is empty",
    "flags": "why a sample deserves caution, a row a reason",
    "gated": "per cent that the gates found beside the estimate; difference in percentage points",
}
ALL = "a population with all that lies below it: these cells are in the labels' columns too"
#: attribute -> what it is called; others come behind, as they are called
ATTRIBUTES = {
    "study": "study",
    "source": "source",
    "model": "model",
    "source_samples": "source sample",
    "target": "target",
    "features": "feature",
    "transform": "transform",
    "compensation": "compensation",
    "scaling": "scaling",
    "import_left_out": "left out at import",
    "import_said": "chosen at import",
    "import_problems": "remark at import",
    "method": "method",
    "choice": "chosen by --method auto",
    "citation": "citation",
    "scaleshift_version": "scaleshift_version",
    "parameters": "parameter",
    "seed": "seed",
    "resampled": "resampled",
}
LISTS = ("source_samples", "features", "import_left_out", "import_said", "import_problems")  # JSON


def about(
    result: xr.Dataset, sheets: Sequence[str], gated: pd.DataFrame | None, hierarchy: bool
) -> list[list[Any]]:
    """Pairs of a name and a value.

    Parameters
    ----------
    result : xarray.Dataset
    sheets : sequence of str
        Names of the workbook's other sheets.
    gated : pandas.DataFrame, optional
        What `compare_gated` gives.
    hierarchy : bool
        Whether there are columns of inner populations.
    """
    rows: list[list[Any]] = [[f"sheet {name!r}", SHEETS[name]] for name in sheets]
    if hierarchy:
        rows.append(["columns with (all)", ALL])
    if "low" not in sheets:
        rows.append(["intervals", "none were computed"])
    if gated is not None:
        rows.append(["gated", str(summarize_gated(gated))])
    return rows + made(result)


def made(result: xr.Dataset) -> list[list[Any]]:
    """Pairs of a name and a value: selection, treatment, method, parameters, seeds."""
    rows: list[list[Any]] = []
    for name in (*ATTRIBUTES, *(name for name in map(str, result.attrs) if name not in ATTRIBUTES)):
        if name in result.attrs:
            rows += _attribute(name, result.attrs[name])
    if "unknown_baseline" in result:
        usual = float(result["unknown_baseline"])
        text = f"{100 * usual:.2f} %: may be how samples differ" if np.isfinite(usual) else None
        rows.append(["unknown_baseline", text])
    return rows


def parameters(result: xr.Dataset) -> dict[str, Any]:
    """Parameters that a result tells; none where it does not, or not as it should: a store may be forged.

    Examples
    --------
    >>> parameters(xr.Dataset(attrs={"parameters": '{"level": 0.9}'}))
    {'level': 0.9}
    >>> parameters(xr.Dataset(attrs={"parameters": "forged"}))
    {}
    """
    found = from_json(result.attrs.get("parameters"))
    return found if isinstance(found, dict) else {}


def number(value: Any) -> float | None:
    """A number that an attribute tells; None where it tells none.

    Examples
    --------
    >>> number("0.9"), number([1]), number(None)
    (0.9, None, None)
    """
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _attribute(name: str, value: Any) -> Iterator[list[Any]]:
    """Rows of one attribute: one an entry of a list, one a parameter that was set; else what stands there."""
    heading = ATTRIBUTES.get(name, name)
    told = from_json(value) if name in (*LISTS, "parameters") else None
    if name in LISTS and isinstance(told, list):
        yield from ([heading, _plain(item)] for item in told or ["none"])
    elif name == "parameters" and isinstance(told, dict):
        given = {key: item for key, item in told.items() if item is not None}
        yield from ([f"{heading} {key}", _plain(item)] for key, item in given.items())
    else:
        yield [heading, value]


def from_json(text: Any) -> Any:
    """What a text of JSON says; None where it is none.

    Examples
    --------
    >>> from_json("[1, 2]"), from_json("forged")
    ([1, 2], None)
    """
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | bool | int | float) else json.dumps(value)
