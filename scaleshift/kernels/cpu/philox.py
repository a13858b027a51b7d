"""How are uniform numbers of many rows and replicates drawn?  By numpy's Philox, at any place of its stream.

Philox4x64-10 (Salmon, Moraes, Dror, Shaw 2011) as numpy has it, to the bit: four numbers a counter, the first
counter being one above that which is given. Only numbers that are asked for are made.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types

from scaleshift.kernels.cpu.jit import instruction, strict_jit

_M0, _M1 = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
_W0, _W1 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)
_ROUNDS = 10
_DISCARDED = np.uint64(11)  # bits beyond the 53 of a float64


@instruction
def _product(_context: Any, _a: Any, _b: Any) -> Any:
    """Return the product of two uint64 as its upper and its lower 64 bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide, narrow = ir.IntType(128), ir.IntType(64)
        a, b = (builder.zext(argument, wide) for argument in arguments)
        product = builder.mul(a, b)
        high = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), narrow)
        return context.make_tuple(builder, signature.return_type, (high, builder.trunc(product, narrow)))

    return types.UniTuple(types.uint64, 2)(types.uint64, types.uint64), generate


@strict_jit
def uniform_tile(
    key0: np.uint64,
    key1: np.uint64,
    tile: np.uint64,
    kind: np.uint64,
    n_rows: int,
    n_together: int,
    begin: int,
    found: np.ndarray,
) -> None:
    """Fill `found`, (n, n_replicates), with numbers in [0, 1) of the rows begin .. begin + n - 1 of a tile.

    Replicate r takes the stream of the counter (0, r // n_together, tile, kind), where `n_rows` numbers of
    one follow those of the one before.
    """
    n, n_replicates = found.shape
    for group in range(begin // 4, (begin + n + 3) // 4):
        for r in range(n_replicates):
            block = r // n_together
            c0 = np.uint64((r - block * n_together) * (n_rows // 4) + group + 1)
            c1, c2, c3 = np.uint64(block), tile, kind
            k0, k1 = key0, key1
            for _ in range(_ROUNDS):
                high0, low0 = _product(_M0, c0)
                high1, low1 = _product(_M1, c2)
                c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
                k0 += _W0
                k1 += _W1
            row = 4 * group - begin
            if 0 <= row < n:
                found[row, r] = np.float64(c0 >> _DISCARDED) * 2.0**-53
            if 0 <= row + 1 < n:
                found[row + 1, r] = np.float64(c1 >> _DISCARDED) * 2.0**-53
            if 0 <= row + 2 < n:
                found[row + 2, r] = np.float64(c2 >> _DISCARDED) * 2.0**-53
            if 0 <= row + 3 < n:
                found[row + 3, r] = np.float64(c3 >> _DISCARDED) * 2.0**-53
