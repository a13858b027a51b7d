"""How is a study on disk opened as a lazy cells dataset? Whole, or some samples of it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import dask.array as da
import numpy as np
import xarray as xr
from dask.base import tokenize

from scaleshift.blocks.labels import CODE, encode
from scaleshift.blocks.treatment import TREATMENTS
from scaleshift.cells.manifest import (
    LABEL_CODES,
    SAMPLE_CODES,
    Manifest,
    array_of,
    locate,
    open_study,
    refuse_unfinished,
    scaling_arrays,
    typed,
    warn_unfinished,
)
from scaleshift.cells.reader import BlockReader, CodeReader, IntensityReader, OpenedRows, RowRanges
from scaleshift.cells.schema import (
    FEATURE,
    LABEL,
    MARKER,
    RESERVED,
    SAMPLE,
    UNLABELLED,
    X,
    cells_dataset,
)
from scaleshift.cells.selection import select_samples
from scaleshift.errors import DataError


def open_cells(
    path: str | os.PathLike[str],
    samples: Iterable[Any] | str | None = None,
    labels: Iterable[Any] | None = None,
    markers: Iterable[str] | str | None = None,
) -> xr.Dataset:
    """Open a study; nothing but its names is read until the cells are used.

    Parameters
    ----------
    path : str or path-like
        Folder or URL of the store.
    samples : iterable of sample names, or str, optional
        Open only these samples, in the store's order; or those of a condition on what is known of them, as
        the command line takes it: ``"gated == true and day in (0, 7)"``. Default: all.
    labels : iterable of labels, optional
        Know only these labels, in the store's order, or none: cells with another one count as
        unlabelled. Default: all.
    markers : iterable of str or "all", optional
        Only these columns of X, in the order given. Default: those that the study says are features, all
        where it says nothing; time, scatter and the like stand in a study too, and "all" shows them.

    Returns
    -------
    xarray.Dataset
        `X (cell, marker)`, `sample_code (cell)`, `label_code (cell)` as Dask arrays, one block a chunk
        of the store (of which only the chosen samples' rows are kept); coordinates `marker`, `sample`
        (the chosen samples, with their metadata) and `label` (the chosen labels); on `marker` what the study
        knows of its columns. Cells that are not committed yet are not seen. `attrs["source"]` is the path,
        `attrs["parents"]` maps labels to the populations that they are part of, where that is known.
        A study whose samples were scaled has `scaling_location` and `scaling_scale (sample, marker)`.

    Raises
    ------
    SchemaError
        If there is no finished study at the path.
    DataError
        If a sample, label or marker is not in the study, or no sample fulfils the condition. Also
        when a block is computed whose chunk is missing or damaged.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from scaleshift.cells import as_cells, write_cells
    >>> with TemporaryDirectory() as folder:
    ...     write_cells(as_cells([[1.0], [2.0], [3.0]], sample=["b", "a", "b"]), f"{folder}/study.zarr")
    ...     open_cells(f"{folder}/study.zarr", samples=["b"])["X"].values.tolist()
    [[1.0], [3.0]]
    >>> with TemporaryDirectory() as folder:
    ...     cells = as_cells([[1.0], [2.0], [3.0]], sample=["b", "a", "b"])
    ...     write_cells(cells.assign_coords(day=("sample", [0, 7])), f"{folder}/study.zarr")
    ...     open_cells(f"{folder}/study.zarr", samples="day == 7")["sample"].values.tolist()
    ['b']
    """
    group, manifest = open_study(locate(path))
    refuse_unfinished(manifest)
    warn_unfinished(manifest)
    names = _meant(manifest, samples) if isinstance(samples, str) else samples
    chosen = positions(manifest, SAMPLE, manifest.samples, names)
    known = positions(manifest, LABEL, manifest.labels, labels)
    columns = _columns(manifest, markers)
    source = opened_rows(manifest, chosen)
    n, n_samples, n_labels = manifest.n_cells, len(manifest.samples), len(manifest.labels)
    dtype = array_of(group, X, manifest.path).dtype
    every = len(columns) == len(manifest.markers) and (np.diff(columns) == 1).all()
    shape = (n, len(manifest.markers))
    intensity = IntensityReader(source, X, shape, dtype, None if every else columns)
    sample_code = CodeReader(source, SAMPLE_CODES, (n,), CODE, 0, n_samples, _new_codes(chosen, n_samples))
    label_code = CodeReader(
        source, LABEL_CODES, (n,), CODE, UNLABELLED, n_labels, _new_codes(known, n_labels)
    )
    done = {name: getattr(manifest, name) for name in TREATMENTS}
    parents = {"parents": dict(manifest.parents)} if manifest.parents else {}
    cells = cells_dataset(
        lazy(intensity),
        lazy(sample_code),
        lazy(label_code),
        marker=typed(manifest.markers)[columns],
        sample=typed(manifest.samples)[chosen],
        label=typed(manifest.labels)[known],
        metadata={
            name: typed(tuple(v[i] for i in chosen))
            for name, v in manifest.metadata.items()
            if name not in RESERVED  # as earlier versions have stored them
        },
        attrs={"source": manifest.path} | {k: v for k, v in done.items() if v is not None} | parents,
    )
    of_markers = {name: (MARKER, typed(v)[columns], {"long_name": name}) for name, v in manifest.var.items()}
    cells = cells.assign_coords({name: of for name, of in of_markers.items() if name not in cells.variables})
    for name, values in scaling_arrays(group, manifest).items():
        cells[name] = ((SAMPLE, MARKER), values[np.ix_(chosen, columns)])
    return cells


def _meant(manifest: Manifest, condition: str) -> list[Any]:
    """Names of the samples that fulfil a condition on what the study knows of them."""
    if condition in map(str, manifest.samples):
        raise DataError(f"samples={condition!r} is one name: give a list, [{condition!r}]")
    return select_samples(condition, {SAMPLE: manifest.samples, **manifest.metadata})


def _columns(manifest: Manifest, wanted: Iterable[str] | str | None) -> np.ndarray:
    """Positions of the wanted columns of X, in the order in which they are wanted."""
    n = len(manifest.markers)
    if wanted is None:
        features = np.flatnonzero(np.array(manifest.var.get(FEATURE, (True,) * n), bool))
        return features if features.size else np.arange(n)
    if isinstance(wanted, str) and wanted == "all":
        return np.arange(n)
    if isinstance(wanted, str):
        raise DataError(f"markers={wanted!r} is one name: give a list, [{wanted!r}], or 'all'")
    columns = encode(list(wanted), typed(manifest.markers), f"{manifest.path}: {MARKER}")
    if columns.size == 0 or (columns < 0).any() or len(np.unique(columns)) < len(columns):
        raise DataError(f"markers={wanted!r}: give names of {manifest.path}, each once")
    return columns


def opened_rows(manifest: Manifest, chosen: np.ndarray) -> OpenedRows:
    """The rows of some samples, given by their positions."""
    starts, counts = np.array(manifest.offsets), np.array(manifest.counts)
    rows = RowRanges.of(starts[chosen], counts[chosen])
    return OpenedRows(manifest.path, manifest.study, manifest.chunk, rows)


def positions(
    manifest: Manifest, what: str, names: tuple[Any, ...], wanted: Iterable[Any] | None
) -> np.ndarray:
    """Positions of the wanted samples or labels, ascending."""
    if wanted is None:
        return np.arange(len(names))
    if isinstance(wanted, str):
        raise DataError(f"{what}s={wanted!r} is one name: give a list, [{wanted!r}]")
    codes = encode(list(wanted), typed(names), f"{manifest.path}: {what}")
    if (codes.size == 0 and what == SAMPLE) or (codes < 0).any():
        raise DataError(f"{what}s={wanted!r} names no {what} of {manifest.path}: leave it out to open all")
    return np.unique(codes)


def _new_codes(chosen: np.ndarray, n: int) -> np.ndarray | None:
    """New code of every old one where not all are chosen; the last entry serves the old code -1."""
    if len(chosen) == n:
        return None
    codes = np.full(n + 1, UNLABELLED, CODE)
    codes[chosen] = np.arange(len(chosen))
    return codes


def lazy(reader: BlockReader) -> da.Array:
    """Dask array of one block a chunk, whose read fuses with what comes after: no slicing in the graph."""
    source = reader.source
    chosen = getattr(reader, "selected", None), getattr(reader, "columns", None)
    token = tokenize(
        source.location, source.study, source.chunk, source.rows.stored, source.rows.shown, *chosen
    )
    return da.from_array(
        reader,
        chunks=(source.rows.chunks(source.chunk), *reader.shape[1:]),
        name=f"cells-{reader.name.replace('/', '-')}-{token}",
        asarray=False,
        inline_array=True,
        meta=np.empty((0,) * reader.ndim, reader.dtype),
    )
