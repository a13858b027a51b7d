"""Source cells weighted to stand for a target sample."""

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from three_classes import draw

import scaleshift as ss
from scaleshift.quantify.weights import sample_weight

X, Y = draw(5_000, [0.3, 0.3, 0.4], seed=0)
T, TY = draw(4_000, [0.7, 0.2, 0.1], seed=1)
MODEL = ss.DFM("landmarks", random_state=0, n_bootstrap=0).fit(X, Y)
RESULT = MODEL.predict(T)
TWO = MODEL.predict(np.concatenate([T, X]), sample=np.repeat(["S1", "S2"], [len(T), len(X)]))


def refuse(*_, **__):
    raise AssertionError("something was computed")


def test_weighted_class_shares_are_those_of_the_sample():
    weight = sample_weight(RESULT, Y)
    for label in "abc":
        expected = RESULT["proportion"].sel(label=label).item()
        assert weight[label == Y].sum() / len(Y) == pytest.approx(expected, rel=1e-12)
    assert weight.mean() == pytest.approx(1 - RESULT["unknown"].item(), rel=1e-12)


def test_a_classifier_trained_with_them_does_better_on_the_sample():
    rng = np.random.default_rng(0)

    def overlapping(n, share):
        y = rng.random(n) < share
        return np.where(y, 1.0, -1.0)[:, None] + rng.standard_normal((n, 2)), np.where(y, "b", "a")

    x, y = overlapping(6_000, 0.5)
    target, truth = overlapping(6_000, 0.05)
    result = ss.DFM(random_state=0, n_bootstrap=0).fit(x, y).predict(target)
    plain = LogisticRegression().fit(x, y)
    weighted = LogisticRegression().fit(x, y, sample_weight=sample_weight(result, y))
    losses = [log_loss(truth, model.predict_proba(target)) for model in (plain, weighted)]
    assert losses[1] < 0.7 * losses[0]
    assert weighted.score(target, truth) > plain.score(target, truth) + 0.02
    best = LogisticRegression().fit(target, truth)
    assert losses[1] < 1.1 * log_loss(truth, best.predict_proba(target))


@pytest.mark.parametrize("kind", [np.asarray, list, pd.Series, pd.Categorical])
def test_what_comes_in_as_numpy_or_pandas_is_numpy(kind):
    found = sample_weight(RESULT, kind(Y))
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, sample_weight(RESULT, Y))


@pytest.mark.parametrize("chunk", [1, 700, 5_000])
def test_what_comes_in_as_dask_stays_lazy(chunk):
    y = da.from_array(Y[:50] if chunk == 1 else Y, chunks=chunk)
    with dask.config.set(scheduler=refuse):
        found = sample_weight(RESULT, y)
    assert found.chunks == y.chunks
    np.testing.assert_array_equal(found.compute(), sample_weight(RESULT, Y)[: len(y)])


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_unlabelled_cells_weigh_nothing(missing):
    y = Y[:6].astype(object)
    y[2] = missing
    for labels in (y, da.from_array(y, chunks=4)):
        found = np.asarray(sample_weight(RESULT, labels))
        assert (found == 0).tolist() == [False, False, True, False, False, False]


def test_number_labels_with_nan():
    y = np.searchsorted(["a", "b", "c"], Y).astype(float)
    result = ss.DFM("landmarks", random_state=0, n_bootstrap=0).fit(X, y).predict(T)
    y[3] = np.nan
    expected = sample_weight(result, y)
    assert expected[3] == 0
    np.testing.assert_array_equal(sample_weight(result, da.from_array(y, chunks=600)), expected)


def test_the_sample_is_chosen_by_its_name():
    np.testing.assert_allclose(sample_weight(TWO, Y, "S1"), sample_weight(RESULT, Y), rtol=1e-5)
    np.testing.assert_allclose(sample_weight(TWO, Y, sample="S2"), 1, atol=0.05)
    with pytest.raises(ss.DataError, match=r"2 samples: choose one with sample=; it has S1, S2"):
        sample_weight(TWO, Y)
    with pytest.raises(ss.DataError, match=r"sample 'S3' is not in the result"):
        sample_weight(TWO, Y, "S3")


def test_labels_that_have_no_weight_are_refused():
    for y in (np.array(["a", "d"]), da.from_array(np.array(["a", "d"]), chunks=1)):
        with pytest.raises(ss.DataError, match="label 'd' is not known"):
            np.asarray(sample_weight(RESULT, y))
    labels = pd.Categorical(Y[Y != "b"], categories=["a", "b", "c"])
    result = ss.DFM("landmarks", random_state=0, n_bootstrap=0).fit(X[Y != "b"], labels).predict(T)
    for y in (Y, da.from_array(Y, chunks=2_000)):
        with pytest.raises(ss.DataError, match=r"the label\(s\) b have no weight"):
            np.asarray(sample_weight(result, y))


def test_no_cell_has_a_negative_weight():
    """The plain inverse of BBSE may say that a class has less than no cells."""
    shares = np.array([1.1, -0.1, 0.0])
    result = RESULT.assign(weight=RESULT["weight"] * 0 + shares / np.array([0.3, 0.3, 0.4]))
    for y in (Y, da.from_array(Y, chunks=900)):
        weight = np.asarray(sample_weight(result, y))
        assert (weight[Y != "a"] == 0).all()
        np.testing.assert_allclose(weight[Y == "a"], 1.1 / 0.3)


def test_something_else_than_a_result_is_refused():
    with pytest.raises(ss.DataError, match="pass the dataset that predict gave"):
        sample_weight(RESULT["proportion"], Y)
