"""How do probabilities and redrawn labels of many fits cost little?  Loops that the CPU can vectorise.

numba calls the C library for `exp`, one value at a time; what stands here is a polynomial of the loop's own.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types

from scaleshift.kernels.cpu.jit import instruction, jit, strict_jit

_ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it rounds a float64 to the nearest integer
_LOG2E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = (
    0.6931471803691238,
    1.9082149292705877e-10,
)  # products of the first with integers are exact
_MOST = 700.0  # exp(700) is a float64
_MANTISSA_BITS = np.int64(52)
# 1 / k!: on [-ln 2 / 2, ln 2 / 2] what follows is below 2e-16
_P2, _P3, _P4, _P5, _P6 = 1 / 2, 1 / 6, 1 / 24, 1 / 120, 1 / 720
_P7, _P8, _P9, _P10 = 1 / 5_040, 1 / 40_320, 1 / 362_880, 1 / 3_628_800
_P11, _P12 = 1 / 39_916_800, 1 / 479_001_600


@instruction
def _bits(_context: Any, _number: Any) -> Any:
    """Return the int64 whose bits are those of a float64."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@instruction
def _from_bits(_context: Any, _number: Any) -> Any:
    """Return the float64 whose bits are those of an int64."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@jit
def exponential(x: float) -> float:
    """Return exp(x) of a float64, x cut to -700 .. 700, with a relative error of 4e-16.

    x = k ln 2 + r with k the nearest integer: exp(r) is a polynomial, k is added to the exponent's bits.
    """
    x = x if x > -_MOST else -_MOST
    x = x if x < _MOST else _MOST
    shifted = x * _LOG2E + _ROUND  # its low bits hold k
    k = shifted - _ROUND
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = ((((_P12 * r + _P11) * r + _P10) * r + _P9) * r + _P8) * r + _P7
    p = ((((((p * r + _P6) * r + _P5) * r + _P4) * r + _P3) * r + _P2) * r + 1.0) * r + 1.0
    return _from_bits(_bits(p) + (_bits(shifted) << _MANTISSA_BITS))


@jit
def exponentials(x: np.ndarray) -> None:
    """Put exp(x) in the place of each float64, (n,)."""
    for i in range(len(x)):
        x[i] = exponential(x[i])


@jit
def sigmoids(x: np.ndarray) -> None:
    """Put 1 / (1 + exp(-x)) in the place of each float64, (n,)."""
    for i in range(len(x)):
        x[i] = 1.0 / (1.0 + exponential(-x[i]))


@strict_jit
def labels_above(steps: np.ndarray, uniforms: np.ndarray, above: np.ndarray) -> None:
    """Say where a label is above each class: steps (K - 1, t), uniforms (t, n) -> 0 or 1, (K - 1, t, n)."""
    for k in range(steps.shape[0]):
        for i in range(steps.shape[1]):
            step = steps[k, i]
            for b in range(uniforms.shape[1]):
                above[k, i, b] = 1.0 if uniforms[i, b] >= step else 0.0


@strict_jit
def drawn_losses(
    losses: np.ndarray, steps: np.ndarray, uniforms: np.ndarray, counts: np.ndarray, found: np.ndarray
) -> None:
    """Add to `found`, (n,), the losses (K, t, n) of labels that uniform numbers draw, of rows that count."""
    n_steps = steps.shape[0]
    for i in range(uniforms.shape[0]):
        weight = counts[i]
        for b in range(uniforms.shape[1]):
            loss = losses[0, i, b]
            for k in range(n_steps):  # steps ascend: the last one that is reached says the label
                above = losses[k + 1, i, b]
                loss = above if uniforms[i, b] >= steps[k, i] else loss
            found[b] += weight * loss


@strict_jit
def covariances(losses: np.ndarray, steps: np.ndarray, uniforms: np.ndarray, counts: np.ndarray) -> float:
    """Return the sum over rows of sum_k cov_b(loss_b(k), 1{label_b = k}), divisor n.

    Losses (K, t, n), labels as uniform numbers (t, n) draw them. Losses count by how they differ from those
    of the first class, which changes nothing: indicators add to 1.
    """
    n_steps = steps.shape[0]
    n = uniforms.shape[1]
    total = 0.0
    for i in range(uniforms.shape[0]):
        if counts[i] == 0.0:
            continue
        for k in range(n_steps):
            upper = steps[k + 1, i] if k + 1 < n_steps else np.inf
            lower = steps[k, i]
            both, loss, label = 0.0, 0.0, 0.0
            for b in range(n):
                here = 1.0 if (uniforms[i, b] >= lower) and (uniforms[i, b] < upper) else 0.0
                more = losses[k + 1, i, b] - losses[0, i, b]
                both += here * more
                loss += more
                label += here
            total += counts[i] * (both / n - loss / n * (label / n))
    return total


@strict_jit
def wrong_among_partners(
    own: np.ndarray, centre: np.ndarray, likely: np.ndarray, counts: np.ndarray, n: int, found: np.ndarray
) -> None:
    """Add to `found`, (n_fits,), how likely decisions are wrong: of each fit moved as n others are.

    Logits are centre + own_b + own_(b + s) for s = 1 .. n, fits in a ring: own (t, n_fits), centre (t,).
    The second class has the probability likely_b, (t, n_fits), and is decided above the logit 4.5e-16.
    """
    n_fits = own.shape[1]
    for i in range(own.shape[0]):
        weight, least = counts[i], 4.5e-16 - centre[i]
        for s in range(1, n + 1):
            for b in range(n_fits - s):
                p = likely[i, b]
                found[b] += weight * (1.0 - p if own[i, b] + own[i, b + s] > least else p)
            for b in range(max(n_fits - s, 0), n_fits):
                p = likely[i, b]
                found[b] += weight * (1.0 - p if own[i, b] + own[i, b + s - n_fits] > least else p)
