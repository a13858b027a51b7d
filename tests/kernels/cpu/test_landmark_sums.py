"""The compiled landmark sums against the float64 reference, and the guards of their speed."""

import re
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from scaleshift.kernels import reference
from scaleshift.kernels.cpu import landmarks as module
from scaleshift.kernels.cpu.landmarks import landmark_sums


def study(n, d, n_groups, n_landmarks, seed=0):
    """Normal rows, random groups with some unlabelled, landmarks of the same law, a kernel as wide as it."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)).astype(np.float32)
    return x, rng.integers(-1, n_groups, n), n_groups, rng.normal(size=(n_landmarks, d)), max(d, 1) ** 0.5


def errors(sums, expected):
    """Distance of each group's sums relative to their norm; groups without rows must be exactly 0."""
    norms = np.linalg.norm(expected, axis=1)
    assert not sums[norms == 0].any()
    return np.linalg.norm(sums - expected, axis=1)[norms > 0] / norms[norms > 0]


@pytest.mark.parametrize("d", [0, 1, 2, 4, 5, 6, 7, 10, 11, 15, 16, 20, 40])
def test_sums_agree_with_the_reference_for_any_number_of_columns(d):
    job = study(3000, d, 7, 100)
    assert errors(landmark_sums(*job), reference.landmark_sums(*job)).max() < 3e-7


@pytest.mark.parametrize("n_landmarks", [1, 2, 127, 128, 129, 300])
@pytest.mark.parametrize("d", [5, 7])
def test_sums_agree_with_the_reference_for_any_number_of_landmarks(n_landmarks, d):
    job = study(1500, d, 3, n_landmarks)
    assert errors(landmark_sums(*job), reference.landmark_sums(*job)).max() < 3e-7


@pytest.mark.parametrize("n_groups", [1, 10, 1000, 1700, 5000, 100_000])
def test_sums_agree_with_the_reference_for_any_number_of_groups(n_groups):
    x, groups, _, landmarks, bandwidth = study(12_000, 3, n_groups, 5)
    job = (x, groups, n_groups, landmarks, bandwidth)
    assert errors(landmark_sums(*job), reference.landmark_sums(*job)).max() < 5e-7


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(0, 300),
    d=st.integers(1, 12),
    n_groups=st.integers(1, 40),
    n_landmarks=st.integers(1, 140),
    bandwidth=st.sampled_from([0.7, 2.0, 30.0]),
    double=st.booleans(),
)
def test_every_row_counts_once(n, d, n_groups, n_landmarks, bandwidth, double):
    x, groups, _, landmarks, _ = study(n, d, n_groups, n_landmarks, seed=n)
    job = (x.astype(np.float64) if double else x, groups, n_groups, landmarks, bandwidth)
    assert errors(landmark_sums(*job), reference.landmark_sums(*job)).max(initial=0) < 5e-6


@pytest.mark.parametrize("n", [127, 128, 129, 26_213, 26_214, 26_215])
def test_rows_at_the_edge_of_a_tile_count_once(n):
    job = study(n, 5, 2, 3)
    assert errors(landmark_sums(*job), reference.landmark_sums(*job)).max() < 3e-7


def test_no_rows_give_zeros():
    landmarks = np.ones((6, 2))
    assert not landmark_sums(np.zeros((0, 2)), np.zeros(0, dtype=int), 3, landmarks, 1.0).any()
    sums = landmark_sums(np.ones((5, 2)), np.full(5, -1), 3, landmarks, 1.0)
    assert sums.shape == (3, 7)
    assert not sums.any()


@pytest.mark.parametrize("seed", range(5))
def test_a_hundred_thousand_equal_rows_lose_no_digits(seed):
    # float32 sums of them would be off by 1e-4
    row, _, _, landmarks, bandwidth = study(1, 5, 1, 128, seed)
    sums = landmark_sums(np.repeat(row, 100_000, axis=0), np.zeros(100_000, int), 1, landmarks, bandwidth)
    expected = 1e5 * reference.landmark_sums(row, np.zeros(1, int), 1, landmarks, bandwidth)
    assert errors(sums, expected).max() < 5e-7


@pytest.mark.parametrize("bandwidth", [1e-20, 1e-3, 1e3, 1e20])
def test_units_cost_no_accuracy(bandwidth):
    x, groups, n_groups, landmarks, _ = study(2000, 5, 3, 50)
    job = ((bandwidth * x / 2).astype(np.float32), groups, n_groups, bandwidth * landmarks / 2, bandwidth)
    assert errors(landmark_sums(*job), reference.landmark_sums(*job)).max() < 3e-7


@pytest.mark.parametrize("offset", [1e2, 1e4, 1e6])
def test_an_offset_of_rows_and_landmarks_costs_no_accuracy(offset):
    x, groups, n_groups, landmarks, bandwidth = study(4000, 5, 3, 100)
    double = (x + np.float64(offset), groups, n_groups, landmarks + offset, bandwidth)
    assert errors(landmark_sums(*double), reference.landmark_sums(*double)).max() < 3e-7
    single = (x + np.float32(offset), groups, n_groups, landmarks + offset, bandwidth)
    assert errors(landmark_sums(*single), reference.landmark_sums(*single)).max() < 3e-7


@settings(max_examples=25, deadline=None)
@given(cut=st.integers(0, 3000), seed=st.integers(0, 3))
def test_sums_of_two_parts_in_any_order_add_up(cut, seed):
    x, groups, n_groups, landmarks, bandwidth = study(3000, 4, 3, 60, seed)
    mixed = np.random.default_rng(seed).permutation(3000)
    parts = [
        landmark_sums(x[p], groups[p], n_groups, landmarks, bandwidth) for p in (mixed[:cut], mixed[cut:])
    ]
    assert errors(sum(parts), landmark_sums(x, groups, n_groups, landmarks, bandwidth)).max() < 1e-7


def test_renaming_groups_renames_the_sums():
    x, groups, n_groups, *kernel = study(3000, 5, 6, 50)
    names = np.array([3, 0, 5, 1, 4, 2])
    renamed = np.where(groups >= 0, names[groups], -7)
    np.testing.assert_array_equal(
        landmark_sums(x, renamed, n_groups, *kernel)[names], landmark_sums(x, groups, n_groups, *kernel)
    )


@pytest.mark.parametrize("n_groups", [3, 3000])
def test_skipped_rows_change_no_bit_even_if_nan(n_groups):
    x, groups, _, *kernel = study(3000, 5, n_groups, 50)
    groups[groups < 0] = -(2**40)
    kept = groups >= 0
    x[~kept] = np.nan
    np.testing.assert_array_equal(
        landmark_sums(x, groups, n_groups, *kernel), landmark_sums(x[kept], groups[kept], n_groups, *kernel)
    )


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f4", "i1", "i4", "i8", "u2", "?"])
def test_any_real_dtype_is_served(dtype):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2 if dtype == "?" else 9, (500, 3)).astype(dtype)
    job = (x, rng.integers(0, 2, 500).astype(np.int32), 2, rng.uniform(0, 9, size=(20, 3)), 3.0)
    # small integers repeat, so that rounding errors of their rows do not average out
    assert errors(landmark_sums(*job), reference.landmark_sums(*job)).max() < 2e-6


@pytest.mark.parametrize("n_groups", [3, 3000])
def test_memory_order_changes_no_bit(n_groups):
    x, groups, _, *kernel = study(1000, 6, n_groups, 50)
    expected = landmark_sums(x, groups, n_groups, *kernel)
    wide = np.zeros((2000, 12), dtype=np.float32)
    wide[::2, ::2] = x
    odd = np.zeros(1 + x.nbytes, dtype=np.uint8)[1:].view(np.float32).reshape(x.shape)
    odd[:] = x
    frozen = x.copy()
    frozen.flags.writeable = False
    for same in (np.asfortranarray(x), wide[::2, ::2], x[::-1].copy()[::-1], odd, frozen):
        np.testing.assert_array_equal(landmark_sums(same, groups, n_groups, *kernel), expected)
    for codes in (groups.astype(np.int32), groups.astype(np.int16), np.repeat(groups, 2)[::2]):
        np.testing.assert_array_equal(landmark_sums(x, codes, n_groups, *kernel), expected)


@pytest.mark.parametrize("distance", [40.0, 1e3, 1e9, 1e30, 1e200, np.inf])
@pytest.mark.parametrize("place", [0, 300])
@pytest.mark.parametrize("spread", [1.0, 100.0])
def test_a_row_out_of_sight_has_no_kernel_and_a_residual_of_one(distance, place, spread):
    x, groups, n_groups, landmarks, bandwidth = study(500, 3, 3, 20)
    x = x.astype(np.float64 if distance > 1e38 else np.float32)
    landmarks = landmarks * spread
    groups[place] = 1
    without = np.where(np.arange(500) == place, -1, groups)
    rest = landmark_sums(x, without, n_groups, landmarks, bandwidth)
    x[place] = spread * distance
    sums = landmark_sums(x, groups, n_groups, landmarks, bandwidth)
    rest[1, -1] += 1
    np.testing.assert_array_equal(sums[[0, 2]], rest[[0, 2]])
    np.testing.assert_allclose(sums[1], rest[1], rtol=1e-6, atol=1e-12)  # other rows are added by fours


def test_groups_of_rows_out_of_sight_only_have_sums_of_zero():
    sums = landmark_sums(np.full((7, 2), 1e9), np.zeros(7, int), 1, np.zeros((3, 2)), 1.0)
    np.testing.assert_allclose(sums, [[0, 0, 0, 7]], atol=1e-30)


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
    x, groups, n_groups, landmarks, bandwidth = study(5000, 3, 2, 100)
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


def test_codes_out_of_range_are_refused_before_they_touch_memory():
    with pytest.raises(ValueError, match="holds the code 3 in row 1, but n_groups is 3"):
        landmark_sums(np.zeros((2, 2)), np.array([0, 3]), 3, np.ones((1, 2)), 1.0)


def test_columns_must_match_the_landmarks():
    with pytest.raises(ValueError, match=r"landmarks have 3 columns, but x has the shape \(2, 2\)"):
        landmark_sums(np.zeros((2, 2)), np.array([0, 0]), 1, np.ones((1, 3)), 1.0)


def test_first_calls_from_four_threads_at_once_agree():
    code = """
import threading, numpy as np
from concurrent.futures import ThreadPoolExecutor
from scaleshift.kernels.dispatch import landmark_sums
x = np.random.default_rng(0).normal(size=(30_000, 5))
start = threading.Barrier(4)
def job(shift):
    start.wait()
    return [landmark_sums(x + shift, np.arange(30_000) % 3, 3, x[:20] + shift, 2.0) for _ in range(3)]
with ThreadPoolExecutor(4) as pool:
    shifted = list(pool.map(job, range(4)))
again = [landmark_sums(x + shift, np.arange(30_000) % 3, 3, x[:20] + shift, 2.0) for shift in range(4)]
print(all(np.array_equal(r, a) for results, a in zip(shifted, again) for r in results))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "True"


def test_the_machine_code_holds_packed_fma(packed_fma):
    landmark_sums(*study(10, 5, 1, 16))
    # of eight rows: five products and five steps of a polynomial; and products of more columns
    assert packed_fma(module._add_rows) >= 8 * (10 + 5)
    (assembly,) = module._add_rows.inspect_asm().values()
    assert re.search(r"and\w*\s+\$-64, %rsp", assembly)  # what registers spill is aligned


def chunked_numpy(x, groups, n_groups, landmarks, bandwidth):
    """float32 class sums of 256 rows at a time: what numpy does best."""
    z = (landmarks / bandwidth).astype(np.float32)
    half = (z * z).sum(axis=1) / 2
    sums = np.zeros((n_groups, len(z) + 1))
    for start in range(0, len(x), 256):
        one_hot = (np.arange(n_groups)[:, None] == groups[start : start + 256]).astype(np.float32)
        rows = x[start : start + 256] / np.float32(bandwidth)
        kernel = np.exp(rows @ z.T - half - (rows * rows).sum(axis=1)[:, None] / 2)
        sums[:, :-1] += one_hot @ kernel
        sums[:, -1] += one_hot @ np.exp(-kernel.sum(axis=1))
    return sums


def test_the_kernel_is_two_and_a_half_times_faster_than_chunked_numpy():
    job = study(32_768, 5, 10, 128)
    ratios = []
    with threadpool_limits(1):
        assert errors(landmark_sums(*job), chunked_numpy(*job)).max() < 1e-5
        for _ in range(7):
            times = [time.thread_time()]
            for contender in (chunked_numpy, landmark_sums):
                contender(*job)
                times.append(time.thread_time())
            ratios.append((times[1] - times[0]) / (times[2] - times[1]))
    assert np.median(ratios) > 2.5
