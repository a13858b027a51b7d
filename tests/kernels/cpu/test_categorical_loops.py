"""Loops of categorical models against plain numpy."""

import numpy as np
import pytest
from scipy.special import expit

from scaleshift.kernels.cpu import categorical


def test_exponentials_and_sigmoids_are_those_of_scipy():
    x = np.concatenate([np.linspace(-690, 690, 10_001), np.random.default_rng(0).normal(size=5_000)])
    found = x.copy()
    categorical.exponentials(found)
    np.testing.assert_allclose(found, np.exp(x), rtol=1e-15)
    found = x.copy()
    categorical.sigmoids(found)
    np.testing.assert_allclose(found, expit(x), rtol=1e-15)


def test_extremes_stay_probabilities():
    x = np.array([-1e300, -np.inf, 1e300, np.inf])
    categorical.sigmoids(x)
    np.testing.assert_allclose(x, [0, 0, 1, 1], atol=1e-300)


@pytest.mark.parametrize("k", [2, 4])
def test_labels_are_how_many_steps_a_number_reaches(k):
    r = np.random.default_rng(0)
    proba = r.dirichlet(np.ones(k), size=30).T
    steps = np.cumsum(proba[:-1], axis=0)
    uniforms = r.random((30, 7))
    uniforms[0, 0] = steps[0, 0]  # reached where equal
    labels = (uniforms[None] >= steps[..., None]).sum(axis=0)
    assert labels[0, 0] >= 1

    above = np.empty((k - 1, 30, 7))
    categorical.labels_above(steps, uniforms, above)
    np.testing.assert_array_equal(above.sum(axis=0), labels)

    losses, counts = r.normal(size=(k, 30, 7)), (r.random(30) < 0.8).astype(float)
    observed = np.take_along_axis(losses, labels[None], axis=0)[0]
    found = np.ones(7)
    categorical.drawn_losses(losses, steps, uniforms, counts, found)
    np.testing.assert_allclose(found, 1 + counts @ observed, rtol=1e-12)

    expected = 0.0
    for i in range(30):
        for j in range(k):
            expected += counts[i] * np.cov(losses[j, i], labels[i] == j, bias=True)[0, 1]
    assert categorical.covariances(losses, steps, uniforms, counts) == pytest.approx(expected)


@pytest.mark.parametrize("n", [1, 3, 4])
def test_partners_go_round_in_a_ring(n):
    r = np.random.default_rng(0)
    own, likely = r.normal(size=(20, 5)), r.random((20, 5))
    centre, counts = r.normal(size=20), r.integers(0, 2, 20).astype(float)
    found = np.zeros(5)
    categorical.wrong_among_partners(own, centre, likely, counts, n, found)
    expected = np.zeros(5)
    for step in range(1, n + 1):
        decided = own + np.roll(own, -step, axis=1) + centre[:, None] > 0
        expected += counts @ np.where(decided, 1 - likely, likely)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
