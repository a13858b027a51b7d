"""Made-up studies on disk, written in pieces by a process of their own, whose memory does not count."""

from __future__ import annotations

import functools
import multiprocessing
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np

import scaleshift as ss

CHUNK = 131_072  # the default of a store
CLASSES = 10


def make_block(block: np.ndarray, block_info: dict | None = None) -> np.ndarray:
    """Standard normal cells: what they hold does not change the cost."""
    rng = np.random.default_rng(block_info[None]["chunk-location"][0])
    return rng.standard_normal(block_info[None]["chunk-shape"], np.float32)


def make_labels(block: np.ndarray, classes: int, block_info: dict | None = None) -> np.ndarray:
    """Labels in no order, as many of each class; every chunk begins with all of them."""
    rng = np.random.default_rng((1, block_info[None]["chunk-location"][0]))
    return rng.permutation(np.arange(block.size, dtype=np.int32) % classes)


def make_study(path: Path, cells: int, markers: int, classes: int = CLASSES, chunk: int = CHUNK) -> None:
    """A study of one sample with labels."""
    zeros = da.zeros((cells, markers), chunks=(chunk, markers), dtype=np.float32)
    x = zeros.map_blocks(make_block, dtype=np.float32, meta=np.empty((0, 0), np.float32))
    labels = da.zeros(cells, chunks=chunk, dtype=np.int32).map_blocks(
        functools.partial(make_labels, classes=classes), dtype=np.int32, meta=np.empty(0, np.int32)
    )
    ss.write_cells(ss.as_cells(x, label=labels), path)


def in_child(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function gives in a fresh process, which has a memory of its own."""
    pool = multiprocessing.get_context("spawn").Pool(1)
    try:
        return pool.apply(function, arguments)
    finally:
        pool.close()
        pool.join()


def peak_memory_gb() -> float:
    """The largest resident memory of this process until now."""
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale / 1e9
