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
from scaleshift.cells.manifest import (
    LABEL_CODES,
    SAMPLE_CODES,
    Manifest,
    array_of,
    locate,
    open_study,
    refuse_unfinished,
    typed,
)
from scaleshift.cells.reader import BlockReader, CodeReader, Rows, Source
from scaleshift.cells.schema import UNLABELLED, X, cells_dataset
from scaleshift.errors import DataError


def open_cells(path: str | os.PathLike[str], samples: Iterable[Any] | None = None) -> xr.Dataset:
    """Open a study; nothing but its names is read until the cells are used.

    Parameters
    ----------
    path : str or path-like
        Folder or URL of the store.
    samples : iterable of sample names, optional
        Open only these samples, in the store's order. Default: all.

    Returns
    -------
    xarray.Dataset
        `X (cell, marker)`, `sample_code (cell)`, `label_code (cell)` as Dask arrays, one block a chunk
        of the store (of which only the chosen samples' rows are kept); coordinates `marker`, `sample`
        (the chosen samples, with their metadata) and `label` (all of the study's). Cells that are not
        committed yet are not seen. `attrs["source"]` is the path.

    Raises
    ------
    SchemaError
        If there is no finished study at the path.
    DataError
        If a sample is not in the study; also when a block is computed whose chunk is missing or damaged.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from scaleshift.cells import as_cells, write_cells
    >>> with TemporaryDirectory() as folder:
    ...     write_cells(as_cells([[1.0], [2.0], [3.0]], sample=["b", "a", "b"]), f"{folder}/study.zarr")
    ...     open_cells(f"{folder}/study.zarr", samples=["b"])["X"].values.tolist()
    [[1.0], [3.0]]
    """
    group, manifest = open_study(locate(path))
    refuse_unfinished(manifest)
    chosen = _positions(manifest, samples)
    starts, counts = np.array(manifest.offsets), np.array(manifest.counts)
    rows = Rows.of(starts[chosen], counts[chosen])
    source = Source(manifest.path, manifest.study, manifest.chunk, rows)
    selected = None
    if samples is not None:
        selected = np.full(len(manifest.samples), -1, CODE)
        selected[chosen] = np.arange(len(chosen))

    n, n_samples, n_labels = manifest.n_cells, len(manifest.samples), len(manifest.labels)
    dtype = array_of(group, X, manifest.path).dtype
    intensity = BlockReader(source, X, (n, len(manifest.markers)), dtype)
    sample_code = CodeReader(source, SAMPLE_CODES, (n,), CODE, 0, n_samples, selected)
    label_code = CodeReader(source, LABEL_CODES, (n,), CODE, UNLABELLED, n_labels)
    done = {"transform": manifest.transform, "compensation": manifest.compensation}
    return cells_dataset(
        _lazy(intensity),
        _lazy(sample_code),
        _lazy(label_code),
        marker=typed(manifest.markers),
        sample=typed(manifest.samples)[chosen],
        label=typed(manifest.labels),
        metadata={name: typed(tuple(v[i] for i in chosen)) for name, v in manifest.metadata.items()},
        attrs={"source": manifest.path} | {k: v for k, v in done.items() if v is not None},
    )


def _positions(manifest: Manifest, samples: Iterable[Any] | None) -> np.ndarray:
    """Positions of the wanted samples, ascending."""
    if samples is None:
        return np.arange(len(manifest.samples))
    if isinstance(samples, str):
        raise DataError(f"samples={samples!r} is one name: give a list, [{samples!r}]")
    codes = encode(list(samples), typed(manifest.samples), f"{manifest.path}: sample")
    if codes.size == 0 or codes.min() < 0:
        raise DataError(f"samples={samples!r} names no sample of {manifest.path}: leave it out to open all")
    return np.unique(codes)


def _lazy(reader: BlockReader) -> da.Array:
    """Dask array of one block a chunk, whose read fuses with what comes after: no slicing in the graph."""
    source = reader.source
    token = tokenize(source.location, source.study, source.chunk, source.rows.stored, source.rows.shown)
    return da.from_array(
        reader,
        chunks=(source.rows.chunks(source.chunk), *reader.shape[1:]),
        name=f"cells-{reader.name.replace('/', '-')}-{token}",
        asarray=False,
        inline_array=True,
        meta=np.empty((0,) * reader.ndim, reader.dtype),
    )
