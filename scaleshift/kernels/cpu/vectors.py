"""How many numbers does a vector of the CPU hold? Sums that a loop splits among fewer lanes are longer."""

from functools import cache

import llvmlite.binding
from numba.core.registry import cpu_target

_WIDE = """define void @twice(ptr %x) "prefer-vector-width"="512" "min-legal-vector-width"="512" {
    %a = load <16 x float>, ptr %x
    %b = fadd <16 x float> %a, %a
    store <16 x float> %b, ptr %x
    ret void
}"""


@cache
def lanes() -> int:
    """Return the float32 numbers of the widest vector that numba compiles for: 16, 8 or 4.

    LLVM is asked, as numba asks it: environment variables may have it compile for another CPU than this one,
    of which only the name is known.

    Examples
    --------
    >>> lanes() in (4, 8, 16)
    True
    """
    triple, cpu, features = cpu_target.target_context.codegen().magic_tuple()
    target = llvmlite.binding.Target.from_triple(triple)
    machine = target.create_target_machine(cpu=cpu, features=features)
    assembly = machine.emit_assembly(llvmlite.binding.parse_assembly(_WIDE))
    return 16 if "%zmm" in assembly else 8 if "%ymm" in assembly else 4
