"""What does a page say of rankings by number of features?  How well each ranks, and what would do."""

from __future__ import annotations

import numpy as np
import xarray as xr

from scaleshift.blocks import sizes
from scaleshift.cells.problem import several
from scaleshift.report.auc import PATH, contrasts
from scaleshift.report.auc_words import number, of_path, selected
from scaleshift.report.pages.downloads import csv_of
from scaleshift.report.pages.made import made
from scaleshift.report.pages.parts import (
    Cell,
    Chart,
    Column,
    Download,
    Grid,
    Part,
    Point,
    Points,
    Section,
    give_or_take,
    sentence,
    valued,
)
from scaleshift.report.pages.ranking import auc_column, others, ranks

MOST_NAMES = 12  # features of a row
WIDE = 12.0  # times as many features: from there on the axis is logarithmic


def title(path: xr.Dataset) -> tuple[str, str]:
    """Heading of the page, and what stands below it."""
    found = _contrasts(path)
    of = f" of {path.attrs['study']}" if "study" in path.attrs else ""
    (name, one), features = found[0], sizes.count(path.sizes["feature"], "feature", "features")
    what = f"{ranks(one, name)} above {others(one)}" if len(found) == 1 else f"each of {len(found)} contrasts"
    return (
        f"How many features does it take to rank {what}?",
        f"Rankings by number of features, of {features}{of}",
    )


def sections(path: xr.Dataset) -> list[Section]:
    """Sections of a page, from ``path_`` of a `SparseAUC`."""
    parts: list[Part] = []
    for place, (name, one) in enumerate(_contrasts(path)):
        download = csv_of(path, "path.csv") if place == 0 else None  # it holds all contrasts
        parts += _of_contrast(one, ranks(one, name), download)
    return [Section("AUC by number of features", parts), made(path)]


def _contrasts(path: xr.Dataset) -> list[tuple[str | None, xr.Dataset]]:
    return contrasts(path, PATH, "path", "path_")


def _of_contrast(one: xr.Dataset, positive: str, download: Download | None) -> list[Part]:
    """A curve, what fewer features would attain, and the numbers."""
    one = one.isel(k=np.isfinite(one["auc_binormal"].values))  # others have sizes that this one has not
    words = of_path(one)
    said = [Points([("", sentence(word)) for word in words])] if words else []
    chart = _chart(one, positive)
    table = _table(one, f"{positive}: rankings by number of features", download)
    return [*([chart] if chart.points else []), *said, table]


def _chart(one: xr.Dataset, positive: str) -> Chart:
    """AUC by number of features: the held-out one, or what there is instead."""
    held_out = bool(np.isfinite(one["auc"].values).any())
    what = "held-out AUC" if held_out else "AUC of the rows learned from, if normal"
    auc = one["auc" if held_out else "auc_binormal"].values
    error = one["auc_se"].values if held_out else np.full(len(auc), np.nan)
    is_chosen = selected(one)
    points = []
    for k, value, se, here in zip(one["k"].values.tolist(), auc, error, is_chosen.tolist(), strict=True):
        low, high = (None, None) if np.isnan(se) else (value - se, min(value + se, 1.0))
        note = f"{sizes.count(k, 'feature', 'features')}{', chosen' if here else ''}: {number(value)}"
        if np.isfinite(value):
            points.append(Point(k, float(value), low, high, note, here))
    bars = " with its standard error over folds" if np.isfinite(error).any() else ""
    mark = "; the large orange dot is chosen" if is_chosen.any() else ""
    caption = f"{positive}: {what}{bars}, by number of features{mark}"
    drawn = [point.x for point in points]
    return Chart(caption, "number of features", what, points, bool(drawn) and max(drawn) > WIDE * min(drawn))


def _table(one: xr.Dataset, caption: str, download: Download | None) -> Grid:
    """One row a number of features."""
    auc, error, here = one["auc"].values, one["auc_se"].values, selected(one)
    columns = [
        Column("features"),
        auc_column(auc, error),
        Column(
            "in training", "number", note="AUC of the rows that were learned from, as if scores were normal"
        ),
        Column("chosen"),
        Column("which"),
    ]
    coef = np.nan_to_num(one["coef"].transpose("k", "feature").values)
    names = one["feature"].values
    rows = []
    for i, k in enumerate(one["k"].values.tolist()):
        training = float(one["auc_binormal"].values[i])
        rows.append(
            [
                Cell(str(k), k),
                give_or_take(auc[i], error[i], number),
                valued(training, number),
                Cell("chosen" if here[i] else ""),
                Cell(several(names[np.flatnonzero(coef[i])].tolist(), MOST_NAMES)),
            ]
        )
    return Grid(caption, columns, rows, download=download)
