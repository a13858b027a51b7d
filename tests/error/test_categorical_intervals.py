"""Limits of errors of labels."""

import warnings

import numpy as np

import scaleshift as ss


def test_a_limit_is_a_share_however_unsure_it_is():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(40, 12))
    y = (x[:, 0] + 0.3 * rng.normal(size=40) > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ss.PredictionError("logistic", penalty="l1", n_bootstrap=30, random_state=0).fit(x, y)
        found = model.predict({"far": 4 * x, "near": x, "one": x[:1]})
    high = found["error_high"].values
    assert (high[np.isfinite(high)] <= 1).all()
    assert (found["error_low"].values[np.isfinite(high)] >= 0).all()
