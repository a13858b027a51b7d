"""What no one should pass, and what real data hold all the same: an answer, or one sentence that helps."""

import tracemalloc

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from three_classes import draw

import scaleshift as ss
from scaleshift.errors import DataError
from scaleshift.quantify import methods
from scaleshift.quantify.scores import class_scores

X, Y = draw(300, [0.3, 0.4, 0.3], seed=0)
T, _ = draw(100, [0.1, 0.2, 0.7], seed=1)
NAMES = [*methods.available(), "laplace"]


def make(name, n_bootstrap=4, **parameters):
    if name == "soft-energy":
        few = ss.SlicedEnergy(n_directions=16, n_bins=16)
        return ss.DFM(few, n_bootstrap=n_bootstrap, random_state=0, **parameters)
    if name == "laplace":
        laplace = ss.FourierFeatures(kernel="laplace", n_features=200)
        return ss.DFM(laplace, n_bootstrap=n_bootstrap, random_state=0, **parameters)
    return methods.make(name, n_bootstrap=n_bootstrap, random_state=0, **parameters)


def holds(result):
    """Whether every sample with cells has proportions that are some, and the others none."""
    filled = result["n_cells"].values > 0
    share, unknown = result["proportion"].values, result["unknown"].values
    assert np.isnan(share[~filled]).all()
    total = np.nansum(share[filled], axis=1) + np.nan_to_num(unknown[filled])
    np.testing.assert_allclose(total, 1, atol=1e-6)
    known = share[filled][~np.isnan(share[filled])]
    return bool(((known >= 0) & (known <= 1 + 1e-9)).all())


# Rows --------------------------------------------------------------------------------------------------

RARE = np.where(np.arange(300) == 7, "rare", Y)
TWIN = np.where((Y == "a") & (np.arange(300) % 2 == 0), "a2", Y)
CONSTANT = np.array([1, 0, 1], "f4")
SOME = Y.astype(object)
SOME[::3] = None
INPUTS = {
    "a class of one cell": (X, RARE, T),
    "two classes alike": (X, TWIN, T),
    "a constant marker": (X * CONSTANT, Y, T * CONSTANT),
    "one class": (X, np.repeat("a", 300), T),
    "two rows": (np.array([[0, 0, 0], [9, 9, 9.0]]), ["a", "b"], T),
    "one row to answer for": (X, Y, T[:1]),
    "no rows to answer for": (X, Y, T[:0]),
    "some without a label": (X, SOME, T),
    "far away": (X, Y, T + 1e4),
    "nothing but zeros": (X, Y, np.zeros_like(T)),
    "offset": (X.astype("f8") + 1e6, Y, T.astype("f8") + 1e6),
    "small": (X * 1e-6, Y, T * 1e-6),
    "large": (X * 1e8, Y, T * 1e8),
    "whole numbers": ((10 * X).astype("i2"), Y, (10 * T).astype("i2")),
}


@pytest.mark.parametrize("name", NAMES)
def test_odd_rows_have_proportions(name):
    for what, (x, y, t) in INPUTS.items():
        assert holds(make(name).fit(x, y).predict(t)), what


@pytest.mark.parametrize("name", NAMES)
def test_blocks_without_rows_change_nothing(name):
    model, sample = make(name).fit(X, Y), np.repeat(["u", "v"], 50)
    parts = [T[:0], T[:37], T[:0], T[37:], T[:0]]
    lazy = da.concatenate([da.from_array(part, chunks=(max(len(part), 1), 3)) for part in parts])
    with_empty, without = model.predict(lazy, sample), model.predict(T, sample)
    np.testing.assert_allclose(with_empty["proportion"], without["proportion"], atol=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_a_class_without_finite_rows_is_told_to_be_none(name):
    x = np.where((Y == "c")[:, None], np.nan, X)
    result = make(name, invalid="drop").fit(x, Y).predict(T)
    assert holds(result)
    assert np.isnan(result["proportion"].sel(label="c")).all()
    assert "not in the source" in result["flag"].item()


OF_CLASSIFIERS = ["open-set", "cc", "pcc", "acc", "pacc", "bbse", "rlls", "mlls", "dys"]


@pytest.mark.parametrize("name", OF_CLASSIFIERS)
def test_no_distance_is_too_far_for_a_classifier(name):
    assert holds(make(name).fit(X, Y).predict(T.astype("f8") * 1e300))


@pytest.mark.parametrize("name", OF_CLASSIFIERS)
def test_a_source_whose_squares_overflow_is_refused(name):
    with pytest.raises(DataError, match="squares overflow: bring the markers to a scale near 1"):
        make(name).fit(X.astype("f8") * 1e200, Y)


class Nothing:
    """A map that sees nothing in a row."""

    def fit(self, x, y):
        return self

    def transform(self, x):
        return np.zeros((len(x), 2))


def test_a_sample_without_an_embedding_has_no_misfit():
    result = ss.DFM(Nothing(), random_state=0).fit(X, Y).predict(T)
    assert holds(result)
    assert np.isnan(result["misfit"].item())


# Parameters --------------------------------------------------------------------------------------------

NONSENSE = ["nonsense", -1, 1e30, [], {}, float("nan"), object(), (1, 2), np.array([1, 2])]
NEVER = {  # parameter -> none of NONSENSE is one
    "level": [ss.DFM, ss.MLLS, ss.OpenSetQuantifier],
    "n_bootstrap": [ss.DFM, ss.OpenSetQuantifier],
    "resample": [ss.DFM, ss.BBSE],
    "invalid": [ss.DFM, ss.OpenSetQuantifier],
    "soft": [ss.DFM, ss.BBSE],
    "criterion": [ss.DFM],
    "positive": [ss.BBSE],
    "probabilistic": [ss.ClassifyAndCount, ss.AdjustedCount, ss.RLLS],
    "delta": [ss.RLLS],
    "gamma": [ss.RLLS],
    "calibration": [ss.MLLS],
    "max_iter": [ss.MLLS],
    "n_bins": [ss.HDx, ss.DyS],
    "unknown": [ss.OpenSetQuantifier],
    "unknown_class": [ss.OpenSetQuantifier],
    "n_landmarks": [ss.OpenSetQuantifier],
}
REFUSED = [(kind, name) for name, kinds in NEVER.items() for kind in kinds]


@pytest.mark.parametrize(("kind", "name"), REFUSED, ids=lambda v: getattr(v, "__name__", v))
def test_parameters_without_a_meaning_are_named(kind, name):
    for value in NONSENSE:
        with pytest.raises(DataError, match=name):
            kind(random_state=0).set_params(**{name: value}).fit(X, Y)


@pytest.mark.parametrize("kind", [ss.DFM, ss.MLLS, ss.OpenSetQuantifier])
def test_parameters_set_after_the_fit_are_checked_too(kind):
    model = kind(random_state=0).fit(X, Y).set_params(level="high")
    with pytest.raises(DataError, match="level='high': expected a number between 0 and 1"):
        model.predict(T)


def test_maps_name_their_parameters():
    for features in (ss.FourierFeatures(sampler=np.zeros(2)), ss.ClassifierFeatures(output=np.zeros(2))):
        with pytest.raises(DataError, match="expected one of"):
            ss.DFM(features).fit(X, Y)


# Objects of the user's ---------------------------------------------------------------------------------


class Odd(ClassifierMixin, BaseEstimator):
    """A classifier of which one thing is wrong."""

    def __init__(self, wrong=""):
        self.wrong = wrong

    def fit(self, x, y):
        if self.wrong == "fit":
            raise RuntimeError("no wish to learn")
        if self.wrong != "no classes":
            self.classes_ = np.unique(y)
        return None if self.wrong == "gives nothing" else self

    def predict(self, x):
        return self.predict_proba(x).argmax(axis=1)

    def predict_proba(self, x):
        n = len(x)
        given = np.ones((n, 3)) / 3
        if self.wrong == "predict_proba":
            raise RuntimeError("no wish to tell")
        wrong = {
            "columns": np.ones((n, 7)),
            "rows": given[1:],
            "one column": given[:, 0],
            "NaN": given * np.nan,
        }
        return {**wrong, "text": given.astype(str), "negative": -given, "nothing": None}.get(
            self.wrong, given
        )


class Votes(ClassifierMixin, BaseEstimator):
    """No probabilities, and a class that it was never told of."""

    def fit(self, x, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, x):
        return np.full(len(x), 99)


WRONG = {
    "fit": "Odd.fit failed .RuntimeError: no wish to learn",
    "predict_proba": "Odd.predict_proba failed .RuntimeError: no wish to tell",
    "no classes": "Odd.fit left .. in classes_",
    "columns": r"Odd.predict_proba gave an array of shape .*, 7\)",
    "rows": "Odd.predict_proba gave an array of shape",
    "one column": "Odd.predict_proba gave an array of shape",
    "text": "Odd.predict_proba gave .* dtype <U",
    "nothing": r"Odd.predict_proba gave an array of shape \(\) and dtype object",
    "NaN": "Odd.predict_proba gave NaN",
    "negative": "Odd.predict_proba gave NaN, infinite or negative",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_classifier_that_fails_is_named(wrong):
    for model in (ss.BBSE(Odd(wrong)), ss.MLLS(Odd(wrong)), ss.OpenSetQuantifier(classifier=Odd(wrong))):
        with pytest.raises(DataError, match=WRONG[wrong]):
            model.set_params(random_state=0).fit(X, Y)


def test_a_classifier_whose_fit_gives_nothing_is_fitted_all_the_same():
    assert holds(ss.BBSE(Odd("gives nothing"), random_state=0).fit(X, Y).predict(T))


def test_predicted_classes_that_there_are_not_are_refused():
    with pytest.raises(DataError, match=r"Votes.predict gave 99: expected one of its classes_"):
        ss.BBSE(Votes(), random_state=0).fit(X, Y)


FRAME = pd.DataFrame(X, columns=["CD3", "CD4", "CD8"])


def test_a_classifier_that_knows_markers_by_name_is_asked_by_name():
    named, unnamed = LogisticRegression().fit(FRAME, Y), LogisticRegression().fit(X, Y)
    by_name, by_place = (
        ss.BBSE(e, cv="prefit", random_state=0).fit(X, Y).predict(T) for e in (named, unnamed)
    )
    np.testing.assert_allclose(by_name["proportion"], by_place["proportion"], atol=1e-12)


def test_a_classifier_of_other_markers_is_refused():
    turned = LogisticRegression().fit(FRAME[["CD8", "CD4", "CD3"]], Y)
    with pytest.raises(DataError, match=r"fitted on other markers \(CD8, CD4, CD3\) than the source has"):
        ss.BBSE(turned, cv="prefit", random_state=0).fit(FRAME, Y)
    two = LogisticRegression().fit(X[:, :2], Y)
    with pytest.raises(DataError, match=r"fitted on other markers \(2\) than the source has \(3\)"):
        ss.BBSE(two, cv="prefit", random_state=0).fit(X, Y)


class OddMap:
    """A map of which one thing is wrong."""

    def __init__(self, wrong):
        self.wrong = wrong

    def fit(self, x, y):
        if self.wrong == "fit":
            raise RuntimeError("no wish to learn")

    def transform(self, x):
        raise RuntimeError("no wish to tell")


@pytest.mark.parametrize("wrong", ["fit", "transform"])
def test_a_map_that_fails_is_named(wrong):
    with pytest.raises(DataError, match=rf"OddMap.{wrong} failed \(RuntimeError: no wish to"):
        ss.DFM(OddMap(wrong), random_state=0).fit(X, Y)


# What is asked of a model ------------------------------------------------------------------------------


def test_a_model_without_embeddings_is_not_called_unfitted():
    model = make("open-set").fit(X, Y)
    for ask, name in ((ss.quantify.novelty, "novelty"), (ss.quantify.diagnose, "diagnose")):
        with pytest.raises(DataError, match=f"{name} needs a DFM: OpenSetQuantifier has no embeddings"):
            ask(model, T)


@pytest.mark.parametrize("name", ["open-set", "soft-landmarks", "bbse"])
def test_posteriors_know_bools_from_masks(name):
    numbers = make(name).fit(X, (Y == "a").astype(int)).posterior(T)
    model = make(name).fit(X, Y == "a")
    answer = model.predict(T)
    found = model.posterior(T, answer)
    np.testing.assert_allclose(found, numbers, atol=1e-6)
    assert found["label"].values.tolist()[:2] == [False, True]
    if name == "soft-landmarks":
        assert np.isfinite(model.error_bound(result=answer)).all()
    with pytest.raises(DataError, match="proportion is of type int, without proportions"):
        model.posterior(T, 3)


@pytest.mark.parametrize("x", [T[:0], np.full_like(T, np.nan)], ids=["no rows", "no finite ones"])
def test_a_sample_without_cells_is_diagnosed_as_too_few(x):
    found = ss.quantify.diagnose(make("soft-landmarks", invalid="drop").fit(X, Y), x)
    assert found["verdict"].values.tolist() == ["too few cells"]


def test_densities_by_many_features_need_no_square_of_them():
    """A matrix of all pairs of 10 000 features would have 800 MB."""
    many = ss.FourierFeatures(n_features=10_000)
    model = ss.DFM(many, bandwidth=3.0, n_bootstrap=0, random_state=0).fit(X, Y)
    tracemalloc.start()
    scores = class_scores(model)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6
    unit = np.zeros((1, 10_000))
    unit[0, 7_777] = 1
    expected = model.embedding_.products(model.source_.means, unit)
    np.testing.assert_allclose(scores.weights[7_777], expected[0], atol=1e-12)


def test_compare_says_what_is_no_method_and_no_setting():
    study = ss.as_cells(X, sample=np.repeat(["s1", "s2"], 150), label=Y)
    for arguments, match in (
        (([ss.BBSE], study), "the method ABCMeta is the class BBSE: pass an object of it"),
        ((study,), "methods is a dataset: pass the methods first"),
    ):
        with pytest.raises(DataError, match=match):
            ss.quantify.compare(*arguments)
    with pytest.raises(DataError, match=r"settings=\[\]: expected a list of some of label shift"):
        ss.quantify.compare(["bbse"], study, settings=[])


@pytest.mark.parametrize("name", NAMES)
def test_a_fit_that_fails_leaves_the_earlier_one(name):
    model = make(name).fit(X, Y)
    before = model.predict(T)
    with pytest.raises(DataError, match="has a label"):
        model.fit(X, np.repeat(None, 300))
    assert model.predict(T).equals(before)
    assert not hasattr(clone(model), "seed_")
