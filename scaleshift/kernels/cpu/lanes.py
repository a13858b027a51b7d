"""How does a kernel say what each vector register holds? With a number type that is one register wide.

`Lanes` are 16, 8 or 4 float32: what a register of the CPU holds that numba compiles for. Sums, differences
and products of them become single instructions, and a product that is added becomes an FMA. LLVM finds
vectors in plain loops too, but not which of them should stay in registers, and on Intel's CPUs it keeps to
256 bits: loops written with lanes ran twice as fast.
"""

import operator
from collections.abc import Sequence
from typing import Any

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel.models import PrimitiveModel
from numba.core.imputils import lower_builtin
from numba.core.registry import cpu_target
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import register_model

from scaleshift.kernels.cpu.exp2 import LOWEST, POWER, ROUND
from scaleshift.kernels.cpu.jit import instruction

_PROBE = """define <16 x float> @sum(<16 x float> %a, <16 x float> %b) {
  %c = fadd <16 x float> %a, %b
  ret <16 x float> %c
}"""


def _target() -> tuple[int, bool]:
    """Numbers in a register of the CPU that numba compiles for; whether it has AVX-512's instructions DQ."""
    triple, name, features = cpu_target.target_context.codegen().magic_tuple()
    machine = llvmlite.binding.Target.from_triple(triple).create_target_machine(cpu=name, features=features)
    assembly = machine.emit_assembly(llvmlite.binding.parse_assembly(_PROBE))
    width = 16 if "zmm" in assembly else 8 if "ymm" in assembly else 4
    return width, width == 16 and "+avx512dq" in features.split(",")


WIDTH, _HAS_DQ = _target()
_FLOAT, _INT = ir.FloatType(), ir.IntType(32)
_VECTOR, _INTS = ir.VectorType(_FLOAT, WIDTH), ir.VectorType(_INT, WIDTH)
_DOUBLES = ir.VectorType(ir.DoubleType(), WIDTH)
_FLAGS = ("contract", "nnan", "ninf", "nsz")

Lanes = Any  # as kernels' annotations have it


class _Lanes(types.Type):
    """numba's name for a register of float32."""

    def __init__(self) -> None:
        super().__init__(name=f"Lanes({WIDTH})")


lanes = _Lanes()


@register_model(_Lanes)
class _LanesModel(PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


def _operator(function: Any, method: str) -> None:
    """Let two lanes be added, subtracted or multiplied."""

    class Template(ConcreteTemplate):
        cases = [signature(lanes, lanes, lanes)]  # noqa: RUF012

    infer_global(function)(Template)

    @lower_builtin(function, lanes, lanes)
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return getattr(builder, method)(*arguments, flags=_FLAGS)


_operator(operator.add, "fadd")
_operator(operator.iadd, "fadd")
_operator(operator.sub, "fsub")
_operator(operator.mul, "fmul")


@instruction
def spread(_context: Any, _number: Any) -> Any:
    """Return lanes that all hold this float32."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return _splat(builder, arguments[0])

    return lanes(types.float32), generate


@instruction
def spread_from(_context: Any, _array: Any, _i: Any) -> Any:
    """Return lanes that all hold array[i] of a C-contiguous float32 array; the index is not checked."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _splat(builder, builder.load(_place(context, builder, signature, arguments)))

    return lanes(_array, types.intp), generate


@instruction
def load(_context: Any, _array: Any, _i: Any) -> Any:
    """Return array[i : i + WIDTH] of a C-contiguous float32 array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = builder.bitcast(_place(context, builder, signature, arguments), _VECTOR.as_pointer())
        return builder.load(place, align=4)

    return lanes(_array, types.intp), generate


@instruction
def store(_context: Any, _array: Any, _i: Any, _value: Any) -> Any:
    """Set array[i : i + WIDTH] of a C-contiguous float32 array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = builder.bitcast(_place(context, builder, signature, arguments), _VECTOR.as_pointer())
        builder.store(arguments[2], place, align=4)
        return context.get_dummy_value()

    return types.void(_array, types.intp, lanes), generate


@instruction
def add_to(_context: Any, _array: Any, _i: Any, _value: Any) -> Any:
    """Add to array[i : i + WIDTH] of a C-contiguous float64 array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = builder.bitcast(_place(context, builder, signature, arguments), _DOUBLES.as_pointer())
        total = builder.fadd(builder.load(place, align=8), builder.fpext(arguments[2], _DOUBLES))
        builder.store(total, place, align=8)
        return context.get_dummy_value()

    return types.void(_array, types.intp, lanes), generate


@instruction
def totals(_context: Any, _array: Any, _i: Any) -> Any:
    """Return the sum of each of WIDTH registers that lie in an array from `i` on, one after the other."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = builder.bitcast(_place(context, builder, signature, arguments), _VECTOR.as_pointer())
        values = [builder.load(builder.gep(place, [ir.Constant(_INT, n)]), align=4) for n in range(WIDTH)]
        step = 1
        while step < WIDTH:
            # each sum of two keeps the lanes of the first where bit `step` is 0, of the second where it is 1
            low = [lane + (WIDTH - step if lane & step else 0) for lane in range(WIDTH)]
            high = [lane + (WIDTH if lane & step else step) for lane in range(WIDTH)]
            values = [
                builder.fadd(_blend(builder, a, b, low), _blend(builder, a, b, high))
                for a, b in zip(values[::2], values[1::2], strict=True)
            ]
            step *= 2
        return values[0]

    return lanes(_array, types.intp), generate


@instruction
def total(_context: Any, _value: Any) -> Any:
    """Return the sum of the lanes in float64."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        wide = builder.fpext(arguments[0], _DOUBLES)
        result = builder.extract_element(wide, ir.Constant(_INT, 0))
        for lane in range(1, WIDTH):
            result = builder.fadd(result, builder.extract_element(wide, ir.Constant(_INT, lane)))
        return result

    return types.float64(lanes), generate


@instruction
def fraction(_context: Any, _value: Any) -> Any:
    """Return t less the nearest integer, for |t| < 2^22."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        if _HAS_DQ:
            return _reduce(builder, arguments[0])
        return builder.fsub(arguments[0], _nearest(builder, arguments[0])[1])

    return lanes(lanes), generate


@instruction
def exp2(_context: Any, _value: Any) -> Any:
    """Return 2^max(t, -126) for t up to 127, with a relative error of 1.5e-7; without FMA of 1.7e-7.

    The function of the same name in exp2.py, of all lanes at once.
    """

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        t, lowest = arguments[0], _constant(LOWEST)
        t = builder.select(builder.fcmp_ordered(">", t, lowest, flags=("nnan",)), t, lowest)
        if _HAS_DQ:
            q = _reduce(builder, t)
            return _scale(builder, _polynomial(builder, POWER, q), builder.fsub(t, q))
        shifted, k = _nearest(builder, t)  # the low bits of the first hold k
        power = _polynomial(builder, POWER, builder.fsub(t, k))
        step = builder.shl(builder.bitcast(shifted, _INTS), ir.Constant(_INTS, [23] * WIDTH))
        return builder.bitcast(builder.add(builder.bitcast(power, _INTS), step), _VECTOR)

    return lanes(lanes), generate


def _place(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Pointer to the number of an array, the first argument, at an index, the second."""
    data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
    return builder.gep(data, [arguments[1]])


def _constant(number: np.floating) -> Any:
    return ir.Constant(_VECTOR, [float(number)] * WIDTH)


def _splat(builder: Any, number: Any) -> Any:
    """Lanes that all hold a number."""
    nothing = ir.Constant(_VECTOR, ir.Undefined)
    lane = builder.insert_element(nothing, number, ir.Constant(_INT, 0))
    return _blend(builder, lane, nothing, [0] * WIDTH)


def _blend(builder: Any, a: Any, b: Any, numbers: Sequence[int]) -> Any:
    """Lanes of two registers, by number: those of the second come after those of the first."""
    return builder.shuffle_vector(a, b, ir.Constant(_INTS, list(numbers)))


def _nearest(builder: Any, t: Any) -> tuple[Any, Any]:
    """The nearest integer twice: added to a large number, and as it is."""
    shifted = builder.fadd(t, _constant(ROUND))
    return shifted, builder.fsub(shifted, _constant(ROUND))


def _polynomial(builder: Any, coefficients: Sequence[np.floating], t: Any) -> Any:
    """Horner's scheme, lowest coefficient first."""
    result = _constant(coefficients[-1])
    for number in coefficients[-2::-1]:
        result = builder.fadd(builder.fmul(result, t, flags=_FLAGS), _constant(number), flags=_FLAGS)
    return result


def _reduce(builder: Any, t: Any) -> Any:
    """AVX-512's t less the nearest integer: three instructions in one."""
    return _avx512(builder, "reduce", t, ir.Constant(_INT, 0))


def _scale(builder: Any, value: Any, k: Any) -> Any:
    """AVX-512's value times 2^k, for whole k."""
    return _avx512(builder, "scalef", value, k)


def _avx512(builder: Any, name: str, value: Any, argument: Any) -> Any:
    """An instruction of all 16 lanes, rounding as usual."""
    mask = ir.IntType(16)
    kind = ir.FunctionType(_VECTOR, (_VECTOR, argument.type, _VECTOR, mask, _INT))
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.avx512.mask.{name}.ps.512")
    return builder.call(function, (value, argument, value, ir.Constant(mask, -1), ir.Constant(_INT, 4)))
