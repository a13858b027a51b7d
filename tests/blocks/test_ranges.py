"""Rows by ranges of one column: each range has all its rows, once, for any chunks, in not too many tasks."""

import dask.array as da
import numpy as np
import pytest

from scaleshift.blocks import graph, passes, ranges
from scaleshift.blocks.rows import as_rows, with_numbers

RNG = np.random.default_rng(0)
N = 5_000
AT, SIZE = np.round(RNG.normal(size=N), 2), RNG.integers(1, 200, N).astype("u1")


def leaf(block, only_from=-np.inf):
    chosen = block.columns["at"] >= only_from
    return {name: block.columns[name][chosen] for name in ("at", "size")}


def join(tables):
    table = {name: np.concatenate([t[name] for t in tables]) for name in ("at", "size")}
    order = np.argsort(table["at"], kind="stable")
    return {name: values[order] for name, values in table.items()}


def answer(table, totals, number):
    return table["at"], table["size"], totals["size"], number


def rows(chunks):
    nothing, at, size = np.zeros((N, 1), "i1"), AT, SIZE
    if chunks:
        nothing, at, size = (da.from_array(v, chunks=(chunks, *v.shape[1:])) for v in (nothing, at, size))
    return with_numbers(as_rows(nothing), at=at, size=size).only("at", "size")


@pytest.mark.parametrize("cuts", [[], [0.0], [-1, -0.5, 0.003, 2], [-99, 99]])
@pytest.mark.parametrize("chunks", [None, N, 700, ((0, 10, 0, N - 10),)])
@pytest.mark.parametrize("range_rows", [300, 10**6])
def test_each_range_has_all_its_rows_in_order(cuts, chunks, range_rows, monkeypatch):
    monkeypatch.setattr(ranges, "RANGE_ROWS", range_rows)
    chunks = chunks[0] if isinstance(chunks, tuple) else chunks
    found = passes.by_range(leaf, join, answer, rows(chunks), "at", np.array(cuts, float))
    place = np.searchsorted(cuts, AT, side="right")
    sums = np.bincount(place, SIZE, len(cuts) + 1)
    assert [number for *_, number in found] == list(range(len(cuts) + 1))
    for at, size, totals, number in found:
        order = np.argsort(AT[place == number], kind="stable")
        np.testing.assert_array_equal(at, AT[place == number][order])
        np.testing.assert_array_equal(size, SIZE[place == number][order])
        assert totals.dtype == np.int64  # bytes do not overflow
        np.testing.assert_array_equal(totals, sums)


def test_parameters_reach_the_blocks():
    found = passes.by_range(leaf, join, answer, rows(600), "at", np.array([0.0]), only_from=0.5)
    assert found[0][0].size == 0
    assert found[1][0].size == np.count_nonzero(AT >= 0.5)


def test_the_tasks_of_many_blocks_are_bounded(monkeypatch):
    """2 000 blocks and 50 ranges: blocks are joined before their rows are cut."""
    monkeypatch.setattr(ranges, "MAX_RANGES", 10)
    monkeypatch.setattr(ranges, "RANGE_ROWS", 1)
    many = da.zeros((20_000, 1), chunks=(10, 1), dtype="i1")
    of = with_numbers(as_rows(many), at=many[:, 0], size=many[:, 0]).only("at", "size")
    assert ranges.n_ranges(of) == 10
    leaves = graph.on_blocks(leaf, of, 1, np.empty((0, 0), object), {})
    cuts = np.linspace(0, 1, 9)
    lazy = ranges.exchange(leaves, join, answer, "at", cuts, ranges.n_ranges(of))
    n_tasks = len(dict(lazy.dask)) - len(dict(leaves.dask))
    assert n_tasks <= 10 * 10 + 3 * 10 + 10 + 2


@pytest.mark.parametrize(
    "drawn", [RNG.normal(size=10_000), np.repeat([1.0, 2, 3], 500), np.ones(9), np.empty(0)]
)
def test_cuts_divide_as_equally_as_ties_allow(drawn):
    cuts = ranges.cuts(drawn, 20)
    assert len(cuts) <= 19
    assert np.all(np.diff(cuts) > 0)
    sizes = np.bincount(np.searchsorted(cuts, drawn, "right"), minlength=len(cuts) + 1)
    most_alike = np.unique(drawn, return_counts=True)[1].max(initial=0)
    assert sizes.max() <= len(drawn) / 20 + most_alike + 1
