"""A device whose kernels are the CUDA texts compiled as C++: the real code runs, on the CPU."""

import ctypes
import functools
import re
import shutil
import subprocess
import tempfile
import weakref
from pathlib import Path

import numpy as np
from resident import bare

from scaleshift.kernels.cuda.device import THREADS, Kernels

COMPILER = shutil.which("g++")


@functools.cache
def _folder():
    return tempfile.TemporaryDirectory(prefix="scaleshift-kernels-")


def functions_of(text):
    """Names of the kernels of a CUDA text."""
    return re.findall(r"^KERNEL(?:_OF\(\w+\))?\s+(\w+)\(", text, re.MULTILINE)


@functools.cache
def library_of(kernels: Kernels):
    """Compile a text, as it is, with a host's idea of threads and blocks before it."""
    name = "-".join([kernels.name, *(value for _, value in kernels.constants)])
    source = Path(_folder().name) / f"{name}.cpp"
    exports = "".join(f"EXPORT({function})\n" for function in functions_of(kernels.text))
    source.write_text(f'#include "{Path(__file__).with_name("host.hpp")}"\n{kernels.text}\n{exports}')
    built = source.with_suffix(".so")
    # products and sums are fused where the text says so and nowhere else
    command = [COMPILER, "-std=c++17", "-O1", "-march=native", "-ffp-contract=off", "-fPIC", "-shared"]
    command += ["-w", *kernels.options, "-o", built, source]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(built))


class HostLane:
    """Does at once what a GPU's lane does later, and checks what a GPU would not notice."""

    def __init__(self, backwards=False):
        self.backwards = backwards
        self.bytes = self.peak = 0  # of device memory, now and at most

    def follow(self):
        pass

    def wait(self):
        pass

    def upload(self, values, dtype=None):
        result = self.empty(values.shape, dtype or values.dtype)
        result[...] = values
        return result

    def empty(self, shape, dtype):
        result = np.empty(shape, dtype)
        result.reshape(-1).view(np.uint8).fill(0xFF)  # NaN, -1: what nobody writes is seen
        self._count(result.nbytes)
        weakref.finalize(result, self._count, -result.nbytes)
        return result

    def _count(self, change):
        self.bytes += change
        self.peak = max(self.peak, self.bytes)

    def sort(self, keys):
        assert keys.dtype == np.int64
        assert np.unique(keys).size == keys.size  # equal keys could come in any order
        self._count(2 * keys.nbytes)  # workspace
        keys.sort()
        self._count(-2 * keys.nbytes)

    def download(self, values):
        return np.array(values)

    def launch(self, kernels, function, grid, arguments):
        assert isinstance(grid, tuple)
        assert 1 <= len(grid) <= 3
        if 0 in grid:
            return
        assert grid[0] < 2**31
        assert max(grid[1:], default=1) < 2**16
        arguments = bare(tuple(arguments))
        library = library_of(kernels)
        signature = getattr(library, f"signature_{function}")
        signature.restype = ctypes.c_char_p
        expected = signature().decode().split()
        passed = ["*" * (np.ndim(value) > 0) + value.dtype.str[1:] for value in arguments]
        assert passed == expected, f"{function}: {passed} passed for {expected}"
        for array in arguments:
            assert array.dtype.isnative
            assert np.ndim(array) == 0 or array.ctypes.data % array.itemsize == 0
            # only rows come with strides
            assert np.ndim(array) == 2 or array.flags.c_contiguous
        boxes = [
            np.array(value.ctypes.data, dtype=np.uintp) if np.ndim(value) else np.array(value)
            for value in arguments
        ]
        values = (ctypes.c_void_p * len(boxes))(*(box.ctypes.data for box in boxes))
        call = getattr(library, f"launch_{function}")
        call.argtypes = [ctypes.c_void_p, *[ctypes.c_uint] * 3, ctypes.c_int, ctypes.c_bool]
        call.restype = None
        call(values, *(*grid, 1, 1)[:3], THREADS, self.backwards)
