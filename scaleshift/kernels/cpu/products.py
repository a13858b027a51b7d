"""How do rows meet frequencies or landmarks? In dot products of eight rows at a time, kept in registers.

Weights lie column by column in rows of `work_rows`, a register of them beside the next; rows of data lie one
after the other. Both are padded to whole blocks of columns with zeros. Eight products are chains enough to
keep the FMA units busy, and weights that are loaded once serve them all.
"""

from typing import Any

import numpy as np

from scaleshift.kernels.cpu.jit import jit, part_of_caller
from scaleshift.kernels.cpu.lanes import WIDTH, Lanes, load, spread_from
from scaleshift.kernels.cpu.work import work_rows

COLUMNS = 5  # of a block: with eight products they fill thirteen registers
Five = Any  # lanes, as numba understands a tuple
Four = Any


def column_lines(weights: np.ndarray) -> np.ndarray:
    """Return weights (m, d) transposed, in float32, zero-padded to whole blocks and registers.

    One block at least, also where there are no columns.

    Examples
    --------
    >>> column_lines(np.ones((3, 2))).shape
    (5, 128)
    """
    width, depth = weights.shape
    lines = work_rows(max(-(-depth // COLUMNS), 1) * COLUMNS, width)
    lines[:depth, :width] = weights.T
    return lines


def padded(width: int) -> int:
    """Return how many weights whole registers hold."""
    return -(-width // WIDTH) * WIDTH


# What follows becomes part of loops: tuples are registers.


@jit
def eight_products(
    start: Any, rows: np.ndarray, i: int, depth: int, weights: np.ndarray, f: int, stride: int
) -> tuple[Four, Four]:
    """Add to eight numbers the dot products of rows with a register of weights.

    Parameters
    ----------
    start : tuple of two tuples of four lanes
        What the products are added to.
    rows : numpy.ndarray of float32
        Rows of `depth` numbers, one after the other; the first of the eight begins at `i`.
    i, depth : int
    weights : numpy.ndarray of float32
        The register begins at `f`, and that of the next column `stride` numbers further.
    f, stride : int
    """
    part_of_caller()
    w = _block(weights, f, stride)  # apart: where there is one block only, it stays in registers
    upper = _add_four(start[0], w, rows, i, depth)
    lower = _add_four(start[1], w, rows, i + 4 * depth, depth)
    for k in range(COLUMNS, depth, COLUMNS):
        w = _block(weights, k * stride + f, stride)
        upper = _add_four(upper, w, rows, i + k, depth)
        lower = _add_four(lower, w, rows, i + k + 4 * depth, depth)
    return upper, lower


@jit
def _block(weights: np.ndarray, f: int, stride: int) -> Five:
    """Return five columns of a register of weights."""
    return (
        load(weights, f),
        load(weights, f + stride),
        load(weights, f + 2 * stride),
        load(weights, f + 3 * stride),
        load(weights, f + 4 * stride),
    )


@jit
def _add_four(found: Four, w: Five, rows: np.ndarray, i: int, depth: int) -> Four:
    """Add the products of five columns of four rows."""
    part_of_caller()
    return (
        _add_product(found[0], w, rows, i),
        _add_product(found[1], w, rows, i + depth),
        _add_product(found[2], w, rows, i + 2 * depth),
        _add_product(found[3], w, rows, i + 3 * depth),
    )


@jit
def _add_product(found: Lanes, w: Five, rows: np.ndarray, i: int) -> Lanes:
    """Add the product of five columns of a row, each number of which is spread over a register."""
    found += w[0] * spread_from(rows, i)
    found += w[1] * spread_from(rows, i + 1)
    found += w[2] * spread_from(rows, i + 2)
    found += w[3] * spread_from(rows, i + 3)
    return found + w[4] * spread_from(rows, i + 4)
