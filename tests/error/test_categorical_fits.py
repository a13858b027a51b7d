"""The models of all rows, of folds and of replicates are the minima that they are said to be."""

from dataclasses import replace

import numpy as np
import pytest
from categorical_jobs import learned, settings, sums_of, three_classes, two_classes
from sklearn.linear_model import LogisticRegression

from scaleshift.blocks.block import Block
from scaleshift.blocks.buckets import random_buckets
from scaleshift.blocks.rows import as_rows, with_numbers
from scaleshift.error.categorical import learn
from scaleshift.error.family import Job

DATA = {"logistic": two_classes, "multinomial": three_classes}


def peer(x, y, alpha, **options):
    model = LogisticRegression(C=1 / (len(x) * alpha), tol=1e-10, max_iter=100_000, **options)
    return model.fit(x, y)


def one_hot(y, k):
    return (y[:, None] == np.arange(k)).astype(float)


def slopes(x, y, coef, intercept, k):
    """Gradients of the mean negative log likelihood in weights and intercepts."""
    logits = x @ coef.T + intercept
    if len(coef) == 1:
        residual = 1 / (1 + np.exp(-logits)) - y[:, None]
    else:
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        residual = p / p.sum(axis=1, keepdims=True) - one_hot(y, k)
    return residual.T @ x / len(x), residual.mean(axis=0)


@pytest.mark.parametrize("model", DATA)
def test_an_l2_fit_is_that_of_scikit_learn(model):
    x, y = DATA[model]()
    family = learned(x, y, model, alpha=0.02)
    them = peer(x, y, 0.02)
    np.testing.assert_allclose(family.predict(x), them.predict_proba(x), atol=2e-6)
    weights, intercepts = slopes(x, y, family.coef, family.intercept, len(family.classes))
    np.testing.assert_allclose(weights, -0.02 * family.coef, atol=1e-12)
    np.testing.assert_allclose(intercepts, 0, atol=1e-12)


@pytest.mark.parametrize("model", DATA)
@pytest.mark.parametrize("scale", [False, True])
def test_an_l1_fit_has_the_subgradient_of_its_penalty(model, scale):
    x, y = DATA[model]()
    alpha = 0.08
    family = learned(x, y, model, alpha=alpha, penalty="l1", scale=scale)
    unit = x.std(axis=0) if scale else np.ones(x.shape[1])
    slope, intercepts = slopes(x, y, family.coef, family.intercept, len(family.classes))
    slope = slope / unit
    chosen = family.coef != 0
    assert chosen.any()
    assert not chosen.all()
    np.testing.assert_allclose(slope[chosen], -alpha * np.sign(family.coef[chosen]), atol=1e-10)
    assert (np.abs(slope[~chosen]) <= alpha + 1e-10).all()
    np.testing.assert_allclose(intercepts, 0, atol=1e-10)


def test_an_l1_fit_is_that_of_saga():
    x, y = two_classes()
    family = learned(x, y, alpha=0.03, penalty="l1")
    them = peer(x, y, 0.03, l1_ratio=1.0, solver="saga", random_state=0)
    np.testing.assert_allclose(family.coef, them.coef_, atol=1e-6)


def test_scaled_features_are_penalised_alike():
    x, y = two_classes()
    unit = x.std(axis=0)
    family = learned(x, y, alpha=0.02, scale=True)
    alone = learned(x / unit, y, alpha=0.02)
    np.testing.assert_allclose(family.coef * unit, alone.coef, rtol=1e-9)


@pytest.mark.parametrize(
    ("model", "penalty"), [("logistic", "l2"), ("multinomial", "l2"), ("logistic", "l1")]
)
def test_a_replicate_is_a_refit_to_its_labels(model, penalty):
    x, y = DATA[model]()
    n, b = len(x), 6
    given = np.random.default_rng(3).random((n, b))
    rows = with_numbers(as_rows(x, y), train=given, fresh=given)
    asked = settings(model, penalty=penalty, alpha=0.02, n_bootstrap=b, generator="plugin")
    family = learn(Job(rows, None, asked))
    proba = family.predict(x)
    for replicate in range(b):
        drawn = (given[:, replicate, None] >= np.cumsum(proba, axis=1)[:, :-1]).sum(axis=1)
        own = learned(x, drawn, model, alpha=0.02, penalty=penalty, n_bootstrap=2, generator="plugin")
        np.testing.assert_allclose(family.replicates[replicate], _in_frame(family, own), atol=1e-9)


def _in_frame(family, other):
    """Parameters of a family that was fitted to the same rows, whose units are the same."""
    np.testing.assert_allclose(family.centre, other.centre)
    return other.theta


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_a_fold_is_fitted_without_its_rows(penalty):
    x, y = two_classes()
    rows = as_rows(x, y)
    buckets = random_buckets(rows, 3, 0)
    family = learned(x, y, folds=3, alpha=0.02, penalty=penalty)
    fold = buckets(Block(x, {"label": y}, 0, np.ones(len(x), bool), np.zeros(x.shape[1])))
    held_out = family.held_out(x, fold)
    for f in range(3):
        own = learned(x[fold != f], y[fold != f], alpha=0.02, penalty=penalty, n_bootstrap=2)
        np.testing.assert_allclose(held_out[fold == f], own.predict(x[fold == f]), atol=1e-8)
    wrong = held_out.argmax(axis=1) != y
    assert family.cv_error == pytest.approx(wrong.mean())
    assert family.cv_error_se > 0
    np.testing.assert_array_equal(family.held_out(x, np.full(len(x), -1)), family.predict(x))


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_cross_validation_chooses_the_penalty_with_the_smallest_deviance(penalty):
    x, y = two_classes()
    chosen = learned(x, y, folds=4, alpha=None, penalty=penalty, loss="deviance")
    for factor in (0.2, 5.0):
        other = learned(x, y, folds=4, alpha=chosen.alpha * factor, penalty=penalty, loss="deviance")
        assert chosen.cv_error < other.cv_error
    same = learned(x, y, folds=4, alpha=chosen.alpha, penalty=penalty, loss="deviance")
    np.testing.assert_allclose(chosen.theta, same.theta, atol=1e-9)
    np.testing.assert_allclose(chosen.replicates, same.replicates, atol=1e-8)


def test_two_classes_are_the_same_by_both_models():
    x, y = two_classes()
    plain = learned(x, y, "logistic", alpha=0.02)
    # Weights of both classes are shrunk: w and -w of half the difference, 2 |w / 2|^2 for |w|^2.
    both = learned(x, y, "multinomial", alpha=0.04)
    np.testing.assert_allclose(plain.predict(x), both.predict(x), atol=1e-10)
    sums = [sums_of(family, x * 1.5) for family in (plain, both)]
    np.testing.assert_allclose(sums[0]["err"], sums[1]["err"], rtol=1e-9)


def test_the_relaxed_generator_is_a_refit_on_the_support():
    x, y = two_classes()
    family = learned(x, y, alpha=0.1, penalty="l1", generator="relaxed")
    support = np.flatnonzero(family.coef[0])
    assert 0 < len(support) < x.shape[1]
    them = peer(x[:, support], y, 1e-6)
    proba = replace(family, theta=family.generator_theta).predict(x)
    np.testing.assert_allclose(proba, them.predict_proba(x[:, support]), atol=1e-5)


@pytest.mark.parametrize("model", DATA)
def test_the_relaxed_generator_of_an_l2_model_is_its_fit_without_penalty(model):
    x, y = DATA[model]()
    family = learned(x, y, model, alpha=0.1, generator="relaxed")
    proba = replace(family, theta=family.generator_theta).predict(x)
    np.testing.assert_allclose(proba, peer(x, y, 1e-6).predict_proba(x), atol=1e-5)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("model", DATA)
def test_the_automatic_generator_lies_between_the_model_and_its_refit(model, penalty):
    x, y = DATA[model](n=300)
    family, whole = (
        learned(x, y, model, folds=4, alpha=0.1, penalty=penalty, generator=generator)
        for generator in ("auto", "relaxed")
    )
    assert 0 < family.blend <= 1  # so strong a penalty shrinks too much
    between = (1 - family.blend) * family.theta + family.blend * whole.generator_theta
    np.testing.assert_allclose(family.generator_theta, between, atol=1e-12)


def test_the_automatic_generator_is_the_model_where_nothing_says_how_far_to_go():
    x, y = two_classes(n=40, p=15)
    assert learned(x, y, alpha=0.1).generator == "plugin"  # no folds
    assert learned(x, y, folds=4, alpha=0.1).generator == "plugin"  # 40 rows, 16 parameters
    assert learned(*two_classes(), folds=4, alpha=0).generator == "plugin"  # no penalty


def test_a_shrunk_model_of_labels_that_are_nearly_separated_expects_the_errors_that_it_makes():
    r = np.random.default_rng(0)
    x, weights = r.normal(size=(300, 5)), np.r_[4, -4, 2, 0, 0]
    y = (r.random(300) < 1 / (1 + np.exp(-x @ weights))).astype(int)
    shrunk, automatic = (
        learned(x, y, folds=5, alpha=0.1, generator=generator) for generator in ("plugin", "auto")
    )
    assert shrunk.error_in_sample["direct"] > shrunk.cv_error + 0.15
    assert automatic.error_in_sample["direct"] == pytest.approx(automatic.cv_error, abs=0.03)
