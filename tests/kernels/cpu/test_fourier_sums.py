"""The compiled Fourier class sums against the float64 reference, and the guards of their speed."""

import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from scaleshift.kernels import reference
from scaleshift.kernels.cpu import fourier
from scaleshift.kernels.cpu.fourier import fourier_sums


def study(n, d, n_groups, n_frequencies, seed=0):
    """Normal rows, random groups with some unlabelled, frequencies of a kernel as wide as the data."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)).astype(np.float32)
    groups = rng.integers(-1, n_groups, n)
    return x, groups, n_groups, rng.normal(size=(n_frequencies, d)) / max(d, 1) ** 0.5


def errors(sums, expected):
    """Distance of each group's sums relative to their norm; groups without rows must be exactly 0."""
    norms = np.linalg.norm(expected, axis=1)
    assert not sums[norms == 0].any()
    return np.linalg.norm(sums - expected, axis=1)[norms > 0] / norms[norms > 0]


@pytest.mark.parametrize("d", [0, 1, 2, 4, 5, 6, 8, 9, 11, 12, 16, 17, 20, 33, 40])
def test_sums_agree_with_the_reference_for_any_number_of_columns(d):
    job = study(3000, d, 7, 100)
    assert errors(fourier_sums(*job), reference.fourier_sums(*job)).max() < 5e-7


@pytest.mark.parametrize("n_frequencies", [1, 15, 16, 17, 128, 500, 513])
def test_sums_agree_with_the_reference_for_any_number_of_frequencies(n_frequencies):
    job = study(1500, 5, 3, n_frequencies)
    assert errors(fourier_sums(*job), reference.fourier_sums(*job)).max() < 5e-7


@pytest.mark.parametrize("n_groups", [1, 10, 1000, 1001, 2000, 5000])
def test_sums_agree_with_the_reference_for_any_number_of_groups(n_groups):
    job = study(12_000, 3, n_groups, 40)
    assert errors(fourier_sums(*job), reference.fourier_sums(*job)).max() < 5e-7


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 2047, 2048, 2049])
def test_rows_at_the_edge_of_a_tile_count_once(n):
    job = study(n, 5, 2, 30)
    assert errors(fourier_sums(*job), reference.fourier_sums(*job)).max(initial=0) < 5e-7


def test_no_rows_give_zeros():
    frequencies = np.ones((6, 2))
    assert not fourier_sums(np.zeros((0, 2)), np.zeros(0, dtype=int), 3, frequencies).any()
    assert not fourier_sums(np.ones((5, 2)), np.full(5, -1), 3, frequencies).any()
    assert fourier_sums(np.ones((5, 2)), np.full(5, -1), 3, frequencies).shape == (3, 12)


def test_many_alike_rows_of_one_group_lose_no_digits():
    # float32 sums of 100 000 nearly equal terms would be off by 1e-4
    x, _, _, frequencies = study(100_000, 2, 1, 50)
    job = (x, np.zeros(len(x), dtype=int), 50, frequencies / 100)
    assert errors(fourier_sums(*job), reference.fourier_sums(*job)).max() < 5e-7


@pytest.mark.parametrize("offset", [1e2, 1e4, 1e6])
def test_an_offset_costs_no_accuracy(offset):
    x, groups, n_groups, frequencies = study(4000, 5, 3, 100)
    far = x.astype(np.float64) + offset
    expected = reference.fourier_sums(far, groups, n_groups, reference.single_precision(frequencies))
    assert errors(fourier_sums(far, groups, n_groups, frequencies), expected).max() < 5e-7


def test_float32_rows_far_away_are_summed_as_they_are():
    x, groups, n_groups, frequencies = study(4000, 5, 3, 100)
    far = x + np.float32(1000)
    expected = reference.fourier_sums(far, groups, n_groups, reference.single_precision(frequencies))
    assert errors(fourier_sums(far, groups, n_groups, frequencies), expected).max() < 5e-7


@settings(max_examples=25, deadline=None)
@given(cut=st.integers(0, 3000), offset=st.sampled_from([0.0, 50.0]), seed=st.integers(0, 3))
def test_sums_of_two_parts_add_up(cut, offset, seed):
    x, groups, n_groups, frequencies = study(3000, 4, 3, 60, seed)
    x = x + offset * (np.arange(3000) >= cut)[:, None]  # the parts have different centres
    parts = [fourier_sums(x[p], groups[p], n_groups, frequencies) for p in (slice(cut), slice(cut, None))]
    whole = reference.fourier_sums(x, groups, n_groups, reference.single_precision(frequencies))
    assert errors(parts[0] + parts[1], whole).max() < 1e-6


def test_renaming_groups_renames_the_sums():
    x, groups, n_groups, frequencies = study(3000, 5, 6, 50)
    names = np.array([3, 0, 5, 1, 4, 2])
    renamed = np.where(groups >= 0, names[groups], -7)
    np.testing.assert_array_equal(
        fourier_sums(x, renamed, n_groups, frequencies)[names], fourier_sums(x, groups, n_groups, frequencies)
    )


def test_skipped_rows_change_no_bit_even_if_nan():
    x, groups, n_groups, frequencies = study(3000, 5, 3, 50)
    kept = groups >= 0
    x[~kept] = np.nan
    np.testing.assert_array_equal(
        fourier_sums(x, groups, n_groups, frequencies),
        fourier_sums(x[kept], groups[kept], n_groups, frequencies),
    )


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f4", "i1", "i4", "i8", "u2", "?"])
def test_any_real_dtype_is_served(dtype):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2 if dtype == "?" else 9, (500, 3)).astype(dtype)
    job = (x, rng.integers(0, 2, 500).astype(np.int32), 2, rng.normal(size=(20, 3)) / 5)
    # small integers repeat, so that rounding errors of their rows do not average out
    assert errors(fourier_sums(*job), reference.fourier_sums(*job)).max() < 2e-6


def test_memory_order_changes_no_bit():
    x, groups, n_groups, frequencies = study(1000, 6, 3, 50)
    expected = fourier_sums(x, groups, n_groups, frequencies)
    wide = np.zeros((2000, 12), dtype=np.float32)
    wide[::2, ::2] = x
    frozen = x.copy()
    frozen.flags.writeable = False
    for same in (np.asfortranarray(x), wide[::2, ::2], x[::-1].copy()[::-1], frozen):
        np.testing.assert_array_equal(fourier_sums(same, groups, n_groups, frequencies), expected)
    for codes in (groups.astype(np.int32), groups.astype(np.int8), np.repeat(groups, 2)[::2]):
        np.testing.assert_array_equal(fourier_sums(x, codes, n_groups, frequencies), expected)


def test_codes_out_of_range_are_refused_before_they_touch_memory():
    with pytest.raises(ValueError, match="holds the code 3 in row 1, but n_groups is 3"):
        fourier_sums(np.zeros((2, 2)), np.array([0, 3]), 3, np.ones((1, 2)))


def test_columns_must_match_the_frequencies():
    with pytest.raises(ValueError, match=r"frequencies have 3 columns, but x has the shape \(2, 2\)"):
        fourier_sums(np.zeros((2, 2)), np.array([0, 0]), 1, np.ones((1, 3)))


def test_first_calls_from_four_threads_at_once_agree():
    code = """
import threading, numpy as np
from concurrent.futures import ThreadPoolExecutor
from scaleshift.kernels.dispatch import fourier_sums
x = np.random.default_rng(0).normal(size=(5000, 5))
start = threading.Barrier(4)
def job(_):
    start.wait()
    return fourier_sums(x, np.arange(5000) % 3, 3, np.ones((20, 5)))
with ThreadPoolExecutor(4) as pool:
    results = list(pool.map(job, range(4)))
print(all(np.array_equal(r, job_result) for r in results for job_result in results))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "True"


def test_the_machine_code_holds_packed_fma(packed_fma):
    fourier_sums(*study(10, 5, 1, 16))
    # of eight rows: four of five products, eight steps of polynomials, two sums; and products of more columns
    assert packed_fma(fourier._add_rows) >= 8 * (14 + 5)


def chunked_numpy(x, groups, n_groups, frequencies):
    """float32 class sums of 256 rows at a time: what numpy does best."""
    weights = frequencies.T.astype(np.float32)
    sums = np.zeros((n_groups, 2 * weights.shape[1]))
    for start in range(0, len(x), 256):
        one_hot = (np.arange(n_groups)[:, None] == groups[start : start + 256]).astype(np.float32)
        angle = x[start : start + 256] @ weights
        sums += np.hstack([one_hot @ np.cos(angle), one_hot @ np.sin(angle)])
    return sums


def test_the_kernel_is_three_times_faster_than_chunked_numpy():
    job = study(16_384, 5, 10, 512)
    ratios = []
    with threadpool_limits(1):
        assert errors(fourier_sums(*job), chunked_numpy(*job)).max() < 1e-5
        for _ in range(7):
            times = [time.thread_time()]
            for contender in (chunked_numpy, fourier_sums):
                contender(*job)
                times.append(time.thread_time())
            ratios.append((times[1] - times[0]) / (times[2] - times[1]))
    assert np.median(ratios) > 3


@pytest.mark.parametrize("outlier", [1e5, 1e9, 3e30, 1e300])
@pytest.mark.parametrize("place", [0, 3_000])
def test_an_outlier_does_not_disturb_the_other_rows(outlier, place):
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((5_000, 3)), reference.single_precision(rng.standard_normal((64, 3)))
    x[place] = outlier
    groups = rng.integers(0, 3, len(x))
    rest = groups.copy()
    rest[place] = -1
    change = np.abs(fourier_sums(x, groups, 3, w) - reference.fourier_sums(x, rest, 3, w))
    other = np.arange(3) != groups[place]
    assert change[other].max() < 1e-3
    assert change.max() < 1.001  # the outlier's own cosine or sine


@pytest.mark.parametrize(("dtype", "large"), [("f4", 3e38), ("f8", 1e300)])
@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_numbers_beyond_float32_count_as_zero_where_frequencies_are_zero(dtype, large, weight):
    x = np.array([[0.1, -large], [0.2, large], [0.3, -large], [0.1, 0.1]], dtype=dtype)
    job = x, np.array([0, 0, 1, 1]), 2, np.array([[weight, 0.0]])
    np.testing.assert_allclose(fourier_sums(*job), reference.fourier_sums(*job), rtol=1e-6)


def test_tiles_of_far_rows_only_are_left_to_the_reference():
    x, groups = np.array([[-1e6, 1.0], [1e6, 2.0]]), np.array([2, 0])
    w = reference.single_precision(np.array([[3.0, 0.5], [100.0, 7.0]]))
    np.testing.assert_array_equal(fourier_sums(x, groups, 3, w), reference.fourier_sums(x, groups, 3, w))


def test_rows_near_the_end_of_float32_overflow_without_a_warning():
    x, w = np.float32([[-1e38], [1e38], [0.5]]), np.array([[1000.0]])
    sums = fourier_sums(x, np.array([0, 0, 1]), 2, w)
    np.testing.assert_allclose(sums[1], [np.cos(500), np.sin(500)], rtol=1e-4)
