"""What is known of an FCS file? Its HEADER and TEXT; one entry a data set."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import numpy as np

from scaleshift.cells.fcs import FcsFile, list_data_sets
from scaleshift.cells.fcs.names import Duplicates
from scaleshift.cells.files.described import Described
from scaleshift.cells.problem import Problem
from scaleshift.errors import DataError

SUFFIXES = (".fcs", ".lmd")
MAGIC = b"FCS"


@dataclass(frozen=True, eq=False)
class FcsReader:
    """Reader of the events of one data set; without its keywords, which may be long."""

    file: FcsFile

    def read(self, first: int, stop: int) -> np.ndarray:
        """Events [first, stop)."""
        return self.file.read(first, stop)


def describe(path: str, duplicates: Duplicates = "raise", data_sets: str = "raise") -> list[Described]:
    """Describe the data sets of an FCS file.

    Parameters
    ----------
    path : str
    duplicates : "raise" or "rename"
        Of channel names.
    data_sets : "raise" or "split"
        Whether a file may hold several; each is then one entry.

    Raises
    ------
    DataError
        If the file cannot be read, or holds several data sets which are not to be split.
    """
    found = list_data_sets(path, duplicates=duplicates)
    if len(found) > 1 and data_sets == "raise":
        raise DataError(
            f"{path}: holds {len(found)} data sets of {', '.join(str(f.n_events) for f in found)} events; "
            "pass data_sets='split' (--data-sets split), which makes a sample of each"
        )
    return [_described(path, file) for file in found]


def _described(path: str, file: FcsFile) -> Described:
    name = path if file.data_set == 0 else f"{path}#{file.data_set + 1}"
    return Described(
        path=name,
        format=file.version,
        cytometer=file.keywords.get("$CYT", "").strip(),
        n_events=file.n_events,
        channels=tuple(file.channels),
        markers=tuple(file.markers),
        reader=FcsReader(replace(file, keywords={})),
        fingerprint=f"{os.path.getsize(path)}-{file.text_crc:08x}",
        spillover=file.spillover,
        problems=tuple(Problem("warning", name, text) for text in file.warnings),
        data_set=file.data_set,
    )
