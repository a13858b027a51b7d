"""No arrangement of codecs, shards and metadata brings Blosc a frame whose header lies about its length."""

import json
import struct

import google_crc32c
import numpy as np
import pytest
import zarr
from numcodecs import Blosc, Zlib
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, ShardingCodec, TransposeCodec, ZstdCodec
from zarr.errors import ZarrUserWarning

from scaleshift.cells.reader import store_at
from scaleshift.errors import DataError

X = np.arange(192, dtype="f4").reshape(64, 3)
BLOSC = BloscCodec(cname="lz4")
LIE = (4, 2**20), (12, 2**20 + 16)  # bytes unpacked, bytes packed


def written(path, chunks=(64, 3), shards=None, **codecs):
    array = zarr.create_array(
        str(path), name="X", data=X, chunks=chunks, shards=shards, overwrite=True, **codecs
    )
    return path / "X" / ("c/0/0" if array.metadata.zarr_format == 3 else "0.0")


def lie(file, at=0, checksum=None):
    """Change the header of a frame at a place; a checksum lies behind the frame or in front of it."""
    raw = bytearray(file.read_bytes())
    for field, number in LIE:
        raw[at + field : at + field + 4] = struct.pack("<I", number)
    if checksum == "behind":
        raw[-4:] = struct.pack("<I", google_crc32c.value(bytes(raw[:-4])))
    file.write_bytes(raw)


def read(path, name="X"):
    return zarr.open_array(store_at(str(path), read_only=True), path=name, mode="r")[...]


def sharded(**options):
    return ShardingCodec(chunk_shape=(8, 3), **options)


HONEST = {
    "plain": {"compressors": BLOSC},
    "checksum": {"compressors": (BLOSC, Crc32cCodec())},
    "transposed": {"compressors": BLOSC, "filters": TransposeCodec(order=(1, 0))},
    "shards": {"compressors": BLOSC, "chunks": (8, 3), "shards": (64, 3)},
    "shards_with_checksums": {"compressors": (BLOSC, Crc32cCodec()), "chunks": (8, 3), "shards": (64, 3)},
    "index_in_front": {"serializer": sharded(codecs=[BytesCodec(), BLOSC], index_location="start")},
    "shards_in_shards_without_blosc": {
        "serializer": ShardingCodec(chunk_shape=(32, 3), codecs=[sharded(codecs=[BytesCodec(), ZstdCodec()])])
    },
    "v2": {"zarr_format": 2, "compressors": Blosc()},
    "v2_zlib": {"zarr_format": 2, "compressors": Zlib()},
}
SERIAL = ("index_in_front", "shards_in_shards_without_blosc")


@pytest.mark.parametrize("name", HONEST)
@pytest.mark.parametrize("rows", [slice(None), slice(3, 20)])
def test_what_zarr_writes_is_read(tmp_path, name, rows):
    options = {**({"compressors": None} if name in SERIAL else {}), **HONEST[name]}
    written(tmp_path, **options)
    array = zarr.open_array(store_at(str(tmp_path), read_only=True), path="X", mode="r")
    np.testing.assert_array_equal(array[rows], X[rows])


@pytest.mark.parametrize("name", ["plain", "checksum", "transposed", "shards", "index_in_front", "v2"])
def test_a_lie_is_refused(tmp_path, name):
    options = {**({"compressors": None} if name in SERIAL else {}), **HONEST[name]}
    file = written(tmp_path, **options)
    lie(file, 8 * 16 + 4 if name == "index_in_front" else 0, "behind" if name == "checksum" else None)
    with pytest.raises(DataError, match="no whole chunk"):
        read(tmp_path)


def shards_in_shards(path):
    inner = sharded(codecs=[BytesCodec(), BLOSC])
    outer = ShardingCodec(chunk_shape=(32, 3), codecs=[inner])
    lie(written(path, serializer=outer, compressors=None))


def shards_packed_whole(path):
    with pytest.warns(ZarrUserWarning, match="sharding"):
        lie(written(path, serializer=sharded(codecs=[BytesCodec()]), compressors=BLOSC))


def packed_index(path):
    lie(written(path, serializer=sharded(index_codecs=[BytesCodec(), BLOSC]), compressors=None))


def v2_checksum_in_front(path):
    lie(written(path, zarr_format=2, compressors=Blosc()))
    edit(path / "X/.zarray", filters=[{"id": "blosc"}], compressor={"id": "crc32c", "location": "start"})


def v2_filters_told_last(path):
    written(path, zarr_format=2, compressors=Zlib(), filters=[Blosc()])
    told = json.loads((path / "X/.zarray").read_text())
    told["filters"] = told.pop("filters")
    (path / "X/.zarray").write_text(json.dumps(told))


def edit(file, **changes):
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


@pytest.mark.parametrize(
    "make", [shards_in_shards, shards_packed_whole, packed_index, v2_checksum_in_front, v2_filters_told_last]
)
def test_what_cannot_be_told_is_refused(tmp_path, make):
    make(tmp_path)
    with pytest.raises(DataError, match="with one compressor"):
        read(tmp_path)


def test_a_chunk_in_the_index_of_its_shard_is_refused(tmp_path):
    """It would be asked for by the bytes that the index is asked for by."""
    codecs = [BytesCodec(), BLOSC]
    file = written(tmp_path, serializer=sharded(codecs=codecs, index_location="start"), compressors=None)
    raw = bytearray(file.read_bytes())
    raw[16:32] = struct.pack("<QQ", 0, 8 * 16)
    raw[128:132] = struct.pack("<I", google_crc32c.value(bytes(raw[:128])))
    file.write_bytes(raw)
    array = zarr.open_array(store_at(str(tmp_path), read_only=True), path="X", mode="r")
    for rows in (slice(None), slice(8, 12)):
        with pytest.raises(DataError, match="in its index"):
            array[rows]


def test_an_array_within_an_array_does_not_vouch_for_it(tmp_path):
    lie(written(tmp_path, compressors=BLOSC))
    zarr.create_array(str(tmp_path), name="other", shape=(1,), dtype="u1", compressors=None)
    (tmp_path / "X/c/zarr.json").write_bytes((tmp_path / "other/zarr.json").read_bytes())
    store = store_at(str(tmp_path), read_only=True)
    zarr.open_array(store, path="X/c", mode="r")
    with pytest.raises(DataError, match="not alike"):
        zarr.open_array(store, path="X", mode="r")[...]


def test_metadata_of_the_other_format_do_not_vouch_for_an_array(tmp_path):
    lie(written(tmp_path, compressors=BLOSC))
    other = tmp_path / "other"
    written(other, zarr_format=2, compressors=None)
    (tmp_path / "X/.zarray").write_bytes((other / "X/.zarray").read_bytes())
    store = store_at(str(tmp_path), read_only=True)
    array = zarr.open_array(store, path="X", mode="r", zarr_format=3)
    zarr.open_array(store, path="X", mode="r", zarr_format=2)
    with pytest.raises(DataError, match="not alike"):
        array[...]


def test_a_codec_of_two_names_is_refused(tmp_path):
    written(tmp_path, zarr_format=2, compressors=Zlib())
    edit(tmp_path / "X/.zarray", filters=[{"id": "pickle", "name": "zlib"}])
    with pytest.raises(DataError, match="zlib or pickle"):
        read(tmp_path)


def test_an_array_that_is_written_anew_is_read_by_its_new_codecs(tmp_path):
    store = store_at(str(tmp_path), read_only=False)
    for compressors in (BLOSC, None, (BLOSC, Crc32cCodec())):
        array = zarr.create_array(store, name="X", data=X, compressors=compressors, overwrite=True)
        np.testing.assert_array_equal(array[...], X)
