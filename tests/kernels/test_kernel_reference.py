"""The reference kernels against sums written out pair by pair."""

import numpy as np
import pytest

from scaleshift.kernels import reference


def rows_and_groups(n, d, n_groups, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.integers(-1, n_groups, n)


def test_fourier_sums_are_cosines_then_sines_added_by_group():
    x, groups = rows_and_groups(200, 3, 4)
    frequencies = np.random.default_rng(1).normal(size=(7, 3))
    expected = np.zeros((4, 14))
    for row, group in zip(x, groups, strict=True):
        if group >= 0:
            expected[group] += np.concatenate([np.cos(frequencies @ row), np.sin(frequencies @ row)])
    np.testing.assert_allclose(reference.fourier_sums(x, groups, 4, frequencies), expected, atol=1e-12)


def test_exact_sums_are_class_means_of_the_kernel_added_by_group():
    x, groups = rows_and_groups(80, 3, 4)
    points, point_groups = rows_and_groups(60, 3, 5, seed=1)
    expected = np.zeros((4, 5))
    for row, group in zip(x, groups, strict=True):
        kernel = np.exp(-((row - points) ** 2).sum(axis=1) / (2 * 0.8**2))
        if group >= 0:
            expected[group] += [kernel[point_groups == j].mean() for j in range(5)]
    sums = reference.exact_sums(x, groups, 4, points, point_groups, 5, bandwidth=0.8)
    np.testing.assert_allclose(sums, expected, rtol=1e-13)


def test_landmark_sums_are_the_kernel_with_each_landmark_and_what_none_of_them_sees():
    x, groups = rows_and_groups(80, 3, 4)
    landmarks = np.random.default_rng(1).normal(size=(6, 3))
    expected = np.zeros((4, 7))
    for row, group in zip(x, groups, strict=True):
        kernel = np.exp(-((row - landmarks) ** 2).sum(axis=1) / (2 * 0.8**2))
        if group >= 0:
            expected[group] += [*kernel, np.exp(-kernel.sum())]
    np.testing.assert_allclose(reference.landmark_sums(x, groups, 4, landmarks, 0.8), expected, rtol=1e-13)


@pytest.mark.parametrize("distance", [1e9, 1e30, 1e300, np.inf])
def test_no_landmark_sees_a_row_far_away_and_its_residual_is_one(distance):
    x, landmarks = np.full((1, 3), distance), np.random.default_rng(1).normal(size=(6, 3))
    sums = reference.landmark_sums(x, np.array([0]), 1, landmarks, bandwidth=1.0)
    np.testing.assert_array_equal(sums, [[0, 0, 0, 0, 0, 0, 1]])


def test_exact_sums_keep_their_digits_far_from_the_origin():
    x, groups = rows_and_groups(50, 3, 2)
    points, point_groups = rows_and_groups(40, 3, 2, seed=1)
    near = reference.exact_sums(x, groups, 2, points, point_groups, 2, bandwidth=1.0)
    far = reference.exact_sums(x + 2.0**20, groups, 2, points + 2.0**20, point_groups, 2, bandwidth=1.0)
    np.testing.assert_allclose(far, near, rtol=1e-8)


def test_a_row_on_a_point_counts_one_and_never_more():
    points = np.random.default_rng(0).normal(size=(30, 6)) * 1e3
    sums = reference.exact_sums(points, np.arange(30), 30, points, np.arange(30), 30, bandwidth=1e-2)
    assert np.diag(sums).max() == 1
    np.testing.assert_allclose(sums, np.eye(30), atol=1e-4)


def test_classes_without_points_and_groups_without_rows_give_zero():
    x, z = np.zeros((3, 1)), np.zeros((2, 1))
    sums = reference.exact_sums(x, np.array([0, 0, 2]), 4, z, np.array([1, -1]), 3, bandwidth=1.0)
    np.testing.assert_array_equal(sums, [[0, 2, 0], [0, 0, 0], [0, 1, 0], [0, 0, 0]])
    assert not reference.exact_sums(x, np.zeros(3, int), 1, z, np.full(2, -1), 2, bandwidth=1.0).any()
    assert not reference.fourier_sums(x, np.full(3, -1), 2, np.ones((4, 1))).any()
    sums = reference.landmark_sums(x, np.array([0, 0, 2]), 4, z[:1], bandwidth=1.0)
    np.testing.assert_allclose(sums, np.outer([2, 0, 1, 0], [1, np.exp(-1)]))


@pytest.mark.parametrize("n_groups", [1, 3, 5000])
def test_tiles_change_nothing(n_groups, monkeypatch):
    x, groups = rows_and_groups(1000, 2, n_groups)
    frequencies = np.random.default_rng(1).normal(size=(10, 2))
    whole = reference.fourier_sums(x, groups, n_groups, frequencies)
    by_landmark = reference.landmark_sums(x, groups, n_groups, frequencies, 2.0)
    monkeypatch.setitem(reference._TILE_ELEMENTS, "numpy", 1)
    np.testing.assert_allclose(
        reference.fourier_sums(x, groups, n_groups, frequencies), whole, rtol=0, atol=1e-12
    )
    np.testing.assert_allclose(
        reference.landmark_sums(x, groups, n_groups, frequencies, 2.0), by_landmark, rtol=1e-12
    )


def test_rows_without_a_group_may_be_nan():
    x = np.array([[np.nan], [1.0]])
    sums = reference.fourier_sums(x, np.array([-1, 0]), 1, np.ones((1, 1)))
    np.testing.assert_allclose(sums, [[np.cos(1), np.sin(1)]])
    sums = reference.landmark_sums(x, np.array([-1, 0]), 1, np.ones((1, 1)), 1.0)
    np.testing.assert_allclose(sums, [[1, np.exp(-1)]])


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.array([0, 2]), "holds the code 2 in row 1, but n_groups is 2"),
        (np.array([0]), "one integer code for each of the 2 rows"),
        (np.array([0.0, 1.0]), "found shape .* of float64"),
    ],
)
def test_bad_codes_are_refused_with_the_place(groups, message):
    with pytest.raises(ValueError, match=message):
        reference.fourier_sums(np.zeros((2, 1)), groups, 2, np.ones((1, 1)))


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((3, 1), r"landmarks have 1 columns, but x has the shape \(2, 2\)"),
        ((0, 2), r"landmarks must be a table of one row at least, found the shape \(0, 2\)"),
        ((2,), r"found the shape \(2,\)"),
    ],
)
def test_landmarks_that_do_not_fit_are_refused(shape, message):
    with pytest.raises(ValueError, match=message):
        reference.landmark_sums(np.zeros((2, 2)), np.zeros(2, int), 1, np.zeros(shape), 1.0)


def test_codes_below_those_of_int32_are_negative_all_the_same():
    codes = np.array([-1, -(2**32), -(2**40) + 1, 1])
    np.testing.assert_array_equal(reference.host_codes(codes, 2, 4), [-1, -1, -1, 1])


def test_single_precision_frequencies_are_whole_float32_turns():
    frequencies = np.random.default_rng(0).normal(size=(20, 3))
    rounded = reference.single_precision(frequencies)
    turns = rounded / (2 * np.pi)
    np.testing.assert_allclose(turns, turns.astype(np.float32), rtol=1e-15)
    np.testing.assert_allclose(rounded, frequencies, rtol=6e-8)
    np.testing.assert_array_equal(reference.single_precision(rounded), rounded)
