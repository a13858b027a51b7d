"""What is known of one file of events before its events are read?"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from scaleshift.cells.fcs.names import Duplicates
from scaleshift.cells.problem import Problem
from scaleshift.cells.treatment.compensation import Spillover
from scaleshift.errors import DataError, ScaleshiftError, one_line

Rows = slice | np.ndarray  # ascending rows of a file; a slice has a start and a stop
TOGETHER_ROWS = 131_072  # read at once: a row group of parquet is decoded from its beginning each time
WINDOW = 2**16  # bytes that a fingerprint sees at three places
TELLS_SAMPLE = "pass sample=NAME (--sample NAME) if one of them tells the sample"  # of columns left out
SCATTERED_ROWS = 65_536  # likewise, where the wanted rows do not stand together


@dataclass(frozen=True)
class Wish:
    """How the user wants files to be taken; each format obeys what concerns it.

    Attributes
    ----------
    duplicates : "raise" or "rename"
        Of channel names.
    data_sets : "raise" or "split"
        Whether a file may hold several; each is then one entry.
    sample : str or None
        Column that holds the sample of each row.
    """

    duplicates: Duplicates = "raise"
    data_sets: str = "raise"
    sample: str | None = None


class Reader(Protocol):
    """Reads rows of one file; small and picklable, since it travels to the workers."""

    def read(self, first: int, stop: int) -> np.ndarray:
        """Rows [first, stop), shape (n, n_channels), float32 or float64.

        Holds little more than these rows, so that a whole chunk can be asked for at once.

        Raises
        ------
        DataError
            If the file cannot be read (any more); starts with its path.
        """


@dataclass(frozen=True, eq=False)
class Group:
    """The rows of one sample in a file that holds several."""

    sample: str
    rows: Rows
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n_events(self) -> int:
        """Number of rows."""
        return self.rows.stop - self.rows.start if isinstance(self.rows, slice) else len(self.rows)


@dataclass(frozen=True, eq=False)
class Described:
    """One file of events, or one data set of it.

    Attributes
    ----------
    path : str
        Absolute path; that of a later data set ends in "#2", "#3", ...
    format : str
        "FCS3.1", "CSV", ...
    cytometer : str
        As the file names it, or "".
    n_events : int
    channels, markers : tuple of str
        Names of the columns, and what they measure ("" if the file does not say).
    reader : Reader
    fingerprint : str
        Tells this file from another version of it, as far as can be told without reading its events.
    spillover : Spillover or None
    problems : tuple of Problem
    groups : tuple of Group
        The samples of a file that holds several; empty where the file is one sample.
    data_set : int
        Which of the file's data sets this is, counted from 0.
    """

    path: str
    format: str
    cytometer: str
    n_events: int
    channels: tuple[str, ...]
    markers: tuple[str, ...]
    reader: Reader
    fingerprint: str
    spillover: Spillover | None = None
    problems: tuple[Problem, ...] = ()
    groups: tuple[Group, ...] = ()
    data_set: int = 0

    @property
    def file(self) -> str:
        """Path of the file on disk."""
        return self.path.removesuffix(f"#{self.data_set + 1}") if self.data_set else self.path


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Whatever goes wrong inside is a DataError that starts with the path, whichever library says it."""
    try:
        yield
    except ScaleshiftError as error:
        told = str(error).removeprefix(f"{path}: ")
        raise DataError(f"{path}: {' '.join(told.split())}") from error  # names may hold line breaks
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({one_line(error.strerror or error)})") from error
    except Exception as error:
        raise DataError(f"{path}: cannot be read ({type(error).__name__}: {one_line(error)})") from error


def fingerprint(path: str) -> str:
    """Size of a file and a checksum of its first, middle and last bytes: tells it from another version."""
    crc, size = 0, os.path.getsize(path)
    with open(path, "rb", buffering=0) as file:
        for place in dict.fromkeys((0, max(0, size // 2 - WINDOW // 2), max(0, size - WINDOW))):
            file.seek(place)
            crc = zlib.crc32(file.read(WINDOW), crc)
    return f"{size}-{crc:08x}"


def read_pieces(reader: Reader, rows: Rows, n_rows: int) -> Iterator[np.ndarray]:
    """The wanted rows in their order, at most `n_rows` at a time.

    Rows that do not stand together are picked out of what is read between the first and the last of them.
    """
    if isinstance(rows, slice):
        for first in range(rows.start, rows.stop, max(TOGETHER_ROWS, n_rows)):
            block = reader.read(first, min(first + max(TOGETHER_ROWS, n_rows), rows.stop))
            yield from (block[start : start + n_rows] for start in range(0, len(block), n_rows))
        return
    position = 0
    while position < len(rows):
        first = int(rows[position])
        end = int(np.searchsorted(rows, first + SCATTERED_ROWS))
        block = reader.read(first, int(rows[end - 1]) + 1)
        for start in range(position, end, n_rows):
            yield block[rows[start : min(start + n_rows, end)] - first]
        position = end


def groups_of(codes: np.ndarray, names: list[str]) -> tuple[Group, ...]:
    """The rows of each sample, by its code; in the order of the names, those without rows too."""
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(len(names)), side="right")
    starts = np.searchsorted(codes[order], np.arange(len(names)), side="left")
    groups = []
    for name, start, end in zip(names, starts.tolist(), ends.tolist(), strict=True):
        rows = order[start:end]
        together = end == start or rows[-1] - rows[0] + 1 == end - start
        first = int(rows[0]) if end > start else 0
        groups.append(Group(name, slice(first, first + end - start) if together else rows))
    return tuple(groups)


def refuse_torn(groups: Sequence[Group], path: str, sample: str, way_out: str = "") -> None:
    """Raise DataError where the rows of a sample do not stand together in a file that is read in order."""
    torn = next((group.sample for group in groups if not isinstance(group.rows, slice)), None)
    if torn is not None:
        raise DataError(
            f"{path}: the rows of {sample} {torn!r} do not stand together: sort the file by {sample}{way_out}"
        )


def rows_read(rows: Rows) -> int:
    """How many rows `read_pieces` reads, about, to get the wanted ones."""
    if isinstance(rows, slice) or not len(rows):
        return rows.stop - rows.start if isinstance(rows, slice) else 0
    starts = np.flatnonzero(np.diff(rows // SCATTERED_ROWS, prepend=-1))
    ends = np.append(starts[1:], len(rows)) - 1
    return int((rows[ends] - rows[starts] + 1).sum())
