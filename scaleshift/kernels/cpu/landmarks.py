"""How is the Gaussian kernel with landmarks summed by class? In registers, at the speed of the FMA units.

An array of kernel values is never written. In powers of two k(x, z) = 2^t, and about a common centre, in
units that absorb the bandwidth, t = -|x|^2 + 2 x z - |z|^2: a product of rows with landmarks, and two
additions. The power is a polynomial. Rows are packed by group, so that the values of four rows leave the
registers as one sum, and four rows share each load of the landmarks.
"""

from typing import Any, NamedTuple

import numpy as np

from scaleshift.kernels import reference
from scaleshift.kernels.cpu.exp2 import add_in_any_order, exp2
from scaleshift.kernels.cpu.jit import jit, own_frame, strict_jit
from scaleshift.kernels.cpu.work import work_rows
from scaleshift.kernels.reference import check_columns, host_codes

_WIDTH = 128  # landmarks in a tile: a constant, so that loops over them are whole vectors without a remainder
_DEPTH = (
    5  # columns at a time: with 20 numbers of four rows, 5 of a landmark and 4 exponents registers are full
)
_FLUSH_ROWS = 512  # float32 sums of more rows lose digits where all rows look alike
_TILE_BYTES = 1 << 19  # of packed rows: half of a core's second cache
_ROWS_A_GROUP = 16  # at least in a tile, on average: with fewer, padding to four rows costs more than sorting

# in units of sqrt(-t), that is, of 1.2 bandwidths
_SIGHT = 11.25  # of a landmark: beyond, kernel values are below 2^-126, the smallest that float32 holds
_FAR = 16.0  # from the centre: beyond, t has an error of 1e-7 |x|^2, which is 3e-5, and more

_UNSEEN = np.float32(-1e6)  # in place of -|x|^2 or -|z|^2: kernel values are 0
_MINUS_LOG2E = np.float32(-np.log2(np.e))
_Tuple = Any  # of float32, as numba understands it


def landmark_sums(
    x: np.ndarray, groups: np.ndarray, n_groups: int, landmarks: np.ndarray, bandwidth: float
) -> np.ndarray:
    """Sum the Gaussian kernel between rows and landmarks, and a residual feature, by group of rows.

    The same as `reference.landmark_sums` in float32, about the mean of the landmarks: an offset of the data
    costs no accuracy, and the sums of parts add up to those of the whole. The relative error of the sums is
    about 1e-7 where landmarks lie within a few bandwidths of their mean and grows with the square of that
    distance, to 1e-5 at 19 bandwidths. Farther out, rows that a landmark may see are left to the reference, 30
    times slower. Rows that no landmark sees, at any distance, have kernel values of 0 and a residual of 1.

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
    plan = _prepare(np.asarray(landmarks, dtype=np.float64), bandwidth, x.dtype)
    if plan.reach <= _FAR:
        return _add_block(x, codes, n_groups, plan)
    spread = _spread(x, codes, plan.centre, plan.scale, plan.rate, plan.reach)
    sums = _add_block(x, np.where(spread, np.int32(-1), codes), n_groups, plan)
    return sums + reference.landmark_sums(x[spread], codes[spread], n_groups, landmarks, bandwidth)


class _Plan(NamedTuple):
    """Landmarks as the kernel wants them: about their mean, and scaled such that t = -rate |x - z|^2."""

    n_landmarks: int
    centre: np.ndarray  # (d,) of the dtype of x
    scale: np.floating  # a power of 2, which costs no digits and keeps squares in float32's range
    rate: float  # in [1/2, 2]
    reach: float  # distance of the farthest landmark from the centre in units of sqrt(-t)
    weights: np.ndarray  # (tiles, depth * _WIDTH) float32: 2 rate z, column by column
    biases: np.ndarray  # (tiles, _WIDTH) float32: -rate |z|^2
    corrections: np.ndarray  # (tiles * _WIDTH,): factors that undo the rounding of the biases


def _prepare(landmarks: np.ndarray, bandwidth: float, dtype: np.dtype) -> _Plan:
    """Centre and scale landmarks, and cut them into tiles, padded with landmarks that see nothing."""
    m, d = landmarks.shape
    rate = np.log2(np.e) / (2 * bandwidth**2)
    scale = 2.0 ** np.rint(np.log2(rate) / 2)
    rate /= scale**2
    centre = landmarks.mean(axis=0).astype(dtype)
    z = np.clip((landmarks - centre) * scale, -1e100, 1e100)  # so that squares are finite
    squares = rate * (z * z).sum(axis=1)
    tiles, depth = -(-m // _WIDTH), -(-d // _DEPTH) * _DEPTH
    seeing = np.flatnonzero(squares <= (_FAR + _SIGHT) ** 2)
    weights = np.zeros((tiles * _WIDTH, depth), dtype=np.float32)
    weights[seeing, :d] = 2 * rate * z[seeing]
    # |z|^2 is that of the rounded weights: a landmark displaced by 1e-7 |z| does less harm than an error of
    # 1e-7 |z|^2 in every t
    exact = np.full(tiles * _WIDTH, np.float64(_UNSEEN))
    exact[seeing] = -(weights[seeing].astype(np.float64) ** 2).sum(axis=1) / (4 * rate)
    columns = work_rows(tiles * depth, _WIDTH)
    columns[:] = weights.reshape(tiles, _WIDTH, depth).transpose(0, 2, 1).reshape(-1, _WIDTH)
    biases = work_rows(tiles, _WIDTH)
    biases[:] = exact.reshape(tiles, _WIDTH)
    return _Plan(
        m,
        centre,
        dtype.type(scale),
        rate,
        float(squares.max() ** 0.5),
        columns.reshape(tiles, -1),
        biases,
        np.exp2(exact - biases.ravel()),
    )


@strict_jit
def _spread(
    x: np.ndarray, codes: np.ndarray, centre: np.ndarray, scale: float, rate: float, reach: float
) -> np.ndarray:
    """Whether a row is too far from the centre for float32, and yet not out of all landmarks' sight."""
    result = np.zeros(codes.size, dtype=np.bool_)
    for i in range(codes.size):
        if codes[i] >= 0:
            square = 0.0
            for k in range(x.shape[1]):
                square += ((np.float64(x[i, k]) - centre[k]) * scale) ** 2
            result[i] = _FAR**2 < rate * square < (reach + _SIGHT) ** 2
    return result


def _add_block(x: np.ndarray, codes: np.ndarray, n_groups: int, plan: _Plan) -> np.ndarray:
    """Return the sums (n_groups, m + 1) of a block, which is packed tile by tile."""
    tiles, depth = len(plan.weights), plan.weights.shape[1] // _WIDTH
    size = max(64, _TILE_BYTES // (4 * depth))
    order = None
    if n_groups * _ROWS_A_GROUP > size:
        order = np.flatnonzero(codes >= 0)
        # the narrow dtype makes the stable sort a radix sort
        order = order[np.argsort(codes[order].astype(np.min_scalar_type(n_groups)), kind="stable")]
    rows = np.zeros((min(len(x), size) + 3 * min(n_groups, size), depth), dtype=np.float32)
    shifts = np.zeros(len(rows), dtype=np.float32)
    work = work_rows(6, _WIDTH)
    limit = (min(plan.reach, _FAR) + _SIGHT) ** 2
    sums = np.zeros((n_groups, tiles * _WIDTH + 1))
    for start in range(0, len(x) if order is None else len(order), size):
        if order is None:
            tile, labels, low, high = x[start : start + size], codes[start : start + size], 0, n_groups
        else:
            chosen = order[start : start + size]
            tile, labels = x[chosen], codes[chosen]
            low, high = labels[0], labels[-1] + 1
        starts = _pack(tile, labels, low, high, plan.centre, plan.scale, plan.rate, limit, rows, shifts)
        _add_groups(rows, shifts, *starts, plan.weights, plan.biases, work, sums[low:high])
    sums[:, :-1] *= plan.corrections
    return np.delete(sums, np.s_[plan.n_landmarks : -1], axis=1)


@strict_jit
def _pack(
    x: np.ndarray,
    labels: np.ndarray,
    low: int,
    high: int,
    centre: np.ndarray,
    scale: float,
    rate: float,
    limit: float,
    rows: np.ndarray,
    shifts: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Copy rows, centred and scaled, in the order of their groups low ... high - 1: a counting sort.

    Groups are padded to whole fours. `shifts` gets t at the centre. Returned is where each group starts, with
    the end of the last, and where it stops short of its padding. Indices are unsigned: numba would look
    whether others are negative.
    """
    starts = np.zeros(high - low + 1, dtype=np.int64)
    stops = np.zeros(high - low, dtype=np.int64)
    for label in labels:
        if label >= 0:
            stops[np.uintp(label - low)] += 1
    for group in range(stops.size):
        start, size = starts[group], stops[group]
        starts[group + 1] = start + (size + 3) // 4 * 4
        shifts[start + size : starts[group + 1]] = _UNSEEN
        stops[group] = start
    for i in range(np.uintp(labels.size)):
        if labels[i] < 0:
            continue
        to = np.uintp(stops[np.uintp(labels[i] - low)])
        stops[np.uintp(labels[i] - low)] += 1
        square = np.float32(0)
        for k in range(np.uintp(x.shape[1])):
            value = np.float32((x[i, k] - centre[k]) * scale)
            rows[to, k] = value
            square = add_in_any_order(square, value * value)
        exponent = rate * np.float64(square)
        shifts[to] = -exponent
        if not exponent <= limit:  # or it is NaN
            rows[to] = 0
            shifts[to] = _UNSEEN
    return starts, stops


@jit
def _add_groups(
    rows: np.ndarray,
    shifts: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
    weights: np.ndarray,
    biases: np.ndarray,
    work: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Add packed groups to their sums (groups, tiles * _WIDTH + 1), a few hundred rows at a time."""
    exponents, partial = work[:4].ravel(), work[4]
    totals = np.empty(_FLUSH_ROWS, dtype=np.float32)
    for group in range(stops.size):
        for start in range(starts[group], starts[group + 1], _FLUSH_ROWS):
            stop = min(start + _FLUSH_ROWS, starts[group + 1])
            totals[:] = 0
            for tile in range(weights.shape[0]):
                _add_rows(
                    rows[start:stop],
                    shifts[start:stop],
                    weights[tile],
                    biases[tile],
                    exponents,
                    partial,
                    totals,
                )
                for f in range(_WIDTH):
                    sums[group, tile * _WIDTH + f] += partial[f]
                    partial[f] = 0
            residual = 0.0
            for total in totals[: min(stop, stops[group]) - start]:
                residual = add_in_any_order(residual, np.float64(exp2(total * _MINUS_LOG2E)))
            sums[group, -1] += residual


@jit
def _add_rows(
    rows: np.ndarray,
    shifts: np.ndarray,
    weights: np.ndarray,
    biases: np.ndarray,
    exponents: np.ndarray,
    partial: np.ndarray,
    totals: np.ndarray,
) -> None:
    """Add the kernel with a tile of landmarks to `partial`, by landmark, and to `totals`, by row.

    Four rows, a to d, and five columns at a time. `exponents` (4 * _WIDTH,) holds what earlier columns gave.
    """
    own_frame()
    last = rows.shape[1] - _DEPTH
    for i in range(0, rows.shape[0], 4):
        shift = shifts[i], shifts[i + 1], shifts[i + 2], shifts[i + 3]
        total = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
        four = _four(rows, i, 0)
        if last == 0:
            for f in range(_WIDTH):
                t = _add_products(_add(biases[f], shift), _columns(weights, f), four)
                total = _add_powers(t, f, partial, total)
        else:
            for f in range(_WIDTH):
                _put(exponents, f, _add_products(_add(biases[f], shift), _columns(weights, f), four))
            for k in range(_DEPTH, last, _DEPTH):
                four, block = _four(rows, i, k), weights[k * _WIDTH :]
                for f in range(_WIDTH):
                    _put(exponents, f, _add_products(_get(exponents, f), _columns(block, f), four))
            four, block = _four(rows, i, last), weights[last * _WIDTH :]
            for f in range(_WIDTH):
                t = _add_products(_get(exponents, f), _columns(block, f), four)
                total = _add_powers(t, f, partial, total)
        for p in range(4):
            totals[i + p] += total[p]


# What follows becomes part of the loops above: tuples are registers.


@jit
def _four(rows: np.ndarray, i: int, k: int) -> _Tuple:
    """Return columns k ... k + 4 of rows i ... i + 3: four tuples of five numbers."""
    return _five(rows[i], k), _five(rows[i + 1], k), _five(rows[i + 2], k), _five(rows[i + 3], k)


@jit
def _five(row: np.ndarray, k: int) -> _Tuple:
    return row[k], row[k + 1], row[k + 2], row[k + 3], row[k + 4]


@jit
def _columns(weights: np.ndarray, f: int) -> _Tuple:
    """Return the first five columns of landmark f."""
    w = _get(weights, f)
    return w[0], w[1], w[2], w[3], weights[4 * _WIDTH + f]


@jit
def _get(lines: np.ndarray, f: int) -> _Tuple:
    """Return place f of each of four lines of numbers."""
    return lines[f], lines[_WIDTH + f], lines[2 * _WIDTH + f], lines[3 * _WIDTH + f]


@jit
def _put(lines: np.ndarray, f: int, t: _Tuple) -> None:
    """Set place f of each of four lines of numbers."""
    lines[f], lines[_WIDTH + f], lines[2 * _WIDTH + f], lines[3 * _WIDTH + f] = t


@jit
def _add(number: np.float32, t: _Tuple) -> _Tuple:
    return number + t[0], number + t[1], number + t[2], number + t[3]


@jit
def _add_products(t: _Tuple, w: _Tuple, four: _Tuple) -> _Tuple:
    """Add the products of five columns of one landmark with those of four rows to the exponents."""
    a, b, c, d = four
    return (
        _add_product(t[0], w, a),
        _add_product(t[1], w, b),
        _add_product(t[2], w, c),
        _add_product(t[3], w, d),
    )


@jit
def _add_product(t: np.float32, w: _Tuple, x: _Tuple) -> np.float32:
    return t + w[0] * x[0] + w[1] * x[1] + w[2] * x[2] + w[3] * x[3] + w[4] * x[4]


@jit
def _add_powers(t: _Tuple, f: int, partial: np.ndarray, total: _Tuple) -> _Tuple:
    """Add 2^t of four rows to the sum of landmark f, and to the totals of the rows, which are returned."""
    a, b, c, d = exp2(t[0]), exp2(t[1]), exp2(t[2]), exp2(t[3])
    partial[f] += (a + b) + (c + d)
    return (
        add_in_any_order(total[0], a),
        add_in_any_order(total[1], b),
        add_in_any_order(total[2], c),
        add_in_any_order(total[3], d),
    )
