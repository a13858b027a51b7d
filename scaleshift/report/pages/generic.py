"""What does a page say of any other result?  Its table, what the columns are, and how it was made."""

from __future__ import annotations

from typing import Any

import xarray as xr

from scaleshift.report.kinds import kind_of
from scaleshift.report.pages.downloads import csv_of
from scaleshift.report.pages.made import made
from scaleshift.report.pages.parts import Grid, Lines, Pairs, Section
from scaleshift.report.pages.plain import plain, plain_column

WIDTH = 100  # characters of a line of text
TITLES = {
    "slice scores": "Were the planted slices found?",
    "roc": "How well does a score rank?",
    "replicates": "Replicates behind expected errors",
    "plan": "What will it cost?",
    "study check": "What is in these files?",
    "import": "What was imported?",
    "labelling": "What was labelled?",
}


def title(result: Any) -> tuple[str, str]:
    """Heading of the page, and what stands below it."""
    kind = kind_of(result)
    return TITLES.get(kind.name, f"{kind.name[0].upper()}{kind.name[1:]}"), f"From {kind.made_by}"


def sections(result: Any) -> list[Section]:
    """Sections of a page, from a result of any kind of `scaleshift.report.kinds`."""
    kind = kind_of(result)
    table = kind.show("table", result)
    name = kind.name.replace(" ", "-")
    rows = [[plain(value) for value in row] for row in table.itertuples(index=False)]
    columns = [plain_column(str(heading), table[heading]) for heading in table]
    text = str(kind.show("text", result, width=WIDTH)).splitlines()
    footnote = "" if rows else "No rows."
    grid = Grid(kind.name, columns, rows, download=csv_of(result, f"{name}.csv"), footnote=footnote)
    found = [Section("In short", [Lines(text)]), Section("Table", [grid])]
    told = _told(result)
    if told.entries and "description" not in table:
        found.append(Section("What the numbers are", [told]))
    return [*found, made(result)]


def _told(result: Any) -> Pairs:
    """What each variable of a dataset is, as far as it says."""
    entries = []
    for name in result.data_vars if isinstance(result, xr.Dataset) else ():
        attrs = result[name].attrs
        told = ": ".join(filter(None, (attrs.get("long_name", ""), attrs.get("description", ""))))
        entries += [(str(name), told)] if told else []
    return Pairs(entries)
