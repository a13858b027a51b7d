"""Which file does a page hold?  The CSV that the table of its kind writes, to the byte."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from scaleshift.report.kinds import kind_of
from scaleshift.report.pages.parts import Download


def csv_of(result: Any, name: str) -> Download:
    """The table of a result as CSV, as the file of that name would be.

    Parameters
    ----------
    result : object
        Of any kind of `scaleshift.report.kinds`.
    name : str
        What the file is called where it is saved.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        kind_of(result).show("table", result, path)
        return Download(name, path.read_bytes().decode())
