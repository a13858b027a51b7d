"""What may a Zarr store ask of whoever opens it?  Only data of its own: no code, no links, no forged frames.

A store can come from anywhere. Its metadata name codecs, of which one unpickles, and others come with what is
installed; its folders may be links, along which it would be read, written and deleted elsewhere; and Blosc
believes the lengths in a chunk's header, and reads behind its end where they are forged.
"""

from __future__ import annotations

import json
import math
import os
import stat
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from zarr.abc.store import ByteRequest, RangeByteRequest, Store, SuffixByteRequest
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype
from zarr.storage import LocalStore, WrapperStore

from scaleshift.errors import DataError

ARRAYS = ("zarr.json", ".zarray")  # what tells of codecs
METADATA = (*ARRAYS, ".zgroup", ".zattrs", ".zmetadata")
OF_NUMCODECS = frozenset(  # not pickle
    (
        *(
            "adler32",
            "astype",
            "base64",
            "bitround",
            "blosc",
            "bz2",
            "categorize",
            "crc32",
            "crc32c",
            "delta",
        ),
        *("fixedscaleoffset", "fletcher32", "gzip", "jenkins_lookup3", "json2", "lz4", "lzma", "msgpack2"),
        *("packbits", "pcodec", "quantize", "shuffle", "vlen-array", "vlen-bytes", "vlen-utf8", "zfpy"),
        *("zlib", "zstd"),
    )
)
CODECS = OF_NUMCODECS | {"bytes", "endian", "sharding_indexed", "transpose"}
BLOSC, CHECKSUM, SHARDS = ("blosc", "numcodecs.blosc"), "crc32c", "sharding_indexed"
HEADER = struct.Struct(
    "<4B3I"
)  # of Blosc: versions, flags, size of an item; bytes unpacked, of a block, packed
INDEX = struct.Struct("<QQ")  # of a shard: where a chunk is, and how long
NO_CHUNK = 2**64 - 1


class Framing(NamedTuple):
    """How the chunks of an array lie around what Blosc has packed."""

    behind: int = 0  # bytes of checksums behind a frame
    n_inner: int = 0  # chunks of a shard; 0 where there are no shards
    index_bytes: int = 0
    index_first: bool = False


class GuardedStore(WrapperStore[Store]):
    """A store that is read and written within its own folder, by codecs that run no code."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._root = os.fspath(store.root) if isinstance(store, LocalStore) else None
        self._framing: dict[str, Framing | None] = {}  # by an array's metadata; None: without Blosc

    def __str__(self) -> str:
        return str(self._store)

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """Bytes of a key.

        Raises
        ------
        DataError
            If they lie elsewhere, name a codec that may not be run, or are no chunk that Blosc can be given.
        """
        self._refuse_elsewhere(key)
        value = await super().get(key, prototype, byte_range)
        folder, _, name = key.rpartition("/")
        if name in ARRAYS and value is not None:
            metadata, place = json.loads(value.to_bytes()), self._place(key)
            refuse_codecs(metadata, place)
            if isinstance(metadata, dict) and "shape" in metadata:
                self._framing[key] = framing(metadata, place)
        elif value is not None and name not in METADATA:
            framed = await self._framing_of(folder)
            if framed is not None:
                refuse_forged(value, framed, byte_range, self._place(key))
        return value

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Several, one after the other."""
        return [await self.get(key, prototype, part) for key, part in key_ranges]

    async def exists(self, key: str) -> bool:
        """Whether there is something at a key."""
        self._refuse_elsewhere(key)
        return await super().exists(key)

    async def set(self, key: str, value: Buffer) -> None:
        """Write."""
        self._refuse_elsewhere(key)
        self._framing.pop(key, None)
        await super().set(key, value)

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        """Write what is not there."""
        self._refuse_elsewhere(key)
        await super().set_if_not_exists(key, value)

    async def _set_many(self, values: Iterable[tuple[str, Buffer]]) -> None:
        for key, value in values:
            await self.set(key, value)

    async def delete(self, key: str) -> None:
        """Delete."""
        self._refuse_elsewhere(key)
        await super().delete(key)

    async def delete_dir(self, prefix: str) -> None:
        """Delete a folder."""
        self._refuse_elsewhere(prefix)
        await super().delete_dir(prefix)

    async def _framing_of(self, folder: str) -> Framing | None:
        """Of the array that a chunk's folder lies in: as a rule known since the array was opened."""
        around = [f"{folder}/{name}".lstrip("/") for name in ARRAYS]
        while folder:
            folder = folder.rpartition("/")[0]
            around += [f"{folder}/{name}".lstrip("/") for name in ARRAYS]
        if not any(key in self._framing for key in around):
            for key in around:
                await self.get(key, default_buffer_prototype())
        found = {self._framing[key] for key in around if key in self._framing}
        if len(found) > 1:  # which of them would Zarr go by?
            known = " and ".join(key for key in around if key in self._framing)
            raise DataError(
                f"{self._place('')}: {known} describe the same chunks, and not alike: write the data again"
            )
        return found.pop() if found else None

    def _place(self, key: str) -> str:
        return key if self._root is None else os.path.join(self._root, key)

    def _refuse_elsewhere(self, key: str) -> None:
        """Raise DataError for a key whose path is, or leads over, a link or a special file."""
        if self._root is None:
            return
        path = self._root
        for part in key.split("/") if key else ():
            path = os.path.join(path, part)
            try:
                mode = os.lstat(path).st_mode
            except (OSError, ValueError):
                return  # nothing there
            if part == ".." or not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise DataError(
                    f"{path} is a link or a special file: a store is read and written within its own folder "
                    "alone; put a copy of what it points to in its place"
                )


def refuse_codecs(metadata: Any, place: str) -> None:
    """Raise DataError where metadata, of Zarr v2 or v3, name a codec that is not known to be harmless.

    Before Zarr sees them, which imports what installed packages offer under that name.
    """
    for name in _named(metadata):
        if not isinstance(name, str) or name.removeprefix("numcodecs.") not in CODECS:
            why = "unpickles, and so runs code," if name == "pickle" else "is not known to be harmless"
            raise DataError(
                f"{place} names the codec {name!r}, which {why}: it is not read; write the data again "
                "with the codecs of Zarr itself"
            )


def _named(metadata: Any) -> Iterator[Any]:
    """Names of all codecs in metadata; attributes are the user's."""
    if isinstance(metadata, list):
        for item in metadata:
            yield from _named(item)
    elif isinstance(metadata, dict):
        for key, value in metadata.items():
            if key in ("codecs", "index_codecs", "filters", "compressor"):
                for codec in value if isinstance(value, list) else [value] if value else []:
                    yield _name(codec)
            if key != "attributes":
                yield from _named(value)


def _name(codec: Any) -> Any:
    """Under `name` in v3, `id` in v2; under both, each format would take another."""
    if not isinstance(codec, dict):
        return codec
    names = [codec[key] for key in ("name", "id") if key in codec]
    return names[0] if len(names) == 1 else " or ".join(map(str, names))


def framing(metadata: Mapping[str, Any], place: str) -> Framing | None:
    """How the chunks of an array hold what Blosc has packed; None where it has packed nothing.

    Raises
    ------
    DataError
        If that is packed again, or twice, so that nobody could tell where a frame ends before it is unpacked.
    """
    if not set(_named(metadata)) & set(BLOSC):
        return None
    if metadata.get("zarr_format") == 2:  # whose checksums stand in front
        names = [_name(codec) for codec in (*(metadata.get("filters") or ()), metadata.get("compressor"))]
        return _framed(names, (), place)
    codecs = list(metadata.get("codecs") or ())
    names = [_name(codec) for codec in codecs]
    if names != [SHARDS]:
        return _framed(names, (CHECKSUM,), place)
    shards = codecs[0]["configuration"]
    inner = _framed([_name(codec) for codec in shards["codecs"]], (CHECKSUM,), place)  # no shards again
    of_index = [_name(codec) for codec in shards.get("index_codecs", ())]
    if of_index not in (["bytes"], ["bytes", CHECKSUM]):
        raise _unclear(place)
    outer = metadata["chunk_grid"]["configuration"]["chunk_shape"]
    n_inner = math.prod(n // m for n, m in zip(outer, shards["chunk_shape"], strict=True))
    index_bytes = INDEX.size * n_inner + 4 * (CHECKSUM in of_index)
    return Framing(inner.behind, n_inner, index_bytes, shards.get("index_location", "end") == "start")


def _framed(names: Sequence[Any], checksums: Sequence[str], place: str) -> Framing:
    """How Blosc's frame lies in what a list of codecs makes, one after the other."""
    at = [i for i, name in enumerate(names) if name in BLOSC]
    if len(at) != 1 or SHARDS in names or set(names[at[0] + 1 :]) - set(checksums):
        raise _unclear(place)
    return Framing(4 * (len(names) - 1 - at[0]))


def _unclear(place: str) -> DataError:
    return DataError(
        f"{place} packs what Blosc has packed already, which cannot be checked before it is unpacked: it is "
        "not read; write the data again with one compressor"
    )


def refuse_forged(value: Buffer, framed: Framing, part: ByteRequest | None, place: str) -> None:
    """Raise DataError where the header of a frame of Blosc tells another length than it has."""
    if not framed.n_inner:
        _refuse_frame(value, framed, place)
        return
    start = part.start if isinstance(part, RangeByteRequest) else None
    at_index = start == 0 if framed.index_first else isinstance(part, SuffixByteRequest)
    if part is not None and not at_index:  # a chunk of the shard
        _refuse_frame(value, framed, place)
        return
    index = value[: framed.index_bytes] if framed.index_first else value[-framed.index_bytes :]
    for at, length in INDEX.iter_unpack(index.to_bytes()[: INDEX.size * framed.n_inner]):
        if at == NO_CHUNK:
            continue
        if framed.index_first and at < framed.index_bytes:  # would be asked for as the index is
            raise DataError(f"{place} is no whole shard: a chunk would lie in its index")
        if part is None:
            _refuse_frame(value[at : at + length], framed, place)


def _refuse_frame(frame: Buffer, framed: Framing, place: str) -> None:
    n = len(frame) - framed.behind
    if n < HEADER.size:
        raise DataError(f"{place} is no whole chunk: {len(frame)} bytes hold no header of Blosc")
    packed = HEADER.unpack(frame[: HEADER.size].to_bytes())[-1]
    if packed != n:
        raise DataError(f"{place} is no whole chunk: Blosc would read {packed} bytes of {n}")
