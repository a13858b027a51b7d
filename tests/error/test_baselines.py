"""The comparators on plain arrays: reference numbers, any chunks, ties, and what is refused."""

from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import scaleshift as ss
from scaleshift.blocks import graph
from scaleshift.errors import DataError

DATA = Path(__file__).parents[1] / "data" / "errx" / "baselines.npz"


@pytest.fixture(scope="module")
def case():
    with np.load(DATA, allow_pickle=False) as file:
        return dict(file)


@pytest.fixture
def computes(monkeypatch):
    """How often a graph was computed."""
    calls = []
    compute = dask.compute
    monkeypatch.setattr(graph.dask, "compute", lambda *a, **k: calls.append(1) or compute(*a, **k))
    return calls


def as_it_is(array, size):
    return array


def lazy(array, size):
    return da.from_array(array, chunks=(size, *array.shape[1:]))


MAKES = [(as_it_is, 0), (lazy, 200), (lazy, 37), (lazy, 1)]


@pytest.mark.parametrize(("make", "size"), MAKES)
def test_weighted_errors_are_those_of_the_reference_case(case, make, size):
    found = ss.error.importance_weighted(*(make(case[name], size) for name in ("loss", "w", "fold")))
    names = {"error": "iw_selfnorm", "error_plain": "iw", "error_cv": "iwcv", "effective_sample_size": "ess"}
    for name, key in names.items():
        np.testing.assert_allclose(found[name], case[key], rtol=1e-12, err_msg=name)


@pytest.mark.parametrize(("make", "size"), MAKES)
def test_confidences_are_those_of_the_reference_case(case, make, size):
    source, y, target = (make(case[name], size) for name in ("Pv", "yv", "Pt"))
    found = {
        "conf_err": ss.error.average_confidence(target)["error"],
        "doc_err": ss.error.difference_of_confidence(source, y, target)["error"],
    }
    result = ss.error.average_thresholded_confidence(source, y, target)
    assert float(result["threshold"]) == case["atc_thr"]
    assert float(result["error"]) == case["atc_err"]
    assert float(result["share_tied"]) == 0
    for key, value in found.items():
        np.testing.assert_allclose(value, case[key], rtol=1e-12, err_msg=key)


def test_a_lazy_mean_is_one_compute_and_a_threshold_is_five_of_the_source(case, computes):
    source, y, target = (lazy(case[name], 40) for name in ("Pv", "yv", "Pt"))
    ss.error.average_confidence(target)
    assert len(computes) == 1
    ss.error.importance_weighted(lazy(case["loss"], 40), lazy(case["w"], 40), lazy(case["fold"], 40))
    assert len(computes) == 2
    ss.error.difference_of_confidence(source, y, target)
    assert len(computes) == 4
    ss.error.average_thresholded_confidence(source, y, target)
    assert len(computes) == 10


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_threshold_is_an_order_statistic_to_the_bit(dtype):
    """Of values that agree in 48 of their bits, and of coarse ones with many ties."""
    random = np.random.default_rng(0)
    near = 0.75 + random.integers(0, 2**14, 5000) * np.finfo(dtype).eps / 2
    for most in (near, random.integers(50, 100, 5000) / 100):
        proba = np.column_stack([most, 1 - most]).astype(dtype)
        y = (random.random(5000) < 0.2).astype(int)
        result = ss.error.average_thresholded_confidence(lazy(proba, 700), y, proba)
        confidence = proba.max(axis=1).astype(np.float64)
        assert float(result["threshold"]) == np.sort(confidence)[(proba.argmax(axis=1) != y).sum()]


def test_the_source_gets_its_own_error_also_where_confidences_are_tied():
    """A saturated network is sure of everything."""
    proba, y = np.tile([1.0, 0.0], (50, 1)), np.repeat([0, 1], [40, 10])
    result = ss.error.average_thresholded_confidence(proba, y, proba[:20])
    assert float(result["error"]) == 0.2
    coarse = np.random.default_rng(1).integers(50, 60, 500) / 100
    proba, y = np.column_stack([coarse, 1 - coarse]), np.random.default_rng(2).integers(0, 2, 500)
    for of in (ss.error.average_thresholded_confidence, ss.error.difference_of_confidence):
        result = of(proba, y, proba)
        np.testing.assert_allclose(result["error"], result["error_source"], rtol=1e-12)


@pytest.mark.parametrize(("y", "error"), [([1, 1, 1], 1.0), ([0, 0, 0], 1 / 3)])
def test_all_wrong_and_none_wrong(y, error):
    """None wrong: the threshold is the least confident source row."""
    source = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]])
    target = np.array([[0.65, 0.35], [0.95, 0.05], [0.7, 0.3]])
    found = ss.error.average_thresholded_confidence(source, y, target)
    assert float(found["error"]) == pytest.approx(error)
    assert np.isinf(found["threshold"]) == (error == 1)


def test_order_of_classes_and_kind_of_labels_change_nothing(case):
    names = np.array(["d", "b", "c", "a"])
    turn = [2, 0, 3, 1]
    y = pd.Series(names[case["yv"]])
    for of in (ss.error.difference_of_confidence, ss.error.average_thresholded_confidence):
        plain = of(case["Pv"], case["yv"], case["Pt"])
        turned = of(case["Pv"][:, turn], y, case["Pt"][:, turn], classes=names[turn])
        for name in plain.data_vars:
            np.testing.assert_allclose(turned[name], plain[name], rtol=1e-14, err_msg=name)


def test_equal_weights_are_no_weights():
    loss = np.random.default_rng(0).random(1000)
    found = ss.error.importance_weighted(loss, np.full(1000, 3.0))
    np.testing.assert_allclose(found["error"], loss.mean(), rtol=1e-12)
    np.testing.assert_allclose(found["effective_sample_size"], 1000, rtol=1e-12)
    half = 1.959964 * loss.std() / 1000**0.5
    np.testing.assert_allclose(found["error_high"] - found["error"], half, rtol=1e-6)
    assert np.isnan(found["error_cv"])


def test_the_interval_covers_a_weighted_mean():
    random, hit = np.random.default_rng(0), 0
    for _ in range(400):
        x = random.normal(size=500)
        found = ss.error.importance_weighted(x**2, np.exp(0.5 * x - 0.125))  # target: mean 0.5
        hit += bool(found["error_low"] <= 1.25 <= found["error_high"])
    assert 0.90 <= hit / 400 <= 0.98


# Weights -------------------------------------------------------------------------------------------------


def test_weights_follow_the_density_ratio_of_a_change_of_spread():
    """Which no linear discriminator sees."""
    random = np.random.default_rng(0)
    source, target = random.normal(size=(4000, 3)), 1.3 * random.normal(size=(3000, 3))
    weight = ss.error.importance_weights(source, target)
    exact = np.exp((source**2).sum(axis=1) * (1 - 1 / 1.69) / 2) / 1.3**3
    assert np.corrcoef(np.log(weight), np.log(exact))[0, 1] > 0.98
    assert weight.mean() == pytest.approx(1, abs=0.1)
    assert ss.error.importance_weights(source, target, self_normalised=True).mean() == pytest.approx(1)


def test_weights_do_not_depend_on_units_or_constant_features():
    random = np.random.default_rng(0)
    source, target = random.normal(size=(300, 2)), random.normal(0.4, 1, (200, 2))
    plain = ss.error.importance_weights(source, target)
    scaled = ss.error.importance_weights(1e6 * source + 1e3, 1e6 * target + 1e3)
    np.testing.assert_allclose(scaled, plain, rtol=1e-3)
    wide = [np.hstack([x, np.full((len(x), 1), 0.1)]) for x in (source, target)]
    np.testing.assert_allclose(ss.error.importance_weights(*wide), plain, rtol=1e-3)


def test_many_features_of_few_rows_make_no_shift():
    random = np.random.default_rng(0)
    weight = ss.error.importance_weights(random.normal(size=(100, 50)), random.normal(size=(1000, 50)))
    assert ss.error.importance_weighted(weight, weight)["effective_sample_size"] > 80


def test_weights_stay_finite_where_supports_do_not_meet():
    source, target = np.random.default_rng(0).normal(size=(2, 100, 2))
    weight = ss.error.importance_weights(source, target + 1e6)
    assert np.isfinite(weight).all()
    assert weight.mean() < 0.05  # they stand for next to nothing of the target
    assert np.isfinite(ss.error.importance_weighted(weight, weight)["error"])


# Projection norm -----------------------------------------------------------------------------------------


def test_a_determined_linear_regression_is_its_own_projection():
    random = np.random.default_rng(0)
    x, target = random.normal(size=(100, 5)), 2 * random.normal(size=(3, 5))
    model = LinearRegression().fit(x, x @ np.arange(5.0) + random.normal(size=100))
    assert float(ss.error.projection_norm(model, x)["norm"]) < 1e-10
    assert float(ss.error.projection_norm(model, target)["norm"]) > 0.1  # 3 rows do not determine it


def test_a_projection_norm_grows_with_the_shift_and_refits_nothing_in_place():
    random = np.random.default_rng(0)
    x = random.normal(size=(500, 3))
    y = (x[:, 0] + random.normal(size=500) > 0).astype(int)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(x, y)
    before = model.predict_proba(x)
    norms = [float(ss.error.projection_norm(model, x / scale)["norm"]) for scale in (1, 3, 10)]
    assert norms == sorted(norms)
    assert norms[0] == float(ss.error.projection_norm(model, 3 * x, x)["norm_source"])
    np.testing.assert_array_equal(model.predict_proba(x), before)


def test_a_network_that_was_right_everywhere_is_its_own_projection():
    """Its refit starts from the same weights."""
    x = np.random.default_rng(0).normal(size=(100, 2))
    y = (x[:, 0] > 0).astype(int)
    x[:, 0] += 2 * y  # easily told apart
    model = MLPClassifier((3,), solver="lbfgs", max_iter=5000, random_state=0).fit(x, y)
    assert model.score(x, y) == 1
    assert float(ss.error.projection_norm(model, x)["norm"]) == 0
    assert float(ss.error.projection_norm(model, 0.5 * x)["norm"]) > 0


X4 = np.arange(8.0).reshape(4, 2)


@pytest.mark.parametrize(
    ("model", "x", "words"),
    [
        (LinearRegression(), X4, "LinearRegression is no fitted estimator"),
        (DecisionTreeClassifier().fit(X4, [0, 0, 1, 1]), X4, "neither coef_ and intercept_"),
        (MLPClassifier(max_iter=1000).fit(X4, [0, 0, 1, 1]), X4, "random_state=0"),
        (LogisticRegression().fit(X4, [0, 0, 1, 1]), X4[:2], "finds 1 of its 2 classes in X_target"),
        (Ridge().fit(X4, X4[:, 0]), da.from_array(X4), r"X_target is lazy.*\.compute\(\)"),
        (Ridge().fit(X4, X4[:, 0]), X4 * np.nan, "X_target has NaN or infinite values in 4 rows"),
    ],
)
def test_a_projection_norm_says_what_it_cannot_do(model, x, words):
    with pytest.raises(DataError, match=words):
        ss.error.projection_norm(model, x)


# What is refused -----------------------------------------------------------------------------------------

P = np.array([[0.5, 0.5], [0.1, 0.9], [1.0, 0.0]])


@pytest.mark.parametrize("make", [as_it_is, lazy])
@pytest.mark.parametrize(
    ("proba", "words"),
    [
        (P[:, 0], r"proba has the shape \(3,\).*column_stack"),
        (P[:, :1], r"proba has the shape \(3, 1\)"),
        (P[:0], "proba has no rows"),
        (P * [[1.0], [1.1], [1.0]], "proba has 1 rows that do not sum to 1, first row 1"),
        (
            P + np.array([[0, 0], [0, 0], [1, -1]]),
            "proba has values outside 0 to 1 in 1 rows, first in row 2",
        ),
        (np.where(P == 0.1, np.nan, P), "proba has NaN or infinite values in 1 rows, first in row 1"),
        (np.array([["a", "b"]]), "expected numbers"),
    ],
)
def test_what_are_no_probabilities_is_refused(make, proba, words):
    with pytest.raises(DataError, match=words):
        ss.error.average_confidence(make(proba, 2))


@pytest.mark.parametrize("of", ["difference_of_confidence", "average_thresholded_confidence"])
@pytest.mark.parametrize(
    ("y", "target", "classes", "words"),
    [
        ([0, 1], P, None, r"rows differ in number \(proba_source 3, y_source 2\)"),
        ([0, 1, 2], P, None, "y_source 2 is not known; known: 0, 1"),
        (["a", None, "b"], P, ["a", "b"], "row 1 has no y_source"),
        ([0, 1, 1], np.full((2, 4), 0.25), None, "proba_target has 4 columns, proba_source 2"),
        ([0, 1, 1], P[:0], None, "proba_target has no rows"),
        ([0, 1, 1], P * 2, None, "proba_target has values outside"),
        (["a", "a", "a"], P, ["a", "a"], "one distinct label a column"),
        (["a", "a", "a"], P, ["a", "b", "c"], "proba_source has 2 columns"),
        (np.zeros((3, 1)), P, None, "y_source has 2 dimensions"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(of, y, target, classes, words):
    with pytest.raises(DataError, match=words):
        getattr(ss.error, of)(P, y, target, classes)


@pytest.mark.parametrize("make", [as_it_is, lazy])
@pytest.mark.parametrize(
    ("loss", "weight", "fold", "words"),
    [
        ([1.0, np.nan], [1.0, 1.0], None, "loss has NaN or infinite values in 1 rows, first in row 1"),
        ([1.0, 1.0], [1.0, -1.0], None, "weight is negative in 1 rows, first in row 1"),
        ([1.0, 1.0], [np.inf, 1.0], None, "weight has NaN or infinite values in 1 rows, first in row 0"),
        ([1.0, 1.0], [0.0, 0.0], None, "weight is 0 in every row"),
        ([1.0, 1.0], [1.0, 1.0], [0.0, 0.5], "fold is no whole number in 1 rows"),
        ([1.0, 1.0], [1.0], None, r"rows differ in number \(loss 2, weight 1\)"),
        ([], [], None, "loss has no rows"),
    ],
)
def test_weights_and_losses_that_mean_nothing_are_refused(make, loss, weight, fold, words):
    arrays = [make(np.array(given, float), 1) for given in (loss, weight, fold) if given is not None]
    with pytest.raises(DataError, match=words):
        ss.error.importance_weighted(*arrays)


@pytest.mark.parametrize(
    ("source", "target", "cv", "words"),
    [
        (X4, X4[:, :1], 2, "X_target has 1 columns, X_source 2"),
        (X4, X4, 5, "cv=5 folds need as many of each"),
        (X4, X4, 1, "cv=1"),
        (X4, da.from_array(X4), 2, "X_target is lazy"),
        (X4[:0], X4, 2, "not empty"),
    ],
)
def test_rows_that_no_discriminator_takes_are_refused(source, target, cv, words):
    with pytest.raises(DataError, match=words):
        ss.error.importance_weights(source, target, cv=cv)
