"""How does one chunk of a study get its cells? Read from the files, treated, written as a whole."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import zarr

from scaleshift.blocks.labels import CODE
from scaleshift.cells.files.described import Reader, Rows, read_pieces
from scaleshift.cells.layout import write_rows
from scaleshift.cells.reader import store_at
from scaleshift.cells.schema import UNLABELLED
from scaleshift.cells.treatment import compensation, scaling, transform
from scaleshift.cells.treatment.compensation import Spillover
from scaleshift.cells.treatment.location_scale import Method, location_scale
from scaleshift.errors import DataError, ScaleshiftError

PIECE_ROWS = 16_384  # treated at once: a few megabytes
SCALING_PIECES, SCALING_ROWS = 64, 20_480  # evenly spaced rows of a sample that its scaling is learned from


@dataclass(frozen=True, eq=False)
class Treatment:
    """What is done to the rows of one file."""

    place: str  # the file, for errors
    columns: np.ndarray  # (n_markers,)
    compensated: np.ndarray  # (n_fluorochromes,): columns of the file that the matrix is about
    spillover: Spillover | None
    transforms: tuple[transform.Transform, ...]  # (n_markers,)

    def apply(self, events: np.ndarray) -> np.ndarray:
        """Events (n, n_channels) of the file as rows (n, n_markers) of the study, float32, not yet scaled."""
        if self.spillover is not None:
            events = compensation.compensate(events, self.compensated, self.spillover)
        return transform.transform_columns(np.take(events, self.columns, axis=1), self.transforms)


@dataclass(frozen=True, eq=False)
class Piece:
    """Rows of one file that stand together in a chunk."""

    reader: Reader
    rows: Rows
    n_rows: int
    sample_code: int
    treatment: Treatment
    location: np.ndarray | None  # (n_markers,)
    scale: np.ndarray | None


class Written(NamedTuple):
    """What is known of a piece once it is written."""

    n_rows: int
    crc: int
    n_bytes: int
    invalid: np.ndarray  # (n_markers,): NaN and infinite values


@dataclass(frozen=True, eq=False)
class Chunk:
    """Consecutive pieces that fill the rows from `first` on, in a study at `location`."""

    location: str
    first: int
    pieces: tuple[Piece, ...]
    n_markers: int


def write_chunk(chunk: Chunk) -> list[Written]:
    """Read, treat and write the rows of one chunk; the same rows however often it is repeated."""
    n_rows = sum(piece.n_rows for piece in chunk.pieces)
    intensity = np.empty((n_rows, chunk.n_markers), np.float32)
    sample_code = np.empty(n_rows, CODE)
    written, first = [], 0
    for piece in chunk.pieces:
        rows = slice(first, first + piece.n_rows)
        sample_code[rows] = piece.sample_code
        written.append(_fill(intensity[rows], piece))
        first += piece.n_rows
    group = zarr.open_group(store_at(chunk.location, read_only=False), mode="r+", zarr_format=3)
    write_rows(group, chunk.first, intensity, sample_code, np.full(n_rows, UNLABELLED, CODE))
    return written


Source = tuple[Reader, Rows, int, Treatment]  # rows of a file, and how many


def scaling_of(
    samples: list[list[Source]], method: Method, features: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Location and scale of some samples, (n_samples, n_markers) each, from evenly spaced rows.

    Columns that are no features stay as they are.
    """
    learned = [_scaling_of_one(sources, method, features) for sources in samples]
    location, scale = zip(*learned, strict=True)
    return np.stack(location), np.stack(scale)


def _scaling_of_one(
    sources: list[Source], method: Method, features: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    total = sum(n for *_, n, _ in sources)
    values = [_spread(*source, total) for source in sources]
    location, scale = np.zeros(len(features)), np.ones(len(features))
    if total:
        some = np.concatenate(values)[:, features]
        location[features], scale[features] = location_scale(some, method)
    return location, scale


def _spread(reader: Reader, rows: Rows, n: int, treatment: Treatment, total: int) -> np.ndarray:
    """Evenly spaced runs of rows of a file, its share of all that are taken from the sample."""
    wanted = max(1, round(SCALING_ROWS * n / max(total, 1))) if n else 0
    if wanted >= n:
        starts, length = np.arange(0, n, PIECE_ROWS), PIECE_ROWS
    else:
        length = -(-wanted // SCALING_PIECES)
        starts = np.linspace(0, n - length, min(SCALING_PIECES, wanted)).astype(int)
    parts = [_treated(reader, part_of(rows, s, min(s + length, n)), treatment) for s in starts.tolist()]
    return np.concatenate(parts) if parts else np.empty((0, len(treatment.columns)), np.float32)


def part_of(rows: Rows, first: int, stop: int) -> Rows:
    """The rows [first, stop) of the wanted ones."""
    return slice(rows.start + first, rows.start + stop) if isinstance(rows, slice) else rows[first:stop]


def _treated(reader: Reader, rows: Rows, treatment: Treatment) -> np.ndarray:
    return np.concatenate([treatment.apply(events) for events in _events(reader, rows, treatment)])


def _fill(out: np.ndarray, piece: Piece) -> Written:
    first, crc, invalid = 0, 0, np.zeros(out.shape[1], np.int64)
    for events in _events(piece.reader, piece.rows, piece.treatment):
        values = piece.treatment.apply(events)
        if piece.location is not None and piece.scale is not None:
            values = scaling.scale_rows(values, piece.location, piece.scale)
        rows = out[first : first + len(values)]
        rows[:] = values
        crc = zlib.crc32(rows.data, crc)
        with np.errstate(invalid="ignore"):  # infinities of both signs
            valid = np.isfinite(rows.sum(dtype=np.float64))
        if not valid:
            invalid += (~np.isfinite(rows)).sum(axis=0)
        first += len(values)
    return Written(len(out), crc, out.nbytes, invalid)


def _events(reader: Reader, rows: Rows, treatment: Treatment) -> Any:
    """Pieces of the wanted rows; whatever goes wrong has the file's name."""
    pieces = read_pieces(reader, rows, PIECE_ROWS)
    while True:
        try:
            yield next(pieces)
        except StopIteration:
            return
        except ScaleshiftError:
            raise
        except Exception as error:  # a file that changed or vanished, in whatever way its library says so
            raise DataError(f"{treatment.place}: cannot be read ({type(error).__name__}: {error})") from error
