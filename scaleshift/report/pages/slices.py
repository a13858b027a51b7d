"""What does a page say of slices?  Where a model fails, how often, and what sets these rows apart."""

from __future__ import annotations

import numpy as np
import xarray as xr

from scaleshift.blocks import sizes
from scaleshift.report.digits import chance, rough_per_cent, three
from scaleshift.report.pages.cautions import HEADING, by_reason
from scaleshift.report.pages.downloads import csv_of
from scaleshift.report.pages.heats import heat
from scaleshift.report.pages.made import made
from scaleshift.report.pages.parts import (
    Cell,
    Column,
    Figures,
    Grid,
    Pairs,
    Part,
    Section,
    Words,
    count,
    number,
    ranged,
    sentence,
    valued,
)
from scaleshift.report.slices import caption, has_errors

MOST_CONFUSED = 5  # kinds of errors of a slice
MOST_ROWS = 3  # of the data, that are named
FULL_COLOUR = 2.0  # standard deviations
NONE = "No slice was found: the errors of the model are not where rows look alike."


def title(result: xr.Dataset) -> tuple[str, str]:
    """Heading of the page, and what stands below it."""
    of = f" of {result.attrs['study']}" if "study" in result.attrs else ""
    by = f"; model: {result.attrs['model']}" if "model" in result.attrs else ""
    slices = sizes.count(result.sizes["slice"], "slice", "slices")
    return "Where does the model fail?", f"{slices} of {int(result.get('n_rows', 0)):,} rows{of}{by}"


def sections(result: xr.Dataset) -> list[Section]:
    """Sections of a page, from what ``describe`` of a slicer returns."""
    if not result.sizes["slice"]:
        return [Section("In short", [Words([NONE])]), made(result)]
    names = _names(result)
    found = [
        Section("In short", [_figures(result), _sentences(result)]),
        Section("How often is each slice wrong?", [_rates(result)]),
    ]
    if "difference" in result:
        found.append(Section("What sets each slice apart?", _apart(result)))
    if "confusion" in result:
        found.append(Section("What is predicted for what?", [_confused(result)]))
    flags = zip(names, result["flag"].values.tolist(), strict=True)
    return [*found, Section(HEADING, [by_reason(flags, "slice")]), made(result)]


def _names(result: xr.Dataset) -> list[str]:
    return [f"slice {name}" for name in result["slice"].values.tolist()]


def _figures(result: xr.Dataset) -> Figures:
    n_flagged = sum(bool(flag) for flag in result["flag"].values)
    entries = [
        (f"{result.sizes['slice']}", "slices, as they were ranked" if result.sizes["slice"] > 1 else "slice")
    ]
    if has_errors(result):
        rates = {"overall_error_rate": "of all rows are wrong", "error_rate_rest": "outside of the slices"}
        for name, told in rates.items():
            known = result[name].values[np.isfinite(result[name].values)] if name in result else np.array([])
            entries += [(f"{rough_per_cent(float(known.flat[0]))} %", told)] if known.size else []
    elif np.isfinite(result.get("overall_loss", np.nan)):
        entries.append((f"{float(result['overall_loss']):.3g}", "mean loss of all rows"))
    return Figures([*entries, (f"{n_flagged}", "flagged: look before you use them")])


def _sentences(result: xr.Dataset) -> Pairs:
    return Pairs(list(zip(_names(result), map(str, result["words"].values), strict=True)))


def _rates(result: xr.Dataset) -> Grid:
    """One row a slice: how large it is, and how often it is wrong on a scale that all share."""
    errors = has_errors(result)
    outcome = [
        _error_column(result),
        Column("excess errors", "number", note="beyond those of as many rows of all"),
    ]
    if not errors:
        outcome = [Column("mean loss", "number"), Column("beyond the rest's", "number")]
    texts = {name: result[name].values for name in ("rule",) if name in result and any(result[name].values)}
    columns = [
        Column("slice"),
        Column("rows", "number", note="that belong to it, of all"),
        Column("share %", "number", note=str(result["share"].attrs.get("description", ""))),
        *outcome,
        Column("judged on", "number", note="rows that were not used to find it"),
        Column("q", "number"),
        *map(Column, texts),
        Column("typical rows", note="numbers of rows of the data, from 0"),
        Column("flag"),
    ]
    rows = []
    for i, name in enumerate(_names(result)):
        one = result.isel(slice=i)
        rows.append(
            [
                Cell(name),
                count(float(one["size"])),
                valued(float(one["share"]), rough_per_cent),
                *(_error_cells(one) if errors else _loss_cells(one)),
                count(float(one.get("judging_rows", np.nan))),
                valued(float(one["q_value"]), chance),
                *(Cell(str(values[i])) for values in texts.values()),
                Cell(_typical(one)),
                Cell(str(one["flag"].item())),
            ]
        )
    mark = " The upright line is the rate of all rows." if errors else ""
    return Grid(
        sentence(caption(result, errors)),
        columns,
        rows,
        flagged=[bool(flag) for flag in result["flag"].values],
        download=csv_of(result, "slices.csv"),
        footnote=f"A dot and its line are a rate and its interval, all on one scale from 0.{mark}"
        if errors
        else "",
    )


def _error_column(result: xr.Dataset) -> Column:
    values = np.concatenate([result["error_rate"].values, result["error_high"].values])
    overall = float(result.get("overall_error_rate", np.nan))
    top = np.nanmax([*values, overall, 0.01])
    return Column(
        "errors %",
        "interval",
        0,
        float(top),
        mark=None if np.isnan(overall) else overall,
        note=str(result["error_rate"].attrs.get("description", "")),
    )


def _error_cells(one: xr.Dataset) -> list[Cell]:
    rate, low, high = (float(one[name]) for name in ("error_rate", "error_low", "error_high"))
    excess = float(one.get("excess_errors", np.nan))
    return [ranged(rate, low, high, rough_per_cent), count(excess)]


def _loss_cells(one: xr.Dataset) -> list[Cell]:
    values = float(one["loss"]), float(one.get("loss_gap", np.nan))
    return [valued(value, three) for value in values]


def _typical(one: xr.Dataset) -> str:
    rows = one["exemplar"].values if "exemplar" in one else np.array([], int)
    return ", ".join(str(row) for row in rows[rows >= 0][:MOST_ROWS].tolist())


def _apart(result: xr.Dataset) -> list[Part]:
    words = (
        "How far the mean of each feature lies from that of all other rows, in standard deviations: orange "
        "is higher, blue is lower. Features that differ most stand first."
    )
    values = result["difference"].transpose("slice", "feature").values
    grid = heat(
        "Standardised differences", "slice", _names(result), result["feature"].values, values, FULL_COLOUR
    )
    return [Words([words]), grid]


def _confused(result: xr.Dataset) -> Grid:
    """The most frequent errors of each slice."""
    confusion = result["confusion"].transpose("slice", "label", "predicted").values
    labels, predicted = (result[name].values.tolist() for name in ("label", "predicted"))
    wrong = np.array([[str(a) != str(b) for b in predicted] for a in labels], bool).reshape(
        confusion.shape[1:]
    )
    rows = []
    for name, of in zip(_names(result), np.nan_to_num(confusion), strict=True):
        errors = np.where(wrong, of, 0)
        most = np.argsort(-errors, axis=None, kind="stable")[:MOST_CONFUSED]
        for i, j in zip(*np.unravel_index(most, errors.shape), strict=True):
            if errors[i, j] > 0:
                kind = [Cell(name), Cell(str(labels[i])), Cell(str(predicted[j]))]
                rows.append([*kind, count(errors[i, j]), number(100 * errors[i, j] / errors.sum())])
    columns = [Column("slice"), Column("label"), Column("predicted"), Column("rows", "number")]
    return Grid(
        "Labels and what is predicted instead, on the rows that judge",
        [*columns, Column("% of the slice's errors", "number")],
        rows,
        footnote=f"The {MOST_CONFUSED} most frequent errors of each slice.",
    )
