"""One data set of an FCS file: what it holds, and its events by slices."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import FileIO

import numpy as np

from scaleshift.cells.fcs.amplifiers import Scale, apply_scales
from scaleshift.cells.fcs.events import decode, is_stored_as_read
from scaleshift.cells.fcs.layout import Layout
from scaleshift.cells.regular import refuse_odd
from scaleshift.cells.treatment.compensation import Spillover
from scaleshift.errors import DataError

_PIECE = 512 * 1024  # bytes that are read and decoded at a time: they stay in the cache


@dataclass(frozen=True, eq=False)
class FcsFile:
    """A description of one data set of an FCS file; its events stay on disk until they are read.

    Attributes
    ----------
    path : str
    version : str
        "FCS2.0", "FCS3.0", "FCS3.1" or "FCS3.2".
    data_set : int
        Which data set of the file this is, counted from 0.
    n_data_sets : int
    n_events : int
    channels : list of str
        $PnN, each once.
    markers : list of str
        $PnS, "" where there is none.
    keywords : dict of str
        All keywords of TEXT, keys in upper case.
    spillover : Spillover or None
    warnings : list of str
        What is wrong with the file and what was done about it, one line each.
    text_crc : int
        CRC-32 of the bytes of HEADER and TEXT.
    layout : Layout
        How events are stored.
    scales : tuple of Scale
        What is done to stored values; empty under raw=True.
    begin : int
        First byte of the events in the file.

    Examples
    --------
    >>> from scaleshift.cells.fcs import read_fcs
    >>> fcs = read_fcs("tests/data/flowkit_line100.fcs")
    >>> fcs.channels, fcs.n_events, fcs.read(98).shape
    (['channel_A', 'channel_B'], 100, (2, 2))
    """

    path: str
    version: str
    data_set: int
    n_data_sets: int
    n_events: int
    channels: list[str]
    markers: list[str]
    keywords: dict[str, str] = field(repr=False)
    spillover: Spillover | None = field(repr=False)
    warnings: list[str]
    text_crc: int
    layout: Layout = field(repr=False)
    scales: tuple[Scale, ...] = field(repr=False)
    begin: int = field(repr=False)

    @property
    def events(self) -> np.ndarray:
        """All events, (n_events, n_channels); read anew each time.

        Examples
        --------
        >>> from scaleshift.cells.fcs import read_fcs
        >>> read_fcs("tests/data/flowkit_line100.fcs").events[:2].round().tolist()
        [[65536.0, 131072.0], [66198.0, 131072.0]]
        """
        return self.read()

    def read(self, first: int = 0, stop: int | None = None) -> np.ndarray:
        """Read a slice of the events; nothing else of the file is touched.

        The bytes are read by their position, not mapped: a mapped file that shrinks meanwhile, or a network
        that fails, would end the process with a signal instead of an error. Both are as fast.

        Parameters
        ----------
        first, stop : int
            Events, as in a Python slice.

        Returns
        -------
        numpy.ndarray, (n, n_channels)
            float32 where that is exact for the stored values (floats, integers of at most 24 bits), else
            float64.

        Raises
        ------
        DataError
            If the file has gone or shrunk since it was described.

        Examples
        --------
        >>> from scaleshift.cells.fcs import read_fcs
        >>> fcs = read_fcs("tests/data/flowkit_line100.fcs")
        >>> bool((fcs.read(98) == fcs.events[98:]).all())
        True
        """
        first, stop, _ = slice(first, stop).indices(self.n_events)
        events = np.empty((max(0, stop - first), len(self.channels)), self.layout.dtype)
        row = self.layout.row_bytes
        step = max(1, _PIECE // row)
        as_read = is_stored_as_read(self.layout)
        buffer = np.empty(0 if as_read else min(step, len(events)) * row, np.uint8)
        with opened(self.path) as (file, _), np.errstate(all="ignore"):
            for at in range(0, len(events), step):
                piece = events[at : at + step]
                data = piece if as_read else buffer[: len(piece) * row]
                self._fill(file, data, self.begin + (first + at) * row)
                if not as_read:
                    decode(data, self.layout, piece)
                apply_scales(piece, self.scales)
        return events

    def _fill(self, file: FileIO, data: np.ndarray, begin: int) -> None:
        """Fill an array with the bytes from `begin` on."""
        file.seek(begin)
        view = memoryview(data).cast("B")  # type: ignore[arg-type]
        done = 0
        while done < len(view):
            got = file.readinto(view[done:])
            if not got:
                end = self.begin + self.n_events * self.layout.row_bytes
                raise DataError(
                    f"{self.path}: has shrunk since it was described: it ends at byte {begin + done}, its "
                    f"events at byte {end}; get a complete copy"
                )
            done += got


@contextmanager
def opened(path: str) -> Iterator[tuple[FileIO, int]]:
    """A regular file, unbuffered, and its size; whatever the operating system says becomes a DataError."""
    try:
        refuse_odd(path)
        with FileIO(path) as file:
            yield file, os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        raise DataError(
            f"{path}: does not exist; check the name, or the folder it is looked for in"
        ) from None
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read ({error.strerror}); check its permissions and its disk"
        ) from error
