"""Every kernel by its formula, and its frequencies as the law whose characteristic function it is."""

import numpy as np
import pytest

from scaleshift.kernels import dispatch, reference
from scaleshift.kernels.families import KERNELS
from scaleshift.quantify.features.fourier import frequencies

RNG = np.random.default_rng(0)
FORMULAS = {
    "gaussian": lambda d, s: np.exp(-(d**2).sum() / (2 * s**2)),
    "laplace": lambda d, s: np.exp(-np.abs(d).sum() / s),
    "matern32": lambda d, s: (1 + (t := 3**0.5 * np.linalg.norm(d) / s)) * np.exp(-t),
    "matern52": lambda d, s: (1 + (t := 5**0.5 * np.linalg.norm(d) / s) + t**2 / 3) * np.exp(-t),
    "cauchy": lambda d, s: np.prod(1 / (1 + d**2 / s**2)),
}


def test_every_kernel_has_a_formula_here():
    assert set(FORMULAS) == set(KERNELS)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("s", [0.7, 3.0])
def test_sums_are_those_of_the_formula_pair_by_pair(name, s):
    x, z, groups = RNG.normal(size=(40, 3)), RNG.normal(size=(9, 3)), RNG.integers(-1, 3, 40)
    values = np.array([[FORMULAS[name](a - b, s) for b in z] for a in x])
    expected = np.array([values[groups == g].sum(axis=0) for g in range(3)])
    residual = np.array([np.exp(-values.sum(axis=1))[groups == g].sum() for g in range(3)])
    found = dispatch.landmark_sums(x, groups, 3, z, s, kernel=name)
    np.testing.assert_allclose(found[:, :-1], expected, rtol=1e-6)
    np.testing.assert_allclose(found[:, -1], residual, rtol=1e-6)
    by_class = np.column_stack([expected[:, :4].mean(axis=1), expected[:, 4:].mean(axis=1)])
    exact = dispatch.exact_sums(x, groups, 3, z, np.repeat([0, 1], [4, 5]), 2, s, kernel=name)
    np.testing.assert_allclose(exact, by_class, rtol=1e-12)
    np.testing.assert_allclose(KERNELS[name].matrix(x, z, s), values, rtol=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_an_offset_of_all_rows_and_points_changes_nothing(name):
    x, z = RNG.normal(size=(50, 3)), RNG.normal(size=(20, 3))
    group = np.zeros(50, int)
    near = dispatch.landmark_sums(x, group, 1, z, 1.0, kernel=name)
    far = dispatch.landmark_sums(x + 2.0**20, group, 1, z + 2.0**20, 1.0, kernel=name)
    np.testing.assert_allclose(far, near, rtol=1e-6)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("distance", [1e9, 1e30, 1e300])
def test_rows_out_of_sight_have_a_kernel_of_zero(name, distance):
    x, z = np.full((1, 3), distance), RNG.normal(size=(6, 3))
    np.testing.assert_allclose(
        reference.landmark_sums(x, np.array([0]), 1, z, 1.0, kernel=name), [[0, 0, 0, 0, 0, 0, 1]], atol=1e-12
    )


SAMPLED = [
    (name, sampler)
    for name, kernel in KERNELS.items()
    for sampler in ("sobol", "iid", "orthogonal")
    if sampler != "orthogonal" or kernel.quantile is None  # it has a Gaussian factor
]


@pytest.mark.parametrize(("name", "sampler"), SAMPLED)
@pytest.mark.parametrize("d", [1, 3])
def test_cosines_of_the_frequencies_average_to_the_kernel(name, sampler, d):
    """10 000 of them: an error of 1 / sqrt(20 000) at most, four times that in the worst of 200 pairs."""
    difference = RNG.normal(size=(200, d)) * RNG.choice([0.3, 1, 3], (200, 1))
    w = frequencies(KERNELS[name], 10_000, d, sampler, np.random.default_rng(1))
    expected = [FORMULAS[name](row, 1.0) for row in difference]
    assert np.abs(np.cos(difference @ w.T).mean(axis=1) - expected).max() < 4 / np.sqrt(20_000)


@pytest.mark.parametrize("name", ["gaussian", "matern32", "matern52"])
def test_orthogonal_frequencies_are_orthogonal_within_a_block(name):
    w = frequencies(KERNELS[name], 10, 4, "orthogonal", np.random.default_rng(0))
    for block in (w[:4], w[4:8], w[8:]):
        np.testing.assert_allclose(
            block @ block.T, np.diag(np.diag(block @ block.T)), atol=1e-12 * np.abs(w).max() ** 2
        )


@pytest.mark.parametrize("name", KERNELS)
def test_only_the_gaussian_factor_is_whitened(name):
    w = frequencies(KERNELS[name], 512, 3, "sobol", np.random.default_rng(0))
    white = np.abs(w.T @ w / 512 - np.eye(3)).max() < 1e-12
    assert white == (name == "gaussian")


@pytest.mark.parametrize("name", ["laplace", "matern32"])
@pytest.mark.parametrize("scale", [1.0, 1e-2])
def test_steep_frequencies_lose_no_digits(name, scale):
    """Frequencies of heavy tails are left to the reference: angles of thousands of turns are no float32."""
    x, groups = RNG.normal(size=(400, 5)).astype("f4"), RNG.integers(-1, 3, 400)
    w = reference.single_precision(frequencies(KERNELS[name], 500, 5, "sobol", np.random.default_rng(2)))
    w[7] *= 1e4
    w = reference.single_precision(w / scale)
    found = dispatch.fourier_sums(x, groups, 3, w)
    np.testing.assert_allclose(found, reference.fourier_sums(x, groups, 3, w), atol=400 * 1e-3)
    error = np.abs(found - reference.fourier_sums(x, groups, 3, w))
    assert error[:, [7, 507]].max() < 1e-6  # 400 rows of 1e7 radians in float64; in float32 it is 10
