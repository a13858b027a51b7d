"""Are penalties, folds and generators chosen as scikit-learn would, from sums alone?"""

import numpy as np
import pytest
from gaussian_jobs import job, sums_of
from sklearn.linear_model import Lasso, LassoCV, LinearRegression, Ridge
from sklearn.preprocessing import StandardScaler

from scaleshift.error.gaussian import learn

rng = np.random.default_rng(5)
X = rng.normal(size=(100, 12)) @ np.diag(np.linspace(0.5, 3, 12)) + 2
Y = X[:, 0] + 2 * X[:, 1] - X[:, 2] + 2 * rng.normal(size=100)


def fold_of_rows(made):
    """Fold of each row, as the buckets of a job give them."""
    block = made.rows.loader(made.rows.x, *made.rows.arrays, start=0)
    return made.buckets(block)


def splits(fold):
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(fold.max() + 1)]


def test_a_lasso_is_that_of_scikit_learn():
    for alpha in (0.01, 0.1, 1.0, 100.0):
        found = learn(job(X, Y, "lasso", alpha=alpha))
        expected = Lasso(alpha=alpha, tol=1e-14, max_iter=100_000).fit(X, Y)
        np.testing.assert_allclose(found.coef, expected.coef_, atol=1e-9)
        np.testing.assert_allclose(found.predict(X[:5]), expected.predict(X[:5]), rtol=1e-9)


def test_cross_validation_of_a_lasso_is_that_of_scikit_learn():
    made = job(X, Y, "lasso", folds=5)
    found = learn(made)
    expected = LassoCV(cv=splits(fold_of_rows(made)), tol=1e-12, max_iter=100_000).fit(X, Y)
    np.testing.assert_allclose(found.curve.alpha, expected.alphas_, rtol=1e-9)
    np.testing.assert_allclose(found.curve.error, expected.mse_path_.mean(axis=1), rtol=1e-7)
    np.testing.assert_allclose(found.alpha, expected.alpha_, rtol=1e-9)
    np.testing.assert_allclose(found.coef, expected.coef_, atol=1e-7)
    se = expected.mse_path_.std(axis=1, ddof=1) / np.sqrt(5)
    np.testing.assert_allclose(found.curve.error_se, se, rtol=1e-7)
    np.testing.assert_allclose(found.cv_error, found.curve.error.min(), rtol=1e-9)
    assert found.curve.one_se > found.alpha


def test_a_ridge_chooses_the_penalty_of_the_smallest_held_out_error():
    made = job(X, Y, "ridge", folds=4)
    found, fold = learn(made), fold_of_rows(made)

    def error(alpha):
        squares = 0
        for train, test in splits(fold):
            model = Ridge(alpha=alpha * len(train)).fit(X[train], Y[train])
            squares += ((Y[test] - model.predict(X[test])) ** 2).sum()
        return squares / len(Y)

    errors = [error(alpha) for alpha in found.curve.alpha]
    np.testing.assert_allclose(found.curve.error, errors, rtol=1e-8)
    assert found.alpha == found.curve.alpha[int(np.argmin(errors))]
    np.testing.assert_allclose(found.cv_error, min(errors), rtol=1e-8)


@pytest.mark.parametrize("model", ["ols", "ridge", "lasso"])
def test_held_out_predictions_are_those_of_refits(model):
    made = job(X, Y, model, folds=4, alpha=0.2)
    found, fold = learn(made), fold_of_rows(made)
    told = found.held_out(X, fold)
    for train, test in splits(fold):
        plain = {
            "ols": LinearRegression(),
            "ridge": Ridge(alpha=0.2 * len(train)),
            "lasso": Lasso(alpha=0.2, tol=1e-14, max_iter=100_000),
        }[model].fit(X[train], Y[train])
        np.testing.assert_allclose(told[test], plain.predict(X[test]), rtol=1e-8)
    np.testing.assert_allclose(found.cv_error, ((Y - told) ** 2).mean(), rtol=1e-9)
    np.testing.assert_allclose(found.held_out(X[:3], np.full(3, -1)), found.predict(X[:3]))


@pytest.mark.parametrize(
    ("model", "plain"), [("ridge", Ridge(alpha=0.2 * 100)), ("lasso", Lasso(alpha=0.2, tol=1e-14))]
)
def test_scaled_weights_are_those_of_standardised_features(model, plain):
    found = learn(job(X, Y, model, alpha=0.2, scale=True))
    scaler = StandardScaler().fit(X)
    plain.fit(scaler.transform(X), Y)
    np.testing.assert_allclose(found.coef, plain.coef_ / scaler.scale_, atol=1e-9)
    np.testing.assert_allclose(found.predict(X[:5]), plain.predict(scaler.transform(X[:5])), rtol=1e-9)


def test_a_blend_takes_the_share_that_predicts_held_out_rows_best():
    made = job(X, Y, "lasso", alpha=0.6, folds=5, generator="auto")
    found, fold, errors = learn(made), fold_of_rows(made), []
    for share in np.linspace(0, 1, 21):
        squares = 0
        for train, test in splits(fold):
            model = Lasso(alpha=0.6, tol=1e-14).fit(X[train], Y[train])
            on = np.flatnonzero(model.coef_)
            refit = LinearRegression().fit(X[train][:, on], Y[train])
            blend = (1 - share) * model.predict(X[test]) + share * refit.predict(X[test][:, on])
            squares += ((Y[test] - blend) ** 2).sum()
        errors.append(squares)
    assert found.share == pytest.approx(np.linspace(0, 1, 21)[int(np.argmin(errors))])
    assert found.share > 0.5
    plain, relaxed = (learn(job(X, Y, "lasso", alpha=0.6, generator=g)) for g in ("plugin", "relaxed"))
    np.testing.assert_allclose(
        found.generator, (1 - found.share) * plain.generator + found.share * relaxed.generator, atol=1e-9
    )
    assert found.noise.total == pytest.approx(plain.noise.total)


def test_the_least_squares_generator_brings_its_own_variance():
    found = learn(job(X, Y, "lasso", alpha=0.3, generator="ols"))
    plain = LinearRegression().fit(X, Y)
    s2 = ((Y - plain.predict(X)) ** 2).sum() / (100 - 13)
    np.testing.assert_allclose(found.generator[1:], plain.coef_, rtol=1e-9)
    np.testing.assert_allclose(found.noise.total, s2, rtol=1e-9)
    np.testing.assert_allclose(found.err_in, found.rss / 100 + 2 * found.freedom * s2 / 100, rtol=1e-12)


def test_replicates_keep_the_penalty_that_was_chosen():
    chosen = learn(job(X, Y, "lasso", folds=5))
    given = learn(job(X, Y, "lasso", folds=5, alpha=chosen.alpha))
    assert np.unique(chosen.outer.alpha).size == 1
    np.testing.assert_array_equal(chosen.spread.matrix, given.spread.matrix)


def test_replicates_choose_their_own_penalty_where_asked():
    free = learn(job(X, Y, "lasso", folds=5, rechoose=True))
    fixed = learn(job(X, Y, "lasso", folds=5, alpha=free.alpha))
    assert len(np.unique(free.outer.alpha)) > 50
    assert np.unique(fixed.outer.alpha).size == 1
    sums = sums_of(free, 3 * X)
    assert free.err_b(sums).mean() != fixed.err_b(sums).mean()
