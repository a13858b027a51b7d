"""Rows brought together by group."""

import numpy as np
import pytest

from scaleshift.kernels.cpu.packing import ROWS, make_tile, pack, tile_rows, tiles


@pytest.mark.parametrize("n_groups", [1, 7, 5000])
def test_every_row_that_counts_stands_once_among_those_of_its_group(n_groups):
    rng = np.random.default_rng(0)
    depth = 2000  # tiles of a few dozen rows
    x = rng.normal(size=(700, 3)).astype(np.float32)
    codes = rng.integers(-1, n_groups, 700).astype(np.int32)
    rows = np.flatnonzero(codes >= 0)
    tile = make_tile(len(rows), n_groups, depth)
    seen = []
    for chosen, low, high in tiles(rows, codes, n_groups, depth):
        tile[:, :3] = np.nan  # of a tile before
        starts, stops = pack(x, chosen, codes, low, high, np.float32([1, 2, 3]), np.float32(2), tile)
        assert not (starts % ROWS).any()
        for group in range(high - low):
            found = tile[starts[group] : stops[group], :3]
            members = chosen[codes[chosen] == low + group]
            np.testing.assert_array_equal(found, (x[members] - np.float32([1, 2, 3])) * 2)
            assert not tile[stops[group] : starts[group + 1]].any()
            seen.extend(members)
    assert sorted(seen) == rows.tolist()


def test_tiles_of_many_groups_meet_few_of_them():
    codes = np.random.default_rng(0).integers(0, 5000, 4000).astype(np.int32)
    spans = [high - low for _, low, high in tiles(np.arange(4000), codes, 5000, 2000)]
    assert len(spans) == -(-4000 // tile_rows(2000))
    assert sum(spans) <= 5000 + len(spans)
