"""How are projected rows counted on many grids at once? In integers.

A tile of rows is projected by packed FMAs, on four directions together, in units of the grid's bins. A row's
bin and its place within the bin are the high and the low bits of one integer, and both are added by one
addition to one word of a histogram that stays in the first cache: counts in its high bits, places in its low
ones. Sums of integers do not depend on the order of rows.
"""

from typing import Any

import numpy as np

from scaleshift.kernels.cpu.jit import jit, strict_jit, wide_frame
from scaleshift.kernels.cpu.transpose import SIDE, transpose_rows
from scaleshift.kernels.cpu.work import work_rows
from scaleshift.kernels.reference import host_codes

_PARTS = 4  # at most of a tile: the places of its rows fit a core's first cache
_TILE_BYTES = 1 << 20  # of a tile's columns: half of a core's second cache
_SPAN = 512  # rows in a part: four columns and four projections of them fit the first cache
_FOUR = 4  # columns, and directions, of a block: each number that is read serves four times
_BITS = 16  # of a place within a bin: finer than float32 tells bins apart
_COUNT = np.int64(1) << 40  # above the places of a tile: 2^11 rows of 2^16
_PLACE = np.int64(2**_BITS - 1)
_Tuple = Any  # of float32, as numba understands it
_LARGEST = 1e18  # of a coordinate: products with directions stay finite in float32


def sliced_sums(
    x: np.ndarray,
    groups: np.ndarray,
    n_groups: int,
    directions: np.ndarray,
    centre: np.ndarray,
    ends: np.ndarray,
    n_bins: int,
) -> np.ndarray:
    """Sum masses of projected rows on grids, by group of rows.

    The same as `energy.sliced_sums`, with positions in float32, to 2^-16 of a bin.

    Parameters
    ----------
    x : (n, d) numpy.ndarray
        Rows, in any memory order; those that count must be free of NaN.
    groups : (n,) integer array
        Code of each row's group, in 0 ... n_groups - 1; rows with negative codes are skipped and may be NaN.
    n_groups : int
        Number of groups.
    directions : (T, d) array
        Unit vectors w.
    centre : (d,) array
        Projections are w.(x - centre).
    ends : (T, 4) array
        e_0, e_1, e_{B+1} and e_{B+2} along each direction, ascending.
    n_bins : int
        B.

    Returns
    -------
    (n_groups, T (B + 3)) numpy.ndarray of float64
        Masses by group, direction and node; those of a direction add up to the rows of the group.

    Raises
    ------
    ValueError
        If a code is not below `n_groups`, or there is not one code a row.

    Examples
    --------
    >>> x, ends = np.array([[0.25], [7.0]]), np.array([[-2.0, 0.0, 1.0, 3.0]])
    >>> sliced_sums(x, np.array([0, 0]), 1, np.array([[1.0]]), np.array([0.0]), ends, n_bins=1).round(4)
    array([[0.  , 0.75, 0.25, 1.  ]])
    """
    codes = host_codes(groups, n_groups, x.shape[0])
    if x.dtype not in (np.float32, np.float64):
        x = x.astype(np.float64)
    e0, e1, e2, e3 = np.asarray(ends, dtype=np.float64).T
    step = (e2 - e1) / n_bins
    n_directions, d = np.shape(directions)
    padding = -n_directions % _FOUR, -d % _FOUR
    weights = np.pad((np.asarray(directions) / step[:, None]).astype(np.float32), [(0, p) for p in padding])
    shape = np.stack([1 - e1 / step, step / (e1 - e0), step / (e3 - e2)], axis=1).astype(np.float32)
    shape = np.pad(shape, [(0, padding[0]), (0, 0)])
    sums = np.zeros((n_groups, n_directions, n_bins + 3))
    order = np.flatnonzero(codes >= 0)
    # the narrow dtype makes the stable sort a radix sort
    order = order[np.argsort(codes[order].astype(np.min_scalar_type(n_groups)), kind="stable")]
    parts = int(np.clip(_TILE_BYTES // (4 * _SPAN * max(d, 1)), 1, _PARTS))
    tile, projected = work_rows(parts, -(-d // SIDE) * SIDE, _SPAN), work_rows(parts, _FOUR, _SPAN)
    near, square = np.zeros((_SPAN, tile.shape[1]), np.float32), np.empty((SIDE, SIDE), np.float32)
    middle = np.asarray(centre, dtype=x.dtype)
    for start in range(0, len(order), parts * _SPAN):
        rows = order[start : start + parts * _SPAN]
        labels = codes[rows]
        cuts = np.flatnonzero(np.diff(labels, prepend=-1, append=n_groups))
        _fill(np.require(x[rows], requirements=["C", "A"]), middle, near, square, tile)
        _add_tile(tile, weights, shape, np.float32(n_bins), cuts, labels[cuts[:-1]], projected, sums)
    return sums.reshape(n_groups, n_directions * (n_bins + 3))


@strict_jit
def _fill(x: np.ndarray, centre: np.ndarray, near: np.ndarray, square: np.ndarray, tile: np.ndarray) -> None:
    """Copy rows about the centre, column by column of the rows of a part."""
    for part in range(tile.shape[0]):
        rows = x[part * _SPAN : (part + 1) * _SPAN]
        for i in range(rows.shape[0]):
            for k in range(rows.shape[1]):
                near[i, k] = min(max(rows[i, k] - centre[k], -_LARGEST), _LARGEST)
        transpose_rows(near[: rows.shape[0]], tile[part], square)


@jit
def _add_tile(
    tile: np.ndarray,
    weights: np.ndarray,
    shape: np.ndarray,
    n_bins: np.float32,
    cuts: np.ndarray,
    labels: np.ndarray,
    projected: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Add the masses of a tile whose groups begin at `cuts`; all of it is projected, also what is unused."""
    places = np.empty((tile.shape[0], _SPAN), np.int32)
    cells = np.zeros(sums.shape[2], np.int64)
    for t in range(sums.shape[1]):
        turn = t % _FOUR
        if turn == 0:
            _project(tile, weights[t : t + _FOUR], shape[t : t + _FOUR], projected)
        for part in range(tile.shape[0]):
            _place(projected[part, np.uintp(turn)], shape[t], n_bins, places[part])
        for g in range(labels.size):
            for place in places.ravel()[cuts[g] : cuts[g + 1]]:
                wide = np.int64(place)
                cells[np.uintp(wide >> _BITS)] += _COUNT + (wide & _PLACE)
            line = sums[labels[g], t]
            for b in range(cells.size - 1):
                share = np.float64(cells[b] & (_COUNT - 1)) / 2**_BITS
                line[b] += np.float64(cells[b] >> 40) - share
                line[b + 1] += share
                cells[b] = 0


@jit
def _project(tile: np.ndarray, weights: np.ndarray, shape: np.ndarray, projected: np.ndarray) -> None:
    """Set the places of the rows of a tile along four directions, in bins."""
    wide_frame()
    for part in range(tile.shape[0]):
        columns, lines = tile[part], projected[part]
        for t in range(_FOUR):
            for i in range(_SPAN):
                lines[t, i] = shape[t, 0]
        for k in range(0, weights.shape[1], _FOUR):
            a, b = _weights(weights[0], k), _weights(weights[1], k)
            c, d = _weights(weights[2], k), _weights(weights[3], k)
            for i in range(_SPAN):
                x = columns[k, i], columns[k + 1, i], columns[k + 2, i], columns[k + 3, i]
                lines[0, i] = _add_products(lines[0, i], a, x)
                lines[1, i] = _add_products(lines[1, i], b, x)
                lines[2, i] = _add_products(lines[2, i], c, x)
                lines[3, i] = _add_products(lines[3, i], d, x)


@jit
def _weights(line: np.ndarray, k: int) -> _Tuple:
    return line[k], line[k + 1], line[k + 2], line[k + 3]


@jit
def _add_products(p: np.float32, w: _Tuple, x: _Tuple) -> np.float32:
    return p + w[0] * x[0] + w[1] * x[1] + w[2] * x[2] + w[3] * x[3]


@jit
def _place(projected: np.ndarray, shape: np.ndarray, n_bins: np.float32, places: np.ndarray) -> None:
    """Turn places in bins of the inner grid into those in units of 2^-16, of all bins."""
    wide_frame()
    one, top, below, above = np.float32(1), n_bins + np.float32(1), shape[1], shape[2]
    scale, last = np.float32(2**_BITS), np.int32((n_bins + np.float32(2)) * 2**_BITS - 1)
    for i in range(_SPAN):
        p = projected[i]
        inner = min(max(p, one), top)  # and an outer place, of which one is 0
        p = inner + max((p - inner) * (below if p < one else above), -one)
        places[i] = min(max(np.int32(min(p * scale, np.float32(last))), np.int32(0)), last)
