"""Is every chunk of a store there, undamaged, in its place?  Each is read once; none stops the others."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import zarr

from scaleshift.blocks import graph
from scaleshift.cells.intake.checksum import combine
from scaleshift.cells.manifest import INDEX, LABEL_CODES, SAMPLE_CODES, Manifest
from scaleshift.cells.reader import CompleteStore, read_text, store_at
from scaleshift.cells.schema import UNLABELLED, X
from scaleshift.errors import DataError

BY_CELL = (X, SAMPLE_CODES, LABEL_CODES, INDEX)
TASKS = 256  # runs of chunks at most, or 4 a thread where that is more
LETTERS = 200  # of what a codec says


class Fault(NamedTuple):
    """A chunk that is not as it should be."""

    array: str
    chunk: tuple[int, ...]
    first: int  # row
    stop: int
    what: str


@dataclass
class Seen:
    """What was found in some chunks."""

    faults: list[Fault] = field(default_factory=list)
    crcs: list[tuple[int, int, int]] = field(default_factory=list)  # sample, CRC-32 of its rows, their bytes
    n_chunks: dict[str, int] = field(default_factory=dict)  # that were read, by array
    nan: Any = 0  # (n_markers,) values
    infinite: Any = 0

    def __add__(self, other: Seen) -> Seen:
        n_chunks = dict(self.n_chunks)
        for name, n in other.n_chunks.items():
            n_chunks[name] = n_chunks.get(name, 0) + n
        return Seen(
            self.faults + other.faults,
            self.crcs + other.crcs,
            n_chunks,
            self.nan + other.nan,
            self.infinite + other.infinite,
        )


@dataclass(frozen=True)
class Run:
    """Consecutive chunks of a study's rows, and what must stand in them."""

    location: str
    chunk: int  # rows
    first: int  # row
    stop: int
    sample: int  # that the first row belongs to
    ends: np.ndarray  # of the samples that have rows here, the first of them that one
    n_labels: int


def scan(location: str, arrays: Sequence[str], manifest: Manifest | None) -> Seen:
    """Read all chunks of some arrays, in one compute of any scheduler.

    Parameters
    ----------
    location : str
        Path or URL of the store.
    arrays : sequence of str
        Their names.
    manifest : Manifest or None
        Of a study, whose rows then are held against it.

    Returns
    -------
    Seen
    """
    calls: list[Callable[[], Seen]] = []
    if manifest is not None:  # rows that are not committed are nobody's
        calls += [functools.partial(scan_rows, run) for run in _runs(manifest)]
        arrays = [name for name in arrays if name not in BY_CELL]
    calls += [functools.partial(scan_array, location, name) for name in arrays]
    return sum(graph.run(calls), Seen())


def wrong_samples(seen: Seen, manifest: Manifest) -> tuple[list[int], int]:
    """Samples whose rows are not those that were imported, and how many could be compared."""
    found: dict[int, tuple[int, int]] = {}
    for sample, crc, n_bytes in seen.crcs:
        before, n = found.get(sample, (0, 0))
        found[sample] = combine(before, crc, n_bytes), n + n_bytes
    row_bytes = 4 * len(manifest.markers)
    checked = [
        (sample, crc)
        for sample, (crc, n_bytes) in sorted(found.items())
        if manifest.checksums[sample] and n_bytes == manifest.counts[sample] * row_bytes
    ]
    return [i for i, crc in checked if f"{crc:08x}" != manifest.checksums[i]], len(checked)


def _runs(manifest: Manifest) -> Iterator[Run]:
    ends = np.cumsum(manifest.counts)
    n_chunks = -(-manifest.n_cells // manifest.chunk)
    size = manifest.chunk * max(-(-n_chunks // max(TASKS, 4 * graph.n_threads())), 1)
    for first in range(0, manifest.n_cells, size):
        stop = min(first + size, manifest.n_cells)
        sample, last = np.searchsorted(ends, [first, stop - 1], "right").tolist()
        here = ends[sample : last + 1]
        yield Run(manifest.path, manifest.chunk, first, stop, sample, here, len(manifest.labels))


def scan_rows(run: Run) -> Seen:
    """Chunks of all arrays with a row a cell."""
    seen = Seen()
    arrays = {name: _open(run.location, name) for name in BY_CELL}
    checks: dict[str, Callable[[np.ndarray, int, Seen], str]] = {
        X: functools.partial(_intensity, run),
        SAMPLE_CODES: functools.partial(_samples, run),
        LABEL_CODES: functools.partial(_labels, run),
        INDEX: _numbers,
    }
    for first in range(run.first, run.stop, run.chunk):
        stop = min(first + run.chunk, run.stop)
        for name, array in arrays.items():
            place = (first // run.chunk, *(0 for _ in array.shape[1:]))
            seen.n_chunks[name] = seen.n_chunks.get(name, 0) + 1
            try:
                values = np.asarray(array[first:stop])
                what = checks[name](values, first, seen)
            except Exception as error:  # zarr and its codecs raise what they like
                what = in_words(error)
            if what:
                seen.faults.append(Fault(name, place, first, stop, what))
    return seen


def _intensity(run: Run, values: np.ndarray, first: int, seen: Seen) -> str:
    """Count what is not finite, and add up the checksums of samples."""
    with np.errstate(invalid="ignore", over="ignore"):
        finite = np.isfinite(values.sum(dtype=np.float64))
    if not finite:
        seen.nan = seen.nan + np.isnan(values).sum(axis=0)
        seen.infinite = seen.infinite + np.isinf(values).sum(axis=0)
    values = np.ascontiguousarray(values)
    start, stop, row = first, first + len(values), first
    for number in range(int(np.searchsorted(run.ends, first, "right")), len(run.ends)):
        if row >= stop:
            break
        end = min(int(run.ends[number]), stop)
        if end > row:
            rows = values[row - start : end - start]
            seen.crcs.append((run.sample + number, zlib.crc32(rows.data), rows.nbytes))
        row = max(row, end)
    return ""


def _samples(run: Run, codes: np.ndarray, first: int, seen: Seen) -> str:
    expected = run.sample + np.searchsorted(run.ends, np.arange(first, first + len(codes)), "right")
    wrong = np.flatnonzero(codes != expected)
    if not wrong.size:
        return ""
    row = int(wrong[0])
    return (
        f"{wrong.size} of its rows are of other samples than the record says, first row {first + row}: code "
        f"{codes[row]}, expected {expected[row]}"
    )


def _labels(run: Run, codes: np.ndarray, first: int, seen: Seen) -> str:
    wrong = np.flatnonzero((codes < UNLABELLED) | (codes >= run.n_labels))
    if not wrong.size:
        return ""
    row = int(wrong[0])
    return (
        f"{wrong.size} of its codes name no label, first row {first + row}: {codes[row]}, expected "
        f"{UNLABELLED} to {run.n_labels - 1}"
    )


def _numbers(numbers: np.ndarray, first: int, seen: Seen) -> str:
    wrong = np.flatnonzero(numbers != np.arange(first, first + len(numbers)))
    if not wrong.size:
        return ""
    row = int(wrong[0])
    return f"{wrong.size} of its rows are not numbered by their place: row {first + row} is {numbers[row]}"


def scan_array(location: str, name: str) -> Seen:
    """Chunks of an array of which nothing is known but how it is stored."""
    seen = Seen()
    try:
        array = _open(location, name)
        units = array.shards or array.chunks
        grid = [range(-(-n // size)) for n, size in zip(array.shape, units, strict=True)]
    except Exception as error:  # as in scan_rows
        seen.faults.append(Fault(name, (), 0, 0, f"cannot be opened: {in_words(error)}"))
        return seen
    for place in np.ndindex(*map(len, grid)):
        slices = tuple(slice(i * size, (i + 1) * size) for i, size in zip(place, units, strict=True))
        seen.n_chunks[name] = seen.n_chunks.get(name, 0) + 1
        try:
            read_text(array) if not place else array[slices]
        except Exception as error:  # as in scan_rows
            first, n = (place[0] * units[0], array.shape[0]) if place else (0, 0)
            stop = min(first + units[0], n) if place else 0
            seen.faults.append(Fault(name, place, first, stop, in_words(error)))
    return seen


def has_checksum(array: zarr.Array) -> bool:
    """Whether a damaged chunk is always noticed, and every chunk was written."""
    return "crc32c" in [codec.to_dict()["name"] for codec in getattr(array.metadata, "codecs", ())]


def in_words(error: Exception) -> str:
    """What is wrong with a chunk, by what was raised as it was read."""
    if isinstance(error, FileNotFoundError):
        return "is missing"
    said = " ".join(str(error).split())
    if "checksum" in said:
        return "is damaged: its checksum is wrong"
    if "no whole chunk" in said:
        return "is damaged: it is no whole chunk"
    if isinstance(error, DataError):  # of what guards the store
        return f"is not read: {said[:LETTERS]}"
    return f"cannot be read: {type(error).__name__}: {said[:LETTERS]}"


def _open(location: str, name: str) -> zarr.Array:
    """The array; a chunk that is not there is an error only where all were written."""
    store = store_at(location, read_only=True)
    array = zarr.open_array(store, path=name, mode="r", zarr_format=3)
    if not has_checksum(array) and name not in BY_CELL:
        return array
    return zarr.open_array(CompleteStore(store), path=name, mode="r", zarr_format=3)
