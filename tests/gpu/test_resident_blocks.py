"""Blocks that lie on a device, in any memory order, with codes there or on the host."""

import numpy as np
import pytest
from resident import Device, Resident
from studies import errors, fourier_study, landmark_study

from scaleshift.kernels import dispatch, reference
from scaleshift.kernels.cuda.fourier import fourier_sums
from scaleshift.kernels.cuda.landmarks import landmark_sums

pytestmark = pytest.mark.usefixtures("host_device")

KERNELS = [
    pytest.param(fourier_sums, fourier_study, reference.fourier_sums, id="fourier"),
    pytest.param(landmark_sums, landmark_study, reference.landmark_sums, id="landmarks"),
]


@pytest.mark.parametrize(("sums", "study", "exact"), KERNELS)
def test_a_resident_block_gives_the_bits_of_a_host_block(sums, study, exact):
    x, groups, *rest = study(3000, 5, 3, 20)
    expected = sums(x, groups, *rest)
    wide = np.full((3000, 10), np.nan, dtype=np.float32)
    wide[:, ::2] = x
    for same in (x, np.asfortranarray(x), wide[:, ::2], x[::-1].copy()[::-1]):
        for codes in (
            groups,
            Resident(groups),
            Resident(groups.astype(np.int8)),
            Resident(wide_codes(groups)),
        ):
            found = sums(Resident(same), codes, *rest)
            assert isinstance(found, np.ndarray)
            np.testing.assert_array_equal(found, expected)


def wide_codes(groups):
    """The same codes, every other number."""
    return np.repeat(groups, 2)[::2]


@pytest.mark.parametrize(("sums", "study", "exact"), KERNELS)
def test_resident_codes_of_host_rows_are_fetched(sums, study, exact):
    x, groups, *rest = study(3000, 5, 3, 20)
    np.testing.assert_array_equal(sums(x, Resident(groups), *rest), sums(x, groups, *rest))


@pytest.mark.parametrize(("sums", "study", "exact"), KERNELS)
@pytest.mark.parametrize("dtype", ["f2", "f8", "i4"])
def test_resident_rows_of_any_dtype_are_served(sums, study, exact, dtype):
    x, *rest = study(500, 5, 3, 20)
    x = (3 * x).astype(dtype)
    assert errors(sums(Resident(x), *rest), exact(x, *rest)).max() < 2e-6


@pytest.mark.parametrize(("sums", "study", "exact"), KERNELS)
def test_more_columns_than_a_tile_takes_are_left_to_the_reference(sums, study, exact):
    x, *rest = study(100, 1537, 3, 5)
    assert errors(sums(Resident(x), *rest), exact(x, *rest)).max() < 5e-7


@pytest.mark.parametrize(("sums", "study", "exact"), KERNELS)
def test_points_may_be_resident(sums, study, exact):
    x, groups, n_groups, points, *rest = study(500, 5, 3, 20)
    expected = sums(x, groups, n_groups, points, *rest)
    np.testing.assert_array_equal(sums(Resident(x), groups, n_groups, Resident(points), *rest), expected)


def test_resident_outliers_and_steep_frequencies_are_left_to_the_reference():
    x, groups, n_groups, frequencies = fourier_study(3000, 5, 3, 20)
    x[::500] = 1e6
    frequencies[3] *= 1e4
    expected = reference.fourier_sums(x, groups, n_groups, reference.single_precision(frequencies))
    for codes in (groups, Resident(groups)):
        found = fourier_sums(Resident(x), codes, n_groups, frequencies)
        assert errors(found, expected).max() < 1e-6


def test_a_resident_row_near_a_landmark_far_away_is_left_to_the_reference():
    x, groups, n_groups, landmarks, bandwidth = landmark_study(3000, 5, 3, 50)
    landmarks[0] += 1e3
    x[7], groups[7] = landmarks[0], 0
    expected = reference.landmark_sums(x, groups, n_groups, landmarks, bandwidth)
    found = landmark_sums(Resident(x), Resident(groups), n_groups, landmarks, bandwidth)
    assert found[0, 0] == pytest.approx(1, rel=1e-6)
    assert errors(found, expected).max() < 3e-6


@pytest.mark.parametrize(("sums", "study", "exact"), KERNELS)
@pytest.mark.parametrize("code", [np.uint8(255), np.uint64(2**63), np.int64(2**33), np.int8(3)])
def test_resident_codes_that_are_too_large_are_found_when_they_are_sorted(sums, study, exact, code):
    x, groups, n_groups, *rest = study(3000, 5, 3, 5)
    groups = np.abs(groups).astype(code.dtype)
    groups[1234] = code
    with pytest.raises(ValueError, match=f"holds the code {code} in row 1234, but n_groups is 3"):
        sums(Resident(x), Resident(groups), n_groups, *rest)


@pytest.mark.parametrize(("sums", "study", "exact"), KERNELS)
def test_resident_codes_of_another_length_or_type_are_refused(sums, study, exact):
    x, groups, n_groups, *rest = study(30, 5, 3, 5)
    for wrong in (groups[:-1], groups.astype(float)):
        with pytest.raises(ValueError, match="groups must hold one integer code for each of the 30 rows"):
            sums(Resident(x), Resident(wrong), n_groups, *rest)


def test_cupy_blocks_are_dispatched_to_the_texts():
    x, groups, n_groups, frequencies = fourier_study(300, 5, 3, 5)
    assert dispatch.implementation("fourier_sums", Resident(x)) is fourier_sums
    assert dispatch.implementation("landmark_sums", Resident(x)) is landmark_sums
    found = dispatch.fourier_sums(Resident(x), groups, n_groups, frequencies)
    np.testing.assert_array_equal(found, fourier_sums(x, groups, n_groups, frequencies))
    assert dispatch.landmark_sums(Resident(x), groups, 3, x[:5], 2.0, "laplace").shape == (3, 6)


def test_a_block_on_another_gpu_than_the_current_one_is_served_there(monkeypatch):
    monkeypatch.setattr(reference, "landmark_sums", lambda *job: Device.current[-1])
    for kernel in ("moment_sums", "exact_sums"):
        monkeypatch.setattr(reference, kernel, lambda *job: Device.current[-1])
        assert getattr(dispatch, kernel)(Resident(np.zeros((2, 1)), device=3)) == 3
    block = Resident(np.zeros((2, 1)), device=3)
    assert dispatch.landmark_sums(block, None, 1, None, 1.0, "laplace") == 3
    assert Device.current == [0]
