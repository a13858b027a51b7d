"""Uniform numbers are those of numpy's Philox, to the bit."""

import numpy as np
import pytest

from scaleshift.blocks import noise


@pytest.mark.parametrize(("start", "n", "b"), [(0, 50, 3), (4_090, 4_200, 21), (8_191, 1, 40), (5, 0, 2)])
def test_uniform_numbers_are_those_of_numpy(start, n, b):
    found = noise.uniforms(2**63 - 5, "train", start, n, b)
    last = (start + n) // noise.TILE + 1
    whole = np.empty((last * noise.TILE, -(-b // noise.REPLICATES) * noise.REPLICATES))
    for tile in range(last):
        for block in range(whole.shape[1] // noise.REPLICATES):
            bits = noise._philox(2**63 - 5, "train", tile, 2, block)
            drawn = np.random.Generator(bits).random((noise.REPLICATES, noise.TILE))
            rows = slice(tile * noise.TILE, (tile + 1) * noise.TILE)
            columns = slice(block * noise.REPLICATES, (block + 1) * noise.REPLICATES)
            whole[rows, columns] = drawn.T
    np.testing.assert_array_equal(found, whole[start : start + n, :b])
