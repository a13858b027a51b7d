"""What does a page say of a ranking?  How well it ranks, which features it takes, and how surely."""

from __future__ import annotations

import numpy as np
import xarray as xr

from scaleshift.report.auc import CAPTION, FEATURES, OF_RANKING, contrasts, direction, headline
from scaleshift.report.auc_words import UNSTABLE, chosen, number, of_auc, of_features, positive_of, ranked
from scaleshift.report.digits import NOTHING
from scaleshift.report.names import short
from scaleshift.report.pages.cautions import HEADING
from scaleshift.report.pages.downloads import csv_of
from scaleshift.report.pages.made import made
from scaleshift.report.pages.parts import (
    Cell,
    Column,
    Download,
    Figures,
    Grid,
    Part,
    Points,
    Section,
    Words,
    count,
    give_or_take,
    sentence,
    valued,
)

LONGEST_NAME = 60
NO_DOUBT = "Nothing stands out. That is no guarantee: other samples may differ from these."


def title(result: xr.Dataset) -> tuple[str, str]:
    """Heading of the page, and what stands below it."""
    found = _contrasts(result)
    of = f"; {result.attrs['study']}" if "study" in result.attrs else ""
    if len(found) == 1:
        (name, one), *_ = found
        return f"Which features rank {ranks(one, name)} above {others(one)}?", headline(one, name) + of
    return "Which features rank each label?", f"{len(found)} contrasts{of}"


def ranks(one: xr.Dataset, name: str | None) -> str:
    """What is ranked above the rest."""
    return short(positive_of(one) if name is None else name, LONGEST_NAME)


def others(one: xr.Dataset) -> str:
    """What the positives are ranked above."""
    return short(one.attrs.get("negative") or "the others", LONGEST_NAME)


def sections(result: xr.Dataset) -> list[Section]:
    """Sections of a page, from what ``describe`` of a `SparseAUC` returns."""
    found = _contrasts(result)
    first = _figures(found[0][1]) if len(found) == 1 else _overview(found)
    grids: list[Part] = [Words([sentence(CAPTION)])]
    for place, (name, one) in enumerate(found):
        download = csv_of(result, "features.csv") if place == 0 else None  # it holds all contrasts
        grids.append(_features(one, headline(one, name), download))
    return [
        Section("In short", [first]),
        Section("Features", grids),
        Section(HEADING, [_doubts(found)]),
        made(result),
    ]


def _contrasts(result: xr.Dataset) -> list[tuple[str | None, xr.Dataset]]:
    return contrasts(result, (*FEATURES, *OF_RANKING), "features", "describe()")


def _figures(one: xr.Dataset) -> Figures:
    n = len(chosen(one))
    auc, error = float(one["auc"]), float(one["auc_se"])
    entries = [(f"{n}", f"of {one.sizes['feature']} features chosen")]
    if np.isfinite(auc):
        told = f"held-out AUC, standard error {number(error)}" if np.isfinite(error) else "held-out AUC"
        entries.insert(0, (number(auc), told))
    sides = {"weight_positive": "positives", "weight_negative": "negatives"}
    return Figures([*entries, *((count(float(one[name])).text, told) for name, told in sides.items())])


def _overview(found: list[tuple[str | None, xr.Dataset]]) -> Grid:
    """One row a contrast."""
    auc, error = (np.array([float(one[name]) for _, one in found]) for name in ("auc", "auc_se"))
    columns = [
        Column("contrast"),
        auc_column(auc, error),
        Column("features", "number"),
        Column("positives", "number"),
        Column("negatives", "number"),
    ]
    rows = [
        [
            Cell(str(name)),
            give_or_take(float(one["auc"]), float(one["auc_se"]), number),
            Cell(str(len(chosen(one))), len(chosen(one))),
            *(count(float(one[n])) for n in ("weight_positive", "weight_negative")),
        ]
        for name, one in found
    ]
    return Grid("Contrasts: how well each is ranked", columns, rows)


def auc_column(auc: np.ndarray, error: np.ndarray) -> Column:
    """Held-out AUCs with their standard errors, drawn from the lowest end up."""
    ends = (auc - np.nan_to_num(error))[np.isfinite(auc)]
    start = float(ends.min(initial=1.0)) if ends.size else 0.0
    note = f"with its standard error over folds; a dot and its line, from {number(start)} to 1"
    return Column("held-out AUC", "interval", start, 1, note)


def _features(one: xr.Dataset, caption: str, download: Download | None) -> Grid:
    """One row a feature: those of the ranking by weight, then the others by how often they were chosen."""
    names, weights, stability, alone, *means = (
        one[n].values
        for n in ("feature", "coef_scaled", "stability", "auc_alone", "mean_positive", "mean_negative")
    )
    features, order = chosen(one), ranked(one)
    largest = float(np.abs(weights[features]).max(initial=0.0))
    columns = [
        Column("feature"),
        Column("rank", "number"),
        Column("weight", "heat", 0, largest),
        Column("in positives"),
        Column("stability", "number"),
        Column("AUC alone", "number"),
        Column("mean of positives", "number"),
        Column("mean of negatives", "number"),
    ]
    rows = []
    for rank, i in enumerate(order.tolist(), 1):
        is_chosen = rank <= len(features)
        by_itself = max(alone[i], 1 - alone[i])
        rows.append(
            [
                Cell(str(names[i])),
                Cell(str(rank), rank) if is_chosen else Cell("left out"),
                valued(weights[i], "{:+.3g}".format) if is_chosen else Cell(NOTHING),
                Cell(direction(one, i)),
                valued(stability[i], "{:.2f}".format),
                valued(by_itself, number),
                *(valued(mean[i], "{:.4g}".format) for mean in means),
            ]
        )
    unstable = (np.isin(order, features) & (stability[order] < UNSTABLE)).tolist()
    return Grid(caption, columns, rows, flagged=unstable, download=download)


def _doubts(found: list[tuple[str | None, xr.Dataset]]) -> Part:
    told = [(name, word) for name, one in found for word in (*of_auc(one), *of_features(one))]
    if not told:
        return Words([NO_DOUBT])
    return Points([("" if name is None else f"{name}:", f"{word}.") for name, word in told])
