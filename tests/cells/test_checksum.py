"""The checksum of a whole is that of its parts, put together."""

import zlib

from hypothesis import given
from hypothesis import strategies as st

from scaleshift.cells.intake.checksum import combine


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=5))
def test_pieces_make_the_checksum_of_the_whole(pieces):
    crc = 0
    for piece in pieces:
        crc = combine(crc, zlib.crc32(piece), len(piece))
    assert crc == zlib.crc32(b"".join(pieces))


def test_long_pieces_too():
    first, second = bytes(range(256)) * 3000, bytes(1_000_003)
    assert combine(zlib.crc32(first), zlib.crc32(second), len(second)) == zlib.crc32(first + second)
