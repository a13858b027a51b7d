"""Folds are random, equal where it matters, and the same for any chunking."""

import itertools

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaleshift.blocks import folds
from scaleshift.blocks.rows import as_rows

RNG = np.random.default_rng(0)
N = 30_000
CODES = np.where(RNG.random(N) < 0.7, 0, np.where(RNG.random(N) < 0.05, 1, 2))
CODES[:20] = 3
LABELS = np.array(["a", "b", "c", "d"])[CODES].astype(object)
LABELS[1_000:1_100] = None


def found(rows, n_folds=40, seed=0, stream="folds"):
    """Fold of every row, block by block."""
    divided = folds.divide(rows, "label", n_folds, seed, stream)
    sizes = [len(rows.x)] if rows.is_one_block else rows.x.chunks[0]
    codes = np.array([-1 if label is None else "abcd".index(label) for label in LABELS])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    return codes, np.concatenate([divided(a, codes[a:b]) for a, b in itertools.pairwise(starts)])


CODE, FOLD = found(as_rows(np.ones((N, 1)), LABELS))


def test_small_categories_are_divided_into_exactly_equal_parts():
    for code in (1, 2, 3):
        sizes = np.bincount(FOLD[code == CODE], minlength=40)
        assert sizes.sum() == (code == CODE).sum()
        assert sizes.max() - sizes.min() <= 1


def test_large_categories_are_hashed():
    sizes = np.bincount(FOLD[CODE == 0], minlength=40)
    assert (CODE == 0).sum() > 10_000
    assert 0.5 < sizes.var() / sizes.mean() < 1.7


@given(st.integers(500, N), st.integers(500, N))
@settings(max_examples=8, deadline=None)
def test_any_chunking_gives_the_same_folds(x_chunk, y_chunk):
    rows = as_rows(da.ones((N, 1), chunks=(x_chunk, 1)), da.from_array(LABELS, chunks=y_chunk))
    code, fold = found(rows)
    assert np.array_equal(fold[code >= 0], FOLD[CODE >= 0])


def test_empty_blocks_change_no_fold():
    chunks = (0, 9_000, 0, 0, 9_000, 12_000, 0)
    code, fold = found(as_rows(da.ones((N, 1), chunks=(chunks, 1)), da.from_array(LABELS, chunks=(chunks,))))
    assert np.array_equal(fold[code >= 0], FOLD[CODE >= 0])


@pytest.mark.parametrize("other", [{"seed": 1}, {"stream": "others"}])
def test_seeds_and_streams_give_independent_folds(other):
    _, fold = found(as_rows(np.ones((N, 1)), LABELS), **other)
    assert 0.015 < (fold == FOLD)[CODE >= 0].mean() < 0.035


def test_folds_do_not_follow_the_order_of_rows():
    rank = np.arange((CODE == 2).sum())
    means = [rank[FOLD[CODE == 2] == fold].mean() for fold in range(40)]
    expected = rank.std() / np.sqrt(rank.size / 40)
    assert 0.7 < np.std(means) / expected < 1.3


def test_a_small_category_has_the_same_folds_whatever_the_others_are():
    alone = np.where(LABELS == "c", LABELS, None)
    divided = folds.divide(as_rows(np.ones((N, 1)), alone), "label", 40, 0, "folds")
    fold = divided(0, np.where(alone == "c", 0, -1))
    assert np.array_equal(fold[alone == "c"], FOLD[alone == "c"])
