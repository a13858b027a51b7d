"""In what order do cells go to disk? Sample after sample, else as they came; any stretch of that order.

A lazy X is never held whole: from the number of cells that each block has of each sample follows which
blocks a stretch needs, and where their rows go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import dask
import dask.array as da
import numpy as np
import xarray as xr

from scaleshift.blocks import computing
from scaleshift.blocks.rows import aligned, known_chunks
from scaleshift.cells.schema import LABEL, LABEL_CODE, SAMPLE, SAMPLE_CODE, X, check_code_range
from scaleshift.kernels.reference import to_numpy


class Stretch(NamedTuple):
    """Consecutive rows of the regrouped cells, on the host."""

    intensity: np.ndarray  # (n, n_markers)
    sample_code: np.ndarray  # (n,)
    label_code: np.ndarray  # (n,)


class Regrouped(Protocol):
    """Cells sorted by sample code; `counts` is the number of cells of each sample."""

    counts: np.ndarray

    def stretch(self, first: int, stop: int) -> Stretch:
        """Rows [first, stop) of the regrouped cells."""


def regroup(cells: xr.Dataset) -> Regrouped:
    """Regroup the cells of a dataset by sample, lazily where its X is lazy."""
    return LazyCells(cells) if isinstance(cells[X].data, da.Array) else CellsInMemory(cells)


class CellsInMemory:
    """Regrouped cells of a numpy or CuPy array."""

    def __init__(self, cells: xr.Dataset) -> None:
        self._intensity = cells[X].data
        self._sample, self._label = cells[SAMPLE_CODE].to_numpy(), cells[LABEL_CODE].to_numpy()
        self.counts = _count(self._sample, cells.sizes[SAMPLE])
        in_order = bool((self._sample[1:] >= self._sample[:-1]).all())
        self._order = None if in_order else np.argsort(self._sample, kind="stable")

    def stretch(self, first: int, stop: int) -> Stretch:
        """Rows [first, stop) of the regrouped cells."""
        rows = slice(first, stop) if self._order is None else self._order[first:stop]
        return Stretch(_take(self._intensity, rows), self._sample[rows], self._label[rows])


class LazyCells:
    """Regrouped cells of a Dask array."""

    def __init__(self, cells: xr.Dataset) -> None:
        lazy = known_chunks(cells[X].data)
        self._intensity = lazy.to_delayed().ravel().tolist()
        self._sample = aligned(cells[SAMPLE_CODE].data, lazy, SAMPLE).to_delayed().tolist()
        self._label = aligned(cells[LABEL_CODE].data, lazy, LABEL).to_delayed().tolist()
        self._shape_dtype = (lazy.shape[1], lazy.dtype)
        counted = _each(_count, self._sample, [cells.sizes[SAMPLE]] * len(self._sample))
        self._block_counts = np.array(counted)  # (n_blocks, n_samples)
        self.counts = self._block_counts.sum(axis=0)
        # Row at which the cells of each block and sample start: sample by sample, in it block by block.
        by_sample = self._block_counts.T
        self._starts = (np.cumsum(by_sample).reshape(by_sample.shape) - by_sample).T

    def stretch(self, first: int, stop: int) -> Stretch:
        """Rows [first, stop) of the regrouped cells."""
        ends = self._starts + self._block_counts
        overlap = (self._starts < stop) & (ends > first) & (self._block_counts > 0)
        used = np.flatnonzero(overlap.any(axis=1)).tolist()
        samples = _each(np.asarray, [self._sample[i] for i in used])
        picks = [self._pick(i, codes, first, stop) for i, codes in zip(used, samples, strict=True)]
        rows_of = [rows for rows, _ in picks]
        intensities = _each(_take, [self._intensity[i] for i in used], rows_of)
        labels = _each(_take, [self._label[i] for i in used], rows_of)
        width, dtype = self._shape_dtype
        out = Stretch(
            np.empty((stop - first, width), dtype),
            np.empty(stop - first, samples[0].dtype),
            np.empty(stop - first, samples[0].dtype),
        )
        intensities.reverse()
        for (rows, places), codes, label in zip(picks, samples, labels, strict=True):
            out.intensity[places] = intensities.pop()  # freed at once: together they are as large as `out`
            out.sample_code[places] = codes[rows]
            out.label_code[places] = label
        return out

    def _pick(self, block: int, codes: np.ndarray, first: int, stop: int) -> tuple[Any, Any]:
        """Rows of a block that belong to [first, stop), and their places in it."""
        order = np.argsort(codes, kind="stable").astype(np.int32)
        grouped, counts = codes[order], self._block_counts[block]
        rank = np.arange(len(codes)) - (np.cumsum(counts) - counts)[grouped]
        places = self._starts[block][grouped] + rank
        inside = (places >= first) & (places < stop)
        return _slice_if_one(order[inside]), _slice_if_one(places[inside] - first)


def _slice_if_one(rows: np.ndarray) -> Any:
    """Row numbers as a slice where they are one: small in a task, and no copy."""
    if (np.diff(rows) == 1).all():
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows


def _count(codes: np.ndarray, n_samples: int) -> np.ndarray:
    check_code_range(codes, 0, n_samples, f"cells: {SAMPLE_CODE}")
    return np.bincount(codes, minlength=n_samples)


def _each(function: Callable[..., Any], blocks: list[Any], *arguments: list[Any]) -> list[Any]:
    """The function of each block, in one compute."""
    lazy = dask.delayed(function)
    return list(computing.compute(*[lazy(*each) for each in zip(blocks, *arguments, strict=True)]))


def _take(block: Any, rows: Any) -> np.ndarray:
    """Rows of a block, on the host."""
    return to_numpy(block[rows])
