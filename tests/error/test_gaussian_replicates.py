"""Are replicates from sums what refits to drawn outcomes would be?"""

import numpy as np
import pytest
from gaussian_jobs import answers, job, sums_of
from scipy import stats

from scaleshift.error.gaussian import learn
from scaleshift.error.gaussian.clusters import NoiseVariance
from scaleshift.error.gaussian.design import design_of
from scaleshift.error.gaussian.replicates import drawn, given
from scaleshift.error.gaussian.sums import Outcomes

rng = np.random.default_rng(3)
X = rng.normal(size=(60, 5)) @ np.diag([1, 1, 2, 3, 0.5])
Y = X[:, 0] + rng.normal(size=60)
XT = 2 * rng.normal(size=(40, 5))


@pytest.mark.parametrize("alpha", [0.05, None])
def test_more_replicates_leave_the_first_as_they_are(alpha):
    few, many = (learn(job(X, Y, "lasso", alpha=alpha, folds=5, n_bootstrap=b)) for b in (7, 20))
    sums = sums_of(few, XT)
    np.testing.assert_allclose(many.err_b(sums)[:7], few.err_b(sums), rtol=1e-12)
    assert len(many.in_b) == 20


def test_a_seed_gives_the_same_answers_and_another_does_not():
    first, again, other = (answers(learn(job(X, Y, "lasso", alpha=0.1, seed=s)), XT) for s in (1, 1, 2))
    assert first == again
    assert first["direct"].error != other["direct"].error


def test_a_fixed_ridge_has_the_limit_of_many_replicates():
    exact = learn(job(X, Y, "ridge", alpha=0.3))
    assert exact.in_b.size == 0
    noise = {name: rng.normal(size=(20_000, 60)) for name in ("train", "fresh")}
    many = learn(job(X, Y, "ridge", alpha=0.3, noise=noise))
    told, drawn_ = answers(exact, XT), answers(many, XT)
    for method in ("direct", "decomposed"):
        assert told[method].mc_error == 0
        assert abs(told[method].error - drawn_[method].error) < 4 * drawn_[method].mc_error
    np.testing.assert_allclose(exact.error_in_sample["direct"], many.in_b.mean(), rtol=0.01)


def test_drawn_sums_are_distributed_as_those_of_drawn_rows():
    """Means and covariances of (c, y'y) by fold, 4 standard errors wide."""
    z = np.c_[np.ones(60), X - X.mean(axis=0)]
    fold = np.arange(60) % 3
    gram = np.stack([z[fold == k].T @ z[fold == k] for k in range(3)])
    design, mean, s2, b = design_of(gram, False, np.zeros(5)), rng.normal(size=6), 1.7, 20_000
    from_sums = drawn(design, mean, NoiseVariance(s2, 0.0), None, 0, b)
    e = rng.standard_normal((60, b))
    by_row = given(
        design,
        mean,
        s2,
        Outcomes(
            np.stack([z[fold == k].T @ e[fold == k] for k in range(3)]),
            np.stack([(e[fold == k] ** 2).sum(axis=0) for k in range(3)]),
        ),
    )
    for k in range(3):
        a, c = (np.r_[o.cross[k], o.square[k][None]] for o in (from_sums, by_row))
        unit = c.std(axis=1, keepdims=True)
        gap = (a.mean(axis=1) - c.mean(axis=1)) / unit[:, 0]
        assert np.abs(gap).max() < 4 * np.sqrt(2 / b)
        assert np.abs(np.cov(a / unit) - np.cov(c / unit)).max() < 5 * np.sqrt(2 * 2 / b)
        assert stats.ks_2samp(a[-1], c[-1]).pvalue > 1e-3


def test_sums_of_a_fold_with_fewer_rows_than_columns_can_be_drawn():
    z = np.c_[np.ones(4), X[:4]]
    gram = (z.T @ z)[None]
    found = drawn(design_of(gram, False, np.zeros(5)), np.zeros(6), NoiseVariance(1.0, 0.0), None, 0, 4_000)
    np.testing.assert_allclose(np.cov(found.cross[0]), gram[0], atol=0.1 * np.abs(gram).max())
    np.testing.assert_allclose(found.square.mean(), 4, rtol=0.1)
    # y lies in the span of 4 rows: y'y is what c tells
    np.testing.assert_allclose(
        np.einsum("qb,qr,rb->b", found.cross[0], np.linalg.pinv(gram[0]), found.cross[0]), found.square[0]
    )


def test_excess_error_by_feature_adds_up():
    found = learn(job(X, Y, "lasso", alpha=0.05))
    sums = sums_of(found, XT)
    excess = answers(found, XT)["direct"].error - found.noise.total
    z = np.c_[np.ones(40), XT - found.centre]
    intercept = (z.T @ z / 40 @ found.spread.matrix)[0, 0]
    np.testing.assert_allclose(found.by_feature(sums).sum() + intercept, excess, rtol=1e-10)
    np.testing.assert_allclose(found.extrapolation(XT).mean() * found.noise.total, excess, rtol=1e-10)


def test_nested_replicates_give_an_interval_about_the_truth_of_a_ridge():
    """Plain ridge, target twice as wide: 90 % intervals hold the error in 75 to 100 % of 60 draws."""
    beta, held, n = np.array([1, 0.5, 0, 0, -1.0]), 0, 60
    for seed in range(n):
        random = np.random.default_rng(seed)
        y = X @ beta + random.normal(size=60)
        found = learn(job(X, y, "ridge", alpha=0.05, level=0.9, seed=seed))
        told = answers(found, XT)["direct"]
        # expected over outcomes, as the estimand is
        many = X @ beta + random.normal(size=(400, 60))
        centred = X - X.mean(axis=0)
        weights = np.linalg.solve(centred.T @ centred + 60 * 0.05 * np.eye(5), centred.T @ many.T)
        predicted = many.mean(axis=1) + (XT - X.mean(axis=0)) @ weights
        truth = 1 + ((predicted - (XT @ beta)[:, None]) ** 2).mean()
        held += told.low <= truth <= told.high
        assert told.low < told.high
    assert 0.75 <= held / n <= 1


def test_a_higher_level_has_a_wider_interval():
    spans = []
    for level in (0.5, 0.8, 0.95):
        told = answers(learn(job(X, Y, "lasso", alpha=0.05, folds=5, generator="auto", level=level)), XT)
        spans.append([told[m].high - told[m].low for m in ("direct", "decomposed")])
    assert (np.diff(spans, axis=0) > 0).all()


def test_without_enough_replicates_there_is_no_interval_and_a_reason():
    told = answers(learn(job(X, Y, "lasso", alpha=0.05, n_bootstrap=10, methods=("direct", "corrected"))), XT)
    assert np.isfinite(told["direct"].error)
    assert np.isnan(told["direct"].low)
    assert np.isnan(told["corrected"].error)
    assert "fewer than" in told["corrected"].reason


def test_extrapolation_by_leverage_is_that_of_a_model_without_the_row():
    """Of least squares: z'(Z'Z)^-1 z without row 0 is h / (1 - h)."""
    every, less = learn(job(X, Y, "ols")), learn(job(X[1:], Y[1:], "ols"))
    left_out = every.extrapolation(X[:1]) / (1 - every.leverage(X[:1]))
    np.testing.assert_allclose(left_out, less.extrapolation(X[:1]), rtol=1e-10)
    np.testing.assert_allclose(every.leverage(X).sum(), 6, rtol=1e-10)
