"""Sums over sparse rows are those over the same rows made dense."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from scaleshift.kernels import dispatch, reference, scatter
from scaleshift.kernels import sparse as kernels

RNG = np.random.default_rng(0)
NAMES = ("csr", "csc", "coo", "lil", "dok", "bsr")
DENSITIES = [0.0, 0.01, 0.03, 0.3, 1.0]


def table(n, d, density, dtype=np.float64, rng=RNG):
    """Sparse rows with values far from zero, as counts are."""
    x = sparse.random_array((n, d), density=density, format="csr", rng=rng, data_sampler=rng.standard_normal)
    x.data = np.exp(x.data) + 1
    return x.astype(dtype)


def plain_moments(x, groups, n_groups, weight):
    x, sums = x.toarray().astype(float), np.zeros((n_groups, 2, x.shape[1]))
    for group in range(n_groups):
        w = weight[groups == group][:, None]
        sums[group] = (w * x[groups == group]).sum(axis=0), (w * x[groups == group] ** 2).sum(axis=0)
    return sums


def assert_same_scatter(found, expected, rtol):
    """Equal by the size of the scatter of each column: what an exact sum of rounded products is known to."""
    for name in ("count", "weight"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-14)
    spread = np.sqrt(np.einsum("gjj->gj", expected["scatter"]))
    error = np.abs(found["scatter"] - expected["scatter"])
    assert (error <= rtol * spread[:, :, None] * spread[:, None, :]).all()
    scale = np.sqrt(expected["weight"])[:, None] * spread
    assert (np.abs(found["sum"] - expected["sum"]) <= rtol * scale).all()


@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1", "?"])
def test_moments_are_those_of_dense_rows(dtype, density):
    x, groups = table(500, 30, density, dtype), RNG.integers(-1, 4, 500)
    found = dispatch.moment_sums(x, groups, 5)
    assert (found.shape, found.dtype) == ((5, 2, 30), np.float64)
    np.testing.assert_allclose(found, reference.moment_sums(x.toarray(), groups, 5), rtol=1e-13)
    assert not found[4].any()


@pytest.mark.parametrize("tile", [1, 100, 1 << 18])
def test_weighted_moments_count_each_row_by_its_weight(tile, monkeypatch):
    monkeypatch.setattr(kernels, "_STORED", tile)
    x, groups, weight = table(400, 20, 0.2, "f4"), RNG.integers(-1, 3, 400), RNG.random(400)
    found = kernels.moment_sums(x, groups, 3, weight)
    np.testing.assert_allclose(found, plain_moments(x, groups, 3, weight), rtol=1e-12)
    twice = kernels.moment_sums(x, groups, 3, np.full(400, 2.0))
    np.testing.assert_allclose(twice, 2 * kernels.moment_sums(x, groups, 3), rtol=1e-13)


@given(st.integers(0, 60), st.integers(1, 12), st.integers(1, 40), st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_moments_of_any_shape_and_tile(n, d, tile, seed):
    rng = np.random.default_rng(seed)
    x, groups = table(n, d, rng.random(), rng=rng), rng.integers(-1, 3, n)
    tiles = list(kernels._row_tiles(x.indptr, tile))
    assert [row for first, last in tiles for row in range(first, last)] == list(range(n))
    assert all(last - first == 1 or x.indptr[last] - x.indptr[first] <= tile for first, last in tiles)
    found = kernels.moment_sums(x, groups, 3)
    np.testing.assert_allclose(found, reference.moment_sums(x.toarray(), groups, 3), rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_scatter_is_that_of_dense_rows(dtype, density, weighted):
    x, groups = table(900, 40, density, dtype), RNG.integers(-1, 3, 900)
    weight = RNG.random(900) * (RNG.random(900) < 0.9) if weighted else None
    mean = x.toarray().astype(float).mean(axis=0)
    for centre in (mean, np.zeros(40), mean + 50):
        found = dispatch.scatter_sums(x, groups, 4, centre, weight)
        expected = scatter.scatter_sums(x.toarray(), groups, 4, centre, weight)
        assert {name: part.shape for name, part in found.items()} == {
            name: part.shape for name, part in expected.items()
        }
        assert_same_scatter(found, expected, 1e-12)


def test_one_column_far_from_zero_costs_the_others_no_digits():
    """Its products about zero would be 1e16 times its scatter: such rows are centred before."""
    x = table(2_000, 60, 0.01).tolil()
    x[:, [7]] = 1e8 + RNG.standard_normal((2_000, 1))
    x, groups = x.tocsr(), np.zeros(2_000, int)
    assert x.nnz < 0.05 * 2_000 * 60
    centre = x.toarray().mean(axis=0)
    expected = scatter.scatter_sums(x.toarray(), groups, 1, centre)
    assert_same_scatter(kernels.scatter_sums(x, groups, 1, centre), expected, 1e-12)
    # The same where few rows hold all the weight of a column.
    few = table(2_000, 60, 0.01).tolil()
    few[:20, [7]] = 1e8 + RNG.standard_normal((20, 1))
    weight = np.where(np.arange(2_000) < 20, 100.0, 1e-7)
    centre = np.average(few.toarray(), axis=0, weights=weight)
    expected = scatter.scatter_sums(few.toarray(), groups, 1, centre, weight)
    assert_same_scatter(kernels.scatter_sums(few.tocsr(), groups, 1, centre, weight), expected, 1e-12)


@pytest.mark.parametrize("density", [0.01, 0.3])
def test_both_ways_to_the_products_agree(density):
    x, weight = table(3_000, 50, density), RNG.random(3_000)
    centre = x.toarray().mean(axis=0)
    thin, dense = (ways(x, centre, weight) for ways in (kernels._thin_products, kernels._dense_products))
    for a, b in zip(thin, dense, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12 * np.abs(dense[1]).max())
    assert kernels._is_thin(x, weight) == (density < 0.05)


def test_rows_are_made_dense_a_tile_at_a_time():
    n, d = 20_000, 400
    x, groups = table(n, d, 0.1, "f4"), np.zeros(n, int)
    tracemalloc.start()
    kernels.scatter_sums(x, groups, 1, np.zeros(d))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < n * d * 8 / 1.5  # all rows at once would take that three times


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_any_format_is_served(name, kind):
    x = table(100, 8, 0.2)
    groups = RNG.integers(-1, 2, 100)
    given = getattr(sparse, f"{name}_{kind}")(x)
    expected = reference.moment_sums(x.toarray(), groups, 2)
    np.testing.assert_allclose(dispatch.moment_sums(given, groups, 2), expected, rtol=1e-13)
    expected = scatter.scatter_sums(x.toarray(), groups, 2, np.ones(8))
    assert_same_scatter(dispatch.scatter_sums(given, groups, 2, np.ones(8)), expected, 1e-12)


def test_repeated_values_are_added_before_they_are_squared():
    data, indices, indptr = np.array([1.0, 5.0, 2.0, 0.0]), np.array([2, 0, 2, 1]), np.array([0, 4])
    x = sparse.csr_array((data, indices, indptr), shape=(1, 3))
    assert kernels.moment_sums(x, np.array([0]), 1).tolist() == [[[5, 0, 3], [25, 0, 9]]]
    found = kernels.scatter_sums(x, np.array([0]), 1, np.zeros(3))
    assert found["scatter"][0].tolist() == [[25, 0, 15], [0, 0, 0], [15, 0, 9]]
    assert x.indices.tolist() == [2, 0, 2, 1]


def test_skipped_rows_may_hold_anything():
    x = table(50, 4, 0.5)
    x.data[x.indptr[7] : x.indptr[9]] = np.nan
    groups = np.where(np.isin(np.arange(50), [7, 8]), -1, 0)
    assert np.isfinite(kernels.moment_sums(x, groups, 1)).all()
    assert np.isfinite(kernels.scatter_sums(x, groups, 1, np.zeros(4))["scatter"]).all()


@pytest.mark.parametrize("kernel", ["moment_sums", "scatter_sums"])
def test_wrong_codes_are_refused(kernel):
    x = table(3, 2, 0.5)
    centre = (np.zeros(2),) if kernel == "scatter_sums" else ()
    for groups in (np.array([0, 1, 2]), np.array([0, 1])):
        with pytest.raises(ValueError, match="groups"):
            getattr(dispatch, kernel)(x, groups, 2, *centre)


@pytest.mark.parametrize("kernel", sorted(set(dispatch.KERNELS) - {"moment_sums", "scatter_sums"}))
def test_kernels_without_a_sparse_version_refuse_sparse_blocks(kernel):
    with pytest.raises(
        TypeError, match=rf"{kernel} works on numpy.*csr_array: convert it with its toarray\(\)"
    ):
        dispatch.implementation(kernel, sparse.csr_array((2, 3)))
