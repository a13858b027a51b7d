"""What does a page say of a ranking?  How well it ranks, which features it takes, and how surely."""

from __future__ import annotations

import numpy as np
import xarray as xr

from scaleshift.report.auc import CAPTION, FEATURES, OF_RANKING, contrasts, direction, headline
from scaleshift.report.auc_words import UNSTABLE, chosen, number, of_auc, of_features, ranked
from scaleshift.report.names import short
from scaleshift.report.pages.cautions import HEADING
from scaleshift.report.pages.downloads import csv_of
from scaleshift.report.pages.made import made
from scaleshift.report.pages.parts import (
    NOTHING,
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
    ranged,
    sentence,
)

LONGEST_NAME = 60
NO_DOUBT = "Nothing stands out. That is no guarantee: other samples may differ from these."


def title(result: xr.Dataset) -> tuple[str, str]:
    """Heading of the page, and what stands below it."""
    found = _contrasts(result)
    of = f"; {result.attrs['study']}" if "study" in result.attrs else ""
    if len(found) == 1:
        (name, one), *_ = found
        return f"Which features rank {ranks(one, name)}?", headline(one, name) + of
    return "Which features rank each label?", f"{len(found)} contrasts{of}"


def ranks(one: xr.Dataset, name: str | None) -> str:
    """What is ranked above the rest."""
    positive = one.attrs.get("positive", "")
    if name is None:
        name = ", ".join(map(str, positive)) if isinstance(positive, list | tuple) else str(positive)
    return short(name, LONGEST_NAME)


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
    lows = [float(one["auc"] - one["auc_se"].fillna(0)) for _, one in found]
    columns = [
        Column("contrast"),
        Column(
            "held-out AUC",
            "interval",
            float(np.nanmin([0.9, *lows])),
            1,
            "with its standard error over folds",
        ),
        Column("features", "number"),
        Column("positives", "number"),
        Column("negatives", "number"),
    ]
    rows = [
        [
            Cell(str(name)),
            auc_cell(float(one["auc"]), float(one["auc_se"])),
            Cell(str(len(chosen(one))), len(chosen(one))),
            *(count(float(one[n])) for n in ("weight_positive", "weight_negative")),
        ]
        for name, one in found
    ]
    return Grid("Contrasts: how well each is ranked", columns, rows)


def auc_cell(auc: float, error: float) -> Cell:
    """An AUC with one standard error on either side."""
    low, high = auc - error, min(auc + error, 1.0)
    return ranged(number(auc), auc, low, high, (number(low), number(high)))


def _features(one: xr.Dataset, caption: str, download: Download | None) -> Grid:
    """One row a feature: those of the ranking by weight, then the others by how often they were chosen."""
    weights, stability, alone = (one[name].values for name in ("coef_scaled", "stability", "auc_alone"))
    features, order = chosen(one), ranked(one)
    largest = float(np.abs(weights[features]).max(initial=0.0))
    columns = [
        Column("feature"),
        Column("rank", "number"),
        Column("weight", "heat", 0, largest, "for one standard deviation within the classes"),
        Column("in positives"),
        Column("stability", "number", note="share of halves of the data that choose the feature too"),
        Column("AUC alone", "number", note="of the feature by itself, in its direction"),
        Column("mean of positives", "number"),
        Column("mean of negatives", "number"),
    ]
    rows = []
    for rank, i in enumerate(order.tolist(), 1):
        is_chosen = rank <= len(features)
        by_itself = max(alone[i], 1 - alone[i])
        rows.append(
            [
                Cell(str(one["feature"].values[i])),
                Cell(str(rank), rank) if is_chosen else Cell("left out"),
                _number(weights[i], f"{weights[i]:+.3g}") if is_chosen else Cell(NOTHING),
                Cell(direction(one, i)),
                _number(stability[i], f"{stability[i]:.2f}"),
                _number(by_itself, number(by_itself)),
                *(
                    _number(one[n].values[i], f"{one[n].values[i]:.4g}")
                    for n in ("mean_positive", "mean_negative")
                ),
            ]
        )
    unstable = (np.isin(order, features) & (stability[order] < UNSTABLE)).tolist()
    return Grid(caption, columns, rows, flagged=unstable, download=download)


def _number(value: float, text: str) -> Cell:
    return Cell(NOTHING) if np.isnan(value) else Cell(text, float(value))


def _doubts(found: list[tuple[str | None, xr.Dataset]]) -> Part:
    told = [(name, word) for name, one in found for word in (*of_auc(one), *of_features(one))]
    if not told:
        return Words([NO_DOUBT])
    return Points([("" if name is None else f"{name}:", f"{word}.") for name, word in told])
