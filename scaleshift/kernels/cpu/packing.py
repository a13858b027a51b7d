"""How do rows of one group come to stand side by side? A tile at a time, by a counting sort.

A kernel that meets the rows of a group one after the other keeps their sums in registers. Groups are padded
to whole eights, since kernels take eight rows at a time.
"""

from collections.abc import Iterator

import numpy as np

from scaleshift.kernels.cpu.jit import strict_jit

ROWS = 8  # that kernels take at a time
_TILE_BYTES = 1 << 19  # of packed rows: half of a core's second cache, a quarter of larger ones
_ROWS_A_GROUP = 16  # at least in a tile, on average: with fewer, padding costs more than sorting all rows


def tiles(
    rows: np.ndarray, codes: np.ndarray, n_groups: int, depth: int
) -> Iterator[tuple[np.ndarray, int, int]]:
    """Cut rows into tiles; where groups are many, rows are sorted by group first, so that a tile meets few.

    Parameters
    ----------
    rows : (m,) integer numpy.ndarray
        The rows that count.
    codes : (n,) numpy.ndarray of int32
        Code of each row's group.
    n_groups : int
    depth : int
        Columns of a packed row.

    Yields
    ------
    (rows, low, high)
        Rows of a tile, whose codes lie in low ... high - 1.

    Examples
    --------
    >>> [(rows.tolist(), low, high) for rows, low, high in tiles(np.arange(2), np.array([1, 0]), 2, 5)]
    [([0, 1], 0, 2)]
    """
    size = tile_rows(depth)
    many = n_groups * _ROWS_A_GROUP > size
    if many:
        # the narrow dtype makes the stable sort a radix sort
        rows = rows[np.argsort(codes[rows].astype(np.min_scalar_type(n_groups)), kind="stable")]
    for start in range(0, len(rows), size):
        tile = rows[start : start + size]
        yield (tile, int(codes[tile[0]]), int(codes[tile[-1]]) + 1) if many else (tile, 0, n_groups)


def tile_rows(depth: int) -> int:
    """Return how many rows of so many columns a tile takes."""
    return max(64, _TILE_BYTES // (4 * depth))


def make_tile(n_rows: int, n_groups: int, depth: int) -> np.ndarray:
    """Return zeros for the largest tile of a block, padding included; `pack` keeps columns beyond x at 0.

    Examples
    --------
    >>> make_tile(10, 2, 5).shape
    (24, 5)
    """
    size = tile_rows(depth)
    return np.zeros((min(n_rows, size) + (ROWS - 1) * min(n_groups, size), depth), dtype=np.float32)


@strict_jit
def pack(
    x: np.ndarray,
    rows: np.ndarray,
    codes: np.ndarray,
    low: int,
    high: int,
    centre: np.ndarray,
    scale: float,
    tile: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Write (x - centre) scale of the given rows to the tile in the order of their groups, the rest zeros.

    The only code of a kernel that depends on the dtype and the memory order of x. Indices are unsigned: numba
    would look whether others are negative.

    Parameters
    ----------
    x : (n, d) numpy.ndarray of float32 or float64
    rows : (m,) numpy.ndarray of int64
        The rows to take; none of their codes is negative.
    codes : (n,) numpy.ndarray of int32
    low, high : int
        Codes of the rows lie in low ... high - 1.
    centre : (d,) numpy.ndarray
        Of the dtype of x.
    scale : float
        A number of the dtype of x.
    tile : (m', d') numpy.ndarray of float32

    Returns
    -------
    starts, stops : numpy.ndarray of int64
        Where each group starts, with the end of the last one; where it stops short of its padding.
    """
    starts = np.zeros(high - low + 1, dtype=np.int64)
    stops = np.zeros(high - low, dtype=np.int64)
    for i in range(np.uintp(rows.size)):
        stops[np.uintp(codes[np.uintp(rows[i])] - low)] += 1
    for group in range(stops.size):
        start, size = starts[group], stops[group]
        starts[group + 1] = start + (size + ROWS - 1) // ROWS * ROWS
        tile[start + size : starts[group + 1]] = 0
        stops[group] = start
    for i in range(np.uintp(rows.size)):
        row = np.uintp(rows[i])
        place = np.uintp(codes[row] - low)
        to = np.uintp(stops[place])
        stops[place] += 1
        for k in range(np.uintp(x.shape[1])):
            tile[to, k] = np.float32((x[row, k] - centre[k]) * scale)
    return starts, stops
