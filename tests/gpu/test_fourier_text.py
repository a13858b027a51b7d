"""The text of the Fourier kernel, compiled as C++ and run by its own wrapper, against the reference."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from studies import errors
from studies import fourier_study as study

from scaleshift.kernels import reference
from scaleshift.kernels.cuda import fourier as module
from scaleshift.kernels.cuda import grouped
from scaleshift.kernels.cuda.fourier import fourier_sums

pytestmark = pytest.mark.usefixtures("host_device")


@pytest.mark.parametrize("d", [1, 4, 5, 20, 48, 49, 385, 800])
def test_sums_agree_with_the_reference_for_any_number_of_columns(d):
    job = study(1000, d, 3, 30)
    assert errors(fourier_sums(*job), reference.fourier_sums(*job)).max() < 5e-7


def test_more_columns_than_a_tile_takes_are_left_to_the_cpu():
    job = study(300, 1537, 3, 5)
    assert errors(fourier_sums(*job), reference.fourier_sums(*job)).max() < 5e-7


@pytest.mark.parametrize("n_frequencies", [1, 128, 129, 256, 257, 600])
def test_sums_agree_with_the_reference_for_any_number_of_frequencies(n_frequencies):
    job = study(600, 5, 3, n_frequencies)
    assert errors(fourier_sums(*job), reference.fourier_sums(*job)).max() < 5e-7


@pytest.mark.parametrize("n_groups", [1, 10, 1000, 100_000])
def test_sums_agree_with_the_reference_for_any_number_of_groups(n_groups):
    job = study(1500, 5, n_groups, 7)
    assert errors(fourier_sums(*job), reference.fourier_sums(*job)).max() < 5e-7


@pytest.mark.parametrize("n", [1, 127, 128, 129, 1023, 1024, 1025, 70_000])
def test_rows_at_the_edge_of_a_tile_or_an_item_count_once(n):
    job = study(n, 5, 1, 3)
    assert errors(fourier_sums(*job), reference.fourier_sums(*job)).max(initial=0) < 5e-7


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    n=st.integers(0, 300),
    d=st.sampled_from([1, 5, 49]),
    n_groups=st.integers(1, 40),
    n_frequencies=st.integers(1, 140),
    double=st.booleans(),
)
def test_every_row_counts_once(n, d, n_groups, n_frequencies, double):
    x, *rest = study(n, d, n_groups, n_frequencies, seed=n)
    job = (x.astype(np.float64) if double else x, *rest)
    expected = reference.fourier_sums(*job)
    # a group of few rows may have sums that cancel
    np.testing.assert_allclose(fourier_sums(*job), expected, atol=2e-6 * (1 + n))


@pytest.mark.parametrize("piece", [1 << 12, 1 << 14])
def test_pieces_add_up(piece, monkeypatch):
    x, groups, n_groups, frequencies = study(9000, 5, 4, 20)
    monkeypatch.setattr(grouped, "_PIECE_BYTES", 20 * piece)
    assert (
        errors(
            fourier_sums(x, groups, n_groups, frequencies),
            reference.fourier_sums(x, groups, n_groups, frequencies),
        ).max()
        < 5e-7
    )


def test_no_rows_give_zeros():
    frequencies = np.ones((6, 5))
    assert not fourier_sums(np.zeros((0, 5)), np.zeros(0, dtype=int), 3, frequencies).any()
    sums = fourier_sums(np.full((5, 5), np.nan), np.full(5, -1), 3, frequencies)
    assert sums.shape == (3, 12)
    assert not sums.any()
    assert fourier_sums(np.ones((5, 5)), np.zeros(5, dtype=int), 3, np.ones((0, 5))).shape == (3, 0)


def test_many_alike_rows_of_one_group_lose_no_digits():
    x, _, _, frequencies = study(50_000, 5, 1, 5)
    job = (x, np.zeros(len(x), dtype=int), 50, frequencies / 100)
    assert errors(fourier_sums(*job), reference.fourier_sums(*job)).max() < 5e-7


@pytest.mark.parametrize("offset", [1e2, 1e4, 1e6])
def test_an_offset_costs_no_accuracy(offset):
    x, groups, n_groups, frequencies = study(1500, 5, 3, 50)
    far = x.astype(np.float64) + offset
    expected = reference.fourier_sums(far, groups, n_groups, reference.single_precision(frequencies))
    assert errors(fourier_sums(far, groups, n_groups, frequencies), expected).max() < 5e-7


def test_float32_rows_far_away_are_summed_as_they_are():
    x, groups, n_groups, frequencies = study(1500, 5, 3, 50)
    far = x + np.float32(1000)
    expected = reference.fourier_sums(far, groups, n_groups, reference.single_precision(frequencies))
    assert errors(fourier_sums(far, groups, n_groups, frequencies), expected).max() < 5e-7


def test_skipped_rows_change_no_bit_even_if_nan():
    x, groups, n_groups, frequencies = study(3000, 5, 3, 50)
    groups[groups < 0] = -(2**40)
    kept = groups >= 0
    x[~kept] = np.nan
    np.testing.assert_array_equal(
        fourier_sums(x, groups, n_groups, frequencies),
        fourier_sums(x[kept], groups[kept], n_groups, frequencies),
    )


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f4", "i1", "i8", "u2", "?"])
def test_any_real_dtype_is_served(dtype):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2 if dtype == "?" else 9, (500, 5)).astype(dtype)
    job = (x, rng.integers(0, 2, 500).astype(np.int32), 2, rng.normal(size=(20, 5)) / 5)
    # small integers repeat, so that rounding errors of their rows do not average out
    assert errors(fourier_sums(*job), reference.fourier_sums(*job)).max() < 2e-6


def test_memory_order_changes_no_bit():
    x, groups, n_groups, frequencies = study(1000, 5, 3, 50)
    expected = fourier_sums(x, groups, n_groups, frequencies)
    wide = np.zeros((2000, 10), dtype=np.float32)
    wide[::2, ::2] = x
    frozen = x.copy()
    frozen.flags.writeable = False
    for same in (np.asfortranarray(x), wide[::2, ::2], x[::-1].copy()[::-1], frozen):
        np.testing.assert_array_equal(fourier_sums(same, groups, n_groups, frequencies), expected)
    for codes in (groups.astype(np.int32), groups.astype(np.int8), np.repeat(groups, 2)[::2]):
        np.testing.assert_array_equal(fourier_sums(x, codes, n_groups, frequencies), expected)


@pytest.mark.parametrize("outlier", [1e5, 1e9, 3e30, 1e300])
@pytest.mark.parametrize("place", [0, 3000])
def test_an_outlier_does_not_disturb_the_other_rows(outlier, place):
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((5000, 5)), reference.single_precision(rng.standard_normal((20, 5)))
    x[place] = outlier
    groups = rng.integers(0, 3, len(x))
    rest = groups.copy()
    rest[place] = -1
    change = np.abs(fourier_sums(x, groups, 3, w) - reference.fourier_sums(x, rest, 3, w))
    other = np.arange(3) != groups[place]
    assert change[other].max() < 1e-3
    assert change.max() < 1.001  # the outlier's own cosine or sine


def test_rows_beyond_1024_turns_are_left_to_the_reference_and_no_others(monkeypatch):
    x, groups, n_groups, frequencies = study(3000, 5, 3, 20)
    groups[7] = groups[2000] = 1
    x[7], x[2000] = 1e4, -3e5
    expected = reference.fourier_sums(x, groups, n_groups, reference.single_precision(frequencies))
    served = []
    exact = reference.fourier_sums

    def recorded(rows, *job):
        served.append(rows.tolist())
        return exact(rows, *job)

    monkeypatch.setattr(module.reference, "fourier_sums", recorded)
    sums = fourier_sums(x, groups, n_groups, frequencies)
    assert served == [x[[7, 2000]].tolist()]
    assert errors(sums, expected).max() < 5e-7


def test_steep_frequencies_are_left_to_the_reference():
    x, groups, n_groups, frequencies = study(2000, 5, 3, 60)
    frequencies[::20] *= 1e5
    frequencies[::21] *= 50
    expected = reference.fourier_sums(x, groups, n_groups, reference.single_precision(frequencies))
    assert errors(fourier_sums(x, groups, n_groups, frequencies), expected).max() < 1e-6


def test_the_sums_are_those_of_the_cpu_kernel():
    from scaleshift.kernels.cpu import fourier as cpu

    job = study(4000, 5, 3, 100)
    assert errors(fourier_sums(*job), cpu.fourier_sums(*job)).max() < 3e-7


def test_codes_out_of_range_are_refused():
    with pytest.raises(ValueError, match="holds the code 3 in row 1, but n_groups is 3"):
        fourier_sums(np.zeros((2, 5)), np.array([0, 3]), 3, np.ones((3, 5)))


def test_columns_must_match_the_frequencies():
    with pytest.raises(ValueError, match=r"frequencies have 3 columns, but x has the shape \(2, 2\)"):
        fourier_sums(np.zeros((2, 2)), np.array([0, 0]), 1, np.ones((1, 3)))
