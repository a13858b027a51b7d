"""What happens when one block of a study is read? A missing or damaged chunk is an error with its name."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import google_crc32c
import numpy as np
import zarr
from zarr.abc.store import ByteRequest, RangeByteRequest, Store
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype
from zarr.core.sync import sync
from zarr.storage import FsspecStore, LocalStore, WrapperStore

from scaleshift.blocks.labels import CODE
from scaleshift.cells.guarded import GuardedStore
from scaleshift.cells.remote import INSTALL, scheme
from scaleshift.cells.schema import check_code_range
from scaleshift.cells.transient import DAMAGED, SEE_TO_IT, passes, patiently
from scaleshift.errors import DataError, SchemaError

RECORD = "uns/scaleshift"
HEAD = 128  # bytes of the record in which its id stands
STUDY = re.compile(rb'"study": "([0-9a-f]+)"')
METADATA = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")


class CompleteStore(WrapperStore[Store]):
    """A store in which a chunk that is not there is an error; zarr itself would give the fill value."""

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """Bytes of a key; None only for metadata, by whose absence zarr finds out what there is."""
        value = await super().get(key, prototype, byte_range)
        if value is None and not key.endswith(METADATA):
            raise FileNotFoundError(key)
        return value


def store_at(location: str, *, read_only: bool) -> Store:
    """Zarr store of a local path, or of a URL by fsspec; guarded, since it may come from anywhere."""
    if "://" in location:
        try:
            return GuardedStore(FsspecStore.from_url(location, read_only=read_only))
        except (ImportError, ValueError) as error:
            how = INSTALL.get(scheme(location), "") if isinstance(error, ImportError) else ""
            raise SchemaError(f"{location}: this URL cannot be opened ({error}){how}") from error
    return GuardedStore(LocalStore(location, read_only=read_only))


def read_rows(array: zarr.Array, location: str, chunk: int, first: int, stop: int) -> np.ndarray:
    """RowRanges [first, stop) of an array, all of them in one chunk of `chunk` rows.

    Raises
    ------
    DataError
        If the chunk is missing or damaged: names the store, the array, the chunk and its rows.
    """
    try:
        return patiently(lambda: np.asarray(array[first:stop]))
    except Exception as error:  # zarr and its codecs raise what they like, from OSError to RuntimeError
        number = first // chunk
        rows = f"rows {number * chunk}-{min((number + 1) * chunk, array.shape[0]) - 1}"
        what = "is missing" if isinstance(error, FileNotFoundError) else "cannot be read"
        raise DataError(
            f"{location}: chunk {number} of {array.path} ({rows}) {what}: {error}; {_way_out(error)}"
        ) from error


def _way_out(error: Exception) -> str:
    return SEE_TO_IT if passes(error) else DAMAGED


def read_text(array: zarr.Array) -> str:
    """The text in an array without dimensions.

    zarr takes ten seconds for one of ten megabytes, since numpy converts it letter by letter; what this
    package writes, a length, UTF-8 and a checksum, is decoded here.
    """
    codecs = [codec.to_dict()["name"] for codec in getattr(array.metadata, "codecs", ())]
    if codecs != ["vlen-utf8", "crc32c"]:
        return str(array[()])
    key = f"{array.path}/{array.metadata.encode_chunk_key(())}"
    buffer = sync(array.store.get(key, default_buffer_prototype()))
    if buffer is None:
        raise FileNotFoundError(key)
    raw = buffer.to_bytes()
    n_texts, n_bytes = struct.unpack_from("<II", raw) if len(raw) >= 12 else (0, 0)
    if (n_texts, n_bytes) != (1, len(raw) - 12):
        raise ValueError(f"a text of {len(raw) - 12} bytes is said to have {n_bytes}")
    if google_crc32c.value(raw[:-4]) != struct.unpack("<I", raw[-4:])[0]:
        raise ValueError("the checksum of the text is wrong")
    return raw[8:-4].decode()


@dataclass(frozen=True, eq=False)
class RowRanges:
    """Ranges of a store's rows, laid end to end: range i starts at row `stored[i]`, shown as `shown[i]`."""

    stored: np.ndarray  # (n_ranges,)
    shown: np.ndarray  # (n_ranges + 1,), the last one the number of rows shown

    @classmethod
    def of(cls, starts: np.ndarray, lengths: np.ndarray) -> RowRanges:
        """Ranges in the order of the store; empty ones dropped, adjacent ones merged."""
        starts, lengths = starts[lengths > 0], lengths[lengths > 0]
        new = np.ones(len(starts), bool)
        new[1:] = starts[1:] != starts[:-1] + lengths[:-1]
        shown = np.concatenate([[0], np.cumsum(lengths)])
        return cls(starts[new], np.append(shown[:-1][new], shown[-1]))

    def __len__(self) -> int:
        return int(self.shown[-1])

    def pieces(self, first: int, stop: int) -> Iterator[tuple[int, int]]:
        """Store ranges that hold the shown rows [first, stop)."""
        i = int(np.searchsorted(self.shown, first, side="right")) - 1
        while first < stop:
            end = min(stop, int(self.shown[i + 1]))
            start = int(self.stored[i] + first - self.shown[i])
            yield start, start + end - first
            first, i = end, i + 1

    def chunks(self, chunk: int) -> tuple[int, ...]:
        """Sizes of blocks that each hold the shown rows of one chunk of the store."""
        sizes: dict[int, int] = {}
        for i, start in enumerate(self.stored.tolist()):
            stop = start + int(self.shown[i + 1] - self.shown[i])
            for number in range(start // chunk, -(-stop // chunk)):
                overlap = min(stop, (number + 1) * chunk) - max(start, number * chunk)
                sizes[number] = sizes.get(number, 0) + overlap
        return tuple(sizes.values()) or (0,)


@dataclass(frozen=True, eq=False)
class OpenedRows:
    """The rows of a study that are opened; `study` is its id, by which a rewritten store is told apart."""

    location: str
    study: str
    chunk: int  # rows
    rows: RowRanges


@dataclass(frozen=True, eq=False)
class BlockReader:
    """Array-like that reads the opened rows of one array of a study; small, picklable, for Dask.

    Each request must lie in one chunk of the store, as Dask's blocks do.
    """

    source: OpenedRows
    name: str
    stored: tuple[int, ...]  # shape in the store, rows that are committed
    dtype: np.dtype[Any]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of what is shown."""
        return (len(self.source.rows), *self.stored[1:])

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.stored)

    def __getitem__(self, index: tuple[Any, ...]) -> np.ndarray:
        rows, *rest = index
        if isinstance(rows, slice) and rows.step in (None, 1):
            first, stop, _ = rows.indices(len(self.source.rows))
            block = self.read(first, stop)
        else:  # a later selection of single rows, which Dask has fused into the read
            wanted = np.asarray(
                rows if isinstance(rows, list) else range(len(self.source.rows))[rows], dtype=np.intp
            )
            first, stop = (int(wanted.min()), int(wanted.max()) + 1) if wanted.size else (0, 0)
            block = self.read(first, stop)[wanted - first]
        kept = (slice(None),) * (block.ndim - len(rest))
        return block[(*kept, *rest)]

    def stored_bytes(self, first: int) -> int:
        """Size of the compressed chunk that holds the shown row `first`."""
        array = self._array()
        row, _ = next(self.source.rows.pieces(first, first + 1))
        place = (row // self.source.chunk, *(0 for _ in self.stored[1:]))
        return sync(array.store.getsize(f"{array.path}/{array.metadata.encode_chunk_key(place)}"))

    def read(self, first: int, stop: int) -> np.ndarray:
        """Shown rows [first, stop): the chunk is read once, whatever lies between the ranges."""
        array = self._array()
        pieces = list(self.source.rows.pieces(first, stop))
        if not pieces:
            return np.empty((0, *self.stored[1:]), self.dtype)
        low, high = pieces[0][0], pieces[-1][1]
        block = read_rows(array, self.source.location, self.source.chunk, low, high)
        # What replaces a study, or its labels, draws a new id first: this was read before, or is refused.
        _refuse_other_study(array.store, self.source.location, self.source.study)
        if len(pieces) == 1:
            return block
        return np.concatenate([block[start - low : end - low] for start, end in pieces])

    def _array(self) -> zarr.Array:
        return _open_array(self.source.location, self.name, self.source.study, self.stored)


@dataclass(frozen=True, eq=False)
class IntensityReader(BlockReader):
    """Reader of X; gives only some of its columns where these are chosen."""

    columns: np.ndarray | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of what is shown."""
        n_rows, n_columns = super().shape
        return (n_rows, n_columns if self.columns is None else len(self.columns))

    def read(self, first: int, stop: int) -> np.ndarray:
        """Intensities of the shown rows [first, stop)."""
        block = super().read(first, stop)
        return block if self.columns is None else np.take(block, self.columns, axis=1)


@dataclass(frozen=True, eq=False)
class CodeReader(BlockReader):
    """Reader of a categorical's codes: checks them, and renumbers them where categories were selected."""

    lowest: int
    n_categories: int
    selected: np.ndarray | None = None  # (n_categories + 1,): new code of each old one, of -1 at the end

    def read(self, first: int, stop: int) -> np.ndarray:
        """Codes of the shown rows [first, stop)."""
        codes = super().read(first, stop).astype(CODE, copy=False)
        place = f"{self.source.location}: {self.name}"
        try:
            check_code_range(codes, self.lowest, self.n_categories, place)
        except SchemaError as error:
            raise DataError(f"{error}; {DAMAGED}") from None
        if self.selected is None:
            return codes
        codes = self.selected[codes]
        if codes.size and codes.min() < self.lowest:
            raise DataError(
                f"{place} disagrees with the sample offsets in uns/scaleshift: "
                "the store was changed by another tool; write the study again"
            )
        return codes


@lru_cache(maxsize=64)
def _open_array(location: str, name: str, study: str, shape: tuple[int, ...]) -> zarr.Array:
    """The array, opened once a process; `study` and `shape` tell a rewritten or longer one apart."""
    store = CompleteStore(store_at(location, read_only=True))
    try:
        array = patiently(lambda: zarr.open_array(store, path=name, mode="r", zarr_format=3))
    except Exception as error:  # as in read_rows
        raise DataError(f"{location}: {name} cannot be opened: {error}; {_way_out(error)}") from error
    _refuse_other_study(store, location, study)
    if array.shape[0] < shape[0] or array.shape[1:] != shape[1:]:
        raise DataError(f"{location}: {name} has shape {array.shape}, had {shape} when opened: open it again")
    return array


def forget_arrays() -> None:
    """Open arrays anew when they are read next, for what this process has written under a new id."""
    _open_array.cache_clear()


def _refuse_other_study(store: Store, location: str, study: str) -> None:
    try:
        on_disk = patiently(lambda: _study_on_disk(store, location))
    except Exception as error:
        raise DataError(f"{location}: {RECORD} cannot be read: {error}; {SEE_TO_IT}") from error
    if on_disk != study:
        raise DataError(f"{location} was written anew since it was opened: open it again")


def _study_on_disk(store: Store, location: str) -> Any:
    """The id of the study that stands in the store now; None where the record cannot be read."""
    try:
        found = STUDY.search(_head(store, location))  # the record of a study of many files has megabytes
        if found:
            return found[1].decode()
        return json.loads(read_text(zarr.open_array(store, path=RECORD, mode="r", zarr_format=3)))["study"]
    except Exception as error:  # as in read_rows
        if passes(error):
            raise
        return None


def _head(store: Store, location: str) -> bytes:
    """The first bytes of the record; of a local one without zarr, which takes a millisecond for them."""
    if "://" not in location:
        with open(f"{location}/{RECORD}/c", "rb", buffering=0) as record:
            return record.read(HEAD)
    head = sync(store.get(f"{RECORD}/c", default_buffer_prototype(), RangeByteRequest(0, HEAD)))
    return b"" if head is None else head.to_bytes()
