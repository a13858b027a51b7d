"""How does one chunk of a study get its cells? Read from the files, treated, written as a whole."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import zarr

from scaleshift.blocks.labels import CODE
from scaleshift.cells.files.described import Reader, Rows, read_pieces
from scaleshift.cells.layout import write_rows
from scaleshift.cells.manifest import LABEL_CODES, SAMPLE_CODES, array_of
from scaleshift.cells.reader import read_rows, store_at
from scaleshift.cells.schema import UNLABELLED, X
from scaleshift.cells.treatment import scaling
from scaleshift.cells.treatment.compensation import Spillover, compensate
from scaleshift.cells.treatment.transform import Transform, transform_columns
from scaleshift.errors import DataError, ScaleshiftError

PIECE_ROWS = 16_384  # treated at once: a few megabytes


@dataclass(frozen=True, eq=False)
class Treatment:
    """What is done to the rows of one file."""

    place: str  # the file, for errors
    columns: np.ndarray  # (n_markers,)
    compensated: np.ndarray  # (n_fluorochromes,): columns of the file that the matrix is about
    spillover: Spillover | None
    transforms: tuple[Transform, ...]  # (n_markers,)

    def apply(self, events: np.ndarray) -> np.ndarray:
        """Events (n, n_channels) of the file as rows (n, n_markers) of the study, float32, not yet scaled."""
        if self.spillover is not None:
            events = compensate(events, self.compensated, self.spillover)
        return transform_columns(np.take(events, self.columns, axis=1), self.transforms)


@dataclass(frozen=True, eq=False)
class Piece:
    """Rows of one file that stand together in a chunk."""

    reader: Reader
    rows: Rows
    n_rows: int
    sample_code: int
    treatment: Treatment
    location: np.ndarray | None = None  # (n_markers,): of its sample
    scale: np.ndarray | None = None

    def values(self) -> Iterator[np.ndarray]:
        """Rows (n, n_markers) of the study, a few at a time; whatever goes wrong has the file's name."""
        try:
            with np.errstate(all="ignore"):  # what is not finite is counted
                yield from self._values()
        except ScaleshiftError as error:
            if self.treatment.place in str(error):
                raise
            raise type(error)(f"{self.treatment.place}: {error}") from error
        except Exception as error:  # a file that changed or vanished, in whatever way its library says so
            place = self.treatment.place
            raise DataError(f"{place}: cannot be read ({type(error).__name__}: {error})") from error

    def _values(self) -> Iterator[np.ndarray]:
        for events in read_pieces(self.reader, self.rows, PIECE_ROWS):
            rows = self.treatment.apply(events)
            if self.location is not None and self.scale is not None:
                rows = scaling.scale_rows(rows, self.location, self.scale)
            yield rows


class Written(NamedTuple):
    """What is known of a piece once it is written."""

    n_rows: int
    crc: int
    n_bytes: int
    invalid: np.ndarray  # (n_markers,): NaN and infinite values


@dataclass(frozen=True, eq=False)
class Chunk:
    """Rows of a study from `first`, the first of a chunk, on: `committed` ones that stay, then the pieces."""

    location: str
    first: int
    committed: int
    pieces: tuple[Piece, ...]
    n_markers: int

    @property
    def n_rows(self) -> int:
        """Number of rows that come from the pieces."""
        return sum(piece.n_rows for piece in self.pieces)


def write_chunk(chunk: Chunk) -> list[Written]:
    """Read, treat and write the rows of one chunk; the same rows however often it is repeated."""
    group = zarr.open_group(store_at(chunk.location, read_only=False), mode="r+", zarr_format=3)
    n_rows = chunk.committed + chunk.n_rows
    intensity = np.empty((n_rows, chunk.n_markers), np.float32)
    label_code = np.full(n_rows, UNLABELLED, CODE)
    sample_code = np.empty(n_rows, CODE)
    for name, rows in {X: intensity, SAMPLE_CODES: sample_code, LABEL_CODES: label_code}.items():
        if chunk.committed:
            stored = array_of(group, name, chunk.location)
            stop = chunk.first + chunk.committed
            rows[: chunk.committed] = read_rows(stored, chunk.location, stored.chunks[0], chunk.first, stop)
    sample_code[chunk.committed :] = sample_codes(chunk)
    written, first = [], chunk.committed
    for piece in chunk.pieces:
        written.append(_fill(intensity[first : first + piece.n_rows], piece))
        first += piece.n_rows
    write_rows(group, chunk.first, intensity, sample_code, label_code)
    return written


def sample_codes(chunk: Chunk) -> np.ndarray:
    """Sample code of each row that comes from the pieces."""
    codes = np.array([piece.sample_code for piece in chunk.pieces], CODE)
    return np.repeat(codes, [piece.n_rows for piece in chunk.pieces])


def read_columns(chunk: Chunk, columns: np.ndarray) -> np.ndarray:
    """Some columns of the rows that come from the pieces, treated, (n_rows, n_columns)."""
    parts = [values[:, columns] for piece in chunk.pieces for values in piece.values()]
    return np.concatenate(parts) if parts else np.empty((0, len(columns)), np.float32)


def part_of(rows: Rows, first: int, stop: int) -> Rows:
    """The rows [first, stop) of the wanted ones."""
    return slice(rows.start + first, rows.start + stop) if isinstance(rows, slice) else rows[first:stop]


def _fill(out: np.ndarray, piece: Piece) -> Written:
    first, crc, invalid = 0, 0, np.zeros(out.shape[1], np.int64)
    for values in piece.values():
        rows = out[first : first + len(values)]
        rows[:] = values
        crc = zlib.crc32(rows.data, crc)
        with np.errstate(invalid="ignore"):  # infinities of both signs
            valid = np.isfinite(rows.sum(dtype=np.float64))
        if not valid:
            invalid += (~np.isfinite(rows)).sum(axis=0)
        first += len(values)
    if first != len(out):
        raise DataError(f"{piece.treatment.place}: gave {first} of {len(out)} rows: has the file changed?")
    return Written(len(out), crc, out.nbytes, invalid)
