"""What does a page say of slices that are compared?  Which grew or shrank, and what it costs."""

from __future__ import annotations

import numpy as np
import xarray as xr

from scaleshift.blocks.sizes import count
from scaleshift.report.digits import chance, rough_per_cent, three
from scaleshift.report.growth import of_errors
from scaleshift.report.pages.cautions import HEADING, by_reason
from scaleshift.report.pages.downloads import csv_of
from scaleshift.report.pages.made import made
from scaleshift.report.pages.parts import (
    Cell,
    Column,
    Figures,
    Grid,
    Pairs,
    Section,
    Words,
    number,
    ranged,
    sentence,
    valued,
)
from scaleshift.report.slices import Q_CAPTION


def title(result: xr.Dataset) -> tuple[str, str]:
    """Heading of the page, and what stands below it."""
    slices = count(result.sizes["slice"], "slice", "slices")
    return "Which slices grew?", f"{slices}: shares of the source and of the target"


def sections(result: xr.Dataset) -> list[Section]:
    """Sections of a page, from what `scaleshift.slices.compare` returns."""
    names = [f"slice {name}" for name in result["slice"].values.tolist()]
    sentences = list(zip(names, map(str, result["words"].values), strict=True))
    summary = str(result["summary"].item()) if "summary" in result else ""
    flags = zip(names, result["flag"].values.tolist(), strict=True)
    whole = [Words([sentence(summary)])] if summary else []
    return [
        Section("In short", [_figures(result), *whole, Pairs(sentences)]),
        Section("Growth and what it costs", [_growth(result, names)]),
        Section(HEADING, [by_reason(flags, "slice")]),
        made(result),
    ]


def _figures(result: xr.Dataset) -> Figures:
    told = {
        "overall_error_source": "wrong in the source" if of_errors(result) else "mean loss in the source",
        "overall_error_target": "wrong in the target" if of_errors(result) else "mean loss in the target",
    }
    entries = []
    for name, words in told.items():
        value = float(result.get(name, np.nan))
        if np.isfinite(value):
            entries.append((f"{rough_per_cent(value)} %" if of_errors(result) else three(value), words))
    low, high = result["growth_low"].values, result["growth_high"].values
    grown = {"slices that grew": (low > 0).sum(), "slices that shrank": (high < 0).sum()}
    return Figures([*entries, *((str(int(n)), words) for words, n in grown.items())])


def _growth(result: xr.Dataset, names: list[str]) -> Grid:
    """One row a slice: its growth on a scale that all share."""
    errors = of_errors(result)
    points = 100 * np.stack([result[name].values for name in ("growth", "growth_low", "growth_high")])
    shown, cost = (rough_per_cent, _points) if errors else (three, "{:+.3g}".format)
    rows = []
    for i, name in enumerate(names):
        one = result.isel(slice=i)
        change, low, high = points[:, i].tolist()
        rows.append(
            [
                Cell(name),
                *(valued(float(one[key]), rough_per_cent) for key in ("share_source", "share_target")),
                ranged(change, low, high, "{:+z.1f}".format),
                number(float(one["growth_ratio"]), 2),
                valued(float(one["q_value"]), chance),
                *(valued(float(one[key]), shown) for key in ("error_source", "error_target")),
                *(valued(float(one[key]), cost) for key in ("cost_of_growth", "cost_of_change")),
                Cell(str(one["flag"].item())),
            ]
        )
    return Grid(
        "Shares of the slices in the source and in the target",
        _columns(result, points, errors),
        rows,
        flagged=[bool(flag) for flag in result["flag"].values],
        download=csv_of(result, "growth.csv"),
        footnote="The upright line is no growth.",
    )


def _columns(result: xr.Dataset, points: np.ndarray, errors: bool) -> list[Column]:
    """Headings; growth is drawn on the scale of all."""
    known = points[np.isfinite(points)]
    unit = "%" if errors else "loss"
    return [
        Column("slice"),
        Column("before %", "number", note="share of the source"),
        Column("now %", "number", note="share of the target"),
        Column(
            "growth, points",
            "interval",
            float(known.min(initial=0.0)),
            float(known.max(initial=0.01)),
            "change of the share, in percentage points",
            0.0,
        ),
        Column("factor", "number"),
        Column("q", "number", note=Q_CAPTION.removeprefix("q: ")),
        *(Column(f"{told}, {unit}", "number") for told in ("error before", "error now")),
        *(
            Column(f"cost of {told}, {'points' if errors else 'loss'}", "number", note=_note(result, told))
            for told in ("growth", "change")
        ),
        Column("flag"),
    ]


def _note(result: xr.Dataset, told: str) -> str:
    return str(result[f"cost_of_{told}"].attrs.get("description", ""))


def _points(cost: float) -> str:
    return f"{100 * cost:+z.2f}"
