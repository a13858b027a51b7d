"""What does a page say of samples that do not fit?  What is wrong with each, and what moved."""

from __future__ import annotations

import numpy as np
import xarray as xr

from scaleshift.report.names import short
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
    number,
    valued,
)

FITS, BOTH, FEW = "fits", "both", "too few cells"
VERDICTS = {
    "batch shift": "the cells of the classes moved, as another instrument or staining moves them",
    "unknown population": "there are cells that belong to no class of the source; the classes did not move",
    BOTH: "the classes moved, and cells that belong to none of them remain",
    "unclear": "it fits badly, for neither reason: a class changed its shape, or unknown cells resemble one",
    FEW: "fewer than 50 cells tell nothing",
    FITS: "misfit and unknown share are below 5 %",
}
FULL_COLOUR = 2.0  # within-class standard deviations
MOST_NAMES = 12
LONGEST_NAME = 48


def title(result: xr.Dataset) -> tuple[str, str]:
    """Heading of the page, and what stands below it."""
    n = result.sizes["sample"]
    of = f" Study: {result.attrs['study']}." if "study" in result.attrs else ""
    samples = "1 sample" if n == 1 else f"{n:,} samples"
    return f"What is wrong with {samples}?", f"Is it a batch shift, or are there unknown cells?{of}"


def sections(result: xr.Dataset) -> list[Section]:
    """Sections of a page, from what `scaleshift.quantify.diagnose` returns."""
    result = result.compute()
    found = [
        Section("In short", [_figures(result), _verdicts(result)]),
        Section("Samples", [_samples(result)]),
        Section("Which markers moved?", _moved(result)),
    ]
    if "class_shift" in result and result["class_shift"].size:
        found.append(Section("Which classes moved?", _classes(result)))
    if "unknown_profile" in result and np.isfinite(result["unknown_profile"].values).any():
        found.append(Section("Where are the unknown cells?", _unknown(result)))
    return [*found, made(result)]


def _names(result: xr.Dataset) -> list[str]:
    return [str(name) for name in result["sample"].values.tolist()]


def _by_verdict(result: xr.Dataset) -> dict[str, list[str]]:
    """Samples by verdict, in the order of `VERDICTS`."""
    found: dict[str, list[str]] = {verdict: [] for verdict in VERDICTS}
    for name, verdict in zip(_names(result), result["verdict"].values.tolist(), strict=True):
        found.setdefault(str(verdict), []).append(short(name, LONGEST_NAME))
    return {verdict: names for verdict, names in found.items() if names}


def _figures(result: xr.Dataset) -> Figures:
    longer = {BOTH: "batch shift and unknown population"}
    by_verdict = _by_verdict(result).items()
    return Figures([(str(len(names)), longer.get(verdict, verdict)) for verdict, names in by_verdict])


def _verdicts(result: xr.Dataset) -> Points:
    entries = []
    for verdict, names in _by_verdict(result).items():
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        meaning = f"{VERDICTS[verdict]}. " if verdict in VERDICTS else ""
        words = f"{meaning}Samples: {', '.join(names[:MOST_NAMES])}{more}."
        entries.append(("", f"{verdict}: {words}") if verdict == FITS else (f"{verdict}:", words))
    return Points(entries)


def _samples(result: xr.Dataset) -> Grid:
    """One row a sample."""
    again = "once each class is moved back to where it lies in the source"
    columns = [
        Column("sample"),
        Column("verdict"),
        Column("moved most"),
        Column("misfit %", "number"),
        Column("misfit %, moved back", "number", note=again),
        Column("unknown %", "number"),
        Column("unknown %, moved back", "number", note=again),
        Column("cells looked at", "number"),
    ]
    per_cent = ("misfit", "misfit_recentred", "unknown", "unknown_recentred")
    moved = result["moved"].transpose("sample", "rank").values
    rows = [
        [
            Cell(name),
            Cell(str(result["verdict"].values[i])),
            Cell(", ".join(short(name, LONGEST_NAME) for name in moved[i] if name)),
            *(number(100 * float(result[column].values[i])) for column in per_cent),
            count(float(result["n_cells"].values[i])),
        ]
        for i, name in enumerate(_names(result))
    ]
    wrong = [str(verdict) != FITS for verdict in result["verdict"].values.tolist()]
    return Grid(
        "What is wrong with each sample",
        columns,
        rows,
        flagged=wrong,
        download=csv_of(result, "diagnosis.csv"),
        footnote="Moved back: once each class lies where it does in the source. What that explains is a "
        "batch shift; an unknown share that remains is of unknown cells.",
    )


def _moved(result: xr.Dataset) -> list[Part]:
    words = (
        "How far each marker moved against the source, over the cells of all classes, in standard deviations "
        "within the classes: orange is higher, blue is lower."
    )
    values = result["shift"].transpose("sample", "marker").values
    markers = result["marker"].values
    return [
        Words([words]),
        heat("Shift of markers by sample", "sample", _names(result), markers, values, FULL_COLOUR),
    ]


def _classes(result: xr.Dataset) -> list[Part]:
    """By how far each class moved, in the marker in which it moved most."""
    shift = result["class_shift"].transpose("sample", "label", "marker").values
    which = np.nan_to_num(np.abs(shift)).argmax(axis=2)[..., None]
    values = np.take_along_axis(shift, which, axis=2)[..., 0]
    markers = np.array([str(name) for name in result["marker"].values.tolist()], object)
    words = (
        "How far each class moved, in the marker in which it moved most (named where the mouse rests). One "
        "class alone that moved may be unknown cells which resemble it."
    )
    labels, notes = result["label"].values, markers[which[..., 0]]
    grid = heat("Shift of classes by sample", "sample", _names(result), labels, values, FULL_COLOUR, notes)
    return [Words([words]), grid]


def _unknown(result: xr.Dataset) -> list[Part]:
    """Means of the unknown cells of each sample, and of the classes to compare with."""
    markers = [str(name) for name in result["marker"].values.tolist()]
    profiles = [
        (f"unknown cells of {name}", values, float(n))
        for name, values, n in zip(
            _names(result),
            result["unknown_profile"].transpose("sample", "marker").values,
            result["n_unknown"].values,
            strict=True,
        )
        if np.isfinite(values).any()
    ]
    of_class = result["class_profile"].transpose("label", "marker").values
    labels = result["label"].values.tolist()
    profiles += [
        (f"class {label}", values, float(n))
        for label, values, n in zip(labels, of_class, result["class_counts"].values, strict=True)
    ]
    rows = [
        [
            Cell(name),
            count(n),
            *(valued(x, f"{x:.3g}") for x in values),
        ]
        for name, values, n in profiles
    ]
    columns = [Column("cells"), Column("looked at", "number"), *(Column(name, "number") for name in markers)]
    words = (
        "Means of each marker, in the units of the data: a class that is near may be where they come from."
    )
    return [Words([words]), Grid("Means of unknown cells, and of the classes in the source", columns, rows)]
