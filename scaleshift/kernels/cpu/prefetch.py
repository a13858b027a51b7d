"""How does a kernel read rows in an order of its own without waiting? It asks for them some rows ahead."""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from scaleshift.kernels.cpu.jit import instruction

_BYTE, _INT = ir.IntType(8).as_pointer(), ir.IntType(32)


@instruction
def prefetch(_context: Any, _x: Any, _i: Any, _k: Any) -> Any:
    """Have the cache line of x[i, k] fetched, of a C-contiguous array: the CPU goes on meanwhile."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, i, k = arguments
        struct = context.make_array(signature.args[0])(context, builder, x)
        stride = cgutils.unpack_tuple(builder, struct.strides, 2)[0]
        line = cgutils.pointer_add(builder, struct.data, builder.mul(i, stride))
        kind = ir.FunctionType(ir.VoidType(), [_BYTE, _INT, _INT, _INT])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        pointer = builder.bitcast(builder.gep(line, [k]), _BYTE)
        builder.call(function, [pointer, _INT(0), _INT(3), _INT(1)])  # to read, to keep, data
        return context.get_dummy_value()

    return types.void(_x, types.intp, types.intp), generate
