"""The energy kernel pair by pair, and projected rows row by row."""

import numpy as np
import pytest

from scaleshift.kernels import dispatch, energy
from scaleshift.kernels.cpu import sliced

RNG = np.random.default_rng(0)


def test_energy_sums_are_those_of_the_formula():
    x, z, o = RNG.normal(size=(40, 3)) + 5, RNG.normal(size=(9, 3)) + 5, np.array([1.0, -2, 0])
    groups, classes = RNG.integers(-1, 3, 40), RNG.integers(-1, 2, 9)
    norm = np.linalg.norm
    expected = np.zeros((3, 3))
    for row, g in zip(x, groups, strict=True):
        if g >= 0:
            kernel = np.array([norm(row - o) + norm(point - o) - norm(row - point) for point in z])
            expected[g] += [kernel[classes == 0].mean(), kernel[classes == 1].mean(), 2 * norm(row - o)]
    found = dispatch.energy_sums(x, groups, 3, z, classes, 2, o)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("distance", [1e30, 1e300])
def test_an_energy_sum_stays_finite_for_a_row_at_any_distance(distance):
    z = RNG.normal(size=(5, 2))
    found = dispatch.energy_sums(np.full((1, 2), distance), np.array([0]), 1, z, np.zeros(5, int), 1, z[0])
    assert np.isfinite(found).all()


def grids(n_directions=7, d=3, n_bins=11):
    w = RNG.normal(size=(n_directions, d))
    w /= np.linalg.norm(w, axis=1)[:, None]
    ends = np.sort(RNG.normal(size=(n_directions, 4)) * 2, axis=1) + np.array([-1, 0, 0.5, 1])
    return {"directions": w, "centre": RNG.normal(size=d), "ends": ends, "n_bins": n_bins}


def row_by_row(x, groups, n_groups, directions, centre, ends, n_bins):
    sums = np.zeros((n_groups, len(directions), n_bins + 3))
    for row, g in zip(x, groups, strict=True):
        for t, (w, (e0, e1, e2, e3)) in enumerate(zip(directions, ends, strict=True)):
            nodes = np.concatenate([[e0], np.linspace(e1, e2, n_bins + 1), [e3]])
            p = np.clip(w @ (row - centre), e0, e3)
            i = min(np.searchsorted(nodes, p, "right") - 1, n_bins + 1)
            f = (p - nodes[i]) / (nodes[i + 1] - nodes[i])
            if g >= 0:
                sums[g, t, i] += 1 - f
                sums[g, t, i + 1] += f
    return sums.reshape(n_groups, -1)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2"])
@pytest.mark.parametrize("n_bins", [1, 11, 1_000])
def test_masses_are_shared_by_the_nodes_beside_each_projected_row(dtype, n_bins):
    x, groups = (RNG.normal(size=(300, 3)) * 3).astype(dtype), RNG.integers(-1, 4, 300)
    grid = grids(n_bins=n_bins)
    expected = row_by_row(x, groups, 5, **grid)
    np.testing.assert_allclose(energy.sliced_sums(x, groups, 5, **grid), expected, atol=1e-9)
    # 2^-16 of a bin, and float32's digits of a position
    np.testing.assert_allclose(
        sliced.sliced_sums(x, groups, 5, **grid), expected, atol=300 * (2e-5 + 2e-7 * n_bins)
    )


@pytest.mark.parametrize("n", [1, 2_047, 2_048, 2_049, 10_000])
@pytest.mark.parametrize("n_groups", [1, 3, 5_000])
def test_no_row_is_lost(n, n_groups):
    x, groups = RNG.normal(size=(n, 3)).astype("f4"), RNG.integers(-1, n_groups, n)
    found = sliced.sliced_sums(x, groups, n_groups, **grids()).reshape(n_groups, 7, -1)
    counts = np.bincount(groups[groups >= 0], minlength=n_groups)
    np.testing.assert_array_equal(found.sum(axis=2), np.repeat(counts[:, None], 7, axis=1))


def test_the_order_of_rows_and_cuts_change_no_bit():
    x, groups, grid = RNG.normal(size=(5_000, 3)).astype("f4"), RNG.integers(0, 4, 5_000), grids()
    whole = sliced.sliced_sums(x, groups, 4, **grid)
    order = RNG.permutation(5_000)
    np.testing.assert_array_equal(sliced.sliced_sums(x[order], groups[order], 4, **grid), whole)
    parts = [sliced.sliced_sums(x[a:b], groups[a:b], 4, **grid) for a, b in ((0, 1_234), (1_234, 5_000))]
    np.testing.assert_array_equal(parts[0] + parts[1], whole)


@pytest.mark.parametrize("value", [1e30, -1e30, 1e300, np.inf])
def test_what_lies_beyond_counts_at_the_end_of_the_grid(value):
    x, grid = np.full((2, 3), [value, 0, 0]), grids()
    found = sliced.sliced_sums(x, np.array([0, 0]), 1, **grid).reshape(7, -1)
    assert set(np.abs(found[:, [0, -1]]).max(axis=1).round(4)) == {2.0}


def test_rows_without_a_group_may_be_nan():
    x, grid = np.array([[np.nan] * 3, [0.1, 0.2, 0.3]]), grids()
    groups = np.array([-1, 0])
    expected = energy.sliced_sums(x[1:], groups[1:], 1, **grid)
    np.testing.assert_allclose(sliced.sliced_sums(x, groups, 1, **grid), expected, atol=1e-4)
    np.testing.assert_allclose(energy.sliced_sums(x, groups, 1, **grid), expected, atol=1e-12)
