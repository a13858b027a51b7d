"""Sums of the columns and of their squares by group, on the CPU: those of the reference."""

import numpy as np
import pytest

from scaleshift.kernels import reference
from scaleshift.kernels.cpu.moments import moment_sums

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "u1", "?"])
@pytest.mark.parametrize(("n", "d", "n_groups"), [(0, 3, 2), (1, 1, 1), (5_000, 7, 4), (300, 2, 400)])
def test_moments_are_those_of_the_reference(dtype, n, d, n_groups):
    x = (50 * RNG.random((n, d))).astype(dtype)
    groups = RNG.integers(-2, n_groups, n)
    found = moment_sums(x, groups, n_groups)
    assert found.shape == (n_groups, 2, d)
    np.testing.assert_allclose(found, reference.moment_sums(x, groups, n_groups), rtol=1e-13)


@pytest.mark.parametrize("order", ["C", "F"])
def test_moments_of_any_memory_order(order):
    x, groups = np.asarray(RNG.normal(size=(400, 3)), order=order), RNG.integers(0, 2, 400)
    rows = x[groups == 1]
    np.testing.assert_allclose(moment_sums(x, groups, 2)[1], [rows.sum(axis=0), (rows**2).sum(axis=0)])
    np.testing.assert_allclose(
        moment_sums(x[::2], groups[::2], 2), reference.moment_sums(x[::2], groups[::2], 2)
    )


def test_float32_rows_are_summed_in_float64():
    x = np.full((1 << 20, 1), np.float32(0.1))
    found = moment_sums(x, np.zeros(len(x), np.int64), 1)[0, :, 0]
    value = float(np.float32(0.1))
    np.testing.assert_allclose(found, [value * len(x), value**2 * len(x)], rtol=1e-9)


def test_rows_that_are_skipped_may_be_nan():
    x = np.array([[1.0], [np.nan], [3.0]])
    assert moment_sums(x, np.array([0, -1, 0]), 1).tolist() == [[[4.0], [10.0]]]


def test_a_group_beyond_is_refused():
    with pytest.raises(ValueError, match="n_groups is 1"):
        moment_sums(np.zeros((2, 1)), np.array([0, 1]), 1)


def test_a_weight_counts_as_so_many_equal_rows():
    x, groups, weight = RNG.normal(size=(300, 3)), RNG.integers(-1, 2, 300), RNG.integers(0, 4, 300)
    repeated = moment_sums(np.repeat(x, weight, axis=0), np.repeat(groups, weight), 2)
    np.testing.assert_allclose(moment_sums(x, groups, 2, weight), repeated, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(reference.moment_sums(x, groups, 2, weight), repeated, rtol=1e-12, atol=1e-12)
