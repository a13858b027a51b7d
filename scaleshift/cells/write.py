"""How do cells get into a study on disk? Writing a new one, appending samples; committed at the end."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any
from uuid import uuid4

import numpy as np
import xarray as xr
import zarr

from scaleshift import full_disk
from scaleshift.blocks.labels import CODE
from scaleshift.blocks.treatment import TREATMENTS
from scaleshift.cells.layout import (
    commit,
    create_study,
    resize_study,
    whole_or_gone,
    write_rows,
    write_scaling,
)
from scaleshift.cells.manifest import (
    LABEL_CODES,
    SAMPLE_CODES,
    Manifest,
    array_of,
    locate,
    open_study,
    plain,
    refuse_unfinished,
)
from scaleshift.cells.reader import read_rows, store_at
from scaleshift.cells.regroup import Stretch, regroup
from scaleshift.cells.schema import (
    LABEL,
    MARKER,
    SAMPLE,
    SCALING,
    UNLABELLED,
    X,
    check_cells,
    check_code_range,
)
from scaleshift.errors import DataError
from scaleshift.spelling import suggestion

CHUNK_CELLS = 131_072
CHUNK_BYTES = 2**28  # a chunk is read and written as a whole, also where it is not full
BATCH_BYTES = 2**27
BATCH_CELLS = 2_000_000  # keeps the row numbers of one batch under 10 MB, over which Dask warns


def write_cells(cells: xr.Dataset, path: str | os.PathLike[str], chunk_cells: int = CHUNK_CELLS) -> None:
    """Write a cells dataset as a new study, its cells sorted by sample.

    The store is Zarr v3 and can be read by AnnData. A lazy X is written batch by batch, never held
    whole. The samples are committed at the end: a store whose writing was killed is refused by
    `open_cells`.

    Parameters
    ----------
    cells : xarray.Dataset
        As `as_cells` or `open_cells` make it; coordinates on `sample` are stored as its metadata.
    path : str or path-like
        Folder or URL of the new store; nothing may be there.
    chunk_cells : int, default 131072
        Cells in one chunk; fewer where it would have more than 256 MB.

    Raises
    ------
    SchemaError
        If `cells` does not have the cells layout.
    DataError
        If the path is taken, or a value cannot be stored.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from scaleshift.cells import as_cells, open_cells
    >>> cells = as_cells([[1.0], [2.0]], sample=["s2", "s1"]).assign_coords(day=("sample", [4, 7]))
    >>> with TemporaryDirectory() as folder:
    ...     write_cells(cells, f"{folder}/study.zarr")
    ...     open_cells(f"{folder}/study.zarr")["day"].values.tolist()
    [4, 7]
    """
    check_cells(cells)
    source = regroup(cells)
    planned = Manifest(
        path=locate(path),
        study=uuid4().hex,
        samples=plain(cells[SAMPLE].values, SAMPLE),
        counts=tuple(source.counts.tolist()),
        markers=tuple(cells[MARKER].values.tolist()),
        labels=plain(cells[LABEL].values, LABEL),
        chunk=cells_of_chunk(chunk_cells, cells.sizes[MARKER]),
        metadata=_metadata(cells),
        transform=cells.attrs.get("transform"),
        compensation=cells.attrs.get("compensation"),
        scaling=cells.attrs.get("scaling"),
        var=_var(cells),
        parents=cells.attrs.get("parents", {}),
    )
    with full_disk.told(planned.path, "then write it again"):
        group = create_study(planned)
        with whole_or_gone(planned.path):
            if planned.scaling is not None:
                write_scaling(group, 0, *(cells[name].values for name in SCALING))
            for first, stop in _batches(planned, 0):
                write_rows(group, first, *_stored(source.stretch(first, stop), cells))
            commit(group, planned)


def cells_of_chunk(wanted: Any, n_markers: int) -> int:
    """Cells in a chunk: as many as wanted, fewer where it would have more than CHUNK_BYTES."""
    if not isinstance(wanted, int | np.integer) or not 1 <= wanted <= 2**31:
        raise DataError(f"chunk_cells is {wanted}, expected an integer from 1 to 2**31")
    return min(int(wanted), max(1, CHUNK_BYTES // (4 * n_markers)))


def append_cells(cells: xr.Dataset, path: str | os.PathLike[str]) -> None:
    """Append new samples to a study.

    Markers are matched by name, in any order. New samples and labels are added behind the known ones.
    Only the last partial chunk is written again. The samples count once all of them are in: an append
    that fails or is killed leaves the study as it was, and can be repeated. One writer at a time.

    Parameters
    ----------
    cells : xarray.Dataset
        As `as_cells` or `open_cells` make it, with samples that the study does not have. Known sample
        names without cells (unused categories) are passed over.
    path : str or path-like
        Folder or URL of a finished study.

    Raises
    ------
    SchemaError
        If there is no finished study at the path, or `cells` does not have the cells layout.
    DataError
        If a sample is in the study already, markers differ, names are of another type, or the two were
        transformed or compensated differently.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from scaleshift.cells import as_cells, open_cells
    >>> with TemporaryDirectory() as folder:
    ...     write_cells(as_cells([[1.0, 2.0]], sample=["s1"], marker=["a", "b"]), f"{folder}/study.zarr")
    ...     append_cells(as_cells([[4.0, 3.0]], sample=["s2"], marker=["b", "a"]), f"{folder}/study.zarr")
    ...     open_cells(f"{folder}/study.zarr")["X"].values.tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    check_cells(cells)
    stored, old = open_study(locate(path))
    refuse_unfinished(old)
    if old.awaited:
        raise DataError(f"{old.path} is an import that is not finished: go on with it first (resume=True)")
    _check_treatment(old, cells)
    cells = _with_markers_of(old, cells)
    source = regroup(cells)
    kept = _new_samples(old, cells, source.counts)
    wanted = _extended(old, cells, source.counts, kept)
    sample_codes = np.full(cells.sizes[SAMPLE], UNLABELLED, CODE)
    sample_codes[kept] = len(old.samples) + np.arange(len(kept))
    label_codes = [*(wanted.labels.index(name) for name in cells[LABEL].values.tolist()), UNLABELLED]
    renumbered = {"sample_code": sample_codes, "label_code": np.array(label_codes, CODE)}

    start, tail = old.n_cells, _last_partial_chunk(stored, old)
    store = store_at(old.path, read_only=False)
    group = zarr.open_group(store, mode="r+", zarr_format=3, use_consolidated=False)
    with (
        full_disk.told(old.path, "then append again: until then the study is as it was"),
        _or_as_it_was(group, old),
    ):
        resize_study(group, wanted, old)
        if wanted.scaling is not None:
            write_scaling(group, len(old.samples), *(cells[name].values[kept] for name in SCALING))
        for first, stop in _batches(wanted, start):
            new = _stored(source.stretch(first - start, stop - start), cells)
            new = new._replace(**{name: codes[getattr(new, name)] for name, codes in renumbered.items()})
            if first == start:
                first -= len(tail.intensity)
                new = Stretch(*(np.concatenate(parts) for parts in zip(tail, new, strict=True)))
            write_rows(group, first, *new)
            del new  # before the next batch comes
        commit(group, wanted)


@contextlib.contextmanager
def _or_as_it_was(group: zarr.Group, old: Manifest) -> Iterator[None]:
    """Give the arrays of a study their old size where what is done within fails."""
    try:
        yield
    except BaseException:
        full_disk.settle()
        with contextlib.suppress(OSError):  # no room for that either: then only AnnData sees more rows
            resize_study(group, old, old)  # AnnData reads the arrays whole
        raise


def _batches(planned: Manifest, start: int) -> Iterator[tuple[int, int]]:
    """Row ranges from `start` to the end, each of as many whole chunks as fit a batch."""
    chunk, end = planned.chunk, planned.n_cells
    fitting = min(BATCH_CELLS, BATCH_BYTES // (4 * len(planned.markers)))
    step = max(1, fitting // chunk) * chunk
    edges = [start, *range((start // step + 1) * step, end, step), end]
    return ((first, stop) for first, stop in pairwise(edges) if first < stop)


def _stored(stretch: Stretch, cells: xr.Dataset) -> Stretch:
    """Cells as they are stored, in float32; a value that only float64 holds is refused."""
    check_code_range(stretch.label_code, UNLABELLED, cells.sizes[LABEL], "cells: label_code")
    values = stretch.intensity
    with np.errstate(over="ignore"):
        stored = values.astype(np.float32, copy=False)
    lost = np.isinf(stored) & np.isfinite(values) if values.dtype == np.float64 else np.array(False)
    if lost.any():
        row, column = np.argwhere(lost)[0]
        name, value = cells[MARKER].values.tolist()[column], values[row, column]
        raise DataError(f"marker {name!r} holds {value}, too large for float32: transform or scale it first")
    return stretch._replace(intensity=stored)


def _last_partial_chunk(group: zarr.Group, old: Manifest) -> Stretch:
    """Committed rows of the chunk that the append will write again; empty if the last chunk is full."""
    n = old.n_cells
    first = n // old.chunk * old.chunk
    arrays = [array_of(group, name, old.path) for name in (X, SAMPLE_CODES, LABEL_CODES)]
    return Stretch(*(read_rows(array, old.path, old.chunk, first, n) for array in arrays))


def _with_markers_of(old: Manifest, cells: xr.Dataset) -> xr.Dataset:
    """The cells with the study's markers in the study's order."""
    given = cells[MARKER].values.tolist()
    for name in old.markers:
        if name not in given:
            raise DataError(
                f"cells: marker {name!r} of {old.path} is missing{suggestion(name, given)}; append cells "
                "with all its markers"
            )
    extra = [name for name in given if name not in old.markers]
    if extra:
        raise DataError(
            f"cells: marker {extra[0]!r} is not in {old.path}{suggestion(extra[0], old.markers)}; "
            "drop it with cells.drop_sel(marker=...)"
        )
    return cells if tuple(given) == old.markers else cells.sel({MARKER: list(old.markers)})


def _check_treatment(old: Manifest, cells: xr.Dataset) -> None:
    """Cells that are known to be transformed otherwise do not belong to the study."""
    for what in TREATMENTS:
        given, stored = cells.attrs.get(what), getattr(old, what)
        if (given is None or stored is None) and what != "scaling":
            continue  # not known
        if json.dumps(given, sort_keys=True, default=str) != json.dumps(stored, sort_keys=True):
            raise DataError(
                f"{what} of the cells is {given!r}, of {old.path} {stored!r}: bring both to the same"
            )


def _new_samples(old: Manifest, cells: xr.Dataset, counts: np.ndarray) -> np.ndarray:
    """Positions of the samples to append."""
    names = plain(cells[SAMPLE].values, SAMPLE)
    _check_type(old.path, SAMPLE, old.samples, names)
    known = set(old.samples)
    for name, count in zip(names, counts, strict=True):
        if name in known and count:
            raise DataError(f"sample {name!r} is in {old.path} already: rename it, or leave it out")
    return np.array([i for i, name in enumerate(names) if name not in known], dtype=np.intp)


def _extended(old: Manifest, cells: xr.Dataset, counts: np.ndarray, kept: np.ndarray) -> Manifest:
    """The manifest with the kept samples of the cells, and their labels, behind the old ones."""
    names, labels = plain(cells[SAMPLE].values, SAMPLE), plain(cells[LABEL].values, LABEL)
    _check_type(old.path, LABEL, old.labels, labels)
    known = set(old.labels)
    new = _metadata(cells)
    metadata = {}
    for column in dict.fromkeys((*old.metadata, *new)):
        before = old.metadata.get(column, (None,) * len(old.samples))
        metadata[column] = before + tuple(new[column][i] if column in new else None for i in kept)
    return replace(
        old,
        samples=old.samples + tuple(names[i] for i in kept),
        counts=old.counts + tuple(counts[kept].tolist()),
        labels=old.labels + tuple(name for name in labels if name not in known),
        metadata=metadata,
        checksums=old.checksums + ("",) * len(kept) if old.checksums else (),
    )


def _check_type(location: str, what: str, old: tuple[Any, ...], new: tuple[Any, ...]) -> None:
    """Names of one study are of one type, or 1, True and "1" would meet."""
    if old and new and type(old[0]) is not type(new[0]):
        raise DataError(
            f"{what}s of the cells are {type(new[0]).__name__}, of {location} {type(old[0]).__name__}: "
            f"convert the {what}s of the cells"
        )


def _var(cells: xr.Dataset) -> dict[str, tuple[Any, ...]]:
    """The coordinates on `marker`."""
    columns = {str(k): v for k, v in cells.coords.items() if v.dims == (MARKER,) and k != MARKER}
    return {name: plain(column.values, f"column {name!r} of the markers") for name, column in columns.items()}


def _metadata(cells: xr.Dataset) -> dict[str, tuple[Any, ...]]:
    """The coordinates on `sample`."""
    columns = {str(k): v for k, v in cells.coords.items() if v.dims == (SAMPLE,) and k != SAMPLE}
    return {name: plain(column.values, f"sample metadata {name!r}") for name, column in columns.items()}
