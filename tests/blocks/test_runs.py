"""Pieces hold whole categories, in the order of the rows."""

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaleshift.blocks import graph, passes, probe
from scaleshift.blocks.leaves import summing
from scaleshift.blocks.rows import as_rows
from scaleshift.blocks.runs import pieces

NAMES = np.repeat([f"s{i}" for i in range(6)], [3, 40, 1, 0, 25, 31])


def rows(names, chunk=None):
    x = np.zeros((len(names), 1))
    return as_rows(x if chunk is None else da.from_array(x, chunks=(chunk, 1)), None, names)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.integers(1, 20), st.integers(1, 7))
def test_pieces_are_whole_categories_and_as_long_as_wanted(lengths, wanted, chunk):
    names = np.repeat(np.arange(len(lengths)), lengths)
    found = pieces(rows(names, chunk), "sample", wanted)
    ends = np.cumsum(lengths).tolist()
    assert [begin for begin, _ in found] == [0, *(end for _, end in found[:-1])]
    assert found[-1][1] == ends[-1]
    assert all(end in ends for _, end in found)
    assert all(end - begin >= wanted for begin, end in found[:-1])
    for begin, end in found:  # and no longer: without its last category a piece would be too short
        before = max(e for e in (0, *ends) if e < end)
        assert before - begin < wanted


@pytest.mark.parametrize("chunk", [None, 1, 7, 100])
def test_pieces_do_not_depend_on_chunks(chunk):
    assert pieces(rows(NAMES, chunk), "sample", 30) == [(0, 43), (43, 100)]


def test_parts_of_rows_have_pieces_of_their_own():
    assert pieces(rows(NAMES, 7).between(43, 100), "sample", 1) == [(0, 1), (1, 26), (26, 57)]


def test_scattered_categories_are_one_piece():
    assert pieces(rows(NAMES[::-1], 9), "sample", 50) == [(0, 56), (56, 100)]  # any order of categories
    assert pieces(rows(np.tile(NAMES, 2), 9), "sample", 50) == [(0, 200)]


def test_no_rows_are_one_piece():
    assert pieces(rows(NAMES, 7).between(4, 4), "sample", 30) == [(0, 0)]


def test_parts_of_rows_take_one_task_a_block_and_keep_their_numbers():
    x = np.arange(200.0).reshape(100, 2)
    lazy = da.from_array(Unread(x), chunks=(10, 2), asarray=False, meta=x[:0])
    part = as_rows(lazy, None, da.from_array(NAMES, chunks=10)).between(15, 61)
    assert part.x.chunks[0] == (5, 10, 10, 10, 10, 1)
    done = summing(placed, part.only("sample"), {"sum": (2,), "row": ()})
    _, root = graph.reduction(done.leaf, done.merge, part.only("sample"), {}, done.width)
    assert probe.n_tasks(root) == 6 + 1
    found = passes.total(placed, part.only("sample"), {"sum": (2,), "row": ()})
    assert found["sum"].tolist() == x[15:61].sum(axis=0).tolist()
    assert found["row"] == np.arange(15, 61).sum()


def placed(block):
    return {"sum": block.x.sum(axis=0), "row": (block.start + np.arange(len(block.x))).sum()}


class Unread:
    """Array-like that is not in memory, as a store is not."""

    def __init__(self, array):
        self.array, self.shape, self.dtype, self.ndim = array, array.shape, array.dtype, array.ndim

    def __getitem__(self, index):
        return self.array[index].copy()
