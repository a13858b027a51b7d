"""Where do the CPU kernels keep their intermediate rows? In arrays laid out so that the CPU never stalls."""

import math

import numpy as np
from numpy.typing import DTypeLike

_PAGE = 4096


def work_rows(*shape: int) -> np.ndarray:
    """Return float32 zeros with at least the columns asked for, aligned for vector loads and stores.

    The first row starts on a page, so that vector loads never straddle cache lines. Row strides are an odd
    number of 512 bytes: eight rows differ in the low 12 bits of their addresses. Where those agree, the CPU
    may take a load for the reader of an earlier store and wait (up to 1.7 times slower, by luck of malloc).

    Parameters
    ----------
    *shape : int
        Rows may have several dimensions; the last number is the least number of columns.

    Returns
    -------
    (*shape[:-1], stride) numpy.ndarray of float32
        C-contiguous; stride is the next odd multiple of 128.

    Examples
    --------
    >>> work_rows(4, 200).shape
    (4, 384)
    """
    *leading, width = shape
    stride = 128 * (-(-width // 128) | 1)
    return zeros((*leading, stride), np.float32)


def zeros(shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
    """Return C-contiguous zeros of which the first starts on a page.

    Examples
    --------
    >>> zeros((3, 8), np.float64).ctypes.data % 4096
    0
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    buffer = np.zeros(size + _PAGE, dtype=np.uint8)
    skip = -buffer.ctypes.data % _PAGE
    return buffer[skip : skip + size].view(dtype).reshape(shape)
