"""Calibration of posteriors: the highest likelihood, and nothing else changes it."""

import numpy as np
import pytest
from scipy.special import log_softmax

from scaleshift.errors import DataError
from scaleshift.quantify.classifier.calibration import FLOOR, STEEPEST, centred, fit_calibration

SHIFT = np.array([0.3, -0.2, -0.1])


def drawn(n, scale, bias, seed=0):
    """Log posteriors, and classes drawn from softmax(scale * logits + bias)."""
    rng = np.random.default_rng(seed)
    said = log_softmax(rng.normal(0, 2, (n, 3)), axis=1)
    p = np.exp(log_softmax(scale * centred(said, FLOOR) + bias, axis=1))
    return said, (rng.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1)


def loss(calibration, said, code):
    return -calibration(said)[np.arange(len(code)), code].mean()


@pytest.mark.parametrize(
    ("kind", "scale"), [("bcts", np.full(3, 0.6)), ("vector", np.array([0.4, 0.8, 1.2]))]
)
def test_what_the_classes_were_drawn_with_is_found(kind, scale):
    found = fit_calibration(kind, *drawn(200_000, scale, SHIFT), np.ones(200_000))
    np.testing.assert_allclose(found.scale, scale, atol=0.03)
    np.testing.assert_allclose(found.bias - found.bias.mean(), SHIFT, atol=0.03)
    assert (np.ptp(found.scale) == 0) == (kind == "bcts")


@pytest.mark.parametrize("kind", ["bcts", "vector"])
def test_no_calibration_nearby_is_more_likely(kind):
    said, code = drawn(2_000, 0.7, SHIFT)
    found = fit_calibration(kind, said, code, np.ones(2_000))
    best = loss(found, said, code)
    rng = np.random.default_rng(0)
    for _ in range(20):
        scale = found.scale + 0.01 * (rng.normal() if kind == "bcts" else rng.normal(size=3))
        other = type(found)(scale, found.bias + 0.01 * rng.normal(size=3), found.floor)
        assert loss(other, said, code) > best
    assert best < loss(fit_calibration(None, said, code, np.ones(2_000)), said, code)


@pytest.mark.parametrize("kind", ["bcts", "vector"])
def test_the_mean_calibrated_posterior_is_the_class_shares(kind):
    """The bias has a gradient of zero: what makes the prior of both kinds the same."""
    said, code = drawn(3_000, 0.5, SHIFT)
    weight = np.random.default_rng(0).uniform(0.5, 2, 3_000)
    posterior = np.exp(fit_calibration(kind, said, code, weight)(said))
    shares = np.bincount(code, weight) / weight.sum()
    np.testing.assert_allclose(weight @ posterior / weight.sum(), shares, atol=1e-7)


def test_a_row_of_weight_two_is_two_rows():
    said, code = drawn(500, 0.7, SHIFT)
    twice = np.r_[np.arange(500), np.arange(100)]
    weight = 1.0 + (np.arange(500) < 100)
    one, two = (
        fit_calibration("bcts", said[rows], code[rows], w)
        for rows, w in ((slice(None), weight), (twice, np.ones(600)))
    )
    np.testing.assert_allclose(one(said), two(said), atol=1e-5)


def test_none_leaves_posteriors_as_they_are():
    said, code = drawn(100, 1, SHIFT)
    said[0] = log_softmax([0.0, -500, -700])
    found = fit_calibration(None, said, code, np.ones(100))
    np.testing.assert_allclose(found(said), said, atol=1e-9)


def test_nothing_is_known_of_a_class_without_rows():
    said, code = drawn(200, 0.5, SHIFT)
    code = np.where(code == 1, 2, code)
    found = fit_calibration("bcts", said, code, np.ones(200))
    posterior = np.exp(found(said))
    assert (posterior[:, 1] == 0).all()
    np.testing.assert_allclose(posterior.sum(axis=1), 1)


def test_classes_that_nothing_confuses_are_calibrated_all_the_same():
    said = np.log(np.where(np.eye(2)[[0] * 50 + [1] * 50] > 0, 0.9, 0.1))
    found = fit_calibration("bcts", said, np.repeat([0, 1], 50), np.ones(100))
    assert 1 < found.scale[0] <= STEEPEST
    assert np.isfinite(found(said)).all()


def test_one_certain_mistake_is_no_infinite_loss():
    said, code = drawn(1_000, 1.0, 0 * SHIFT)
    said[0], code[0] = [0.0, -700, -700], 1
    found = fit_calibration("bcts", said, code, np.ones(1_000))
    assert found.scale[0] > 0.5


def test_other_kinds_are_refused():
    with pytest.raises(DataError, match="calibration='platt': expected 'bcts', 'vector' or None"):
        fit_calibration("platt", np.zeros((1, 2)), np.array([0]), np.ones(1))
