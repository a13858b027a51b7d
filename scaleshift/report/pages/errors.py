"""What does a page say of expected errors?  How wrong on each target, how surely, and what to mind."""

from __future__ import annotations

import numpy as np
import xarray as xr

from scaleshift.blocks import sizes
from scaleshift.cells.problem import several
from scaleshift.report import error_words as words
from scaleshift.report.error import captions, required
from scaleshift.report.error_axis import axis_of
from scaleshift.report.names import short
from scaleshift.report.pages.cautions import HEADING
from scaleshift.report.pages.downloads import csv_of
from scaleshift.report.pages.heats import heat
from scaleshift.report.pages.made import made
from scaleshift.report.pages.parts import (
    Cell,
    Column,
    Figures,
    Grid,
    Part,
    Points,
    Section,
    Words,
    count,
    give_or_take,
    number,
    ranged,
    sentence,
)

LONGEST_NAME = 24  # of a method, as a heading
NO_DOUBT = (
    "No target has a flag. That is no guarantee: the estimates assume that outcomes depend on the features "
    "as they do in the source."
)


def title(result: xr.Dataset) -> tuple[str, str]:
    """Heading of the page, and what stands below it."""
    targets = sizes.count(result.sizes["target"], "target", "targets")
    parts = [f"{words.of_loss(result)}"]
    parts += [f"model: {result.attrs['model']}"] if "model" in result.attrs else []
    parts += [f"study: {result.attrs['study']}"] if "study" in result.attrs else []
    parts += [f"learned from {result.attrs['source']}"] if "source" in result.attrs else []
    return f"How wrong will the model be on {targets}?", sentence("; ".join(parts)).removesuffix(".")


def sections(result: xr.Dataset) -> list[Section]:
    """Sections of a page, from what ``predict`` or ``update`` of a `PredictionError` returns."""
    result = required(result)
    known = words.phrases(result)
    found = [
        Section("In short", _short(result)),
        Section("Expected error by target", [_errors(result, known)]),
        Section(HEADING, [_doubts(result, known)]),
    ]
    if "by_feature" in result:
        found.append(Section("Which features add to the error?", _features(result)))
    return [*found, made(result)]


def _short(result: xr.Dataset) -> list[Part]:
    error = result["error"].transpose("target", "method").values[:, 0]
    n_doubtful = int(result["unreliable"].values.sum())
    entries = [(f"{result.sizes['target']:,}", "targets" if result.sizes["target"] != 1 else "target")]
    for value, told in (
        (words.cross_validated(result), "cross-validated"),
        (words.in_sample(result), "in sample"),
    ):
        entries += [(words.number(value), f"error on the source, {told}")] if np.isfinite(value) else []
    if np.isfinite(error).any():
        worst = int(np.nanargmax(error))
        name = short(result["target"].values[worst], words.LONGEST_NAME)
        entries.append((words.number(float(error[worst])), f"largest expected error: {name}"))
    entries.append((f"{n_doubtful:,}", "not to be relied on: see why below"))
    whole = [sentence(words.sentence(result))] if result.sizes["target"] == 1 else []
    return [Figures(entries), *([Words(whole)] if whole else [])]


def _errors(result: xr.Dataset, known: dict[str, str]) -> Grid:
    """One row a target: expected errors and observed ones on one scale; then what its rows are like."""
    names, shown = words.methods(result), [0, *words.beside(result)]
    value, low, high = (
        result[name].transpose("target", "method").values for name in ("error", "error_low", "error_high")
    )
    observed = words.has_observed(result)
    source = words.cross_validated(result)
    source = words.in_sample(result) if np.isnan(source) else source
    start, end = axis = axis_of(result, [source])
    mark = float(source) if np.isfinite(source) else None
    columns = [Column("target")]
    columns += [
        Column(
            short(name, LONGEST_NAME), "interval", start, end, name if len(name) > LONGEST_NAME else "", mark
        )
        for name in (names[j] for j in shown)
    ]
    if observed:
        columns += [Column("observed", "interval", start, end, mark=mark), Column("of rows", "number")]
    columns += [
        Column("rows", "number"),
        Column("far %", "number"),
        Column("effective rows", "number", note=result["effective_sample_size"].attrs.get("description", "")),
        Column("flag", note="a letter each; explained below"),
    ]
    rows = []
    for i, target in enumerate(result["target"].values.tolist()):
        one = result.isel(target=i)
        cells = [
            Cell(str(target)),
            *(ranged(value[i, j], low[i, j], high[i, j], words.number) for j in shown),
        ]
        cells += _observed(one) if observed else []
        flag = str(one["flag"].item())
        cells += [count(float(one["n_rows"])), number(100 * float(one["far"]), 0)]
        cells.append(count(float(one["effective_sample_size"])))
        rows.append([*cells, Cell(words.letters(flag, one["unreliable"].item(), known), note=flag)])
    drawn = value[:, shown][np.isfinite(low[:, shown])]
    caption = f"{words.of_loss(result)}: a dot and its line are an error and its interval, on one scale"
    caption += "" if axis.has(drawn).all() else "; what lies beyond stands at its end"
    marked = " The upright line is the error on the source." if mark is not None else ""
    return Grid(
        sentence(caption) + marked,
        columns,
        rows,
        flagged=result["unreliable"].values.astype(bool).tolist(),
        download=csv_of(result, "errors.csv"),
        footnote=" ".join(sentence(line) for line in captions(result, False)),
    )


def _observed(one: xr.Dataset) -> list[Cell]:
    """The observed error with one standard error on either side, and of how many rows."""
    value, error, n = float(one["observed"]), float(one["observed_se"]), float(one["n_observed"])
    return [give_or_take(value, error, words.number), count(np.nan if np.isnan(value) else n)]


def _doubts(result: xr.Dataset, known: dict[str, str]) -> Part:
    """Each letter in words, and why a method has no answer."""
    entries = words.legend(result, known)
    if "reason" in result:
        reasons = result["reason"].transpose("target", "method").values
        targets = result["target"].values.tolist()
        for j, method in enumerate(words.methods(result)):
            entries += [(f"{method}:", reason) for reason in _told(reasons[:, j].tolist(), targets)]
    return Points(entries) if entries else Words([NO_DOUBT])


def _told(reasons: list[str], targets: list[object]) -> list[str]:
    """Each reason once, with the targets that have it unless all do."""
    by_reason: dict[str, list[str]] = {}
    for reason, target in zip(reasons, targets, strict=True):
        if reason:
            by_reason.setdefault(reason, []).append(short(target, words.LONGEST_NAME))
    return [
        f"{reason}." if len(of) == len(targets) else f"{reason}: {several(of, words.MOST_NAMES)}."
        for reason, of in by_reason.items()
    ]


def _features(result: xr.Dataset) -> list[Part]:
    values = result["by_feature"].transpose("target", "feature").values
    full = float(np.nan_to_num(np.abs(values)).max(initial=0.0)) or 1.0
    targets, features = result["target"].values, result["feature"].values
    words_ = (
        "What the spread of each feature's weight adds to the error on a target, in the units of the error: "
        "features that lie elsewhere, or spread wider, than in the source add most."
    )
    return [
        Words([words_]),
        heat("Part of the error by feature", "target", targets, features, values, full, shown=words.number),
    ]
