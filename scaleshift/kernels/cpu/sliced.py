"""How are projected rows counted on many grids at once? One direction at a time, in integers.

A tile of rows is projected on a direction by packed FMAs, in units of the grid's bins. A row's bin and its
place within the bin are the high and the low bits of one integer, and both are added by one addition to one
word of a histogram that stays in the first cache: counts in its high bits, places in its low ones. Sums of
integers do not depend on the order of rows.
"""

import numpy as np

from scaleshift.kernels.cpu.jit import jit, strict_jit
from scaleshift.kernels.reference import host_codes

_ROWS = 2048  # in a tile: transposed they fit a core's second cache, and their places the first
_BITS = 16  # of a place within a bin: finer than float32 tells bins apart
_COUNT = np.int64(1) << 40  # above the places of a tile: 2^11 rows of 2^16
_PLACE = np.int64(2**_BITS - 1)
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
    weights = (np.asarray(directions) / step[:, None]).astype(np.float32)
    shape = np.stack([1 - e1 / step, step / (e1 - e0), step / (e3 - e2)], axis=1).astype(np.float32)
    sums = np.zeros((n_groups, len(weights), n_bins + 3))
    order = np.flatnonzero(codes >= 0)
    # the narrow dtype makes the stable sort a radix sort
    order = order[np.argsort(codes[order].astype(np.min_scalar_type(n_groups)), kind="stable")]
    tile = np.zeros((x.shape[1], _ROWS), np.float32)
    middle = np.asarray(centre, dtype=x.dtype)
    for start in range(0, len(order), _ROWS):
        rows = order[start : start + _ROWS]
        labels = codes[rows]
        cuts = np.flatnonzero(np.diff(labels, prepend=-1, append=n_groups))
        _transpose(np.require(x[rows], requirements=["C", "A"]), middle, tile)
        _add_tile(tile, weights, shape, np.float32(n_bins), cuts, labels[cuts[:-1]], sums)
    return sums.reshape(n_groups, len(weights) * (n_bins + 3))


@strict_jit
def _transpose(x: np.ndarray, centre: np.ndarray, tile: np.ndarray) -> None:
    """Copy rows about the centre, column by column."""
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            tile[k, i] = min(max(x[i, k] - centre[k], -_LARGEST), _LARGEST)


@jit
def _add_tile(
    tile: np.ndarray,
    weights: np.ndarray,
    shape: np.ndarray,
    n_bins: np.float32,
    cuts: np.ndarray,
    labels: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Add the masses of a tile whose groups begin at `cuts`; all of it is projected, also what is unused."""
    one, top = np.float32(1), n_bins + np.float32(1)
    scale, last = np.float32(2**_BITS), np.int32((sums.shape[2] - 1) * 2**_BITS - 1)
    projected = np.empty(_ROWS, np.float32)
    places = np.empty(_ROWS, np.int32)
    cells = np.zeros(sums.shape[2], np.int64)
    for t in range(weights.shape[0]):
        projected[:] = shape[t, 0]
        for k in range(tile.shape[0]):
            w, column = weights[t, k], tile[k]
            for i in range(_ROWS):
                projected[i] += w * column[i]
        below, above = shape[t, 1], shape[t, 2]
        for i in range(_ROWS):
            p = projected[i]
            inner = min(max(p, one), top)  # and an outer place, of which one is 0
            p = inner + max((p - inner) * (below if p < one else above), -one)
            places[i] = min(max(np.int32(min(p * scale, np.float32(last))), np.int32(0)), last)
        for g in range(labels.size):
            for i in range(cuts[g], cuts[g + 1]):
                place = np.int64(places[i])
                cells[np.uintp(place >> _BITS)] += _COUNT + (place & _PLACE)
            line = sums[labels[g], t]
            for b in range(cells.size - 1):
                share = np.float64(cells[b] & (_COUNT - 1)) / 2**_BITS
                line[b] += np.float64(cells[b] >> 40) - share
                line[b + 1] += share
                cells[b] = 0
