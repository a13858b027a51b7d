"""How do rows meet frequencies or landmarks? In dot products, a block of columns at a time, in registers.

Weights lie column by column in rows of `work_rows`, a register of them beside the next; rows of data lie one
after the other. Both are padded to whole blocks with zeros.
"""

from typing import Any

import numpy as np

from scaleshift.kernels.cpu.jit import jit
from scaleshift.kernels.cpu.lanes import WIDTH, Lanes, load, spread_from, store
from scaleshift.kernels.cpu.work import work_rows

COLUMNS = 5  # of a block: of two registers of weights they fill ten registers
PAIR = 2 * WIDTH  # two registers of weights, which share each load of a number
Five = Any  # lanes, as numba understands a tuple


def column_lines(weights: np.ndarray) -> np.ndarray:
    """Return weights (m, d) transposed, in float32, zero-padded to whole blocks and pairs of registers.

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
    """Return how many weights whole pairs of registers hold."""
    return -(-width // PAIR) * PAIR


@jit
def add_products(
    rows: np.ndarray, depth: int, k: int, weights: np.ndarray, stride: int, found: np.ndarray
) -> None:
    """Add the products of a block of columns, from column k on, with a pair of registers of weights.

    The first block sets them. Each number of a row that is loaded serves twice, or loads would be what takes
    the time.

    Parameters
    ----------
    rows : (n * depth,) numpy.ndarray of float32
        Rows, one after the other.
    depth : int
        Columns of a row.
    k : int
    weights : numpy.ndarray of float32
        From column k and the first weight of the pair on; the next column is `stride` numbers further.
    stride : int
    found : (n * PAIR,) numpy.ndarray of float32
        Dot products, row by row.
    """
    v, w = block(weights, 0, stride), block(weights, WIDTH, stride)
    at = 0
    for i in range(k, rows.size, depth):
        x = columns(rows, i)
        if k == 0:
            store(found, at, product(v, x))
            store(found, at + WIDTH, product(w, x))
        else:
            store(found, at, add_product(load(found, at), v, x))
            store(found, at + WIDTH, add_product(load(found, at + WIDTH), w, x))
        at += PAIR


# What follows becomes part of loops: tuples are registers.


@jit
def block(weights: np.ndarray, f: int, stride: int) -> Five:
    """Return five columns of a register of weights."""
    return (
        load(weights, f),
        load(weights, f + stride),
        load(weights, f + 2 * stride),
        load(weights, f + 3 * stride),
        load(weights, f + 4 * stride),
    )


@jit
def columns(rows: np.ndarray, i: int) -> Five:
    """Return five numbers of a row, each in a register of its own."""
    return (
        spread_from(rows, i),
        spread_from(rows, i + 1),
        spread_from(rows, i + 2),
        spread_from(rows, i + 3),
        spread_from(rows, i + 4),
    )


@jit
def product(w: Five, x: Five) -> Lanes:
    """Return the dot product of five columns."""
    return w[0] * x[0] + w[1] * x[1] + w[2] * x[2] + w[3] * x[3] + w[4] * x[4]


@jit
def add_product(found: Lanes, w: Five, x: Five) -> Lanes:
    """Add the dot product of five columns."""
    return found + w[0] * x[0] + w[1] * x[1] + w[2] * x[2] + w[3] * x[3] + w[4] * x[4]
