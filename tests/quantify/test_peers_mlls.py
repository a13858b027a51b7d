"""MLLS against QuaPy's EMQ and against abstention, where these are installed."""

import importlib
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from three_classes import CENTRES, LABELS

import scaleshift as ss


def peer(name):
    """A module of a peer, which may warn as it likes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip(name.split(".")[0])
        return importlib.import_module(name)


def close(n, shares, seed):
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=shares)
    return 0.4 * CENTRES[y] + rng.standard_normal((n, 3)), y


X, Y = close(4_000, [0.2, 0.3, 0.5], seed=0)
ESTIMATOR = LogisticRegression().fit(*close(500, [0.4, 0.3, 0.3], seed=1))
ESTIMATOR.coef_ *= 2  # too sure of itself
TARGETS = [[0.7, 0.2, 0.1], [0.02, 0.08, 0.9], [0.5, 0.0, 0.5]]


def model(calibration):
    estimator = LogisticRegression().fit(X[:10].repeat(2, axis=0), LABELS[[0, 1, 2] * 6 + [0, 1]])
    estimator.coef_, estimator.intercept_ = ESTIMATOR.coef_, ESTIMATOR.intercept_
    return ss.MLLS(estimator, calibration, cv="prefit", n_bootstrap=0, random_state=0).fit(X, LABELS[Y])


@pytest.mark.parametrize("shares", TARGETS)
def test_quapy_with_a_lower_stopping_constant(shares, monkeypatch):
    aggregative = peer("quapy.method.aggregative")
    monkeypatch.setattr(aggregative.EMQ, "MAX_ITER", 200_000)
    target = close(3_000, shares, seed=2)[0]
    fitted = model(None)
    posterior = ESTIMATOR.predict_proba(target)
    prior = ESTIMATOR.predict_proba(X).mean(axis=0)  # as EMQ with exact_train_prev=False
    expected, _ = aggregative.EMQ.EM(prior, posterior, epsilon=1e-12)
    found = fitted.predict(target)["proportion"].values[0]
    print(f"QuaPy {shares}: largest difference {np.abs(found - expected).max():.1e}")
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("shares", TARGETS)
@pytest.mark.parametrize("calibration", ["bcts", "vector"])
def test_abstention(calibration, shares):
    """Its optimiser stops earlier: tolerance 1e-4.

    Its adapter is given posteriors that its calibrator has calibrated: by itself it calibrates those of the
    source only. Its temperature scaling divides by a temperature of zero for a classifier that is not sure
    enough, so that the one here is too sure.
    """
    label_shift, calibrators = peer("abstention.label_shift"), peer("abstention.calibration")
    factory = (
        calibrators.TempScaling(bias_positions="all")
        if calibration == "bcts"
        else calibrators.VectorScaling()
    )
    target = close(3_000, shares, seed=2)[0]
    said, truth = ESTIMATOR.predict_proba(X), np.eye(3)[Y]
    calibrate = factory(said, truth, posterior_supplied=True)
    source, of_target = calibrate(said), calibrate(ESTIMATOR.predict_proba(target))
    adapter = label_shift.EMImbalanceAdapter(tolerance=1e-13, max_iterations=200_000)
    weight = adapter(of_target, source).multipliers
    found = model(calibration).predict(target)
    expected = weight * source.mean(axis=0)
    difference = np.abs(found["proportion"].values[0] - expected).max()
    print(f"abstention {calibration} {shares}: largest difference {difference:.1e}")
    np.testing.assert_allclose(found["proportion"].values[0], expected, atol=1e-4)
    np.testing.assert_allclose(found["weight"].values[0], weight, atol=1e-3)
