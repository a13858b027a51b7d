"""How are Fourier features summed by class? In registers, at the speed of the FMA units.

cos and sin of every (row, frequency) pair go straight into sums that stay in registers: an array of features
is never written. Four ideas make it fast. Frequencies are kept in turns, so that range reduction is one
rounding. Polynomials give s = sin and c = cos of HALF the angle, and the sums of s^2 and of s c are all that
is needed, without quadrants: cos = 1 - 2 s^2, sin = 2 s c. Rows of a group stand side by side, so that sums
leave the registers once in a hundred rows.
"""

import numpy as np

from scaleshift.kernels import reference
from scaleshift.kernels.cpu.jit import jit, own_frame, strict_jit
from scaleshift.kernels.cpu.lanes import WIDTH, Lanes, add_to, fraction, spread
from scaleshift.kernels.cpu.packing import ROWS, make_tile, pack, tiles
from scaleshift.kernels.cpu.products import Four, column_lines, eight_products, padded
from scaleshift.kernels.reference import host_codes

_CENTRE_ROWS = 100
_SUM_ROWS = 128  # float32 sums of more rows lose digits
_FAR = 1024.0  # turns: beyond, float32 angles lose digits, and from 2^22 on they are no angles any more
_LEAST = _FAR / 2.0**127  # turns, so that numbers that float32 does not hold are far whatever the frequencies
_STEEP = 32.0  # medians of the frequencies: those of laws with heavy tails are far beyond the others

_f32 = np.float32
_ZERO, _TWO = _f32(0), _f32(2)
# sin(pi r) / r and cos(pi r) as polynomials of u = r^2, fitted for float32 on r in [-1/2, 1/2]
_S0, _S1 = _f32(3.1415925800443367), _f32(-5.167706878901209)
_S2, _S3, _S4 = _f32(2.5500313768559257), _f32(-0.598045171528179), _f32(0.07722012375617215)
_C0, _C1 = _f32(0.9999999534689185), _f32(-4.934792858765502)
_C2, _C3, _C4 = _f32(4.058411915036538), _f32(-1.3318801635901232), _f32(0.2196967986817459)


def fourier_sums(x: np.ndarray, groups: np.ndarray, n_groups: int, frequencies: np.ndarray) -> np.ndarray:
    """Sum cosines and sines of the projected rows, by group.

    The same as `reference.fourier_sums` at the frequencies `reference.single_precision(frequencies)`, in
    float32. Rows are centred on the median of the first 100 that count before they are rounded to float32,
    and the sums are rotated back in float64: an offset of the data costs no accuracy. Rows so far away that
    their angles could exceed 1024 turns (outliers) are left to the reference, and so are the few frequencies
    that are over 32 times as large as most (of kernels that are not smooth).

    Parameters
    ----------
    x : (n, d) numpy.ndarray
        Rows, in any memory order. float32 and float64 are read in place, other dtypes are converted.
    groups : (n,) integer array
        Code of each row's group, in 0 ... n_groups - 1; rows with negative codes are skipped and may be NaN.
    n_groups : int
        Number of groups.
    frequencies : (F, d) array
        In radians a unit of `x`.

    Returns
    -------
    (n_groups, 2 F) numpy.ndarray of float64
        For every group the sum over its rows of cos(W x), then of sin(W x). Groups without rows give 0.

    Raises
    ------
    ValueError
        If a code is not below `n_groups`, there is not one code a row, or the columns do not match.

    Examples
    --------
    >>> x = np.array([[0.0], [0.5], [np.nan]])
    >>> fourier_sums(x, np.array([0, 0, -1]), 1, np.array([[np.pi]])).round(6)
    array([[1., 1.]])
    """
    n_frequencies, n_columns = np.shape(frequencies)
    if x.ndim != 2 or x.shape[1] != n_columns:
        raise ValueError(f"frequencies have {n_columns} columns, but x has the shape {x.shape}")
    codes = host_codes(groups, n_groups, x.shape[0])
    size = np.abs(np.asarray(frequencies, dtype=np.float64)).sum(axis=1)
    steep = size > _STEEP * np.median(size)
    if steep.any():
        return _apart(x, codes, n_groups, np.asarray(frequencies), steep)
    rows = np.flatnonzero(codes >= 0)
    if rows.size == 0:
        return np.zeros((n_groups, 2 * n_frequencies))
    if x.dtype not in (np.float32, np.float64):
        x = x.astype(np.float64)
    centre = np.median(x[rows[:_CENTRE_ROWS]].astype(np.float64), axis=0).astype(x.dtype)
    turns = column_lines(np.asarray(frequencies, dtype=np.float64) / (2 * np.pi))
    sums, far = _sums(x, rows, codes, n_groups, centre, turns, padded(n_frequencies))
    sums = np.ascontiguousarray(sums[:, :, :n_frequencies])
    phase = centre.astype(np.float64) @ turns[:n_columns, :n_frequencies].astype(np.float64)
    angle = 2 * np.pi * (phase - np.rint(phase))
    _rotate(sums, np.cos(angle), np.sin(angle))
    result = sums.reshape(n_groups, 2 * n_frequencies)
    if far.size:
        x, codes = x[far], codes[far]
        result += reference.fourier_sums(x, codes, n_groups, reference.single_precision(frequencies))
    return result


def _apart(
    x: np.ndarray, codes: np.ndarray, n_groups: int, frequencies: np.ndarray, steep: np.ndarray
) -> np.ndarray:
    """Sums where the steep frequencies are left to the reference."""
    sums = np.zeros((n_groups, 2, len(steep)))
    smooth = fourier_sums(x, codes, n_groups, frequencies[~steep])
    sums[:, :, ~steep] = smooth.reshape(n_groups, 2, np.count_nonzero(~steep))
    exact = reference.single_precision(frequencies[steep])
    sums[:, :, steep] = reference.fourier_sums(x, codes, n_groups, exact).reshape(n_groups, 2, len(exact))
    return sums.reshape(n_groups, 2 * len(steep))


def _sums(
    x: np.ndarray,
    rows: np.ndarray,
    codes: np.ndarray,
    n_groups: int,
    centre: np.ndarray,
    turns: np.ndarray,
    width: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return sums (groups, 2, width) of cos and sin about the centre, and the rows that are too far away."""
    depth, sizes = len(turns), np.maximum(np.abs(turns), _LEAST)
    largest = float(sizes.sum(axis=0).max())
    tile = make_tile(len(rows), n_groups, depth)
    sums, far = np.zeros((n_groups, 2, width)), [rows[:0]]
    for chosen, low, high in tiles(rows, codes, n_groups, depth):
        job = codes, low, high, centre, x.dtype.type(1), tile
        starts, stops = pack(x, chosen, *job)
        packed = tile[: starts[-1]]
        if float(max(packed.max(), -packed.min())) * largest > _FAR:  # else no row is
            beyond = _beyond(x, chosen, centre, sizes.max(axis=1), largest, _FAR)
            far.append(chosen[beyond])
            starts, stops = pack(x, chosen[~beyond], *job)
        _add_groups(tile, starts, stops, turns, sums[low:high])
    return sums, np.concatenate(far)


@strict_jit
def _beyond(
    x: np.ndarray, rows: np.ndarray, centre: np.ndarray, reach: np.ndarray, largest: float, limit: float
) -> np.ndarray:
    """Whether the angles of a row can exceed the limit.

    They cannot where the largest turns of every column do not add up to it, nor where the farthest column
    would not reach it with the frequency whose turns in all columns are the `largest`.
    """
    result = np.zeros(rows.size, dtype=np.bool_)
    for i in range(rows.size):
        angle, farthest = 0.0, 0.0
        for k in range(x.shape[1]):
            away = abs(np.float64(x[rows[i], k]) - centre[k])
            angle += away * reach[k]
            farthest = max(farthest, away)
        result[i] = min(angle, farthest * largest) > limit
    return result


@jit
def _add_groups(
    tile: np.ndarray, starts: np.ndarray, stops: np.ndarray, turns: np.ndarray, sums: np.ndarray
) -> None:
    """Add packed groups to their sums (groups, 2, width), about a hundred rows at a time."""
    depth, lines, frequencies = tile.shape[1], tile.ravel(), turns.ravel()
    for group in range(stops.size):
        for start in range(starts[group], starts[group + 1], _SUM_ROWS):
            stop = min(start + _SUM_ROWS, starts[group + 1])
            rows = lines[start * depth : stop * depth]
            n_rows = min(stop, stops[group]) - start  # without padding, which adds 0 to both sums
            _add_rows(rows, depth, n_rows, frequencies, turns.shape[1], sums[group, 0], sums[group, 1])


@jit
def _add_rows(
    rows: np.ndarray,
    depth: int,
    n_rows: int,
    turns: np.ndarray,
    stride: int,
    cos: np.ndarray,
    sin: np.ndarray,
) -> None:
    """Add cos and sin of some rows, which lie one after the other, a register of frequencies at a time."""
    own_frame()
    zero = spread(_ZERO)
    zeros = (zero, zero, zero, zero), (zero, zero, zero, zero)
    for f in range(0, cos.size, WIDTH):
        sum_ss = sum_sc = zero
        for i in range(0, rows.size, ROWS * depth):
            upper, lower = eight_products(zeros, rows, i, depth, turns, f, stride)
            sum_ss, sum_sc = _add_four(upper, sum_ss, sum_sc)
            sum_ss, sum_sc = _add_four(lower, sum_ss, sum_sc)
        # cos = 1 - 2 s^2 and sin = 2 s c
        add_to(cos, f, spread(_f32(n_rows)) - spread(_TWO) * sum_ss)
        add_to(sin, f, spread(_TWO) * sum_sc)


# What follows becomes part of the loops above: tuples are registers.


@jit
def _add_four(angles: Four, sum_ss: Lanes, sum_sc: Lanes) -> tuple[Lanes, Lanes]:
    """Add s^2 and s c of four rows, s = sin and c = cos of half their angles (in turns)."""
    s0, c0 = _half_angle(angles[0])
    s1, c1 = _half_angle(angles[1])
    s2, c2 = _half_angle(angles[2])
    s3, c3 = _half_angle(angles[3])
    return (
        sum_ss + s0 * s0 + s1 * s1 + s2 * s2 + s3 * s3,
        sum_sc + s0 * c0 + s1 * c1 + s2 * c2 + s3 * c3,
    )


@jit
def _half_angle(t: Lanes) -> tuple[Lanes, Lanes]:
    """Return sin(pi t) and cos(pi t), both with the sign of the turn's half that t lies in."""
    r = fraction(t)
    u = r * r
    s = (((spread(_S4) * u + spread(_S3)) * u + spread(_S2)) * u + spread(_S1)) * u + spread(_S0)
    c = (((spread(_C4) * u + spread(_C3)) * u + spread(_C2)) * u + spread(_C1)) * u + spread(_C0)
    return r * s, c


@jit
def _rotate(sums: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> None:
    """Turn every group's (sum cos, sum sin) by the angle W . centre, whose cos and sin (F,) are given."""
    for group in range(sums.shape[0]):
        for f in range(sums.shape[2]):
            about_centre = sums[group, 0, f]
            sums[group, 0, f] = about_centre * cos[f] - sums[group, 1, f] * sin[f]
            sums[group, 1, f] = about_centre * sin[f] + sums[group, 1, f] * cos[f]
