"""What does a page say of proportions?  Shares, intervals, flags in words, and which markers moved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from scaleshift.quantify.flags import JOINT, REASONS, codes
from scaleshift.report import about
from scaleshift.report.legend import letters
from scaleshift.report.metadata import sample_columns
from scaleshift.report.pages import colours
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
    ranged,
)

MOST_NAMES = 12  # samples named behind a reason
FULL_COLOUR = 2.0  # standard deviations that a marker moved
INTERVALS = {
    "cells": "hold the noise of cells alone: where donors and batches differ, they are too narrow.",
    "samples": "hold the noise of cells and of the source's samples, not how the targets differ.",
}
UNKNOWN_NOTE = "share of cells unlike every class of the source; read it as 'at least'"


def title(result: xr.Dataset) -> tuple[str, str]:
    """Heading of the page, and what stands below it."""
    n_samples, n_labels = result.sizes["sample"], result.sizes["label"]
    samples = "1 sample" if n_samples == 1 else f"{n_samples:,} samples"
    labels = "1 class" if n_labels == 1 else f"{n_labels} classes"
    of = f" of {result.attrs['study']}" if "study" in result.attrs else ""
    learned = result.attrs.get("source") or result.attrs.get("model")
    return f"Class proportions of {samples}", f"{labels}{of}" + (
        f"; learned from {learned}" if learned else ""
    )


def sections(result: xr.Dataset) -> list[Section]:
    """Sections of a page, from what a quantifier's ``predict`` returns."""
    found = [
        Section("In short", [_figures(result), _intervals(result)]),
        Section("Proportions", [_shares(result)]),
        Section("What deserves caution", [_reasons(result)]),
    ]
    if "shift" in result and result["shift"].size:
        found.append(Section("Which markers moved?", _moved(result)))
    return [*found, made(result)]


def _figures(result: xr.Dataset) -> Figures:
    n_cells, unknown = result["n_cells"].values, result["unknown"].values
    n_flagged = int(sum(bool(flag) for flag in result["flag"].values))
    entries = [
        (f"{result.sizes['sample']:,}", "samples"),
        (f"{np.nansum(n_cells):,.0f}", "cells"),
        (f"{n_flagged:,}", "flagged: look before you use them"),
    ]
    if not np.isnan(unknown).all():
        entries.append((f"{100 * np.nanmedian(unknown):.1f} %", "unknown in the median sample"))
    return Figures(entries)


def _intervals(result: xr.Dataset) -> Words:
    said = [f"Method: {result.attrs['choice']}."] if "choice" in result.attrs else []
    if np.isfinite(result["proportion_low"].values).any():
        level = about.number(about.parameters(result).get("level"))
        of = "" if level is None else f" of {100 * level:g} %"
        hold = INTERVALS.get(str(result.attrs.get("resampled", "cells")), "")
        said.append(f"Intervals{of} {hold}" if hold else f"Intervals{of}.")
    else:
        said.append("No intervals were computed.")
    return Words(said)


def _shares(result: xr.Dataset) -> Grid:
    """One row a sample: a stacked bar, flags, then each share with its interval."""
    labels = [str(label) for label in result["label"].values.tolist()]
    has_unknown = not np.isnan(result["unknown"].values).all()
    names = [*labels, "unknown"] if has_unknown else labels
    per_cent = 100 * np.stack(
        [
            _with_unknown(result, f"proportion{end}", f"unknown{end}", has_unknown)
            for end in ("", "_low", "_high")
        ]
    )  # (3, n_samples, n_names)
    tops = np.nanmax(per_cent, axis=(0, 1), initial=0.1, where=~np.isnan(per_cent))
    described = sample_columns(result, ())
    columns = [
        Column("sample"),
        Column("shares", "shares"),
        Column("flag", note="a letter each; explained below"),
        *(Column(name, "interval", 0, float(top)) for name, top in zip(names, tops, strict=True)),
        Column("cells", "number"),
        *(Column(name) for name in described),
    ]
    rows = []
    for i, sample in enumerate(result["sample"].values.tolist()):
        share, low, high = per_cent[:, i]
        flag = str(result["flag"].values[i])
        rows.append(
            [
                Cell(str(sample)),
                Cell("", shares=np.clip(np.nan_to_num(share) / 100, 0, 1).tolist()),
                Cell(letters(flag), note=flag),
                *(_interval(*ends) for ends in zip(share, low, high, strict=True)),
                count(float(result["n_cells"].values[i])),
                *(Cell(_shown(values[i])) for values in described.values()),
            ]
        )
    legend = [(colours.of(i), label) for i, label in enumerate(labels)]
    return Grid(
        "Per cent of all cells of each sample" + (f"; unknown: {UNKNOWN_NOTE}" if has_unknown else ""),
        columns,
        rows,
        [*legend, (colours.UNKNOWN, "unknown")] if has_unknown else legend,
        [bool(flag) for flag in result["flag"].values],
        csv_of(result, "proportions.csv"),
        "A dot and its line are a share and its interval, each column on its own scale from 0.",
    )


def _with_unknown(result: xr.Dataset, name: str, unknown: str, has_unknown: bool) -> np.ndarray:
    """Shares by sample and label, (n_samples, n_labels), with the unknown one behind if there is one."""
    shares = result[name].transpose("sample", "label").values
    return np.column_stack([shares, result[unknown].values]) if has_unknown else shares


def _interval(share: float, low: float, high: float) -> Cell:
    return ranged(f"{share:z.1f}", share, low, high, (f"{low:z.1f}", f"{high:z.1f}"))


def _shown(value: Any) -> str:
    missing = value is None or value is pd.NaT or value != value
    return "" if missing else str(value)


def _reasons(result: xr.Dataset) -> Part:
    """Every reason that a sample has a flag, what it means, and whose it is."""
    of: dict[str, list[str]] = {}  # by code
    for name, flag in zip(result["sample"].values.tolist(), result["flag"].values.tolist(), strict=True):
        for code, words in zip(codes(flag), filter(None, flag.split(JOINT)), strict=True):
            detail = words.partition(": ")[2]
            of.setdefault(code, []).append(f"{name} ({detail})" if detail else str(name))
    if not of:
        return Words(["No sample has a flag. That is no guarantee: compare a sample that you have gated."])
    return Points([(f"{code}: {_phrase(code)}", f"{_meaning(code)}{_listed(of[code])}") for code in of])


def _phrase(code: str) -> str:
    return REASONS[code].phrase if code in REASONS else "another reason"


def _meaning(code: str) -> str:
    return f"{REASONS[code].meaning}. " if code in REASONS else ""


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"Samples: {', '.join(names[:MOST_NAMES])}{more}."


def _moved(result: xr.Dataset) -> list[Part]:
    """By how much each marker of each sample moved, in the class that moved most."""
    shift = result["shift"].transpose("sample", "label", "marker").values
    which = np.nan_to_num(np.abs(shift)).argmax(axis=1)  # (n_samples, n_markers): the class
    moved = np.take_along_axis(shift, which[:, None, :], axis=1)[:, 0]
    classes = np.array([str(label) for label in result["label"].values.tolist()], object)[which]
    samples, markers = result["sample"].values, result["marker"].values
    words = (
        "How far each marker moved against the source, in standard deviations of the class in which it moved "
        "most, which is named. What moved much, in many samples, is a batch shift: look at the "
        "staining and compensation of that marker first."
    )
    caption = "Shift of markers by sample"
    return [Words([words]), heat(caption, "sample", samples, markers, moved, FULL_COLOUR, classes)]
