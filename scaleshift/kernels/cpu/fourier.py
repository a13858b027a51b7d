"""How are Fourier features summed by class? In registers, at the speed of the FMA units.

cos and sin of every (row, frequency) pair go straight into float32 sums that stay in cache: an array of
features is never written. Three ideas make it fast. Frequencies are kept in turns, so that range reduction is
one rounding. Polynomials give s = sin and c = cos of HALF the angle, and the sums of s^2 - 1/2 and of s c are
all that is needed, without quadrants: cos = 1 - 2 s^2, sin = 2 s c. Four rows share each load of the
frequencies.
"""

import numpy as np

from scaleshift.kernels import reference
from scaleshift.kernels.cpu.jit import jit
from scaleshift.kernels.cpu.work import work_rows
from scaleshift.kernels.reference import host_codes

_GROUPS_AT_ONCE = 1000  # float32 sums of more groups leave the cache: then rows are sorted by group
_CENTRE_ROWS = 100
_TILE_BYTES = 1 << 17  # of packed rows: an eighth of a core's second cache
_FLUSH_ROWS = 256  # float32 sums of more rows lose digits where all rows look alike (low frequencies)
_FAR = 1024.0  # turns: beyond, float32 angles lose digits, and from 2^22 on they are no angles any more
_STEEP = 32.0  # medians of the frequencies: those of laws with heavy tails are far beyond the others

_f32 = np.float32
_ROUND = _f32(12582912.0)  # 1.5 * 2^23: adding it rounds a float32 to the nearest integer, |t| < 2^22
_HALF = _f32(0.5)
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
    sums = np.zeros((n_groups, 2, n_frequencies))
    rows = np.flatnonzero(codes >= 0)
    if rows.size == 0:
        return sums.reshape(n_groups, 2 * n_frequencies)
    if x.dtype not in (np.float32, np.float64):
        x = x.astype(np.float64)
    centre = np.median(x[rows[:_CENTRE_ROWS]].astype(np.float64), axis=0).astype(x.dtype)
    turns = _turns(frequencies)
    far = _far(x, rows, centre, turns)
    rows = np.setdiff1d(rows, far, assume_unique=True) if far.size else rows
    slices = range(0, n_groups, _GROUPS_AT_ONCE)
    cuts = [0, rows.size]
    if len(slices) > 1:
        # the narrow dtype makes the stable sort a radix sort
        rows = rows[np.argsort(codes[rows].astype(np.min_scalar_type(n_groups)), kind="stable")]
        cuts = [*np.searchsorted(codes[rows], slices), rows.size]
    for first, start, stop in zip(slices, cuts[:-1], cuts[1:], strict=True):
        _add_rows(x, rows[start:stop], codes - first, centre, turns, sums[first : first + _GROUPS_AT_ONCE])
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


def _far(x: np.ndarray, rows: np.ndarray, centre: np.ndarray, turns: np.ndarray) -> np.ndarray:
    """Those of `rows` that may have an angle beyond the limit; `turns` (columns, frequencies) a unit.

    The extremes of the block tell cheaply that there is none, unless columns have offsets of their own.
    """
    sizes = np.abs(turns)
    largest = float(sizes.sum(axis=0).max())
    span = max(float(x.max()) - float(centre.min()), float(centre.max()) - float(x.min()))
    if span * largest <= _FAR:
        return rows[:0]
    return rows[_beyond(x, rows, centre, sizes.max(axis=1), largest, _FAR)]


@jit
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


def _turns(frequencies: np.ndarray) -> np.ndarray:
    """Return frequencies in turns, transposed, zero-padded to the depth 5 + 4 a + 5 b of _project."""
    width, depth = np.shape(frequencies)
    padded = max(depth, 5)
    while padded < 5 + 4 * (-padded % 5):
        padded += 1
    turns = work_rows(padded, width)
    turns[:depth, :width] = np.asarray(frequencies, dtype=np.float64).T / (2 * np.pi)
    return turns


def _add_rows(
    x: np.ndarray,
    rows: np.ndarray,
    codes: np.ndarray,
    centre: np.ndarray,
    turns: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Add cos and sin of the given rows, about the centre, to sums (groups, 2, F), tile by tile."""
    n_groups, _, n_frequencies = sums.shape
    width = -(-n_frequencies // 16) * 16
    size = max(64, _TILE_BYTES // (4 * len(turns)) // 4 * 4)
    tile = np.zeros((size, len(turns)), dtype=np.float32)
    labels = np.empty(size, dtype=np.int32)
    angles = work_rows(4, n_frequencies)
    partial = work_rows(n_groups, 2, n_frequencies)
    counts = np.zeros(n_groups, dtype=np.int64)
    for start in range(0, rows.size, size):
        chosen = rows[start : start + size]
        _pack(x, chosen, codes, centre, tile, labels)
        _add_tile(tile, labels[: chosen.size], turns, width, angles, partial, counts, sums)
    for group in np.flatnonzero(counts):
        _flush(partial[group], sums[group])


@jit
def _pack(
    x: np.ndarray,
    rows: np.ndarray,
    codes: np.ndarray,
    centre: np.ndarray,
    tile: np.ndarray,
    labels: np.ndarray,
) -> None:
    """Gather rows, less the centre, into the tile: the only code that depends on the dtype and order of x."""
    for i in range(rows.size):
        row = rows[i]
        labels[i] = codes[row]
        for k in range(x.shape[1]):
            tile[i, k] = x[row, k] - centre[k]


@jit
def _add_tile(
    tile: np.ndarray,
    labels: np.ndarray,
    turns: np.ndarray,
    width: int,
    angles: np.ndarray,
    partial: np.ndarray,
    counts: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Add the first rows of a tile, one for each label, to the float32 sums of their groups."""
    for i in range(0, labels.size, 4):
        _project(tile[i : i + 4], turns, width, angles)
        for p in range(min(4, labels.size - i)):
            group = labels[i + p]
            _accumulate(angles[p], width, partial[group, 0], partial[group, 1])
            counts[group] += 1
            if counts[group] == _FLUSH_ROWS:
                _flush(partial[group], sums[group])
                counts[group] = 0


@jit
def _project(rows: np.ndarray, turns: np.ndarray, width: int, angles: np.ndarray) -> None:
    """Set angles[p, f] to the dot product of rows[p] and turns[:, f], for four rows.

    Unrolled by hand: 20 numbers of the rows, 5 of the frequencies and 4 angles are what 32 vector registers
    hold. The columns are cut into one block of 5, which starts the sums, then some of 4 and the rest of 5.
    """
    width &= -16  # says that whole vectors come: no scalar loop for a remainder, whose registers would spill
    depth = turns.shape[0]
    fives = 5 + 4 * (-depth % 5)
    a0, a1, a2, a3, a4 = rows[0, 0], rows[0, 1], rows[0, 2], rows[0, 3], rows[0, 4]
    b0, b1, b2, b3, b4 = rows[1, 0], rows[1, 1], rows[1, 2], rows[1, 3], rows[1, 4]
    c0, c1, c2, c3, c4 = rows[2, 0], rows[2, 1], rows[2, 2], rows[2, 3], rows[2, 4]
    d0, d1, d2, d3, d4 = rows[3, 0], rows[3, 1], rows[3, 2], rows[3, 3], rows[3, 4]
    for f in range(width):
        w0, w1, w2, w3, w4 = turns[0, f], turns[1, f], turns[2, f], turns[3, f], turns[4, f]
        angles[0, f] = w0 * a0 + w1 * a1 + w2 * a2 + w3 * a3 + w4 * a4
        angles[1, f] = w0 * b0 + w1 * b1 + w2 * b2 + w3 * b3 + w4 * b4
        angles[2, f] = w0 * c0 + w1 * c1 + w2 * c2 + w3 * c3 + w4 * c4
        angles[3, f] = w0 * d0 + w1 * d1 + w2 * d2 + w3 * d3 + w4 * d4
    for k in range(5, fives, 4):
        a0, a1, a2, a3 = rows[0, k], rows[0, k + 1], rows[0, k + 2], rows[0, k + 3]
        b0, b1, b2, b3 = rows[1, k], rows[1, k + 1], rows[1, k + 2], rows[1, k + 3]
        c0, c1, c2, c3 = rows[2, k], rows[2, k + 1], rows[2, k + 2], rows[2, k + 3]
        d0, d1, d2, d3 = rows[3, k], rows[3, k + 1], rows[3, k + 2], rows[3, k + 3]
        for f in range(width):
            w0, w1, w2, w3 = turns[k, f], turns[k + 1, f], turns[k + 2, f], turns[k + 3, f]
            angles[0, f] += w0 * a0 + w1 * a1 + w2 * a2 + w3 * a3
            angles[1, f] += w0 * b0 + w1 * b1 + w2 * b2 + w3 * b3
            angles[2, f] += w0 * c0 + w1 * c1 + w2 * c2 + w3 * c3
            angles[3, f] += w0 * d0 + w1 * d1 + w2 * d2 + w3 * d3
    for k in range(fives, depth, 5):
        a0, a1, a2, a3, a4 = rows[0, k], rows[0, k + 1], rows[0, k + 2], rows[0, k + 3], rows[0, k + 4]
        b0, b1, b2, b3, b4 = rows[1, k], rows[1, k + 1], rows[1, k + 2], rows[1, k + 3], rows[1, k + 4]
        c0, c1, c2, c3, c4 = rows[2, k], rows[2, k + 1], rows[2, k + 2], rows[2, k + 3], rows[2, k + 4]
        d0, d1, d2, d3, d4 = rows[3, k], rows[3, k + 1], rows[3, k + 2], rows[3, k + 3], rows[3, k + 4]
        for f in range(width):
            w0, w1, w2 = turns[k, f], turns[k + 1, f], turns[k + 2, f]
            w3, w4 = turns[k + 3, f], turns[k + 4, f]
            angles[0, f] += w0 * a0 + w1 * a1 + w2 * a2 + w3 * a3 + w4 * a4
            angles[1, f] += w0 * b0 + w1 * b1 + w2 * b2 + w3 * b3 + w4 * b4
            angles[2, f] += w0 * c0 + w1 * c1 + w2 * c2 + w3 * c3 + w4 * c4
            angles[3, f] += w0 * d0 + w1 * d1 + w2 * d2 + w3 * d3 + w4 * d4


@jit
def _accumulate(angles: np.ndarray, width: int, sum_ss: np.ndarray, sum_sc: np.ndarray) -> None:
    """Add s^2 - 1/2 and s c of one row, s = sin and c = cos of half its angles (in turns)."""
    for f in range(width & -16):
        t = angles[f]
        r = t - ((t + _ROUND) - _ROUND)
        u = r * r
        s = r * ((((_S4 * u + _S3) * u + _S2) * u + _S1) * u + _S0)
        c = (((_C4 * u + _C3) * u + _C2) * u + _C1) * u + _C0
        sum_ss[f] += s * s - _HALF
        sum_sc[f] += s * c


@jit
def _flush(partial: np.ndarray, sums: np.ndarray) -> None:
    """Move one group's float32 sums to float64 as cos = -2 (s^2 - 1/2) and sin = 2 s c, and clear them."""
    for f in range(sums.shape[1]):
        sums[0, f] -= 2.0 * partial[0, f]
        sums[1, f] += 2.0 * partial[1, f]
        partial[0, f] = 0
        partial[1, f] = 0


@jit
def _rotate(sums: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> None:
    """Turn every group's (sum cos, sum sin) by the angle W . centre, whose cos and sin (F,) are given."""
    for group in range(sums.shape[0]):
        for f in range(sums.shape[2]):
            about_centre = sums[group, 0, f]
            sums[group, 0, f] = about_centre * cos[f] - sums[group, 1, f] * sin[f]
            sums[group, 1, f] = about_centre * sin[f] + sums[group, 1, f] * cos[f]
