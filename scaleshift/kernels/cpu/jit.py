"""How are the CPU kernels compiled? The one place that holds numba's settings."""

from collections.abc import Callable
from typing import Any

import numba

# Everything that lets a loop become packed FMAs, except "reassoc": reassociation would cancel
# (t + 2^23) - 2^23, with which the kernels round to the nearest integer.
FAST_MATH = frozenset({"nnan", "ninf", "nsz", "arcp", "contract", "afn"})


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
    return numba.njit(
        nogil=True, boundscheck=False, error_model="numpy", fastmath=set(FAST_MATH), cache=False
    )(function)
