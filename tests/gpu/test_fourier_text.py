"""The text of the Fourier kernel, compiled as C++ and run by its own wrapper, against the reference."""

import numpy as np
import pytest

from scaleshift.kernels import reference
from scaleshift.kernels.cuda.fourier import fourier_sums

pytestmark = pytest.mark.usefixtures("host_device")


def study(n, d, n_groups, n_frequencies, seed=0):
    """Normal rows, random groups with some unlabelled, frequencies of a kernel as wide as the data."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)).astype(np.float32)
    groups = rng.integers(-1, n_groups, n)
    return x, groups, n_groups, rng.normal(size=(n_frequencies, d)) / d**0.5


def errors(sums, expected):
    """Distance of each group's sums relative to their norm; groups without rows must be exactly 0."""
    norms = np.linalg.norm(expected, axis=1)
    assert not sums[norms == 0].any()
    return np.linalg.norm(sums - expected, axis=1)[norms > 0] / norms[norms > 0]


@pytest.mark.parametrize("d", [1, 4, 5, 20, 48, 49, 385, 800])
def test_sums_agree_with_the_reference_for_any_number_of_columns(d):
    job = study(2000, d, 3, 30)
    assert errors(fourier_sums(*job), reference.fourier_sums(*job)).max() < 5e-7
