"""What does a page say of compared methods?  Which to use and why, and how wrong each is in every setting."""

from __future__ import annotations

import numpy as np
import xarray as xr

from scaleshift.report import about
from scaleshift.report.names import short
from scaleshift.report.pages.cautions import HEADING, by_reason
from scaleshift.report.pages.downloads import csv_of
from scaleshift.report.pages.heats import heat
from scaleshift.report.pages.made import made
from scaleshift.report.pages.parts import (
    NOTHING,
    Cell,
    Column,
    Figures,
    Grid,
    Part,
    Section,
    Words,
    number,
    sentence,
)
from scaleshift.report.ranking import CAPTION, SCORE, ranked

LONGEST_NAME = 48  # of what was left out


def title(result: xr.Dataset) -> tuple[str, str]:
    """Heading of the page, and what stands below it."""
    n = about.number(result.attrs.get("n_cells"))
    cells = "labelled cells" if n is None else f"{n:,.0f} labelled cells"
    of = f" of {result.attrs['study']}" if "study" in result.attrs else ""
    return "Which method suits these samples?", f"{result.sizes['method']} methods, tried on {cells}{of}"


def sections(result: xr.Dataset) -> list[Section]:
    """Sections of a page, from what `scaleshift.quantify.compare` returns."""
    result = ranked(result.compute())
    found = [Section("In short", _advice(result)), Section("Errors by setting", [_errors(result)])]
    if "trial_error" in result and result.sizes["trial"]:
        found.append(Section("Where was each method wrong?", _trials(result)))
    flags = result["flag"].transpose("method", "setting").values
    places = [
        (f"{method}, {setting}", flags[i, j])
        for i, method in enumerate(result["method"].values.tolist())
        for j, setting in enumerate(result["setting"].values.tolist())
    ]
    return [*found, Section(HEADING, [by_reason(places, "method")]), made(result)]


def _advice(result: xr.Dataset) -> list[Part]:
    best = str(result.attrs["recommendation"] or "none")
    entries = [(best, "recommended")]
    score = result["score"].values[result["method"].values.astype(str) == best]
    if np.isfinite(score).any():
        entries.append((f"{100 * float(score[0]):.1f} %", "its error, by which it was chosen"))
    reason = str(result.attrs["reason"])
    return [Figures(entries), Words([f"Why: {reason}."] if reason else [])]


def _errors(result: xr.Dataset) -> Grid:
    """One row a method, best first; errors of all settings on one scale."""
    error, spread = (
        100 * result[name].transpose("method", "setting").values for name in ("error", "error_se")
    )
    coverage = 100 * result["coverage"].transpose("method", "setting").values
    ends = np.nan_to_num(error) + np.nan_to_num(spread)
    top = float(ends[np.isfinite(ends)].max(initial=0.0)) or 1.0
    settings = [str(name) for name in result["setting"].values.tolist()]
    descriptions = result["description"].values if "description" in result else settings
    columns = [
        Column("method"),
        Column("score %", "number", note="error that the recommendation goes by"),
        *(
            Column(name, "interval", 0, top, str(told))
            for name, told in zip(settings, descriptions, strict=True)
        ),
        Column("covered %", "number", note="intervals that hold the truth"),
        Column("CPU s", "number"),
        Column("recommended"),
    ]
    best = str(result.attrs["recommendation"])
    rows = []
    for i, method in enumerate(result["method"].values.tolist()):
        known = coverage[i][np.isfinite(coverage[i])]
        rows.append(
            [
                Cell(str(method)),
                number(100 * float(result["score"].values[i])),
                *(_error(*ends) for ends in zip(error[i], spread[i], strict=True)),
                number(float(known.mean()) if known.size else np.nan, 0),
                number(float(result["seconds"].isel(method=i).sum())),
                Cell("recommended" if str(method) == best else ""),
            ]
        )
    drawn = "A dot and its line are an error and its standard error, over what is left out or over draws"
    download = csv_of(result, "league.csv")
    return Grid(CAPTION, columns, rows, download=download, footnote=f"{sentence(SCORE)} {drawn}; one scale.")


def _error(error: float, spread: float) -> Cell:
    if np.isnan(error):
        return Cell(NOTHING)
    if np.isnan(spread):
        return Cell(f"{error:.1f}", float(error))
    return Cell(
        f"{error:.1f}", float(error), float(error - spread), float(error + spread), note=f"± {spread:.1f}"
    )


def _shown(error: float) -> str:
    return f"{error:.1f}"


def _trials(result: xr.Dataset) -> list[Part]:
    """One row a trial: what was left out, and the error of each method."""
    values = 100 * result["trial_error"].transpose("trial", "method").values
    names = [
        f"{setting}: {short(left, LONGEST_NAME)}" if str(left) else str(setting)
        for setting, left in zip(
            result["trial_setting"].values.tolist(), result["left_out"].values.tolist(), strict=True
        )
    ]
    full = float(np.nan_to_num(values).max(initial=0.0)) or 1.0
    words = "Errors in per cent, trial by trial: what is coloured in every column is hard for every method."
    grid = heat(
        "Errors by trial", "trial", names, result["method"].values, values, full, shown="{:.1f}".format
    )
    return [Words([words]), grid]
