"""What does a page say of gates beside estimates?  How far apart they are, those that differ most first."""

from __future__ import annotations

import numpy as np
import pandas as pd

from scaleshift.report.gated import summarize_gated
from scaleshift.report.gates import gated_table
from scaleshift.report.pages.downloads import csv_of
from scaleshift.report.pages.parts import (
    NOTHING,
    Cell,
    Column,
    Grid,
    Section,
    Words,
    number,
    ranged,
    sentence,
)

INSIDE = {True: "yes", False: "no", None: NOTHING}


def title(frame: pd.DataFrame) -> tuple[str, str]:
    """Heading of the page, and what stands below it."""
    n_samples = frame["sample"].nunique()
    return "Estimated shares beside the gates", "1 sample" if n_samples == 1 else f"{n_samples:,} samples"


def sections(frame: pd.DataFrame) -> list[Section]:
    """The one section of a page, from what `compare_gated` returns."""
    frame = gated_table(frame)
    order = np.argsort(-frame["difference"].abs().fillna(-1).to_numpy(), kind="stable")
    frame = frame.iloc[order]
    shares = 100 * frame[["gated", "estimated", "low", "high"]].to_numpy(float)  # (n_rows, 4)
    top = float(np.nanmax(shares, initial=0.1, where=~np.isnan(shares)))
    inside = [None if pd.isna(value) else bool(value) for value in frame["inside"]]
    rows = [
        [
            Cell(str(sample)),
            Cell(str(label)),
            number(gated),
            ranged(f"{estimated:z.1f}", estimated, low, high, (f"{low:z.1f}", f"{high:z.1f}")),
            number(estimated - gated),
            Cell(INSIDE[held]),
        ]
        for sample, label, (gated, estimated, low, high), held in zip(
            frame["sample"], frame["label"], shares.tolist(), inside, strict=True
        )
    ]
    columns = [
        Column("sample"),
        Column("label"),
        Column("gated", "number"),
        Column("estimated", "interval", 0, top),
        Column("difference", "number"),
        Column("inside"),
    ]
    grid = Grid(
        "Per cent of all cells; difference in percentage points, the largest first",
        columns,
        rows,
        flagged=[held is False for held in inside],
        download=csv_of(frame.sort_index(), "gated.csv"),
        footnote="Inside: whether the interval holds the gated share; a red edge: it does not.",
    )
    return [Section("Beside the gates", [Words([sentence(str(summarize_gated(frame)))]), grid])]
