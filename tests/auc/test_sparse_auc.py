"""SparseAUC: what must not matter to a ranking, what it answers, and how honest its AUC is."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.special import expit, logit
from sklearn.metrics import roc_auc_score

import scaleshift as ss
from scaleshift.blocks.folds import divide
from scaleshift.blocks.rows import as_rows
from scaleshift.errors import DataError

PLANTED = [2, 5, 9]


def planted(n=1_200, d=15, seed=0, share=0.2, shift=1.3):
    """Correlated features in various units, three of which tell the classes apart."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < share
    X = rng.normal(size=(n, d)) + 0.5 * rng.normal(size=(n, 1))
    X[:, PLANTED] += np.outer(y, [1.0, -0.8, 0.9]) * shift
    return X * 10.0 ** rng.uniform(-2, 2, d), y


X, Y = planted()


def fit(X, y, sample_weight=None, **options):
    options = {"random_state": 0, **options}
    return ss.SparseAUC(**options).fit(X, y, sample_weight)


@cache
def learned(**options):
    """A fit to X and Y for all tests that only ask it."""
    return fit(X, Y, **options)


def same(a, b, tolerance=1e-8, probabilities=True):
    """Whether two models choose the same features, with the same weights to a relative tolerance."""
    np.testing.assert_array_equal(a.support_, b.support_)
    scale = np.where(b.coef_ == 0, 1, b.coef_)
    np.testing.assert_allclose(a.coef_ / scale, b.coef_ / scale, atol=tolerance)
    np.testing.assert_allclose(a.objective_, b.objective_, atol=tolerance)
    if probabilities:
        np.testing.assert_allclose(a.auc_, b.auc_, atol=tolerance)
        np.testing.assert_allclose(a.predict_proba(X[:50]), b.predict_proba(X[:50]), atol=100 * tolerance)


@pytest.mark.parametrize("solver", ["moments", "stream", "screen"])
@pytest.mark.parametrize("options", [{}, {"k": 3}, {"k": 3, "cv": None}, {"selection": "one_se"}])
def test_planted_features_are_found(solver, options):
    model = learned(solver=solver, **options)
    assert set(PLANTED) <= set(model.support_)
    assert model.solver_ == solver
    assert model.k_ == len(model.support_) == np.count_nonzero(model.coef_)
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores, X @ model.coef_ + model.intercept_, rtol=1e-9, atol=1e-9)
    assert roc_auc_score(Y, scores) > 0.85
    np.testing.assert_array_equal(model.predict(X), scores > 0)


def test_the_objective_is_that_of_all_pairs():
    model = fit(X, Y, k=4)
    scores = X @ model.coef_
    pairs = 1 - (scores[Y][:, None] - scores[~Y])
    assert model.objective_ == pytest.approx((pairs**2).mean(), rel=1e-10)


def test_without_shrinkage_the_length_of_weights_is_best():
    model = fit(X, Y, k=4, alpha=10.0)
    scores = X @ model.coef_
    gap = scores[Y].mean() - scores[~Y].mean()
    assert gap == pytest.approx(gap**2 + scores[Y].var() + scores[~Y].var(), rel=1e-9)


# What must not matter ----------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"k": 4}, {"k": 4, "solver": "screen"}, {"k": 4, "solver": "stream"}])
def test_the_order_of_rows_does_not_matter_without_folds(options):
    whole = fit(X, Y, cv=None, **options)
    for order in (np.random.default_rng(1).permutation(len(Y)), np.argsort(Y), np.argsort(~Y)):
        same(fit(X[order], Y[order], cv=None, **options), whole, probabilities=False)


@pytest.mark.parametrize("solver", ["moments", "stream", "screen"])
def test_mixing_the_classes_does_not_matter_where_each_keeps_its_order(solver):
    """Folds go by the place of a row in its class: sorted by class is the same as mixed."""
    order = np.argsort(Y, kind="stable")
    same(fit(X[order], Y[order], solver=solver), learned(solver=solver))


@pytest.mark.parametrize(
    "labels",
    [
        Y.astype(int),
        np.where(Y, 1, -1),
        np.where(Y, 1.0, 0.0),
        np.where(Y, "sick", "healthy"),
        Y.tolist(),
        np.where(Y, "sick", "healthy").astype(object),
        pd.Series(np.where(Y, "sick", "healthy")),
        pd.Categorical(np.where(Y, "b", "a")),
        pd.Series(Y.astype(int), dtype="Int8"),
    ],
)
def test_the_type_of_labels_does_not_matter(labels):
    model, plain = fit(X, labels), learned()
    np.testing.assert_allclose(model.coef_, _folds_free(model, plain), rtol=1e-12)
    predicted = model.predict(X)
    np.testing.assert_array_equal(predicted == model.classes_[1], model.decision_function(X) > 0)
    assert set(predicted.tolist()) <= set(np.asarray(labels).tolist())


def _folds_free(model, plain):
    """Weights of the same k and alpha: folds go by the names of labels, and may choose others."""
    return fit(X, Y, k=int(model.k_), alpha=float(model.alpha_), cv=None).coef_


def test_the_positive_label_is_the_last_or_the_one_named():
    up, down = fit(X, Y, k=3, cv=None), fit(X, Y, k=3, cv=None, pos_label=False)
    np.testing.assert_allclose(up.coef_, -down.coef_, rtol=1e-10)
    assert down.classes_.tolist() == [True, False]
    np.testing.assert_allclose(up.predict_proba(X), down.predict_proba(X)[:, ::-1], atol=1e-12)
    np.testing.assert_array_equal(up.predict(X), down.predict(X))
    # A categorical has an order of its own.
    turned = fit(X, pd.Categorical(np.where(Y, "a", "b"), categories=["b", "a"]), k=3, cv=None)
    np.testing.assert_allclose(turned.coef_, up.coef_, rtol=1e-10)


def test_units_of_features_do_not_matter():
    unit = 10.0 ** np.random.default_rng(5).uniform(-4, 4, X.shape[1])
    for solver in ("moments", "stream", "screen"):
        plain, scaled = learned(solver=solver), fit(X * unit, Y, solver=solver)
        np.testing.assert_array_equal(plain.support_, scaled.support_)
        np.testing.assert_allclose(scaled.coef_ * unit, plain.coef_, rtol=1e-7)


@pytest.mark.parametrize("solver", ["moments", "stream"])
def test_an_offset_of_ten_thousand_deviations_does_not_matter(solver):
    far = (X / X.std(axis=0) + 1e4).astype(np.float32)
    for options in ({"k": 3, "cv": None}, {}):
        single, double = (
            fit(far.astype(dtype), Y, solver=solver, **options) for dtype in (np.float32, float)
        )
        same(single, double, tolerance=1e-5, probabilities=False)
        assert set(PLANTED) <= set(single.support_)
        np.testing.assert_allclose(single.auc_, double.auc_, atol=1e-3)


def test_float32_is_float64_of_the_same_values():
    single = X.astype(np.float32)
    same(fit(single, Y, k=4), fit(single.astype(float), Y, k=4), tolerance=1e-6)


@pytest.mark.parametrize("solver", ["moments", "stream", "screen"])
def test_all_solvers_agree_where_features_are_independent(solver):
    """The stream on all features is the moments solver; to screen is the same for uncorrelated ones."""
    if solver == "stream":
        expected = fit(X, Y, solver="moments", k=[1, 3, 5], alpha=1.0)
        same(fit(X, Y, solver=solver, k=[1, 3, 5], alpha=1.0), expected)
    moments = fit(X, Y, solver=solver, k=1, cv=None)
    assert moments.support_.tolist() == fit(X, Y, solver="moments", k=1, cv=None).support_.tolist()


def test_the_stream_lets_in_what_screening_overlooked():
    """A suppressor: useless alone, valuable beside another; t alone would leave it out."""
    rng = np.random.default_rng(0)
    y = rng.random(4_000) < 0.5
    x = rng.normal(size=(4_000, 30))
    noise = rng.normal(size=4_000)
    x[:, 0] = 0.5 * y + noise
    x[:, 1] = noise + 0.1 * rng.normal(size=4_000)
    x[:, 2:12] += 0.05 * y[:, None]
    model = fit(x, y, solver="stream", n_screened=5, k=2, cv=None)
    assert model.n_overlooked_ == 0  # in the end
    assert {0, 1} <= set(model.support_)
    np.testing.assert_array_equal(model.support_, fit(x, y, solver="moments", k=2, cv=None).support_)


# Weights and missing rows ------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["moments", "stream", "screen"])
def test_weights_are_repeated_rows(solver):
    times = np.random.default_rng(0).integers(0, 4, len(Y))
    weighted = fit(X, Y, times, k=4, cv=None, solver=solver)
    repeated = fit(np.repeat(X, times, axis=0), np.repeat(Y, times), k=4, cv=None, solver=solver)
    same(weighted, repeated, tolerance=1e-9)
    scaled = fit(X, Y, times * 7.5, k=4, cv=None, solver=solver)
    same(scaled, weighted, tolerance=1e-10)


GONE = np.random.default_rng(11).random(len(Y)) < 0.3


@cache
def without_the_gone(kind=bool, **options):
    return fit(X[~GONE], Y[~GONE].astype(kind), **options)


@pytest.mark.parametrize("options", [{}, {"solver": "stream"}, {"solver": "screen"}, {"cv": None, "k": 4}])
@pytest.mark.parametrize("way", ["zero", "unlabelled", "nan"])
def test_rows_that_do_not_count_are_as_if_removed(options, way):
    """Also for folds: they go by the rows that count."""
    if way == "zero":
        wrong = np.where(GONE, ~Y, Y)  # what they say plays no part
        found = fit(X, wrong, np.where(GONE, 0.0, 1.0), **options)
    elif way == "unlabelled":
        found = fit(X, np.where(GONE, np.nan, Y), **options)
        assert found.classes_.tolist() == [0.0, 1.0]
        np.testing.assert_allclose(found.coef_, without_the_gone(float, **options).coef_, rtol=1e-9)
        return
    else:
        bad = X.copy()
        bad[GONE, 3] = np.nan
        found = fit(bad, np.where(GONE, None, Y.astype(object)), invalid="drop", **options)
    same(found, without_the_gone(**options))


def test_rows_that_are_not_finite_are_dropped_or_refused():
    bad = X.copy()
    bad[[3, 70], [1, 4]] = np.nan, np.inf
    with pytest.raises(DataError, match="column 1: 1, column 4: 1; first rows 3, 70"):
        fit(bad, Y)
    kept = np.delete(np.arange(len(Y)), [3, 70])
    same(fit(bad, Y, invalid="drop", k=4, cv=None), fit(X[kept], Y[kept], k=4, cv=None), probabilities=False)
    model = fit(bad, Y, invalid="drop", k=4)
    assert np.isfinite(model.auc_)
    missing = np.isnan(model.decision_function(bad))
    assert set(np.flatnonzero(missing)) <= {3, 70}
    np.testing.assert_array_equal(np.isnan(model.predict_proba(bad)).any(axis=1), missing)


@pytest.mark.parametrize("cv", [None, 5])
def test_a_class_all_of_whose_rows_are_dropped_is_named(cv):
    bad = X.copy()
    bad[Y, 0] = np.nan
    with pytest.raises(DataError, match="of the positive rows 0 are finite"):
        fit(bad, Y, invalid="drop", k=2, cv=cv)


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
@pytest.mark.parametrize("cv", [None, 5])
def test_a_bad_weight_names_its_row(value, cv):
    weight = np.ones(len(Y))
    weight[137] = value
    with pytest.raises(DataError, match="sample_weight of row 137 is"):
        fit(X, Y, weight, k=2, cv=cv)


# Odd features ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["moments", "stream", "screen"])
def test_constant_features_are_never_chosen(solver):
    odd = np.concatenate(
        [X, np.zeros((len(Y), 1)), np.full((len(Y), 1), 0.1), np.full((len(Y), 1), -1e5)], axis=1
    )
    with np.errstate(divide="raise", invalid="raise"):
        model = fit(odd, Y, solver=solver, k=[3, 18])
        every = fit(odd, Y, solver=solver, k=18, cv=None)
    assert not model.coef_[15:].any()
    assert every.support_.max() < 15
    np.testing.assert_allclose(every.coef_[:15], fit(X, Y, solver=solver, k=18, cv=None).coef_, rtol=1e-8)
    told = model.describe()
    assert told["auc_alone"].values[15:].tolist() == [0.5] * 3
    assert not np.nan_to_num(told["stability"].values[15:]).any()


@pytest.mark.parametrize("solver", ["moments", "stream", "screen"])
def test_nothing_but_constants_ranks_nothing(solver):
    model = fit(np.ones((60, 3)), np.arange(60) % 3 == 0, solver=solver, k=2)
    assert not model.coef_.any()
    assert model.auc_ == 0.5
    np.testing.assert_allclose(model.predict_proba(np.ones((4, 3)))[:, 1], 1 / 3, atol=0.02)


@pytest.mark.parametrize("solver", ["moments", "stream"])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_of_copies_of_a_feature_weights_are_finite(solver, alpha):
    twice = np.concatenate([X, X * 3 + 1], axis=1)
    model = fit(twice, Y, solver=solver, k=3, alpha=alpha)
    assert np.isfinite(model.coef_).all()
    assert {feature % 15 for feature in model.support_.tolist()} <= set(PLANTED)
    if alpha == 0:
        assert {feature % 15 for feature in model.support_.tolist()} == set(PLANTED)
        assert model.objective_ == pytest.approx(fit(X, Y, k=3, alpha=0.0).objective_, rel=1e-9)


def test_more_features_than_rows():
    X, y = planted(n=40, d=150, shift=3.0, share=0.4)
    model = fit(X, y, n_halves=0)
    assert np.isfinite(model.coef_).all()
    assert model.auc_ > 0.8


@pytest.mark.parametrize("n_positive", [2, 3, 5, 7])
def test_few_positives_leave_a_choice(n_positive):
    """Folds hold one positive or two; the shrinkage and size that rank best still win."""
    rng = np.random.default_rng(0)
    y = np.arange(400) < n_positive
    x = rng.normal(size=(400, 30))
    x[y, :2] += 4
    model = fit(x, y)
    assert {0, 1} & set(model.support_.tolist())
    assert np.isfinite(model.auc_)
    assert (
        roc_auc_score(
            np.arange(400) % 2, (x + 4 * np.outer(np.arange(400) % 2, np.arange(30) < 2)) @ model.coef_
        )
        > 0.8
    )


def test_the_labels_of_the_negatives_may_be_rare():
    """Each other label once or twice: together they are the negatives of every fold."""
    y = np.where(Y, "T", np.char.add("other", (np.arange(len(Y)) // 2).astype(str)))
    model = fit(X, y, pos_label="T", k=3, solver="screen", n_halves=0)
    assert model.support_.tolist() == PLANTED
    assert model.auc_ > 0.85


# Options -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["moments", "stream", "screen"])
def test_positive_rules_weights_below_zero_out(solver):
    model = fit(X, Y, positive=True, solver=solver)
    assert model.coef_.min() == 0 < model.coef_.max()
    assert 5 not in model.support_  # the one that falls
    assert (model.path_["coef"] >= 0).all()
    debiased = fit(X, Y, positive=True, solver=solver, debias=True)
    assert debiased.coef_.min() >= 0


@pytest.mark.parametrize("solver", ["moments", "stream", "screen"])
def test_debiased_weights_have_the_support_and_no_shrinkage(solver):
    shrunk, plain = (
        fit(X, Y, k=3, alpha=30.0, solver=solver),
        fit(X, Y, k=3, alpha=30.0, solver=solver, debias=True),
    )
    np.testing.assert_array_equal(shrunk.support_, plain.support_)
    if solver != "screen":
        exact = fit(X[:, PLANTED], Y, k=3, alpha=0.0, cv=None)
        np.testing.assert_allclose(plain.coef_[PLANTED], exact.coef_, rtol=1e-8)
        assert plain.objective_ < shrunk.objective_


def test_one_standard_error_takes_fewer_features():
    best, fewer = learned(), learned(selection="one_se")
    assert fewer.k_ <= best.k_
    assert fewer.support_.tolist() == PLANTED


def test_the_seed_says_all():
    a, b = fit(X, Y, random_state=3), fit(X, Y, random_state=3)
    np.testing.assert_array_equal(a.coef_, b.coef_)
    assert a.auc_ == b.auc_
    assert a.auc_ != fit(X, Y, random_state=4).auc_
    again = fit(X, Y, random_state=fit(X, Y, random_state=None).seed_)
    assert np.isfinite(again.auc_)


def test_sizes_are_those_asked_for():
    assert fit(X, Y, k=[7, 2, 2]).path_["k"].values.tolist() == [2, 7]
    assert fit(X, Y, k=99).k_ == 15
    assert fit(X, Y, k=[1, 4], cv=None).k_ == 4
    assert fit(X, Y, alpha=[0.5, 2.0]).alpha_ in (0.5, 2.0)


# Several labels ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def three():
    rng = np.random.default_rng(0)
    y = rng.choice(["B", "NK", "T"], p=[0.2, 0.3, 0.5], size=1_500)
    x = rng.normal(size=(1_500, 8))
    for column, name in enumerate(["B", "NK", "T"]):
        x[y == name, column] += 2
    return x, y


def test_one_against_the_rest_is_each_binary_fit(three):
    x, y = three
    every = fit(x, y, k=3, alpha=0.1, cv=None)
    assert every.coef_.shape == (3, 8)
    for row, name in enumerate(["B", "NK", "T"]):
        one = fit(x, y, pos_label=name, k=3, alpha=0.1, cv=None)
        np.testing.assert_allclose(every.coef_[row], one.coef_, rtol=1e-10)
        np.testing.assert_allclose(every.intercept_[row], one.intercept_, rtol=1e-8)
        binary = fit(x, y == name, k=3, alpha=0.1, cv=None)
        np.testing.assert_allclose(every.coef_[row], binary.coef_, rtol=1e-10)
        assert one.classes_.tolist() == [f"not {name}", name]


def test_pairs_are_each_binary_fit(three):
    x, y = three
    every = fit(x, y, multi_class="ovo", k=2, alpha=0.1, cv=None)
    assert every.contrasts_ == ["NK over B", "T over B", "T over NK"]
    for row, (a, b) in enumerate([("B", "NK"), ("B", "T"), ("NK", "T")]):
        some = (y == a) | (y == b)
        one = fit(x[some], y[some], k=2, alpha=0.1, cv=None)
        np.testing.assert_allclose(every.coef_[row], one.coef_, rtol=1e-10)


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("solver", ["moments", "stream", "screen"])
def test_answers_for_several_labels_agree(three, multi_class, solver):
    x, y = three
    model = fit(x, y, multi_class=multi_class, solver=solver)
    proba, decision, predicted = model.predict_proba(x), model.decision_function(x), model.predict(x)
    assert proba.shape == decision.shape == (1_500, 3)
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_array_equal(predicted, model.classes_[decision.argmax(axis=1)])
    np.testing.assert_array_equal(predicted, model.classes_[proba.argmax(axis=1)])
    assert (predicted == y).mean() > 0.8
    assert roc_auc_score(y, proba, multi_class=multi_class) > 0.9
    assert model.auc_.shape == (3,)
    assert (model.auc_ > 0.85).all()
    np.testing.assert_array_equal(np.flatnonzero(model.coef_.any(axis=0)), model.support_)
    if multi_class == "ovr":  # means over pairs are drawn to the middle
        shares = [(y == name).mean() for name in model.classes_]
        np.testing.assert_allclose(proba.mean(axis=0), shares, atol=0.05)


def test_a_label_without_rows_is_none():
    labels = pd.Categorical(np.where(Y, "T", "B"), categories=["B", "NK", "T"])
    model = fit(X, labels, k=3)
    assert model.classes_.tolist() == ["B", "T"]
    same(model, fit(X, np.where(Y, "T", "B"), k=3))


# Probabilities and priors ------------------------------------------------------------------------------


def test_probabilities_are_calibrated_on_rows_that_were_not_seen():
    model = fit(*planted(seed=1, n=4_000))
    x, y = planted(seed=2, n=20_000)
    unit = planted(seed=1, n=4_000)[0].std(axis=0) / x.std(axis=0)  # the units are random
    p = model.predict_proba(x * unit)[:, 1]
    for low in (0.0, 0.1, 0.3, 0.5, 0.7):
        some = (p >= low) & (p < low + 0.2)
        assert abs(p[some].mean() - y[some].mean()) < 0.08


@pytest.mark.parametrize("cv", [None, 5])
def test_another_prior_moves_probabilities_as_bayes_says_and_no_rank(cv):
    model = fit(X, Y, k=3, cv=cv)
    before, decision, trained = model.predict_proba(X)[:, 1], model.decision_function(X), Y.mean()
    for prior in (0.001, 0.5, {True: 3, False: 1}, [0.25, 0.75]):
        share = prior if isinstance(prior, float) else 0.75
        after = model.set_prior(prior).predict_proba(X)[:, 1]
        expected = expit(logit(before) + logit(share) - logit(trained))
        np.testing.assert_allclose(after, expected, atol=1e-9)
        moved = model.decision_function(X) - decision
        np.testing.assert_allclose(moved, moved[0], atol=1e-9)
        np.testing.assert_allclose(model.decision_function(X), X @ model.coef_ + model.intercept_, atol=1e-8)
        np.testing.assert_array_equal(model.predict(X), after > 0.5)
    np.testing.assert_allclose(model.set_prior(None).predict_proba(X)[:, 1], before, atol=1e-12)


def test_priors_of_several_labels_move_their_odds(three):
    x, y = three
    model = fit(x, y, k=2)
    before = model.predict_proba(x).mean(axis=0)
    after = model.set_prior({"B": 0.8, "NK": 0.1, "T": 0.1}).predict_proba(x).mean(axis=0)
    assert after[0] > before[0] + 0.05
    assert (after[1:] < before[1:]).all()
    pairs = fit(x, y, k=2, multi_class="ovo").set_prior([0.8, 0.1, 0.1])
    assert pairs.predict_proba(x).mean(axis=0)[0] > before[0]


def test_a_quantification_is_a_prior(three):
    x, y = three
    found = xr.Dataset(
        {"proportion": (("sample", "label"), [[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])},
        {"sample": ["p1", "p2"], "label": ["B", "NK", "T"]},
    )
    model = fit(x, y, k=2, cv=None)
    by_hand = model.set_prior({"B": 0.1, "NK": 0.2, "T": 0.7}).predict_proba(x)
    np.testing.assert_array_equal(model.set_prior(found, sample="p2").predict_proba(x), by_hand)
    one = fit(x, y, pos_label="T", k=2, cv=None)
    np.testing.assert_array_equal(
        one.set_prior(found, "p2").predict_proba(x), one.set_prior(0.7).predict_proba(x)
    )
    for prior, sample, message in [
        (found, None, "2 samples: say which"),
        (found, "p3", "no sample 'p3'"),
        (found.sel(label=["B", "NK"]), "p1", "no label 'T'"),
        (xr.Dataset(), None, "no variable proportion"),
        ({"B": 0.5, "T": 0.5}, None, "lacks the class 'NK'"),
        (0.5, None, "expected the share of"),
        ([0.5, 0.6, -0.1], None, "none below 0"),
    ]:
        with pytest.raises(DataError, match=message):
            model.set_prior(prior, sample)


# The AUC that is told ----------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["moments", "stream", "screen"])
def test_on_noise_the_auc_is_a_half(solver):
    """200 features, 300 rows, nothing in them: choosing features, size and shrinkage must not show."""
    found = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x, y = rng.normal(size=(300, 100)), rng.random(300) < 0.3
        found.append(fit(x, y, solver=solver, k=[1, 3, 10, 30], alpha=[0.1, 10.0], n_halves=0).auc_)
    assert 0.42 < np.mean(found) < 0.58


@pytest.mark.parametrize("solver", ["moments", "stream", "screen"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_auc_of_folds_is_that_of_models_without_them(solver, weighted):
    """Each fold by hand: fit on the other rows, score these, scikit-learn's AUC."""
    weight = np.random.default_rng(0).random(len(Y)) if weighted else None
    options = {"k": 4, "alpha": 0.0 if solver == "screen" else 0.5, "solver": solver, "random_state": 7}
    model = fit(X, Y, weight, n_halves=0, **options)
    fold = divide(as_rows(X, Y), "label", 10, model.seed_, "buckets")(0, Y.astype(int)) // 2
    aucs = []
    for out in range(5):
        own, others = fold == out, fold != out
        w = (None, None) if weight is None else (weight[others], weight[own])
        scores = X[own] @ fit(X[others], Y[others], w[0], **{**options, "cv": None}).coef_
        aucs.append(roc_auc_score(Y[own], scores, sample_weight=w[1]))
    bound = float(model.describe()["auc_bound"])
    assert bound < 2e-3
    assert model.auc_ == pytest.approx(np.mean(aucs), abs=bound)
    assert model.auc_se_ >= np.std(aucs, ddof=1) / np.sqrt(5) - 2 * bound  # or that of the numbers of rows
    np.testing.assert_allclose(model.path_["auc"].sel(k=4), model.auc_, atol=1e-12)


def test_the_auc_holds_on_new_rows():
    model = fit(*planted(seed=1))
    x, y = planted(seed=2, n=20_000)
    x *= planted(seed=1)[0].std(axis=0) / x.std(axis=0)
    assert abs(roc_auc_score(y, model.decision_function(x)) - model.auc_) < 4 * model.auc_se_ + 0.01
    assert model.auc_binormal_ == pytest.approx(model.auc_, abs=0.03)
    assert np.isnan(fit(X, Y, k=3, cv=None).auc_)


# What is told ------------------------------------------------------------------------------------------


def test_the_path_holds_every_size():
    model = learned()
    path = model.path_
    assert path["k"].values.tolist() == [1, 2, 3, 4, 5, 6, 8, 10, 13]
    assert dict(path.sizes) == {"k": 9, "feature": 15}
    assert ((path["coef"] != 0).sum("feature") <= path["k"]).all()
    assert (np.diff(path["auc_binormal"]) > -1e-3).all()
    chosen = path.sel(k=model.k_)
    np.testing.assert_array_equal(chosen["coef"], model.coef_)
    assert bool(chosen["selected"])
    assert int(path["selected"].sum()) == 1
    assert float(chosen["objective"]) == model.objective_
    assert float(path["alpha"]) == model.alpha_
    for row in range(9):
        scores = X @ path["coef"].values[row]
        gap = scores[Y].mean() - scores[~Y].mean()
        expected = (1 - gap) ** 2 + scores[Y].var() + scores[~Y].var()
        assert float(path["objective"][row]) == pytest.approx(expected, rel=1e-9)
    assert np.isfinite(path["auc"]).all()
    assert {"scaleshift_version", "citation", "parameters", "seed"} <= set(path.attrs)
    assert np.isnan(fit(X, Y, k=3, cv=None).path_["auc"]).all()


def test_features_are_described():
    model = learned(selection="one_se")
    told = model.describe()
    np.testing.assert_array_equal(told["coef"], model.coef_)
    np.testing.assert_array_equal(np.flatnonzero(told["selected"]), model.support_)
    np.testing.assert_allclose(told["mean_positive"], X[Y].mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(told["mean_negative"], X[~Y].mean(axis=0), rtol=1e-9)
    within = np.sqrt((X[Y].var(axis=0) + X[~Y].var(axis=0)) / 2)
    np.testing.assert_allclose(told["coef_scaled"], model.coef_ * within, rtol=1e-9)
    exact = [roc_auc_score(Y, column) for column in X.T]
    np.testing.assert_allclose(told["auc_alone"], exact, atol=0.03)
    stability = told["stability"].values
    assert stability[PLANTED].min() > 0.95
    assert stability.max() <= 1
    assert np.delete(stability, PLANTED).max() < 0.3
    assert float(told["auc"]) == model.auc_
    assert all(told[name].attrs for name in ("coef", "stability", "auc_alone", "mean_positive"))
    assert np.isnan(fit(X, Y, n_halves=0).describe()["stability"]).all()


def test_several_contrasts_are_described_along_one_dimension(three):
    model = fit(*three, k=[1, 2])
    assert dict(model.describe().sizes) == {"contrast": 3, "feature": 8}
    assert dict(model.path_.sizes) == {"contrast": 3, "k": 2, "feature": 8}
    np.testing.assert_array_equal(model.describe()["coef"], model.coef_)
    assert model.describe()["contrast"].values.tolist() == ["B", "NK", "T"]


@pytest.mark.parametrize(
    "options", [{}, {"cv": None, "k": 3}, {"solver": "stream"}, {"solver": "screen", "multi_class": "ovo"}]
)
def test_a_saved_model_is_the_same_to_the_bit(options, three, tmp_path):
    for number, (x, y) in enumerate(
        [(X, Y), three, (pd.DataFrame(X, columns=[f"m{i}" for i in range(15)]), Y)]
    ):
        model = fit(x, y, **options)
        model.set_prior(np.full(len(model.classes_), 1.0))
        model.save(tmp_path / f"{number}.zarr")
        again = ss.load(tmp_path / f"{number}.zarr")
        for ask in ("predict", "predict_proba", "decision_function"):
            np.testing.assert_array_equal(getattr(again, ask)(x), getattr(model, ask)(x))
        for name in ("coef_", "intercept_", "support_", "auc_", "auc_se_", "objective_", "k_", "classes_"):
            np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
        xr.testing.assert_identical(again.path_, model.path_)
        xr.testing.assert_identical(again.describe(), model.describe())
        assert again.get_params() == model.get_params()
        again.set_prior(None)
        assert again.n_features_in_ == model.n_features_in_
