"""How are the CPU kernels compiled? The one place that holds numba's settings for them."""

from collections.abc import Callable
from typing import Any

import numba
from numba.core import types
from numba.extending import intrinsic

# Everything that lets a loop become packed FMAs, except "reassoc": reassociation would cancel
# (t + 2^23) - 2^23, with which the kernels round to the nearest integer.
FAST_MATH = frozenset({"nnan", "ninf", "nsz", "arcp", "contract", "afn"})
_SETTINGS: dict[str, Any] = {"nogil": True, "boundscheck": False, "error_model": "numpy", "cache": False}


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a kernel at its first call, without the GIL, for one thread.

    Threads come from Dask: numba's `parallel=True` aborts the process when several of them enter it, and
    its on-disk cache can crash on concurrent first writes, so neither is used. Concurrent first calls are
    safe: numba compiles under one lock. Indices are not checked: the caller's Python code does that.

    Parameters
    ----------
    function : callable
        Plain Python that numba understands.

    Returns
    -------
    callable
        The same function; each new combination of argument types is compiled once.

    Examples
    --------
    >>> @jit
    ... def double(x):
    ...     return 2.0 * x
    >>> double(3.0)
    6.0
    """
    return numba.njit(fastmath=set(FAST_MATH), **_SETTINGS)(function)


def strict_jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile as `jit` does, but for numbers as they come: infinities and NaN keep their meaning.

    Parameters
    ----------
    function : callable
        Plain Python that numba understands.

    Returns
    -------
    callable
        The same function; each new combination of argument types is compiled once.

    Examples
    --------
    >>> @strict_jit
    ... def is_small(x):
    ...     return x < 1
    >>> is_small(float("nan"))
    False
    """
    # said outright: numba would hand down what a caller made by `jit` grants
    return numba.njit(fastmath=False, **_SETTINGS)(function)


def instruction(generator: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function for kernels whose LLVM code is written out: `numba.extending.intrinsic`, with types.

    Parameters
    ----------
    generator : callable
        Gets numba's context and the types of the arguments; returns a signature and a code generator.

    Returns
    -------
    callable
        Can be called in kernels only, with the arguments but for the context.
    """
    return intrinsic(generator)


@instruction
def own_frame(_context: Any) -> Any:
    """Keep the function that calls this out of its callers, and align its stack for vector registers.

    A loop that needs more vector registers than there are keeps some on the stack. Where that is aligned by
    luck only, each of them may straddle two cache lines: a loop of 512-bit vectors took 1.3 times as long.
    """

    def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        builder.function.attributes.add("noinline")
        builder.function.attributes.alignstack = 64
        return context.get_dummy_value()

    return types.void(), generate


@instruction
def part_of_caller(_context: Any) -> Any:
    """Make the function that calls this part of its callers, however large: its tuples stay in registers."""

    def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        builder.function.attributes.add("alwaysinline")
        return context.get_dummy_value()

    return types.void(), generate


@instruction
def wide_frame(_context: Any) -> Any:
    """Do what `own_frame` does, and let loops of this function use vectors of 512 bits.

    LLVM keeps to 256 bits on Intel's CPUs, for the sake of the clocks of old ones: where loops consist of
    FMAs, that is half of what newer ones do. CPUs without AVX-512 get what they have.
    """

    def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        attributes = builder.function.attributes
        attributes.add("noinline")
        attributes.alignstack = 64
        set.add(attributes, '"prefer-vector-width"="512"')  # llvmlite's own `add` knows few names
        return context.get_dummy_value()

    return types.void(), generate
