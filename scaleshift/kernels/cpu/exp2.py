"""How does a kernel take powers of two and logarithms without the C library? With arithmetic that vectorises.

numba calls the C library for `exp` and `log`, one value at a time. What stands here becomes part of the loop
around it, 8 or 16 values at a time. Kernels work in log2 units throughout: exp(x) = exp2(x log2(e)).
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types

from scaleshift.kernels.cpu.jit import instruction, jit

_f32 = np.float32
ROUND = _f32(12582912.0)  # 1.5 * 2^23: adding it rounds a float32 to the nearest integer, |t| < 2^22
LOWEST = _f32(-126.0)  # 2^-126 is the smallest float32 with all its digits: smaller ones cost 100 cycles
_MANTISSA_BITS = np.int32(23)
# 2^q as a polynomial, exactly 1 at 0, fitted such that its error and that of float32 on q in [-1/2, 1/2] are
# the least together: near -1/2, where results are small, roundings are large
_P0, _P1, _P2 = _f32(1.0), _f32(0.6931470036506653), _f32(0.24022233486175537)
_P3, _P4, _P5 = _f32(0.05550743266940117), _f32(0.009671889245510101), _f32(0.0013254587538540363)
POWER = _P0, _P1, _P2, _P3, _P4, _P5
_SQRT_HALF = np.int32(0x3F3504F3)  # its bits: mantissas are taken in [sqrt(1/2), sqrt(2))
_MANTISSA = np.int32(0x007FFFFF)
# log2(1 + z) / z as a polynomial, fitted for float32 on z in [sqrt(1/2) - 1, sqrt(2) - 1]
_L0, _L1, _L2 = _f32(1.442694772424838), _f32(-0.7213571489752212), _f32(0.4809394451700039)
_L3, _L4, _L5 = _f32(-0.36008721371367347), _f32(0.28670744545626403), _f32(-0.25006905741652014)
_L6, _L7 = _f32(0.23689045978624707), _f32(-0.14574452440209248)


@instruction
def bits(_context: Any, _number: Any) -> Any:
    """Return the int32 whose bits are those of a float32."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(32))

    return types.int32(types.float32), generate


@instruction
def from_bits(_context: Any, _number: Any) -> Any:
    """Return the float32 whose bits are those of an int32."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), generate


@instruction
def add_in_any_order(_context: Any, _a: Any, _b: Any) -> Any:
    """Add two numbers of one type such that a sum over a loop may be split into vector lanes.

    "reassoc" for a whole function would cancel the rounding in `exp2`; this grants it to one addition.
    """

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fadd(*arguments, flags=("reassoc", "nsz"))

    return _a(_a, _a), generate


@instruction
def add_product_in_any_order(_context: Any, _sum: Any, _a: Any, _b: Any) -> Any:
    """Return sum + a b as one FMA, such that a sum over a loop may be split into vector lanes.

    `add_in_any_order(sum, a * b)` is a product and an addition: its flags do not let them become one.
    """

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        total, a, b = arguments
        product = builder.fmul(a, b, flags=("contract", "nsz"))
        return builder.fadd(total, product, flags=("reassoc", "contract", "nsz"))

    return _sum(_sum, _sum, _sum), generate


@instruction
def quotient(_context: Any, _a: Any, _b: Any) -> Any:
    """Return a / b, rounded as it should be.

    Where "arcp" is granted, as it is to all of a kernel, LLVM multiplies by what the CPU guesses 1 / b to be,
    improved by one step of Newton's. Without AVX-512 the guess has 12 bits: 7e-8 too small on average.
    """

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fdiv(*arguments, flags=("nsz",))  # some flag: numba adds all where there is none

    return _a(_a, _a), generate


@jit
def exp2(t: np.float32) -> np.float32:
    """Return 2^max(t, -126) for a float32 up to 127, with a relative error of 1.5e-7; without FMA of 1.7e-7.

    2^t = 2^q 2^k with k the nearest integer: 2^q is a polynomial, k is added to the exponent's bits.
    """
    t = t if t > LOWEST else LOWEST
    shifted = t + ROUND  # its low bits hold k
    q = t - (shifted - ROUND)
    p = ((((_P5 * q + _P4) * q + _P3) * q + _P2) * q + _P1) * q + _P0
    return from_bits(np.int32(bits(p) + np.int32(bits(shifted) << _MANTISSA_BITS)))


@jit
def log2(x: np.float32) -> np.float32:
    """Return log2(x) of a positive float32 of at least 2^-126, with an error of 8.5e-8 of it and of 1.

    x = m 2^e with m near 1: log2(m) is a polynomial, e is read from the exponent's bits.
    """
    shifted = np.int32(bits(x) - _SQRT_HALF)
    e = np.int32(shifted >> _MANTISSA_BITS)
    z = from_bits(np.int32(np.int32(shifted & _MANTISSA) + _SQRT_HALF)) - _f32(1)
    p = ((((((_L7 * z + _L6) * z + _L5) * z + _L4) * z + _L3) * z + _L2) * z + _L1) * z + _L0
    return _f32(e) + z * p
