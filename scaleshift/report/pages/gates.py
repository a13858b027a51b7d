"""What does a page say of gates beside estimates?  How far apart they are, those that differ most first."""

from __future__ import annotations

import numpy as np
import pandas as pd

from scaleshift.blocks.sizes import count
from scaleshift.report.digits import NOTHING, per_cent
from scaleshift.report.gated import summarize_gated
from scaleshift.report.gates import CAPTION, gated_table, largest_first
from scaleshift.report.pages.downloads import csv_of
from scaleshift.report.pages.parts import (
    Cell,
    Column,
    Grid,
    Section,
    Words,
    number,
    ranged,
    sentence,
    valued,
)

INSIDE = {True: "yes", False: "no", None: NOTHING}


def title(frame: pd.DataFrame) -> tuple[str, str]:
    """Heading of the page, and what stands below it."""
    return "Estimated shares beside the gates", count(frame["sample"].nunique(), "sample", "samples")


def sections(frame: pd.DataFrame) -> list[Section]:
    """The one section of a page, from what `compare_gated` returns."""
    ordered = largest_first(gated_table(frame))
    shares = ordered[["gated", "estimated", "low", "high"]].to_numpy(float)  # (n_rows, 4)
    top = float(np.nanmax(shares, initial=0.001, where=~np.isnan(shares)))
    inside = [None if pd.isna(value) else bool(value) for value in ordered["inside"]]
    rows = [
        [
            Cell(str(sample)),
            Cell(str(label)),
            valued(gated, per_cent),
            ranged(estimated, low, high, per_cent),
            number(100 * (estimated - gated)),
            Cell(INSIDE[held]),
        ]
        for sample, label, (gated, estimated, low, high), held in zip(
            ordered["sample"], ordered["label"], shares.tolist(), inside, strict=True
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
        sentence(CAPTION),
        columns,
        rows,
        flagged=[held is False for held in inside],
        download=csv_of(frame, "gated.csv"),
        footnote="Inside: whether the interval holds the gated share; a red edge: it does not.",
    )
    return [Section("Beside the gates", [Words([sentence(str(summarize_gated(frame)))]), grid])]
