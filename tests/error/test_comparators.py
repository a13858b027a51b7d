"""The comparators of `PredictionError`: one sample of the source, one of each target, any chunks."""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass, replace

import dask.array as da
import numpy as np
import pytest
from scipy.special import softmax
from sklearn.linear_model import LinearRegression, LogisticRegression

from scaleshift.blocks import graph
from scaleshift.blocks.buckets import group_buckets, random_buckets
from scaleshift.blocks.rows import as_rows, with_numbers
from scaleshift.encoding import decode, encode
from scaleshift.error import held_out as module
from scaleshift.error.comparators import COMPARATORS
from scaleshift.error.family import Settings
from scaleshift.error.held_out import coverage, effective_sample_size, held_out, seen, share_far
from scaleshift.error.prediction_error import PredictionError

N, P = 5_000, 3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, P))
COEF = RNG.normal(size=(P, 3))
LABEL = np.array([RNG.choice(3, p=row) for row in softmax(X @ COEF, axis=1)])
OUTCOME = X[:, 0] + X[:, 1] ** 2 + RNG.normal(size=N)
ALIKE = np.random.default_rng(1).normal(size=(5_000, P))
SHIFTED = ALIKE + np.array([1.0, 0, 0])
OF_CLASSES = ["average_confidence", "difference_of_confidence", "average_thresholded_confidence"]
WEIGHTED = ["importance_weighted", "importance_weighted_cv"]


@dataclass
class Linear:
    """A family of scikit-learn models: one of all rows, and one without each fold."""

    models: list
    whole: object

    def held_out(self, x, fold):
        every = np.array([self._of(model, x) for model in [*self.models, self.whole]])
        return every[fold, np.arange(len(x))]  # a fold of -1: the last

    def predict(self, x):
        return self._of(self.whole, x)

    def extrapolation(self, x):
        return (x**2).sum(axis=1)

    def _of(self, model, x):
        return model.predict_proba(x) if hasattr(model, "predict_proba") else model.predict(x)


def settings(loss="counting"):
    return Settings("logistic", loss, ("direct",), "plugin", None, "l2", 0, 0.95, None, "cold", True, 0)


def classes_rows(x=X, y=LABEL, size=None):
    return as_rows(x if size is None else da.from_array(x, chunks=(size, x.shape[1])), y)


def numbers_rows(size=None):
    """Outcomes are numbers; buckets divide the rows as if they had one label."""
    rows = classes_rows(y=np.zeros(N, int), size=size)
    return with_numbers(rows, outcome=OUTCOME)


def learned(rows, buckets, model, x, y):
    fold = buckets(graph_free_block(rows))
    parts = [type(model)().fit(x[fold != k], y[fold != k]) for k in range(buckets.n)]
    return Linear(parts, type(model)().fit(x, y))


def graph_free_block(rows):
    return rows.loader(rows.x, *rows.arrays, start=0)


@pytest.fixture(scope="module")
def classifier():
    rows = classes_rows()
    return learned(rows, random_buckets(rows, 5, 0), LogisticRegression(), X, LABEL)


@pytest.fixture(scope="module")
def regression():
    rows = numbers_rows()
    return learned(rows, random_buckets(rows, 5, 0), LinearRegression(), X, OUTCOME)


@pytest.fixture(scope="module")
def held(classifier):
    rows = classes_rows()
    return held_out(rows, classifier, random_buckets(rows, 5, 0), settings(), 0)


@pytest.fixture(scope="module")
def held_numbers(regression):
    rows = numbers_rows()
    return held_out(rows, regression, random_buckets(rows, 5, 0), settings("squared"), 0)


def target_of(x, family, loss="counting"):
    return seen(as_rows(x), family, settings(loss), 0)


def test_the_sample_is_bounded_and_the_same_for_any_chunks(monkeypatch, classifier):
    monkeypatch.setattr(module, "MOST_ROWS", 700)
    found = []
    for size in (None, 6_000, 1_999, 100):
        rows = classes_rows(size=size)
        found.append(held_out(rows, classifier, random_buckets(rows, 5, 0), settings(), 7))
    assert found[0].x.shape == (700, P)
    for other in found[1:]:
        for name in ("x", "y", "fold", "prediction", "loss", "expected"):
            np.testing.assert_array_equal(getattr(other, name), getattr(found[0], name), err_msg=name)


def test_rows_are_judged_by_the_models_without_their_fold(classifier, held):
    """Folds, outcomes and rows stay together."""
    fold = random_buckets(classes_rows(), 5, 0)(graph_free_block(classes_rows()))
    known = {row.tobytes(): number for number, row in enumerate(X)}
    number = np.array([known[row.tobytes()] for row in held.x])
    assert len(set(number.tolist())) == N
    np.testing.assert_array_equal(held.fold, fold[number])
    np.testing.assert_array_equal(held.y, LABEL[number])
    for k in range(5):
        here = held.fold == k
        np.testing.assert_array_equal(held.prediction[here], classifier.models[k].predict_proba(held.x[here]))
    np.testing.assert_array_equal(held.loss, held.prediction.argmax(axis=1) != held.y)


def test_one_pass_draws_the_sample(classifier, monkeypatch):
    rows = classes_rows(size=1_000)
    buckets, calls = random_buckets(rows, 5, 0), []
    compute = graph.dask.compute
    monkeypatch.setattr(graph.dask, "compute", lambda *a, **k: calls.append(1) or compute(*a, **k))
    held_out(rows, classifier, buckets, settings(), 0)
    assert len(calls) == 1


@pytest.mark.parametrize("size", [None, 1_000])
def test_rows_without_an_outcome_or_with_nan_are_not_drawn(classifier, regression, size):
    x = X.copy()
    x[:1_000, 1] = np.nan
    labels = np.where(np.arange(N) % 2 == 0, LABEL.astype(float), np.nan)
    lazy = x if size is None else da.from_array(x, chunks=(size, P))
    rows = as_rows(lazy, labels, invalid="drop")
    found = held_out(rows, classifier, random_buckets(rows, 5, 0), settings(), 0)
    assert len(found.x) == (N - 1_000) // 2
    outcome = np.where(np.arange(N) < 4_000, OUTCOME, np.nan)
    rows = with_numbers(as_rows(lazy, np.zeros(N, int), invalid="drop"), outcome=outcome)
    found = held_out(rows, regression, random_buckets(rows, 5, 0), settings("squared"), 0)
    assert len(found.x) == 3_000
    assert np.isfinite(found.loss).all()
    target = seen(as_rows(lazy, invalid="drop"), classifier, settings(), 0)
    assert len(target.x) == N - 1_000


def test_without_a_shift_every_method_gives_the_held_out_error(classifier, held):
    target = target_of(ALIKE, classifier)
    error = held.loss.mean()
    for name, comparator in COMPARATORS.items():
        answer = comparator(held, target)
        assert answer.error == pytest.approx(error, abs=0.03), name
        assert answer.reason == "", name
    assert 0.9 * N < effective_sample_size(held, target) <= N
    assert coverage(held, target) > 0.95
    assert share_far(held, target, classifier) == pytest.approx(0.01, abs=0.005)


def test_without_a_shift_weighted_squared_errors_are_the_held_out_error(regression, held_numbers):
    target = target_of(ALIKE, regression, "squared")
    for name in WEIGHTED:
        answer = COMPARATORS[name](held_numbers, target)
        assert answer.low < held_numbers.loss.mean() < answer.high, name


def test_weights_find_the_error_of_a_shifted_target(regression, held_numbers):
    """A misspecified regression, wrong where the target is; cross-validation does not see it."""
    moved = ALIKE + np.array([0, 0.8, 0])
    target = target_of(moved, regression, "squared")
    truth = np.mean((moved[:, 0] + moved[:, 1] ** 2 - regression.predict(moved)) ** 2) + 1
    assert held_numbers.loss.mean() < 0.85 * truth
    for name in WEIGHTED:
        assert COMPARATORS[name](held_numbers, target).error == pytest.approx(truth, rel=0.12), name


def test_confidence_finds_the_error_of_a_calibrated_classifier(classifier, held):
    target = target_of(SHIFTED, classifier)
    truth = np.mean(
        1
        - np.take_along_axis(
            softmax(SHIFTED @ COEF, axis=1), target_rows_decided(classifier, SHIFTED), axis=1
        )
    )
    for name in COMPARATORS:
        assert COMPARATORS[name](held, target).error == pytest.approx(truth, abs=0.04), name


def target_rows_decided(family, x):
    return family.predict(x).argmax(axis=1)[:, None]


@pytest.mark.parametrize("loss", ["deviance", "brier"])
def test_confidence_expects_other_losses_too(classifier, loss):
    rows = classes_rows()
    held = held_out(rows, classifier, random_buckets(rows, 5, 0), settings(loss), 0)
    target = target_of(ALIKE, classifier, loss)
    for name in (*WEIGHTED, *OF_CLASSES[:2]):
        assert COMPARATORS[name](held, target).error == pytest.approx(held.loss.mean(), rel=0.03), name
    answer = COMPARATORS["average_thresholded_confidence"](held, target)
    assert np.isnan(answer.error)
    assert "counting" in answer.reason


def test_a_loss_of_the_users_is_weighted(regression):
    rows = numbers_rows()

    def absolute(y, prediction):
        return abs(y - prediction)

    held = held_out(rows, regression, random_buckets(rows, 5, 0), settings(absolute), 0)
    np.testing.assert_array_equal(held.loss, abs(held.y - held.prediction))
    assert held.loss_name.endswith("absolute")


@pytest.mark.parametrize("name", OF_CLASSES)
def test_numbers_have_no_confidence(regression, held_numbers, name):
    answer = COMPARATORS[name](held_numbers, target_of(ALIKE, regression, "squared"))
    assert np.isnan(answer.error)
    assert "classes" in answer.reason


def test_without_folds_it_is_told_that_the_model_has_seen_the_rows(classifier):
    held = held_out(classes_rows(), classifier, None, settings(), 0)
    np.testing.assert_array_equal(held.prediction, classifier.predict(held.x))
    target = target_of(ALIKE, classifier)
    for name in COMPARATORS:
        answer = COMPARATORS[name](held, target)
        assert ("no cross-validation" in answer.reason) == (name != "average_confidence"), name
    assert np.isnan(COMPARATORS["importance_weighted_cv"](held, target).error)


def test_the_discriminator_is_fitted_once_for_a_target(monkeypatch, classifier, held):
    calls = []
    discriminate = module.discriminate
    monkeypatch.setattr(module, "discriminate", lambda *a, **k: calls.append(1) or discriminate(*a, **k))
    target = target_of(SHIFTED, classifier)
    for comparator in COMPARATORS.values():
        comparator(held, target)
    assert effective_sample_size(held, target) < 0.9 * N
    assert len(calls) == 1
    effective_sample_size(replace(held, level=0.9), target)
    assert len(calls) == 2


def test_grouped_rows_have_no_interval(classifier):
    rows = as_rows(X, LABEL, np.arange(N) // 100)
    rows = replace(rows, columns={"label": rows.columns["label"], "group": rows.columns["sample"]})
    held = held_out(rows, classifier, group_buckets(rows, 5, 0), settings(), 0)
    assert len(set(held.fold.tolist())) == 5
    for name in WEIGHTED:
        answer = COMPARATORS[name](held, target_of(ALIKE, classifier))
        assert np.isfinite(answer.error)
        assert np.isnan(answer.low)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_target_of_few_rows_gets_an_answer_or_a_reason(classifier, held, n):
    target = target_of(ALIKE[:n], classifier)
    for name, comparator in COMPARATORS.items():
        answer = comparator(held, target)
        assert np.isfinite(answer.error) == (not answer.reason), name
        assert np.isfinite(answer.error) == (n > 0 if name in OF_CLASSES else n > 1), name
    assert np.isfinite(share_far(held, target, classifier)) == (n > 0)
    assert np.isfinite(effective_sample_size(held, target)) == (n > 1)


def test_a_target_that_the_source_does_not_meet_has_no_coverage(classifier, held):
    target = target_of(ALIKE + 50, classifier)
    assert coverage(held, target) < 0.05
    assert share_far(held, target, classifier) == 1


def test_what_is_held_out_can_be_saved(held):
    tree, arrays = encode(held)
    back = decode(tree, lambda name, dtype, shape: arrays[name].astype(dtype).reshape(shape))
    for name in ("x", "y", "fold", "prediction", "loss", "expected"):
        np.testing.assert_array_equal(getattr(back, name), getattr(held, name))
    assert (back.loss_name, back.level, back.is_classes) == ("counting", 0.95, True)


def test_rows_that_were_compared_leave_the_memory_with_those_who_hold_them():
    model = PredictionError("ols", n_bootstrap=4, random_state=0).fit(X, OUTCOME)
    found = model.update({"site": ALIKE})
    assert np.isfinite(found["effective_sample_size"].values).all()
    source, first = weakref.ref(model.held_out_), weakref.ref(model.targets_["site"].seen)
    model.update({"site": SHIFTED})
    gc.collect()
    assert first() is None
    assert source() is not None
    del model
    gc.collect()
    assert source() is None
