"""How do rows become columns in a kernel? Sixteen by sixteen, in registers."""

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types

from scaleshift.kernels.cpu.jit import instruction, jit

SIDE = 16  # rows and columns of a square: one vector of 512 bits, two of 256
_FLOAT = ir.FloatType()
_VECTOR = ir.VectorType(_FLOAT, SIDE)


@jit
def transpose_rows(x: np.ndarray, columns: np.ndarray, square: np.ndarray) -> None:
    """Write x' to the corner of `columns`, with zeros up to the next multiple of 16 rows and columns.

    Parameters
    ----------
    x : (m, d) numpy.ndarray of float32
        C-contiguous rows.
    columns : (d', m') numpy.ndarray of float32
        C-contiguous; d' and m' are multiples of 16, at least d and m. Its stride should be no power of two.
    square : (16, 16) numpy.ndarray of float32
        Work.
    """
    m, d = x.shape
    for i in range(0, m, SIDE):
        for k in range(0, columns.shape[0], SIDE):
            if i + SIDE <= m and k + SIDE <= d:
                _transpose_square(x, i, k, columns, k, i)
                continue
            square[:] = 0
            for a in range(min(SIDE, m - i)):
                for b in range(max(0, min(SIDE, d - k))):
                    square[a, b] = x[i + a, k + b]
            _transpose_square(square, 0, 0, columns, k, i)


@instruction
def _transpose_square(_context: Any, _from: Any, _i: Any, _k: Any, _to: Any, _p: Any, _q: Any) -> Any:
    """Set to[p + b, q + a] = from[i + a, k + b] for a, b < 16, both float32 and C-contiguous."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, i, k, target, p, q = arguments
        read = _lines(context, builder, signature.args[0], source, i, k)
        write = _lines(context, builder, signature.args[3], target, p, q)
        lines = [builder.load(pointer, align=4) for pointer in read]
        for step in (1, 2, 4, 8):
            lines = _swap(builder, lines, step)
        for line, pointer in zip(lines, write, strict=True):
            builder.store(line, pointer, align=4)
        return context.get_dummy_value()

    return types.void(_from, types.intp, types.intp, _to, types.intp, types.intp), generate


def _lines(context: Any, builder: Any, kind: Any, array: Any, first: Any, column: Any) -> list[Any]:
    """Pointers to sixteen numbers in each of sixteen rows of an array."""
    struct = context.make_array(kind)(context, builder, array)
    stride = cgutils.unpack_tuple(builder, struct.strides, 2)[0]
    pointers = []
    for a in range(SIDE):
        row = builder.add(first, ir.Constant(first.type, a))
        line = cgutils.pointer_add(builder, struct.data, builder.mul(row, stride))
        pointers.append(builder.bitcast(builder.gep(line, [column]), _VECTOR.as_pointer()))
    return pointers


def _swap(builder: Any, lines: list[Any], step: int) -> list[Any]:
    """Exchange bit `step` of the row's number for that of the column's: four of these transpose."""
    result = list(lines)
    for a in range(SIDE):
        if a & step:
            continue
        low = [b if not b & step else SIDE + (b ^ step) for b in range(SIDE)]
        high = [b | step if not b & step else SIDE + b for b in range(SIDE)]
        for row, order in ((a, low), (a | step, high)):
            mask = ir.Constant(ir.VectorType(ir.IntType(32), SIDE), order)
            result[row] = builder.shuffle_vector(lines[a], lines[a | step], mask)
    return result
