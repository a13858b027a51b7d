"""The text of the landmark kernel, compiled as C++ and run by its own wrapper, against the reference."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from studies import errors
from studies import landmark_study as study

from scaleshift.kernels import reference
from scaleshift.kernels.cuda import grouped
from scaleshift.kernels.cuda import landmarks as module
from scaleshift.kernels.cuda.landmarks import landmark_sums

pytestmark = pytest.mark.usefixtures("host_device")


@pytest.mark.parametrize("d", [1, 4, 5, 24, 25, 193, 385, 800])
def test_sums_agree_with_the_reference_for_any_number_of_columns(d):
    job = study(1000, d, 3, 30)
    assert errors(landmark_sums(*job), reference.landmark_sums(*job)).max() < 3e-7


def test_more_columns_than_a_tile_takes_are_left_to_the_cpu():
    job = study(300, 1537, 3, 5)
    assert errors(landmark_sums(*job), reference.landmark_sums(*job)).max() < 3e-7


@pytest.mark.parametrize("n_landmarks", [1, 2, 31, 33, 127, 128, 129, 300])
@pytest.mark.parametrize("d", [5, 25])
def test_sums_agree_with_the_reference_for_any_number_of_landmarks(n_landmarks, d):
    job = study(700, d, 3, n_landmarks)
    assert errors(landmark_sums(*job), reference.landmark_sums(*job)).max() < 3e-7


@pytest.mark.parametrize("n_groups", [1, 10, 1000, 100_000])
def test_sums_agree_with_the_reference_for_any_number_of_groups(n_groups):
    job = study(1500, 5, n_groups, 5)
    assert errors(landmark_sums(*job), reference.landmark_sums(*job)).max() < 5e-7


@pytest.mark.parametrize("n", [1, 3, 4, 5, 63, 64, 65, 1023, 1024, 1025, 70_000])
def test_rows_at_the_edge_of_a_tile_or_an_item_count_once(n):
    job = study(n, 5, 1, 3)
    assert errors(landmark_sums(*job), reference.landmark_sums(*job)).max(initial=0) < 3e-7


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    n=st.integers(0, 300),
    d=st.sampled_from([1, 5, 25]),
    n_groups=st.integers(1, 40),
    n_landmarks=st.integers(1, 140),
    bandwidth=st.sampled_from([0.7, 2.0, 30.0]),
    double=st.booleans(),
)
def test_every_row_counts_once(n, d, n_groups, n_landmarks, bandwidth, double):
    x, groups, _, landmarks, _ = study(n, d, n_groups, n_landmarks, seed=n)
    job = (x.astype(np.float64) if double else x, groups, n_groups, landmarks, bandwidth)
    assert errors(landmark_sums(*job), reference.landmark_sums(*job)).max(initial=0) < 5e-6


@pytest.mark.parametrize("piece", [1 << 12, 1 << 14])
def test_pieces_add_up(piece, monkeypatch):
    job = study(9000, 5, 4, 20)
    monkeypatch.setattr(grouped, "_PIECE_BYTES", 20 * piece)
    assert errors(landmark_sums(*job), reference.landmark_sums(*job)).max() < 3e-7


def test_no_rows_give_zeros():
    landmarks = np.ones((6, 5))
    assert not landmark_sums(np.zeros((0, 5)), np.zeros(0, dtype=int), 3, landmarks, 1.0).any()
    sums = landmark_sums(np.full((5, 5), np.nan), np.full(5, -1), 3, landmarks, 1.0)
    assert sums.shape == (3, 7)
    assert not sums.any()


@pytest.mark.parametrize("seed", range(3))
def test_equal_rows_lose_no_digits(seed):
    row, _, _, landmarks, bandwidth = study(1, 5, 1, 128, seed)
    sums = landmark_sums(np.repeat(row, 20_000, axis=0), np.zeros(20_000, int), 1, landmarks, bandwidth)
    expected = 2e4 * reference.landmark_sums(row, np.zeros(1, int), 1, landmarks, bandwidth)
    assert errors(sums, expected).max() < 5e-7


@pytest.mark.parametrize("bandwidth", [1e-20, 1e-3, 1e3, 1e20])
def test_units_cost_no_accuracy(bandwidth):
    x, groups, n_groups, landmarks, _ = study(1000, 5, 3, 50)
    job = ((bandwidth * x / 2).astype(np.float32), groups, n_groups, bandwidth * landmarks / 2, bandwidth)
    assert errors(landmark_sums(*job), reference.landmark_sums(*job)).max() < 3e-7


@pytest.mark.parametrize("offset", [1e2, 1e4, 1e6])
def test_an_offset_of_rows_and_landmarks_costs_no_accuracy(offset):
    x, groups, n_groups, landmarks, bandwidth = study(1000, 5, 3, 50)
    for moved in (x + np.float64(offset), x + np.float32(offset)):
        job = (moved, groups, n_groups, landmarks + offset, bandwidth)
        assert errors(landmark_sums(*job), reference.landmark_sums(*job)).max() < 3e-7


def test_skipped_rows_change_no_bit_even_if_nan():
    x, groups, n_groups, *kernel = study(3000, 5, 3, 50)
    groups[groups < 0] = -(2**40)
    kept = groups >= 0
    x[~kept] = np.nan
    np.testing.assert_array_equal(
        landmark_sums(x, groups, n_groups, *kernel), landmark_sums(x[kept], groups[kept], n_groups, *kernel)
    )


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f4", "i1", "i8", "u2", "?"])
def test_any_real_dtype_is_served(dtype):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2 if dtype == "?" else 9, (500, 5)).astype(dtype)
    job = (x, rng.integers(0, 2, 500).astype(np.int32), 2, rng.uniform(0, 9, size=(20, 5)), 3.0)
    # small integers repeat, so that rounding errors of their rows do not average out
    assert errors(landmark_sums(*job), reference.landmark_sums(*job)).max() < 2e-6


def test_memory_order_changes_no_bit():
    x, groups, n_groups, *kernel = study(1000, 5, 3, 50)
    expected = landmark_sums(x, groups, n_groups, *kernel)
    wide = np.zeros((2000, 10), dtype=np.float32)
    wide[::2, ::2] = x
    for same in (np.asfortranarray(x), wide[::2, ::2], x[::-1].copy()[::-1]):
        np.testing.assert_array_equal(landmark_sums(same, groups, n_groups, *kernel), expected)
    for codes in (groups.astype(np.int32), groups.astype(np.int16), np.repeat(groups, 2)[::2]):
        np.testing.assert_array_equal(landmark_sums(x, codes, n_groups, *kernel), expected)


@pytest.mark.parametrize("distance", [40.0, 1e3, 1e9, 1e30, 1e200, np.inf])
@pytest.mark.parametrize("place", [0, 300])
@pytest.mark.parametrize("spread", [1.0, 100.0])
def test_a_row_out_of_sight_has_no_kernel_and_a_residual_of_one(distance, place, spread):
    x, groups, n_groups, landmarks, bandwidth = study(500, 5, 3, 20)
    x = x.astype(np.float64 if distance > 1e38 else np.float32)
    landmarks = landmarks * spread
    groups[place] = 1
    without = np.where(np.arange(500) == place, -1, groups)
    rest = landmark_sums(x, without, n_groups, landmarks, bandwidth)
    x[place] = spread * distance
    sums = landmark_sums(x, groups, n_groups, landmarks, bandwidth)
    rest[1, -1] += 1
    np.testing.assert_array_equal(sums[[0, 2]], rest[[0, 2]])
    np.testing.assert_allclose(sums[1], rest[1], rtol=1e-6, atol=1e-12)  # other rows share its warp


@pytest.mark.parametrize("n_rows", [64, 6400])
@pytest.mark.parametrize(
    ("distance", "tolerance"),
    [(2, 1e-6), (5, 6e-6), (12, 3e-5), (18, 7e-5), (25, 2e-6), (1e3, 2e-6), (1e6, 1e-3)],
)
def test_landmarks_many_bandwidths_apart_cost_few_digits(distance, tolerance, n_rows):
    rng = np.random.default_rng(0)
    landmarks = rng.normal(size=(64, 5))
    landmarks *= distance / np.linalg.norm(landmarks, axis=1, keepdims=True)
    x = np.repeat(landmarks, n_rows // 64, axis=0) + rng.normal(size=(n_rows, 5))
    job = (x, np.arange(n_rows) % 4, 4, landmarks, 1.0)
    assert errors(landmark_sums(*job), reference.landmark_sums(*job)).max() < tolerance


def test_one_landmark_far_from_the_others_leaves_rows_near_them_to_the_fast_path(monkeypatch):
    x, groups, n_groups, landmarks, bandwidth = study(3000, 5, 2, 100)
    landmarks[0] += 1e3
    x[7], groups[7] = landmarks[0], 0
    expected = reference.landmark_sums(x, groups, n_groups, landmarks, bandwidth)
    served = []

    def recorded(rows, *job):
        served.append(len(rows))
        return np.zeros((n_groups, 101))

    monkeypatch.setattr(module.reference, "landmark_sums", recorded)
    sums = landmark_sums(x, groups, n_groups, landmarks, bandwidth)
    assert served == [1]
    assert errors(sums[1:], expected[1:]).max() < 3e-6


def test_codes_out_of_range_are_refused():
    with pytest.raises(ValueError, match="holds the code 3 in row 1, but n_groups is 3"):
        landmark_sums(np.zeros((2, 5)), np.array([0, 3]), 3, np.ones((3, 5)), 1.0)


def test_columns_must_match_the_landmarks():
    with pytest.raises(ValueError, match=r"landmarks have 3 columns, but x has the shape \(2, 2\)"):
        landmark_sums(np.zeros((2, 2)), np.array([0, 0]), 1, np.ones((1, 3)), 1.0)
