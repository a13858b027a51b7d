"""How is the Gaussian kernel with landmarks summed by class? In registers, at the speed of the FMA units.

An array of kernel values is never written. In powers of two k(x, z) = 2^t, and about a common centre, in
units that absorb the bandwidth, t = -|x|^2 + 2 x z - |z|^2: a product of rows with landmarks, and two
additions. The power is a polynomial. Rows of a group stand side by side, so that sums leave the registers
once in a hundred rows.
"""

import numpy as np

from scaleshift.kernels import reference
from scaleshift.kernels.cpu.exp2 import add_product_in_any_order
from scaleshift.kernels.cpu.jit import jit, own_frame, strict_jit
from scaleshift.kernels.cpu.lanes import (
    WIDTH,
    Lanes,
    add_to,
    exp2,
    load,
    spread,
    spread_from,
    store,
    total,
    totals,
)
from scaleshift.kernels.cpu.packing import ROWS, make_tile, pack, tiles
from scaleshift.kernels.cpu.products import Four, column_lines, eight_products, padded
from scaleshift.kernels.cpu.work import work_rows
from scaleshift.kernels.reference import check_columns, host_codes
from scaleshift.kernels.scaled import FAR, SIGHT, UNSEEN, Scaled, scaled

_SUM_ROWS = 128  # float32 sums of more rows lose digits where all rows look alike; whole registers
_MINUS_LOG2E = np.float32(-np.log2(np.e))
_ZERO = np.float32(0)


def landmark_sums(
    x: np.ndarray, groups: np.ndarray, n_groups: int, landmarks: np.ndarray, bandwidth: float
) -> np.ndarray:
    """Sum the Gaussian kernel between rows and landmarks, and a residual feature, by group of rows.

    The same as `reference.landmark_sums` in float32, about the mean of the landmarks: an offset of the data
    costs no accuracy, and the sums of parts add up to those of the whole. The relative error of the sums is
    about 1e-7 where landmarks lie within a few bandwidths of their mean, and grows with the square of that
    distance, to 3e-5 at 19 bandwidths. Farther out, rows that a landmark may see are left to the reference,
    60 times slower. Rows that no landmark sees, at any distance, have kernel values of 0 and a residual of 1.

    Parameters
    ----------
    x : (n, d) numpy.ndarray
        Rows, in any memory order. float32 and float64 are read in place, other dtypes are converted. Those
        that count must be free of NaN.
    groups : (n,) integer array
        Code of each row's group, in 0 ... n_groups - 1; rows with negative codes are skipped and may be NaN.
    n_groups : int
        Number of groups.
    landmarks : (m, d) array
        The points z_k to compare with, one at least.
    bandwidth : float
        Standard deviation of the kernel, in units of `x`.

    Returns
    -------
    (n_groups, m + 1) numpy.ndarray of float64
        Entry (g, k): sum over the rows x of group g of k(x, z_k) = exp(-|x - z_k|^2 / (2 bandwidth^2)).
        Entry (g, m): sum over those rows of exp(-sum_k k(x, z_k)). Groups without rows give 0.

    Raises
    ------
    ValueError
        If a code is not below `n_groups`, there is not one code a row, or the columns do not match.

    Examples
    --------
    >>> x, z = np.array([[0.0], [1.0], [np.nan]]), np.array([[0.0]])
    >>> landmark_sums(x, np.array([0, 0, -1]), 1, z, bandwidth=1.0).round(4)
    array([[1.6065, 0.9131]])
    """
    check_columns(x, landmarks)
    codes = host_codes(groups, n_groups, x.shape[0])
    if x.dtype not in (np.float32, np.float64):
        x = x.astype(np.float64)
    landmarks = np.asarray(landmarks, dtype=np.float64)
    plan = scaled(landmarks, bandwidth, x.dtype, padded(len(landmarks)))
    if plan.reach <= FAR:
        return _add_block(x, codes, n_groups, plan)
    between = _between(x, codes, plan.centre, plan.scale, plan.rate, plan.reach)
    sums = _add_block(x, np.where(between, np.int32(-1), codes), n_groups, plan)
    return sums + reference.landmark_sums(x[between], codes[between], n_groups, landmarks, bandwidth)


@strict_jit
def _between(
    x: np.ndarray, codes: np.ndarray, centre: np.ndarray, scale: float, rate: float, reach: float
) -> np.ndarray:
    """Whether a row is too far from the centre for float32, and yet not out of all landmarks' sight."""
    result = np.zeros(codes.size, dtype=np.bool_)
    for i in range(codes.size):
        if codes[i] >= 0:
            square = 0.0
            for k in range(x.shape[1]):
                square += ((np.float64(x[i, k]) - centre[k]) * scale) ** 2
            result[i] = FAR**2 < rate * square < (reach + SIGHT) ** 2
    return result


def _add_block(x: np.ndarray, codes: np.ndarray, n_groups: int, plan: Scaled) -> np.ndarray:
    """Return the sums (n_groups, m + 1) of a block, which is packed tile by tile."""
    weights, biases = column_lines(plan.weights), work_rows(1, plan.biases.size)[0, : plan.biases.size]
    biases[:] = plan.biases
    depth = len(weights)
    limit = (min(plan.reach, FAR) + SIGHT) ** 2
    rows = np.flatnonzero(codes >= 0)
    tile = make_tile(len(rows), n_groups, depth)
    shifts = np.empty(len(tile), dtype=np.float32)
    values = work_rows(_SUM_ROWS * WIDTH)[: _SUM_ROWS * WIDTH]
    sums = np.zeros((n_groups, biases.size))
    residuals = np.zeros(n_groups)
    for chosen, low, high in tiles(rows, codes, n_groups, depth):
        starts, stops = pack(x, chosen, codes, low, high, plan.centre, plan.scale, tile)
        _shift(tile, starts, stops, plan.rate, limit, shifts)
        job = tile, shifts, starts, stops, weights, biases, values
        _add_groups(*job, sums[low:high], residuals[low:high])
    return np.column_stack([sums[:, : plan.corrections.size] * plan.corrections, residuals])


@strict_jit
def _shift(
    tile: np.ndarray, starts: np.ndarray, stops: np.ndarray, rate: float, limit: float, shifts: np.ndarray
) -> None:
    """Set `shifts` to t at the centre of packed rows; no landmark sees padding and rows out of sight."""
    for group in range(stops.size):
        for i in range(starts[group], stops[group]):
            square = _ZERO
            for value in tile[i]:
                square = add_product_in_any_order(square, value, value)
            exponent = rate * np.float64(square)
            shifts[i] = -exponent
            if not exponent <= limit:  # or it is NaN
                tile[i] = 0
                shifts[i] = UNSEEN
        shifts[stops[group] : starts[group + 1]] = UNSEEN


@jit
def _add_groups(
    tile: np.ndarray,
    shifts: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
    weights: np.ndarray,
    biases: np.ndarray,
    values: np.ndarray,
    sums: np.ndarray,
    residuals: np.ndarray,
) -> None:
    """Add packed groups to their sums (groups, width) and residuals (groups,), a hundred rows at a time."""
    depth, lines, columns = tile.shape[1], tile.ravel(), weights.ravel()
    for group in range(stops.size):
        for start in range(starts[group], starts[group + 1], _SUM_ROWS):
            stop = min(start + _SUM_ROWS, starts[group + 1])
            rows = lines[start * depth : stop * depth]
            job = columns, weights.shape[1], biases, values
            _add_rows(rows, depth, shifts[start:stop], *job, sums[group])
            residuals[group] += _residual(values, min(stop, stops[group]) - start)


@jit
def _add_rows(
    rows: np.ndarray,
    depth: int,
    shifts: np.ndarray,
    weights: np.ndarray,
    stride: int,
    biases: np.ndarray,
    values: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Add the kernel of some rows to `sums`, a register of landmarks at a time; `values` get each row's."""
    own_frame()
    values[:] = 0
    for f in range(0, sums.size, WIDTH):
        bias, partial = load(biases, f), spread(_ZERO)
        at = 0
        for i in range(0, rows.size, ROWS * depth):
            start = _add_shifts(bias, shifts, at), _add_shifts(bias, shifts, at + 4)
            upper, lower = eight_products(start, rows, i, depth, weights, f, stride)
            partial += _add_powers(upper, values, at * WIDTH)
            partial += _add_powers(lower, values, (at + 4) * WIDTH)
            at += ROWS
        add_to(sums, f, partial)


# What follows becomes part of the loop above: tuples are registers.


@jit
def _add_shifts(bias: Lanes, shifts: np.ndarray, i: int) -> Four:
    """Return what is added to the products of four rows."""
    return (
        bias + spread_from(shifts, i),
        bias + spread_from(shifts, i + 1),
        bias + spread_from(shifts, i + 2),
        bias + spread_from(shifts, i + 3),
    )


@jit
def _add_powers(t: Four, values: np.ndarray, at: int) -> Lanes:
    """Add 2^t of four rows to what each row has so far, and return their sum."""
    a, b, c, d = exp2(t[0]), exp2(t[1]), exp2(t[2]), exp2(t[3])
    store(values, at, load(values, at) + a)
    store(values, at + WIDTH, load(values, at + WIDTH) + b)
    store(values, at + 2 * WIDTH, load(values, at + 2 * WIDTH) + c)
    store(values, at + 3 * WIDTH, load(values, at + 3 * WIDTH) + d)
    return (a + b) + (c + d)


@jit
def _residual(values: np.ndarray, n_rows: int) -> float:
    """Return the sum of exp(-v) over rows, v the sum of what a row has; rows beyond them have v = 0."""
    result = 0.0
    for i in range(0, n_rows, WIDTH):
        result += total(exp2(spread(_MINUS_LOG2E) * totals(values, i * WIDTH)))
    return result - (-n_rows % WIDTH)
