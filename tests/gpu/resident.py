"""An array that behaves as CuPy's do where it matters, so that code for resident blocks runs without a GPU.

It is no numpy array, refuses to become one unasked, and computes by numpy's protocols.
"""

from types import ModuleType
from typing import ClassVar

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin


def bare(value):
    """The numpy arrays in a value, which may be a sequence or mapping."""
    if isinstance(value, Resident):
        return value.values
    if isinstance(value, tuple | list):
        return type(value)(bare(part) for part in value)
    if isinstance(value, dict):
        return {name: bare(part) for name, part in value.items()}
    return value


def resident(value):
    """Arrays, and what numpy computes of resident ones, are resident."""
    return Resident(value) if isinstance(value, np.ndarray | np.generic) else value


class Library(ModuleType):
    """CuPy's functions: numpy's, on resident arrays."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(np, name)
        if isinstance(found, type) or not callable(found):
            return found
        return lambda *given, **named: resident(found(*bare(given), **bare(named)))


class Device:
    """As CuPy's: the current one within a `with`."""

    current: ClassVar = [0]

    def __init__(self, number):
        self.id = number

    def __eq__(self, other):
        return self.id == other.id

    def __hash__(self):
        return self.id

    def __enter__(self):
        self.current.append(self.id)

    def __exit__(self, *error):
        self.current.pop()


class Resident(NDArrayOperatorsMixin):
    """As much of cupy.ndarray as the package uses."""

    def __init__(self, values, device=0):
        self.values = np.asarray(values)
        self.device = Device(device)

    def __array__(self, *given, **named):
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Use .get()")

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **named):
        if out is not None:
            named["out"] = bare(out)
        result = resident(getattr(ufunc, method)(*bare(inputs), **named))
        return out[0] if out is not None else result

    def __array_function__(self, function, types, given, named):
        return resident(function(*bare(given), **bare(named)))

    def __getattr__(self, name):
        if name not in ("shape", "dtype", "strides", "ndim", "flags", "size", "nbytes", "T"):
            found = getattr(self.values, name)
            return lambda *given, **named: resident(found(*bare(given), **bare(named)))
        return resident(getattr(self.values, name))

    def __getitem__(self, index):
        return resident(self.values[bare(index)])

    def __setitem__(self, index, value):
        self.values[bare(index)] = bare(value)

    def __len__(self):
        return len(self.values)

    def get(self, *given, **named):
        return self.values.copy()


Resident.__module__ = "cupy"  # by which the package knows CuPy's arrays
