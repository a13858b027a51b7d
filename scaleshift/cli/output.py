"""What does a verb leave in its --output folder, and what does it say of the gates?"""

from __future__ import annotations

import importlib.util
import json
import math
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from scaleshift.cli import html_page, printing, zarr_groups
from scaleshift.cli.html_page import PAGE
from scaleshift.cli.results import GATED, PROPORTIONS
from scaleshift.errors import DataError

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

TABLE, PICTURE, WORKBOOK = "proportions.csv", "proportions.png", "proportions.xlsx"
GATED_HEADER = "sample,label,gated,estimated,low,high,difference,inside"
MOST_NAMES = 5  # in a sentence


def gated_shares(result: xr.Dataset, store: str | Path) -> pd.DataFrame | None:
    """Gated shares beside the estimated ones, or None where no sample of the result has a labelled cell."""
    from scaleshift import report
    from scaleshift.cells import open_cells

    cells = open_cells(store, samples=result["sample"].values.tolist())
    gated = report.compare_gated(result, cells)
    return gated if gated["gated"].notna().any() else None


def parents_of(result: xr.Dataset, store: str | Path) -> dict[Any, Any] | None:
    """The populations that the result's labels are part of, None where the study knows none."""
    from scaleshift.cells.manifest import read_manifest

    labels = {str(label): label for label in result["label"].values.tolist()}
    return {labels.get(k, k): labels.get(v, v) for k, v in read_manifest(store).parents.items()} or None


def beside_gates(result: xr.Dataset, gated: pd.DataFrame) -> str:
    """How far the estimates are from the gates, in a sentence."""
    from scaleshift import report

    summary = report.summarize_gated(gated)
    samples = result["sample"].values.tolist()
    learned = [str(name) for name in json.loads(result.attrs["source_samples"]) if name in samples]
    if len(learned) > MOST_NAMES:
        learned[2:] = [f"and {len(learned) - 2} more"]
    own = f" ({', '.join(learned)} learned from)" if learned else ""
    has_gates = gated.loc[gated["gated"].notna(), "sample"].unique().tolist()
    unknown = result["unknown"].sel(sample=has_gates).values
    if np.isnan(unknown).all():
        return f"beside the gates{own}: {summary}"
    return (
        f"beside the gates{own}: {summary}; "
        f"unknown {_range(np.nanmin(unknown), np.nanmax(unknown))}, ungated {_range(*summary.ungated)}"
    )


def write(
    result: xr.Dataset, output: Path, gated: pd.DataFrame | None, parents: Mapping[Any, Any] | None
) -> list[str]:
    """Write page, table, picture, workbook, gated shares and the result; the remarks say what was written.

    The workbook is left out without openpyxl, and with a remark where Excel cannot hold it. What an earlier
    run wrote and this one does not is removed: it would be taken for this one's.
    """
    from scaleshift import report

    written, remarks, missing = [PAGE, TABLE, PICTURE, PROPORTIONS], [], ""
    with html_page.after_all(output, *([result] if gated is None else [result, gated])):
        report.table(result, output / TABLE, parents=parents)
        report.plot(result, output / PICTURE)
        zarr_groups.write(result, output / PROPORTIONS)
        if importlib.util.find_spec("openpyxl") is None:
            missing = f'; {WORKBOOK} needs openpyxl: pip install "scaleshift[excel]"'
        else:
            try:
                report.table(result, output / WORKBOOK, gated=gated, parents=parents)
                written.append(WORKBOOK)
            except DataError as error:
                remarks.append(f"left out: {error}")
        if gated is not None:
            report.table(gated, output / GATED)
            written.append(GATED)
        for name in (WORKBOOK, GATED):
            if name not in written and _is_ours(output / name):
                (output / name).unlink()
                remarks.append(f"removed {output / name}: an earlier run wrote it, this one has none")
    wrote = printing.wrote(output / name for name in written)
    return [f"{wrote}{missing}", f"open {output / PAGE} in a browser", *remarks]


def plain(value: Any) -> Any:
    """A value for JSON, or a list of such: NaN becomes null."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _is_ours(path: Path) -> bool:
    """Whether a file is what `write` leaves under that name, and not a user's."""
    try:
        if path.name == GATED:
            with path.open(encoding="utf-8") as lines:
                return lines.readline().rstrip() == GATED_HEADER
        with zipfile.ZipFile(path) as archive:
            return re.search(rb"creator[^>]*>scaleshift<", archive.read("docProps/core.xml")) is not None
    except (OSError, KeyError, UnicodeDecodeError, zipfile.BadZipFile):
        return False


def _range(low: float, high: float) -> str:
    ends = dict.fromkeys(f"{100 * end:.0f}" for end in (low, high))
    return f"{'-'.join(ends)} %"
