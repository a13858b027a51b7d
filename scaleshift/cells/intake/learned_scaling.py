"""By what is each sample of a planned study scaled? Learned from its files, before they are written."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import dask
import dask.array as da
import numpy as np

from scaleshift.blocks.labels import CODE
from scaleshift.cells.intake.chunks import Chunk, read_columns, sample_codes
from scaleshift.cells.schema import UNLABELLED, cells_dataset, text_index
from scaleshift.cells.treatment.location_scale import Method, sample_location_scale


def learn_scaling(
    chunks: Sequence[Chunk], samples: Sequence[str], features: np.ndarray, method: Method
) -> tuple[np.ndarray, np.ndarray]:
    """Location and scale of each sample, the same as `scale` finds in the study once it is written.

    Parameters
    ----------
    chunks : sequence of Chunk
        All of them, not scaled.
    samples : sequence of str
    features : numpy.ndarray of bool, shape (n_markers,)
        Columns that are scaled; the others stay as they are.
    method : {"robust", "z"}

    Returns
    -------
    location, scale : numpy.ndarray of float64, shape (n_samples, n_markers)
    """
    location, scale = np.zeros((len(samples), len(features))), np.ones((len(samples), len(features)))
    columns = np.flatnonzero(features)
    if chunks:
        # Blocks as lazy as those of a stored study: the pass reads each file once, on the workers.
        intensity = [_block(read_columns, chunk, len(columns), np.float32, columns) for chunk in chunks]
        codes = [_block(sample_codes, chunk, None, CODE) for chunk in chunks]
        n_cells = sum(chunk.n_rows for chunk in chunks)
        cells = cells_dataset(
            da.concatenate(intensity),
            da.concatenate(codes),
            da.full(n_cells, UNLABELLED, CODE, chunks=(tuple(chunk.n_rows for chunk in chunks),)),
            marker=text_index(columns),
            sample=text_index(samples),
            label=text_index([]),
        )
        location[:, columns], scale[:, columns] = sample_location_scale(cells, method)
    return location, scale


def _block(
    function: Callable[..., np.ndarray], chunk: Chunk, width: int | None, dtype: Any, *arguments: Any
) -> da.Array:
    shape = (chunk.n_rows,) if width is None else (chunk.n_rows, width)
    lazy = dask.delayed(functools.partial(function, chunk, *arguments), pure=False)()
    return da.from_delayed(lazy, shape, dtype=dtype)
