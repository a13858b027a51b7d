"""How is a fitted model kept on disk? As JSON and Zarr arrays: data, from which no code is ever run.

A saved model is a folder, a Zarr v3 group:

    zarr.json                     the record: format, version, class, and the object as a tree of JSON
    arrays-<32 digits>/NAME       the arrays that the tree names, each with a checksum

`scaleshift.encoding` says how a value becomes a node of the tree. A model is replaced by moving in a new
folder of arrays and then one file, zarr.json: whenever the writer is killed, the old model or the new one
stands there.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import stat
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import zarr
from zarr.codecs import Crc32cCodec
from zarr.storage import LocalStore

import scaleshift
from scaleshift import durable, full_disk
from scaleshift.cells.reader import CompleteStore
from scaleshift.encoding import decode, encode
from scaleshift.errors import DataError, ScaleshiftError, SchemaError

FORMAT = 1
RECORD = "scaleshift"
CHUNK_BYTES = 2**24
STALE = 24 * 3600  # seconds: no writer takes as long
ARRAYS = re.compile(r"arrays-[0-9a-f]{32}")
EXPECTED = "expected a folder that the save method of a scaleshift model wrote"
DAMAGED = "restore it from a copy or save the model again"
# No compression: the floats of a model hardly shrink, and Blosc believes the lengths in a chunk's header, so
# that a forged chunk makes it read outside its buffer.
CODECS = ["bytes", "crc32c"]


def save(thing: Any, path: str | os.PathLike[str]) -> None:
    """Save a model as a folder of JSON and Zarr arrays.

    A model that stands at the path already is replaced as a whole; anything else that stands there is
    refused. A writer that is killed, or a machine without power, leaves the old model, or none, and perhaps
    folders that nothing uses: the next save deletes them, those with a dot in front of their name once they
    are a day old. Of several writers at one path the last one wins: what stands there is the whole model of
    one.

    Parameters
    ----------
    thing : object
        Of a class that `scaleshift.encoding.CLASSES` names: its constructor parameters and what it has
        learned (attributes that end in "_"). A `random_state` that is a numpy Generator or RandomState is
        stored as None: what it drew for the fit stands in the fitted `seed_`.
    path : str or path-like
        Local folder.

    Raises
    ------
    DataError
        If a value cannot be saved, such as a function or an object of a class that is not scaleshift's:
        names the attribute. If something else than a saved model stands at the path.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from scaleshift import DFM
    >>> with TemporaryDirectory() as folder:
    ...     save(DFM(bandwidth=2.0), f"{folder}/model")
    ...     load(f"{folder}/model")
    DFM(bandwidth=2.0)
    """
    encoded, arrays = encode(thing)
    location = _local(path)
    while not _stands(thing, encoded, arrays, location):
        pass  # another writer has taken its arrays for those of one that was killed


def _stands(thing: Any, encoded: Any, arrays: Mapping[str, np.ndarray], location: Path) -> bool:
    """Write a model, and say whether all of it stands at its place."""
    replaces = _holds_model(location)
    unused = _arrays_in(location)  # at the end: not those of a writer that has come meanwhile
    folder = f"arrays-{uuid4().hex}"
    record = {
        "format": FORMAT,
        "version": scaleshift.__version__,
        "kind": type(thing).__name__,
        "arrays": folder,
        "checksum": _checksum(encoded),
        "object": encoded,
    }
    staged = (location if replaces else location.parent) / f".{location.name}-{uuid4().hex}"
    try:
        with full_disk.told(location, "then save the model again"):
            _write_arrays(staged / folder, arrays)
            root = {"attributes": {RECORD: record}, "zarr_format": 3, "node_type": "group"}
            (staged / "zarr.json").write_text(json.dumps(root, indent=1), encoding="ascii")
            durable.sync_tree(staged)
            _put(staged, folder, location)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
        _forget_stale(location)
    now = _read_record(location)["arrays"]
    for name in unused - {now}:
        shutil.rmtree(location / name, ignore_errors=True)
    return now != folder or (location / folder).is_dir()


def _put(staged: Path, folder: str, location: Path) -> None:
    """Make what is staged, and on the disk, the model at a place: one rename makes it count."""
    if not _holds_model(location):
        try:
            os.rename(staged, location)
            durable.sync(location.parent)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise  # else another writer was quicker: its model is replaced
    os.rename(staged / folder, location / folder)
    durable.sync(location)
    os.replace(staged / "zarr.json", location / "zarr.json")  # from here on it is the new model
    durable.sync(location)


def _forget_stale(location: Path) -> None:
    """Delete what writers that were killed have staged for a place."""
    staged = re.compile(re.escape(f".{location.name}-") + "[0-9a-f]{32}")
    for folder in (location.parent, location):
        with contextlib.suppress(OSError):  # others delete too
            for name in filter(staged.fullmatch, os.listdir(folder)):
                if time.time() - os.lstat(folder / name).st_mtime > STALE:
                    shutil.rmtree(folder / name, ignore_errors=True)


def _arrays_in(location: Path) -> set[str]:
    """Names of the folders of arrays at a place."""
    return {name for name in os.listdir(location) if ARRAYS.fullmatch(name)} if location.is_dir() else set()


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model that its `save` method has written.

    Only numbers, text and scaleshift's own classes come out of the folder: no code of it is run, nothing is
    imported that its text names, no file outside it is read, and links in it are refused.

    Parameters
    ----------
    path : str or path-like
        Local folder.

    Returns
    -------
    object
        As it was saved, to the bit; arrays are writable and in C order.

    Raises
    ------
    SchemaError
        If there is no saved model at the path, or one of another format, or with classes, parameters or
        attributes that this version does not know, or if its record is damaged.
    DataError
        If an array is missing or damaged: names it.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from scaleshift import DFM
    >>> model = DFM(random_state=0).fit([[0.0], [0.1], [5.0], [5.1]], ["a", "a", "b", "b"])
    >>> with TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model")
    ...     load(f"{folder}/model").labels_.tolist()
    ['a', 'b']
    """
    location = _local(path)
    while True:
        record = _read_record(location)
        try:
            return _decoded(location, record)
        except ScaleshiftError:
            if _read_record(location)["arrays"] == record["arrays"]:  # else replaced while it was read
                raise


def _decoded(location: Path, record: Mapping[str, Any]) -> Any:
    """The model that a record tells of."""
    _refuse_links(location / record["arrays"])

    def read(name: str, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        return _read_array(location, record["arrays"], name, dtype, shape)

    try:
        return decode(record["object"], read)
    except SchemaError as error:
        raise SchemaError(f"{location}: {error}; it was saved by scaleshift {record['version']}") from error
    except ScaleshiftError:
        raise
    except Exception as error:  # a forged record can be wrong in more ways than checks foresee
        raise _damaged_record(location, error) from error


def damages(path: str | os.PathLike[str]) -> list[str]:
    """What of a saved model is damaged: its record, or each array that is, not the first alone.

    Examples
    --------
    >>> [what.split(":")[0].rpartition("/")[2] for what in damages("nowhere")]
    ['nowhere does not exist']
    """
    location, found = _local(path), list[str]()
    try:
        record = _read_record(location)
        _refuse_links(location / record["arrays"])
    except ScaleshiftError as error:
        return [str(error)]

    def read(name: str, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        try:
            return _read_array(location, record["arrays"], name, dtype, shape)
        except DataError as error:
            found.append(str(error))
            return np.zeros(shape, dtype)

    try:
        decode(record["object"], read)
    except Exception as error:  # as in load; zeros may have no meaning
        if not found:
            found.append(f"{location}: {error}")
    return found


def files_of(path: str | os.PathLike[str]) -> set[str]:
    """Names of what is read in the folder of a saved model; others are left of saves that were interrupted.

    Examples
    --------
    >>> files_of("nowhere")
    {'zarr.json'}
    """
    try:
        return {"zarr.json", _read_record(_local(path))["arrays"]}
    except ScaleshiftError:
        return {"zarr.json"}


def kind_of(path: str | os.PathLike[str]) -> str | None:
    """Class of the model that is saved at a path; None where there is none, or a damaged one.

    Examples
    --------
    >>> kind_of("nowhere") is None
    True
    """
    try:
        kind = _read_record(_local(path))["kind"]
    except (ScaleshiftError, KeyError):
        return None
    return kind if isinstance(kind, str) and kind.isidentifier() else None


def _local(path: str | os.PathLike[str]) -> Path:
    text = os.fspath(path)
    if "://" in text:
        raise DataError(f"{text} is a URL: models are saved to and loaded from local folders")
    return Path(os.path.realpath(text))


def _checksum(encoded: Any) -> int:
    """CRC32 of the tree, which has no checksum of Zarr's: a digit that flips is noticed."""
    return zlib.crc32(json.dumps(encoded, sort_keys=True).encode())


def _holds_model(location: Path) -> bool:
    """Whether a saved model stands at the place, rather than nothing; anything else is refused."""
    if not os.path.lexists(location):
        return False
    try:
        _read_record(location)
        return True
    except SchemaError as error:
        raise DataError(f"{error}. It is not replaced: choose another path, or delete it first") from error


def _read_record(location: Path) -> dict[str, Any]:
    """The record of a saved model, its format and checksum checked."""
    if not location.exists():
        raise SchemaError(f"{location} does not exist: {EXPECTED}")
    if (location / "uns" / "scaleshift").exists():
        raise SchemaError(f"{location} is a study, no model: open it with scaleshift.open_cells")
    if not location.is_dir() or not os.path.lexists(location / "zarr.json"):
        raise SchemaError(f"{location} is no saved model: {EXPECTED}")
    if not stat.S_ISREG(os.lstat(location / "zarr.json").st_mode):
        raise SchemaError(f"{location}: zarr.json is no regular file, and links are not followed: {EXPECTED}")
    try:
        root = json.loads((location / "zarr.json").read_bytes())
        record = root["attributes"].get(RECORD)
        if record is None:
            raise SchemaError(f"{location} is a Zarr store, but no saved model: {EXPECTED}")
        _check_format(record["format"], record["version"], location)
        if not ARRAYS.fullmatch(record["arrays"]):
            raise ValueError(f"the folder {record['arrays']!r} is none of its own")
        if record["checksum"] != _checksum(record["object"]):
            raise ValueError("the checksum does not match")
        return record
    except ScaleshiftError:
        raise
    except Exception as error:  # as in load
        raise _damaged_record(location, error) from error


def _check_format(number: Any, version: Any, location: Path) -> None:
    if type(number) is int and number > FORMAT:
        raise SchemaError(
            f"{location} was written by a newer scaleshift ({version}, format {number}); "
            f"this one reads format {FORMAT}: upgrade"
        )
    if number != FORMAT:
        raise SchemaError(f"{location} has the unknown format {number!r}; this scaleshift reads {FORMAT}")


def _damaged_record(location: Path, error: Exception) -> SchemaError:
    return SchemaError(f"{location}: its record is damaged ({type(error).__name__}: {error}): {DAMAGED}")


def _refuse_links(folder: Path) -> None:
    """Raise SchemaError if there is anything but folders and regular files in a folder, itself included."""
    for parent, folders, files in os.walk(folder):
        for path in (parent, *(os.path.join(parent, name) for name in (*folders, *files))):
            mode = os.lstat(path).st_mode
            if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
                raise SchemaError(
                    f"{path} is a link or a special file, which a saved model never holds: it is not read; "
                    "get the model again, without links"
                )


def _write_arrays(folder: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays of native numbers, one chunk up to 16 MiB each."""
    group = zarr.create_group(LocalStore(folder), zarr_format=3)
    for name, array in arrays.items():
        group.create_array(
            name,
            data=array,
            chunks=_chunks(array),
            compressors=(Crc32cCodec(),),
            config={"write_empty_chunks": True},  # so that a missing chunk is a fault
        )


def _chunks(array: np.ndarray) -> tuple[int, ...]:
    if array.nbytes <= CHUNK_BYTES:
        return tuple(max(n, 1) for n in array.shape)
    row = array.nbytes // array.shape[0]
    return (max(CHUNK_BYTES // row, 1), *array.shape[1:])


def _read_array(
    location: Path, folder: str, name: str, dtype: np.dtype, shape: tuple[int, ...]
) -> np.ndarray:
    """An array that is there, undamaged, with the dtype and shape that the record tells."""
    try:
        _check_metadata(json.loads((location / folder / name / "zarr.json").read_bytes()), dtype, shape)
        store = CompleteStore(LocalStore(location, read_only=True))
        array = zarr.open_array(store, path=f"{folder}/{name}", mode="r", zarr_format=3)
        return np.require(array[...], dtype, ["C", "W"])
    except Exception as error:  # zarr and its codecs raise what they like
        what = "is missing" if isinstance(error, FileNotFoundError) else "cannot be read"
        raise DataError(f"{location}: the array {folder}/{name} {what} ({error}): {DAMAGED}") from error


def _check_metadata(metadata: dict[str, Any], dtype: np.dtype, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless an array is stored as `_write_arrays` does it.

    Before Zarr sees it, which imports what codecs and data types name in the packages that are installed.
    """
    found = [
        metadata["node_type"],
        metadata["data_type"],
        metadata["shape"],
        metadata["chunk_grid"]["name"],
        metadata["chunk_key_encoding"]["name"],
        [codec["name"] for codec in metadata["codecs"]],
        metadata.get("storage_transformers", []),
    ]
    expected = ["array", dtype.name, list(shape), "regular", "default", CODECS, []]
    if found != expected:
        raise ValueError(f"stored as {found}, expected {expected}")
