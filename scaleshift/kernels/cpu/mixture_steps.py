"""What does the mixture pass do with a tile of rows? Everything while it is in cache, in vectors of rows.

Arrays of a tile are turned: a line holds one column, component or outcome of `TILE` rows. Lines are padded to
whole tiles and arrays to whole blocks of lines; what stands there is finite and has the weight 0.
"""

from typing import Any

import numpy as np

from scaleshift.kernels.cpu.exp2 import add_in_any_order, add_product_in_any_order, exp2, log2, quotient
from scaleshift.kernels.cpu.jit import jit, wide_frame
from scaleshift.kernels.cpu.lanes import WIDTH

TILE = 1024  # rows: a constant, so that loops are whole vectors. With fewer, reducing vectors to sums shows
_SPAN = 64 * WIDTH  # rows of a float32 sum: of 64 terms a lane. With longer ones variances lose digits
COLUMNS = 4  # of a block of columns
COMPONENTS = 4  # of a block of components
EPSILON = np.float32(2.0**-52)  # the reference's, of probabilities
_LEAST = np.float32(-64)  # smaller powers count as 0: their products would be subnormal, 20 times as slow
_ZERO = np.float32(0)
_Tuple = Any  # of float32, as numba understands it


@jit
def start_joint(joint: np.ndarray, biases: np.ndarray, given: bool, power: np.float32) -> None:
    """Set the log joint density of each component to its constant part.

    Where agreements with predictions are given in `joint`, power log2(eps + agreement) is added.
    """
    wide_frame()
    for k in range(joint.shape[0]):
        bias, line = biases[k], joint[k]
        if given:
            for f in range(TILE):
                line[f] = bias + power * log2(EPSILON + line[f])
        else:
            for f in range(TILE):
                line[f] = bias


@jit
def subtract_distances(rows: np.ndarray, scales: np.ndarray, shifts: np.ndarray, joint: np.ndarray) -> None:
    """Subtract sum_j (s_kj x_j + t_kj)^2 from `joint`, of two components and four columns at a time.

    As many FMAs as a product with [x, x^2], and no cancellation.
    """
    wide_frame()
    for j in range(0, scales.shape[1], COLUMNS):
        for k in range(0, scales.shape[0], 2):
            s, t = _four(scales[k], j), _four(shifts[k], j)
            q, r = _four(scales[k + 1], j), _four(shifts[k + 1], j)
            for f in range(TILE):
                x = rows[j, f], rows[j + 1, f], rows[j + 2, f], rows[j + 3, f]
                joint[k, f] = _subtract_squares(joint[k, f], x, s, t)
                joint[k + 1, f] = _subtract_squares(joint[k + 1, f], x, q, r)


@jit
def _four(line: np.ndarray, j: int) -> _Tuple:
    return line[j], line[j + 1], line[j + 2], line[j + 3]


@jit
def _subtract_squares(joint: np.float32, x: _Tuple, s: _Tuple, t: _Tuple) -> np.float32:
    a, b = x[0] * s[0] + t[0], x[1] * s[1] + t[1]
    c, d = x[2] * s[2] + t[2], x[3] * s[3] + t[3]
    return joint - a * a - b * b - c * c - d * d


@jit
def add_terms(joint: np.ndarray, table: np.ndarray, lines: np.ndarray, start: int) -> None:
    """Add the outcomes of the rows from `start` on, each times the component's number for it."""
    wide_frame()
    for k in range(table.shape[0]):
        line = joint[k]
        for c in range(table.shape[1]):
            factor, outcome = table[k, c], lines[c, start : start + TILE]
            for f in range(TILE):
                line[f] += factor * outcome[f]


@jit
def add_entries(joint: np.ndarray, table: np.ndarray, codes: np.ndarray) -> None:
    """Add the component's number for the code of each row; the last one is that of missing codes, 0."""
    for k in range(table.shape[0]):
        line, entries = joint[k], table[k]
        for f in range(TILE):
            line[f] += entries[np.uintp(codes[f])]


@jit
def add_agreement(
    joint: np.ndarray, table: np.ndarray, power: np.float32, lines: np.ndarray, start: int, work: np.ndarray
) -> None:
    """Add power log2(eps + sum_c q_kc p_c), p the predictions in `lines` of the rows from `start` on."""
    wide_frame()
    for k in range(table.shape[0]):
        for f in range(TILE):
            work[f] = EPSILON
        for c in range(table.shape[1]):
            factor, outcome = table[k, c], lines[c, start : start + TILE]
            for f in range(TILE):
                work[f] += factor * outcome[f]
        line = joint[k]
        for f in range(TILE):
            line[f] += power * log2(work[f])


@jit
def normalise(joint: np.ndarray, weights: np.ndarray, highest: np.ndarray, mass: np.ndarray) -> None:
    """Turn log2 joint densities of one model into responsibilities times weights.

    `highest` becomes log2 of the rows' densities.
    """
    wide_frame()
    line = joint[0]
    for f in range(TILE):
        highest[f], mass[f] = line[f], _ZERO
    for k in range(1, joint.shape[0]):
        line = joint[k]
        for f in range(TILE):
            highest[f] = line[f] if line[f] > highest[f] else highest[f]
    for k in range(joint.shape[0]):
        line = joint[k]
        for f in range(TILE):
            t = line[f] - highest[f]
            power = exp2(t) if t > _LEAST else _ZERO
            line[f] = power
            mass[f] += power
    for f in range(TILE):
        highest[f] += log2(mass[f])
        mass[f] = quotient(weights[f], mass[f])
    for k in range(joint.shape[0]):
        line = joint[k]
        for f in range(TILE):
            line[f] *= mass[f]


@jit
def weighted_sum(weights: np.ndarray, numbers: np.ndarray) -> float:
    """Sum of products, in float64."""
    total = 0.0
    for f in range(numbers.size):
        total = add_product_in_any_order(total, np.float64(weights[f]), np.float64(numbers[f]))
    return total


@jit
def add_masses(joint: np.ndarray, sums: np.ndarray) -> None:
    """Add the responsibilities of each component."""
    wide_frame()
    for k in range(sums.shape[0]):
        line, total = joint[k], _ZERO
        for f in range(TILE):
            total = add_in_any_order(total, line[f])
        sums[k] += total


@jit
def add_outcomes(joint: np.ndarray, lines: np.ndarray, start: int, sums: np.ndarray) -> None:
    """Add the outcomes of the rows from `start` on, times responsibilities, to `sums` (components, lines)."""
    wide_frame()
    for k in range(sums.shape[0]):
        line = joint[k]
        for c in range(sums.shape[1]):
            outcome, total = lines[c, start : start + TILE], _ZERO
            for f in range(TILE):
                total = add_product_in_any_order(total, line[f], outcome[f])
            sums[k, c] += total


@jit
def add_codes(joint: np.ndarray, codes: np.ndarray, n_rows: int, sums: np.ndarray) -> None:
    """Add the responsibilities of each row to the sums of its code (codes, components)."""
    for f in range(n_rows):
        entries = sums[np.uintp(codes[f])]
        for k in range(entries.size):
            entries[k] += joint[k, f]


@jit
def add_moments(rows: np.ndarray, joint: np.ndarray, sums: np.ndarray) -> None:
    """Add rows and their squares times responsibilities to `sums` (components, 2, columns).

    Two columns and four components at a time: 16 sums, which stay in registers.
    """
    wide_frame()
    zeros = _ZERO, _ZERO, _ZERO, _ZERO
    for j in range(0, sums.shape[2], 2):
        for k in range(0, sums.shape[0], COMPONENTS):
            for start in range(0, TILE, _SPAN):
                span = slice(start, start + _SPAN)
                a, b, c, d = joint[k, span], joint[k + 1, span], joint[k + 2, span], joint[k + 3, span]
                left, right = rows[j, span], rows[j + 1, span]
                x_sums, x_squares, y_sums, y_squares = zeros, zeros, zeros, zeros
                for f in range(_SPAN):
                    x, y, r = left[f], right[f], (a[f], b[f], c[f], d[f])
                    x_sums, x_squares = _add_products(x_sums, r, x), _add_products(x_squares, r, x * x)
                    y_sums, y_squares = _add_products(y_sums, r, y), _add_products(y_squares, r, y * y)
                _add_four(sums, k, 0, j, x_sums)
                _add_four(sums, k, 1, j, x_squares)
                _add_four(sums, k, 0, j + 1, y_sums)
                _add_four(sums, k, 1, j + 1, y_squares)


@jit
def _add_products(sums: _Tuple, r: _Tuple, x: np.float32) -> _Tuple:
    return (
        add_product_in_any_order(sums[0], r[0], x),
        add_product_in_any_order(sums[1], r[1], x),
        add_product_in_any_order(sums[2], r[2], x),
        add_product_in_any_order(sums[3], r[3], x),
    )


@jit
def _add_four(sums: np.ndarray, k: int, power: int, j: int, t: _Tuple) -> None:
    sums[k, power, j] += t[0]
    sums[k + 1, power, j] += t[1]
    sums[k + 2, power, j] += t[2]
    sums[k + 3, power, j] += t[3]
