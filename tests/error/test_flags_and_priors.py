"""Reasons to doubt an answer, and probabilities under other class frequencies."""

import dask.array as da
import numpy as np
import pytest

import scaleshift as ss
from scaleshift.error import flags as module
from scaleshift.error.flags import flags, is_far, unreliable
from scaleshift.errors import DataError

PROBA = np.random.default_rng(0).dirichlet(np.ones(3), 100)
TRAINED, TARGET = np.array([0.6, 0.3, 0.1]), np.array([0.2, 0.3, 0.5])


def test_nothing_is_said_of_a_target_like_the_source():
    said = flags(500, n_source=1000, effective_sample_size=950.0, share_far=0.012, coverage=0.9)
    assert said == []
    assert not unreliable(said)
    assert flags(500) == []  # nothing known


@pytest.mark.parametrize(
    ("known", "serious"),
    [
        ({"n_source": 10_000, "effective_sample_size": 900.0}, True),
        ({"n_source": 100, "effective_sample_size": 29.0}, True),
        ({"share_far": 0.2}, True),
        ({"coverage": 0.1}, True),
        ({"remarks": ["probabilities clipped: 12 % of rows"]}, True),
        ({"n_left_out": 3}, False),
    ],
)
def test_each_reason_is_said_once(known, serious):
    said = flags(500, **known)
    assert len(said) == 1
    assert unreliable(said) == serious
    assert "valid" not in said[0]


def test_few_rows_are_told_and_far_is_judged_by_the_rows_that_were_looked_at():
    assert flags(3, share_far=1 / 3) == ["few target rows: 3"]
    assert flags(10**6, share_far=0.1, n_judged=10) == []


def test_no_threshold_lets_a_target_without_shift_be_flagged_often():
    random = np.random.default_rng(0)
    for n in (1, 10, 100, 1000):
        said = [is_far(random.binomial(n, 0.01) / n, n) for _ in range(2000)]
        assert np.mean(said) <= 1.3 * module.FAR_CHANCE


def test_a_quantile_of_few_source_rows_is_no_exact_one():
    random = np.random.default_rng(0)
    said = []
    for _ in range(1000):
        edge = np.quantile(random.random(100), module.FAR_QUANTILE, method="higher")
        said.append(is_far(np.mean(random.random(200) > edge), 200, 100))
    assert np.mean(said) <= 1.3 * module.FAR_CHANCE


@pytest.mark.parametrize(("model", "n", "p"), [("ols", 100, 5), ("ols", 100, 50), ("lasso", 100, 20)])
def test_targets_like_the_source_are_not_flagged(model, n, p):
    """Also where a model of many features has learned the source's rows nearly by heart."""
    random, said = np.random.default_rng(0), []
    for seed in range(20):
        x, target = random.normal(size=(2, n, p))
        y = x[:, 0] + random.normal(size=n)
        found = ss.error.PredictionError(model, n_bootstrap=20, random_state=seed).fit(x, y).predict(target)
        said.append(bool(found["unreliable"][0]))
    assert np.mean(said) <= 0.05


@pytest.mark.parametrize("size", [None, 7, 100])
def test_prior_correction_follows_bayes(size):
    proba = PROBA if size is None else da.from_array(PROBA, chunks=(size, 3))
    found = ss.error.prior_corrected(proba, TRAINED, TARGET)
    assert isinstance(found, np.ndarray if size is None else da.Array)
    expected = PROBA * TARGET / TRAINED
    np.testing.assert_allclose(found, expected / expected.sum(axis=1, keepdims=True), rtol=1e-12)


def test_prior_correction_makes_a_subsampled_classifier_calibrated():
    """Of a hundred ordinary rows to one rare one, trained on as many of each."""
    random = np.random.default_rng(0)
    y = random.random(200_000) < 0.01
    x = random.normal(size=y.size) + 2 * y
    balanced = 1 / (1 + np.exp(-(2 * x - 2)))  # what equal classes give
    proba = ss.error.prior_corrected(np.column_stack([1 - balanced, balanced]), [0.5, 0.5], [0.99, 0.01])
    wrong = float(np.mean(proba.argmax(axis=1) != y))
    assert float(ss.error.average_confidence(proba)["error"]) == pytest.approx(wrong, abs=1e-3)
    uncorrected = ss.error.average_confidence(np.column_stack([1 - balanced, balanced]))
    assert abs(float(uncorrected["error"]) - wrong) > 0.01


def test_correcting_back_gives_what_was():
    there = ss.error.prior_corrected(PROBA, TRAINED, TARGET)
    np.testing.assert_allclose(ss.error.prior_corrected(there, TARGET, TRAINED), PROBA, rtol=1e-12)


@pytest.mark.parametrize(
    ("trained", "target", "words"),
    [
        ([0.5, 0.5], TARGET, "prior_trained is float64 of shape"),
        (TRAINED, [0.5, 0.6, 0.1], "prior_target=.*sum to 1"),
        (TRAINED, [1.5, -0.6, 0.1], "prior_target="),
        ([0.5, 0.5, 0.0], TARGET, "prior_trained is 0 for class 2"),
        (TRAINED, [np.nan, 0.5, 0.5], "prior_target="),
    ],
)
def test_priors_that_are_none_are_refused(trained, target, words):
    with pytest.raises(DataError, match=words):
        ss.error.prior_corrected(PROBA, trained, target)


def test_what_are_no_probabilities_is_found_when_they_are_computed():
    lazy = ss.error.prior_corrected(da.from_array(2 * PROBA, chunks=(50, 3)), TRAINED, TARGET)
    with pytest.raises(DataError, match=r"proba has (values outside|\d+ rows that do not sum)"):
        lazy.compute()
