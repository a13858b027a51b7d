"""Slices are judged alike whatever the order of the rows, their chunks and their ties."""

import itertools

import dask.array as da
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from scaleshift.blocks import graph
from scaleshift.errors import DataError
from scaleshift.slices import metrics

RNG = np.random.default_rng(0)
MEMBERSHIP = RNG.integers(0, 6, (500, 3)) / 5  # with ties
PLANTED = RNG.random((500, 2)) < [0.1, 0.4]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=6),
    st.integers(1, 6),
)
def test_precision_is_the_mean_over_all_orders_of_tied_rows(rows, k):
    values, planted = (np.array(column) for column in zip(*rows, strict=True))
    k = min(k, len(rows))
    found = []
    for order in itertools.permutations(range(len(rows))):
        order = np.array(order)
        by_value = order[np.argsort(-values[order], kind="stable")]
        found.append(planted[by_value[:k]].mean())
    assert metrics.precision_at_k(values, planted, k) == pytest.approx(np.mean(found), abs=1e-12)


@pytest.mark.parametrize("k", [1, 10, 137, 500])
def test_precision_does_not_depend_on_chunks_or_row_order(k):
    expected = metrics.precision_at_k(MEMBERSHIP, PLANTED, k)
    order = RNG.permutation(500)
    np.testing.assert_allclose(metrics.precision_at_k(MEMBERSHIP[order], PLANTED[order], k), expected)
    for chunk, other in [(500, 500), (7, 100), (100, 33)]:
        lazy = da.from_array(MEMBERSHIP, chunks=(chunk, 1 if chunk == 500 else 3))
        for planted in (PLANTED, da.from_array(PLANTED, chunks=(other, 2))):
            if chunk == 500:
                lazy = lazy.rechunk({1: -1})
            np.testing.assert_allclose(metrics.precision_at_k(lazy, planted, k), expected, rtol=1e-12)


def test_all_rows_have_the_planted_share():
    np.testing.assert_allclose(
        metrics.precision_at_k(MEMBERSHIP, PLANTED, 500), np.tile(PLANTED.mean(axis=0), (3, 1))
    )


def test_only_the_order_of_memberships_counts():
    expected = metrics.precision_at_k(MEMBERSHIP, PLANTED)
    np.testing.assert_array_equal(metrics.precision_at_k(np.exp(3 * MEMBERSHIP) - 7, PLANTED), expected)
    np.testing.assert_array_equal(metrics.precision_at_k((5 * MEMBERSHIP).astype("u1"), PLANTED), expected)
    one = metrics.precision_at_k(MEMBERSHIP[:, 0] > 0.5, PLANTED[:, 1])
    assert one == pytest.approx(PLANTED[MEMBERSHIP[:, 0] > 0.5, 1].mean())


def test_axes_are_those_of_the_arguments():
    whole = metrics.precision_at_k(MEMBERSHIP, PLANTED)
    assert whole.shape == (3, 2)
    np.testing.assert_array_equal(metrics.precision_at_k(MEMBERSHIP, PLANTED[:, 1]), whole[:, 1])
    np.testing.assert_array_equal(metrics.precision_at_k(MEMBERSHIP[:, 2], PLANTED), whole[2])
    assert metrics.precision_at_k(list(MEMBERSHIP[:, 2]), list(PLANTED[:, 1])) == whole[2, 1]
    named = xr.DataArray(MEMBERSHIP, dims=("row", "slice"))
    np.testing.assert_array_equal(metrics.precision_at_k(named, PLANTED), whole)


def test_precision_of_dask_rows_is_one_pass(monkeypatch):
    passes = []
    run = graph.compute

    def counted(*arguments, **keywords):
        passes.append(1)
        return run(*arguments, **keywords)

    monkeypatch.setattr(graph, "compute", counted)
    lazy = da.from_array(MEMBERSHIP, chunks=(50, 3)), da.from_array(PLANTED, chunks=(50, 2))
    metrics.score(*lazy)
    assert len(passes) == 1


def test_average_precision_is_scikit_learns():
    found = metrics.average_precision(MEMBERSHIP, PLANTED)
    for i, j in itertools.product(range(3), range(2)):
        assert found[i, j] == average_precision_score(PLANTED[:, j], MEMBERSHIP[:, i])
    assert np.isnan(metrics.average_precision(MEMBERSHIP[:, 0], np.zeros(500, bool)))


# Discoveries -------------------------------------------------------------------------------------------

IN_A, IN_B = np.arange(100) < 20, np.arange(100) >= 80


def test_rates_count_planted_slices_and_slices():
    planted = np.column_stack([IN_A, IN_B, np.arange(100) % 2 == 0])
    slices = np.column_stack([IN_A, IN_A, np.arange(100) % 5 == 0]).astype(float)
    assert metrics.discovery_rate(slices, planted) == pytest.approx(1 / 3)  # A is found, twice
    assert metrics.false_discovery_rate(slices, planted) == pytest.approx(1 / 3)
    # Half of A is even too: with a threshold of .5 that counts as found.
    assert metrics.discovery_rate(slices, planted, threshold=0.5) == pytest.approx(2 / 3)


def test_without_a_planted_slice_all_that_is_found_is_false():
    nothing = np.zeros((100, 1), bool)
    assert metrics.false_discovery_rate(np.column_stack([IN_A, IN_B]), nothing) == 1
    assert np.isnan(metrics.discovery_rate(IN_A, nothing))


def test_the_table_says_the_same():
    planted = np.column_stack([IN_A, IN_B, np.zeros(100, bool)])
    slices = np.column_stack([IN_B, np.arange(100) % 3 == 0]).astype(float)
    table = metrics.score(slices, planted)
    np.testing.assert_array_equal(table["precision_at_k"], metrics.precision_at_k(slices, planted))
    np.testing.assert_array_equal(table["average_precision"], metrics.average_precision(slices, planted))
    assert table["best_slice"].values[1] == 0
    assert table["found"].values.tolist() == [False, True, False]
    assert table["false_discovery"].values.tolist() == [False, True]
    assert table["discovery_rate"].item() == metrics.discovery_rate(slices, planted) == 0.5
    assert table["false_discovery_rate"].item() == metrics.false_discovery_rate(slices, planted) == 0.5
    assert all(table[name].attrs["long_name"] for name in table)
    lazy = metrics.score(da.from_array(slices, chunks=(30, 2)), planted)
    xr.testing.assert_equal(lazy, table.drop_vars("average_precision"))


# What cannot be judged ---------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [None, 20])
def test_arguments_without_a_meaning_are_refused(chunk):
    def given_as(values):
        return values if chunk is None else da.from_array(values, chunks=chunk)

    slices = given_as(IN_A.astype(float))
    with pytest.raises(DataError, match="there are 100 rows, fewer than k=101"):
        metrics.precision_at_k(slices, IN_A, 101)
    with pytest.raises(DataError, match="k=0: expected a whole number from 1"):
        metrics.precision_at_k(slices, IN_A, 0)
    with pytest.raises(DataError, match="NaN or infinite in 2 rows"):
        metrics.precision_at_k(given_as(np.where(np.arange(100) % 99 == 0, np.nan, 1.0)), IN_A)
    with pytest.raises(DataError, match="planted has values beside 0 and 1"):
        metrics.precision_at_k(slices, given_as(np.arange(100)))
    with pytest.raises(DataError, match="membership has 100 rows, planted has 99"):
        metrics.score(slices, IN_A[:99])
    with pytest.raises(DataError, match="threshold=2: expected"):
        metrics.discovery_rate(slices, IN_A, threshold=2)


def test_average_precision_refuses_what_it_would_have_to_sort():
    with pytest.raises(DataError, match=r"membership is a Dask array, .*: pass membership.compute"):
        metrics.average_precision(da.from_array(MEMBERSHIP), PLANTED)
    with pytest.raises(DataError, match="NaN or infinite in 1 rows"):
        metrics.average_precision([np.nan, 1.0], [0, 1])
    with pytest.raises(DataError, match="beside 0 and 1"):
        metrics.average_precision([0.0, 1.0], [0, 2])
