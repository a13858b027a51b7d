"""How is a checksum of many pieces put together? CRC-32 of the whole from those of its parts.

With CRC-32 as zlib computes it, anyone can check a sample: ``zlib.crc32(X[rows].tobytes())``. Appending n
zero bytes to a message multiplies its CRC by x^(8n) modulo the CRC's polynomial; that is linear over GF(2),
so the CRC of a concatenation follows from the two CRCs and the length of the second part.
"""

from __future__ import annotations

import functools

POLYNOMIAL = 0xEDB88320  # of CRC-32, bit-reflected


def combine(first: int, second: int, n_bytes: int) -> int:
    """CRC-32 of two pieces one after the other.

    Parameters
    ----------
    first, second : int
        ``zlib.crc32`` of each piece.
    n_bytes : int
        Length of the second piece.

    Returns
    -------
    int

    Examples
    --------
    >>> import zlib
    >>> combine(zlib.crc32(b"dis"), zlib.crc32(b"tribution"), 9) == zlib.crc32(b"distribution")
    True
    """
    bit = 0
    while n_bytes:
        if n_bytes & 1:
            first = _times(_zeros(bit), first)
        n_bytes >>= 1
        bit += 1
    return first ^ second


@functools.cache
def _zeros(bit: int) -> tuple[int, ...]:
    """The operator that appends 2**bit zero bytes: the images of the 32 unit vectors."""
    if bit > 0:
        half = _zeros(bit - 1)
        return tuple(_times(half, column) for column in half)
    operator = (POLYNOMIAL, *(1 << i for i in range(31)))  # one zero bit
    for _ in range(3):  # 2, 4, 8 zero bits
        operator = tuple(_times(operator, column) for column in operator)
    return operator


def _times(operator: tuple[int, ...], vector: int) -> int:
    """Product of a 32 x 32 matrix over GF(2), given by its columns, with a vector."""
    product, i = 0, 0
    while vector:
        if vector & 1:
            product ^= operator[i]
        vector >>= 1
        i += 1
    return product
