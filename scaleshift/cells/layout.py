"""How do the arrays of a study stand in Zarr? Creating them, making room, filling chunks, committing.

The store is an AnnData one (Zarr v3) that also names the dimensions of every array. Chunks carry a
checksum, since Blosc alone gives out wrong numbers for some damaged chunks. Every chunk is written, also
one that equals the fill value, so that a missing chunk is a fault.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import zarr
from zarr.codecs import BloscCodec, Crc32cCodec
from zarr.errors import ContainsGroupError

from scaleshift import full_disk
from scaleshift.blocks.labels import CODE
from scaleshift.cells.manifest import (
    INDEX,
    LABEL_CODES,
    MARKERS,
    RECORD,
    SAMPLE_CODES,
    Manifest,
    array_of,
    typed,
)
from scaleshift.cells.reader import store_at
from scaleshift.cells.schema import CELL, LABEL, MARKER, SAMPLE, SCALING, X
from scaleshift.errors import DataError

# Arrays with a row a cell: dtype, and a fill value that is no data (no category, not unlabelled)
BY_CELL: dict[str, tuple[Any, Any]] = {
    X: (np.float32, np.nan),
    SAMPLE_CODES: (CODE, -2),
    LABEL_CODES: (CODE, -2),
    INDEX: (np.int64, -1),
}
NAMES_CHUNK = 1024


def create_study(planned: Manifest) -> zarr.Group:
    """Create the store of a planned study: its arrays in their full size, no sample committed.

    Raises
    ------
    DataError
        If something is at the path already.
    """
    planned.to_json()  # refuses what it cannot hold, before anything is created
    location = planned.path
    taken = f"{location} exists already: choose another path, use append_cells to add samples, or delete it"
    if "://" not in location and os.path.lexists(location):
        raise DataError(taken)
    try:
        attributes = _encoding("anndata", "0.1.0")
        group = zarr.create_group(store_at(location, read_only=False), zarr_format=3, attributes=attributes)
    except ContainsGroupError:
        raise DataError(taken) from None
    with whole_or_gone(location):
        _furnish(group, planned)
    return group


@contextmanager
def whole_or_gone(location: str) -> Iterator[None]:
    """Take a store away again, which the caller has just made, where what is done within fails."""
    try:
        yield
    except BaseException:
        full_disk.settle()
        if "://" not in location:
            shutil.rmtree(location)  # it would block the next try
        raise


def _furnish(group: zarr.Group, planned: Manifest) -> None:
    """The arrays of a planned study in their full size, no sample committed."""
    for name in ("uns", "layers", "obsm", "obsp", "varm", "varp"):
        group.create_group(name, attributes=_encoding("dict", "0.1.0"))
    _create(group, RECORD, (), (), (), str, "", _encoding("string"))
    commit(group, replace(planned, samples=(), counts=(), labels=(), metadata={}))

    _create_frame(group, "var", list(planned.var))
    _create_names(group, MARKERS, typed(planned.markers), MARKER)
    for column, of_markers in planned.var.items():
        _create_names(group, f"var/{column}", typed(of_markers), MARKER)
    _create_frame(group, "obs", [SAMPLE, LABEL])
    for name, values in {SAMPLE: planned.samples, LABEL: planned.labels}.items():
        group.create_group(f"obs/{name}", attributes=_encoding("categorical") | {"ordered": False})
        _create_names(group, f"obs/{name}/categories", typed(values), name)
    if planned.scaling is not None:
        shape = (len(planned.samples), len(planned.markers))
        for name in SCALING:
            chunks = (NAMES_CHUNK, len(planned.markers))
            _create(
                group, f"uns/{name}", shape, (SAMPLE, MARKER), chunks, np.float64, np.nan, _encoding("array")
            )
    for name, (dtype, fill) in BY_CELL.items():
        columns = (len(planned.markers),) if name == X else ()
        dims = (CELL, MARKER)[: 1 + len(columns)]
        shape, chunks = (planned.n_cells, *columns), (planned.chunk, *columns)
        _create(group, name, shape, dims, chunks, dtype, fill, _encoding("array"))


def resize_study(group: zarr.Group, wanted: Manifest, committed: Manifest) -> None:
    """Give the arrays the size of the wanted manifest, and write its categories; commits nothing."""
    for name in BY_CELL:
        array = array_of(group, name, wanted.path)
        array.resize((wanted.n_cells, *array.shape[1:]))
    if wanted.scaling is not None:
        for name in SCALING:
            array = array_of(group, f"uns/{name}", wanted.path)
            array.resize((len(wanted.samples), *array.shape[1:]))
    for name, values, old in (
        (SAMPLE, wanted.samples, committed.samples),
        (LABEL, wanted.labels, committed.labels),
    ):
        path = f"obs/{name}/categories"
        if not old:  # categories of another type may come; nothing committed refers to these
            _create_names(group, path, typed(values), name, overwrite=True)
            continue
        array = _complete(array_of(group, path, wanted.path))
        array.resize((len(values),))
        array[:] = typed(values)


def write_rows(
    group: zarr.Group, first: int, intensity: np.ndarray, sample_code: np.ndarray, label_code: np.ndarray
) -> None:
    """Write rows [first, first + n): `first` starts a chunk, n is whole chunks or reaches the end."""
    stop = first + len(intensity)
    values = {
        X: intensity,
        SAMPLE_CODES: sample_code,
        LABEL_CODES: label_code,
        INDEX: np.arange(first, stop),
    }
    for name, rows in values.items():
        _complete(array_of(group, name, str(group.store)))[first:stop] = rows


def write_label_names(group: zarr.Group, labels: tuple[Any, ...]) -> None:
    """Replace the categories of the labels; the codes that stand there refer to nothing until written too."""
    _create_names(group, f"obs/{LABEL}/categories", typed(labels), LABEL, overwrite=True)


def write_label_codes(group: zarr.Group, first: int, codes: np.ndarray) -> None:
    """Write label codes from row `first` on: it starts a chunk, they are whole chunks or reach the end."""
    _complete(array_of(group, LABEL_CODES, str(group.store)))[first : first + len(codes)] = codes


def write_scaling(group: zarr.Group, first: int, location: np.ndarray, scale: np.ndarray) -> None:
    """Write how the samples from `first` on were scaled, (n_samples, n_markers) each."""
    for name, values in zip(SCALING, (location, scale), strict=True):
        _complete(array_of(group, f"uns/{name}", str(group.store)))[first : first + len(values)] = values


def write_text(group: zarr.Group, name: str, text: str) -> None:
    """Write a text for machines into `uns`."""
    _create(group, f"uns/{name}", (), (), (), str, "", _encoding("string"), overwrite=True)
    _complete(array_of(group, f"uns/{name}", str(group.store)))[...] = text


def commit(group: zarr.Group, manifest: Manifest) -> None:
    """Make the samples of a manifest visible to readers: one file, replaced at once."""
    _complete(array_of(group, RECORD, manifest.path))[...] = manifest.to_json()


def _encoding(kind: str, version: str = "0.2.0") -> dict[str, Any]:
    return {"encoding-type": kind, "encoding-version": version}


def _create_frame(group: zarr.Group, name: str, columns: list[str]) -> None:
    attributes = _encoding("dataframe") | {"_index": "_index", "column-order": columns}
    group.create_group(name, attributes=attributes)


def _create_names(
    group: zarr.Group, name: str, values: np.ndarray, dim: str, overwrite: bool = False
) -> None:
    """Array of names; text is of variable length, since fixed-width text is outside the Zarr v3 spec."""
    text = values.dtype.kind == "U"
    dtype, fill = (str, "") if text else (values.dtype, values.dtype.type(0))
    encoding = _encoding("string-array" if text else "array")
    _create(group, name, values.shape, (dim,), (NAMES_CHUNK,), dtype, fill, encoding, overwrite)
    if values.size:
        _complete(array_of(group, name, str(group.store)))[:] = values


def _create(
    group: zarr.Group,
    name: str,
    shape: tuple[int, ...],
    dims: tuple[str, ...],
    chunks: tuple[int, ...],
    dtype: Any,
    fill: Any,
    attributes: dict[str, Any],
    overwrite: bool = False,
) -> None:
    compressed = [BloscCodec(cname="lz4", shuffle="shuffle")] if shape else []  # see reader.read_text
    group.create_array(
        name,
        shape=shape,
        chunks=chunks,
        dtype=dtype,
        fill_value=fill,
        compressors=(*compressed, Crc32cCodec()),
        dimension_names=dims,
        attributes=attributes,
        overwrite=overwrite,
    )


def _complete(array: zarr.Array) -> zarr.Array:
    """The array, set to write chunks that equal the fill value too."""
    return array.with_config({"write_empty_chunks": True})
