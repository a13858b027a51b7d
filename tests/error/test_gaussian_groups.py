"""Is noise that a group shares found, and does the error that it brings come out?"""

import numpy as np
import pytest
from gaussian_jobs import answers, job
from sklearn.linear_model import LinearRegression

from scaleshift.error.gaussian import learn
from scaleshift.errors import DataError

rng = np.random.default_rng(8)
N, P, G = 120, 4, 15
GROUP = np.sort(rng.integers(0, G, N))
X = rng.normal(size=(N, P)) + rng.normal(size=(G, P))[GROUP]
XT = 2 * rng.normal(size=(80, P))
BETA = np.array([1.0, -1, 0.5, 0])
OWN, SHARED = 1.0, 2.0


def outcomes(random):
    return X @ BETA + np.sqrt(SHARED) * random.normal(size=G)[GROUP] + np.sqrt(OWN) * random.normal(size=N)


def test_errors_under_clustered_noise_are_met_on_average():
    """200 draws: the estimates' mean against the error itself, with outcomes of new groups."""
    told, own, shared, real = [], [], [], []
    for seed in range(200):
        random = np.random.default_rng(seed)
        y = outcomes(random)
        found = learn(job(X, y, "ols", groups=GROUP))
        both = answers(found, XT)
        assert both["direct"].error == pytest.approx(both["decomposed"].error, rel=1e-12)
        told.append(both["direct"].error)
        own.append(found.noise.own)
        shared.append(found.noise.shared)
        fitted = LinearRegression().fit(X, y)
        real.append(OWN + SHARED + ((fitted.predict(XT) - XT @ BETA) ** 2).mean())
    for found, expected in ((own, OWN), (shared, SHARED), (told, np.mean(real))):
        error = np.hypot(np.std(found), np.std(real) if found is told else 0) / np.sqrt(200)
        assert abs(np.mean(found) - expected) < 4 * error
    alone = [
        answers(learn(job(X, outcomes(np.random.default_rng(s)), "ols")), XT)["direct"].error
        for s in range(50)
    ]
    assert np.mean(alone) < np.mean(real) - 4 * np.std(alone) / np.sqrt(50)  # groups unknown: too small


@pytest.mark.parametrize("folds", [None, 5])
def test_replicates_share_noise_within_groups(folds):
    """M of a lasso with a penalty near 0, from replicates, against that of least squares, which is exact."""
    y = outcomes(np.random.default_rng(0))
    exact = learn(job(X, y, "ols", groups=GROUP, folds=folds))
    many = learn(job(X, y, "lasso", alpha=1e-9, groups=GROUP, folds=folds, n_bootstrap=4_000))
    told, drawn = answers(exact, XT), answers(many, XT)
    assert many.noise.shared == pytest.approx(exact.noise.shared, rel=1e-6)
    assert abs(told["direct"].error - drawn["direct"].error) < 4 * drawn["direct"].mc_error
    assert many.err_in == pytest.approx(exact.err_in, rel=1e-6)


def test_no_interval_or_correction_is_claimed_with_groups():
    y = outcomes(np.random.default_rng(0))
    methods = ("direct", "corrected", "closed_form")
    told = answers(learn(job(X, y, "lasso", alpha=0.1, groups=GROUP, methods=methods)), XT)
    assert np.isnan([told["direct"].low, told["corrected"].error, told["closed_form"].error]).all()
    assert all(told[name].reason for name in methods)


def test_groups_of_one_row_are_no_groups():
    y = outcomes(np.random.default_rng(0))
    single, plain = (
        learn(job(X, y, "ridge", alpha=0.1, groups=np.arange(N))),
        learn(job(X, y, "ridge", alpha=0.1)),
    )
    assert single.noise.shared == 0
    assert single.noise.own == plain.noise.own
    assert answers(single, XT)["direct"].error == pytest.approx(answers(plain, XT)["direct"].error, rel=1e-12)


def test_a_group_in_two_folds_is_refused():
    y = outcomes(np.random.default_rng(0))
    made, split = job(X, y, "ols", groups=GROUP), job(X, y, "ols", folds=5)
    with pytest.raises(DataError, match="several folds"):
        learn(made.__class__(made.rows, split.buckets, made.settings))
