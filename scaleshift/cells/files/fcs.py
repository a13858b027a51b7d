"""What is known of an FCS file? Its HEADER and TEXT; one entry a data set."""

from __future__ import annotations

import os
import re
from dataclasses import replace

from scaleshift.cells.fcs import FcsFile, list_data_sets
from scaleshift.cells.files.described import Described, Wish, fingerprint
from scaleshift.cells.problem import Problem
from scaleshift.errors import DataError

SUFFIXES = (".fcs", ".lmd")
MAGIC = re.compile(rb"FCS\d\.\d")


def claims(path: str) -> bool:
    """Whether a file is FCS, by its name or, whatever it is called, by its first bytes."""
    if os.path.isdir(path):
        return False
    if path.lower().endswith(SUFFIXES):
        return True
    if not os.path.isfile(path):  # a pipe or a device is not touched
        return False
    try:
        with open(path, "rb") as file:
            return MAGIC.match(file.read(6)) is not None
    except OSError:
        return False


def describe(path: str, wish: Wish) -> list[Described]:
    """Describe the data sets of an FCS file.

    Raises
    ------
    DataError
        If the file cannot be read, or holds several data sets which are not to be split.
    """
    found = list_data_sets(path, duplicates=wish.duplicates)
    if len(found) > 1 and wish.data_sets == "raise":
        raise DataError(
            f"{path}: holds {len(found)} data sets of {', '.join(str(f.n_events) for f in found)} events; "
            "pass data_sets='split' (--data-sets split), which makes a sample of each"
        )
    return [_described(path, file) for file in found]


def _described(path: str, file: FcsFile) -> Described:
    name = path if file.data_set == 0 else f"{path}#{file.data_set + 1}"
    spillover = file.spillover and replace(file.spillover, source=f"{path}, {file.spillover.source}")
    return Described(
        path=name,
        format=file.version,
        cytometer=file.keywords.get("$CYT", "").strip(),
        n_events=file.n_events,
        channels=tuple(file.channels),
        markers=tuple(file.markers),
        reader=replace(file, keywords={}, spillover=None, warnings=[]),  # small: it travels
        fingerprint=f"{fingerprint(path)}-{file.text_crc:08x}",
        spillover=spillover,
        problems=tuple(Problem("warning", name, text) for text in file.warnings),
        data_set=file.data_set,
    )
