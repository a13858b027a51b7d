"""What users get wrong, or pass in odd ways: a refusal in one line or the right number, never another one."""

import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.svm import LinearSVC

import scaleshift as ss
from scaleshift.errors import DataError

B = 8
NAMES = list("abcd")


def numbers(n=120, p=4, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    return x, x @ np.linspace(1, -1, p) + rng.normal(size=n), 1.5 * rng.normal(size=(60, p))


def classes(n=160, p=4, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    return x, np.where(x[:, 0] + rng.normal(size=n) > 0, "b", "a"), rng.normal(size=(60, p)) + 0.5


X, Y, T = numbers()
XC, YC, TC = classes()
SPLITS = list(KFold(4).split(X))


def ols(**parameters):
    return ss.PredictionError("ols", random_state=0, **parameters)


def logistic(**parameters):
    return ss.PredictionError("logistic", alpha=0.1, n_bootstrap=B, random_state=0, **parameters)


def estimator(model, **parameters):
    return ss.PredictionError(model, n_bootstrap=4, cv=2, random_state=0, **parameters)


def error(fitted, target, **more):
    return fitted.predict(target, **more)["error"].values.ravel()


def refused(words):
    """A DataError of one line with these words."""
    return pytest.raises(DataError, match=rf"\A[^\n]*{words}[^\n]*\Z")


# Folds that were given -------------------------------------------------------------------------------------


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("groups", [None, np.arange(120) // 10])
def test_given_splits_are_the_folds_whatever_groups_there_are(lazy, groups):
    x, y = (da.from_array(X, chunks=(31, -1)), da.from_array(Y, chunks=50)) if lazy else (X, Y)
    predicted = cross_val_predict(LinearRegression(), X, Y, cv=SPLITS)
    fitted = ols(cv=SPLITS).fit(x, y, groups)
    assert fitted.error_cv_ == pytest.approx(((Y - predicted) ** 2).mean(), rel=1e-10)


def test_given_splits_serve_other_models_and_rows_without_outcomes():
    splits = list(KFold(4).split(XC))
    predicted = cross_val_predict(LogisticRegression(C=1 / 12, tol=1e-8), XC, YC, cv=splits)
    found = estimator(LogisticRegression(C=1 / 12, tol=1e-8), method="cv").set_params(cv=splits)
    assert found.fit(XC, YC).error_cv_ == pytest.approx(np.mean(predicted != YC), abs=1e-12)
    y = np.where(np.arange(120) < 30, np.nan, Y)  # the first split tests none that is known
    known = [(train[train >= 30] - 30, test - 30) for train, test in SPLITS[1:]]
    a, b = ols(cv=SPLITS).fit(X, y), ols(cv=known).fit(X[30:], Y[30:])
    assert a.error_cv_ == pytest.approx(b.error_cv_, rel=1e-10)


def test_a_wrong_list_of_splits_is_refused_in_one_line():
    with refused("cv="):
        ols(cv=SPLITS[:1]).fit(X, Y)
    with refused("tested by no split"):
        ols(cv=SPLITS[:3]).fit(X, Y)


# Outcomes --------------------------------------------------------------------------------------------------


def test_outcomes_are_not_matched_to_rows_of_other_names():
    frame = pd.DataFrame(X, columns=NAMES)
    turned = pd.Series(Y, index=frame.index[::-1])
    with refused("different names or order"):
        ols().fit(frame, turned)
    np.testing.assert_array_equal(error(ols().fit(frame, turned.to_numpy()), T), error(ols().fit(X, Y), T))


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.where(np.arange(120) == 3, np.inf, Y), "1 infinite"),
        (da.from_array(np.where(np.arange(120) == 3, -np.inf, Y), chunks=50), "1 infinite"),
        (np.ma.masked_array(Y.copy(), np.arange(120) < 9), "masked"),
        (da.ma.masked_array(da.from_array(Y, chunks=50), da.zeros(120, chunks=50, dtype=bool)), "masked"),
        ([None, *Y[1:].tolist()], r"numpy\.asarray\(y, float\)"),
        (np.full(120, "a"), "y has dtype"),
        (pd.Series(pd.Categorical(Y > 0)), "y has dtype category"),
        (Y[:, None], "y has 2 dimensions"),
        ("age", "one name"),
    ],
)
def test_outcomes_that_are_no_numbers_are_refused(y, words):
    with refused(words):
        ols().fit(X, y)


def test_masked_labels_are_refused_and_unknown_numbers_of_pandas_left_out():
    with refused("masked"):
        logistic().fit(XC, np.ma.masked_array(YC, np.arange(160) < 9))
    y = pd.Series(Y).astype("Float64")
    y[:9] = pd.NA
    np.testing.assert_allclose(error(ols().fit(X, y), T), error(ols().fit(X[9:], Y[9:]), T), rtol=1e-12)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("model", ["logistic", "multinomial"])
def test_labels_that_no_row_has_are_none(model, lazy):
    """As those of samples that are not in this part of a study."""
    label = np.where(np.arange(160) >= 120, "0 rare", YC)
    cells = ss.as_cells(XC, sample=np.repeat(["s", "t"], 80), label=label, marker=NAMES)
    some = cells.isel(cell=slice(0, 120))
    some = some.chunk({"cell": 50}) if lazy else some
    a, b = (logistic().set_params(model=model) for _ in range(2))
    a.fit(some), b.fit(XC[:120], YC[:120])
    assert a.classes_.tolist() == ["a", "b"]
    np.testing.assert_allclose(error(a, TC), error(b, TC), rtol=1e-10)


# Groups ----------------------------------------------------------------------------------------------------


def test_groups_that_are_none_are_refused():
    with refused("brings no samples"):
        ols(cv=None).fit(X, Y, "sample")
    with refused("one group"):
        ols(cv=None).fit(X, Y, np.zeros(120))


# Noise of the caller ---------------------------------------------------------------------------------------


def uniform(n, b=B, seed=0):
    return np.random.default_rng(seed).random((b, n))


@pytest.mark.parametrize(
    ("noise", "words"),
    [
        (uniform(60, B - 1), "has the shape"),
        (uniform(60, B + 30), "has the shape"),
        (uniform(61), "has the shape"),
        (uniform(60) * np.nan, "not finite"),
        (uniform(60) + 0.5, "below 1"),
        (uniform(60) - 0.5, "from 0"),
        ([[0.5], [0.5, 0.5]], "no array"),
        (da.from_array(uniform(60) * np.nan, chunks=20), "not finite"),
    ],
)
def test_noise_of_a_target_that_does_not_fit_is_refused(noise, words):
    fitted = logistic().fit(XC, YC, noise={"train": uniform(160), "fresh": uniform(160, seed=1)})
    with refused(words):
        fitted.predict(TC, noise={"target": noise})


def test_noise_of_a_fit_that_does_not_fit_is_refused():
    for train, words in [(uniform(160, B - 1), "as many"), (uniform(160) * 2, "below 1"), ("a", "shape")]:
        with refused(words):
            logistic().fit(XC, YC, noise={"train": train, "fresh": uniform(160)})
    normal = np.random.default_rng(0).normal(size=(B, 120))
    with refused("not finite"):
        ols().fit(X, Y, noise={"train": normal, "fresh": np.where(normal > 2, np.inf, normal)})


def test_noise_goes_with_names_that_are_numbers():
    fitted = ols().fit(X, Y, noise={"train": normal(120), "fresh": normal(120, 1)})
    found = [fitted.predict({name: T}, noise={"target": {name: normal(60, 2)}}) for name in (1, "1")]
    assert found[0].equals(found[1])


def normal(n, seed=0):
    return np.random.default_rng(seed).normal(size=(B, n))


# Estimators and losses of the user's -----------------------------------------------------------------------


class Says(RegressorMixin, BaseEstimator):
    """Predicts one number."""

    def __init__(self, value=0.0):
        self.value = value

    def fit(self, x, y):
        return self

    def predict(self, x):
        return np.where(x[:, 0] > 0, self.value, 0.0)


class Scores(ClassifierMixin, BaseEstimator):
    """Gives the same row of scores always."""

    def __init__(self, scores=(0.5, 0.5)):
        self.scores = scores

    def fit(self, x, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, x):
        return np.tile(np.asarray(self.scores), (len(x), 1))


class Fails(Says):
    def fit(self, x, y):
        raise RuntimeError("first line\nsecond line")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_predictions_that_are_no_numbers_are_refused(value):
    with refused("NaN or infinite"):
        estimator(Says(value)).fit(X, Y).predict(T)


@pytest.mark.parametrize("scores", [(2.0, 2.0), (1.5, -0.5), (0.0, 0.0), (-0.5, -1.0), (np.nan, 0.5)])
@pytest.mark.parametrize("refit", ["cold", "never"])
def test_scores_that_are_no_probabilities_are_refused(scores, refit):
    with refused("probabilities"):
        estimator(Scores(scores).fit(XC, YC), refit=refit).fit(XC, YC).predict(TC)


def test_an_error_of_the_user_s_is_told_in_one_line():
    with refused("first line second line"):
        estimator(Fails()).fit(X, Y)


@pytest.mark.parametrize(
    "parameters",
    [{"method": ("cv", "average_confidence")}, {"refit": "never", "generator": "plugin"}],
)
def test_labels_alone_are_not_taken_for_sureness(parameters):
    """Probabilities of 0 and 1 would expect no errors."""
    with refused("predict_proba"):
        estimator(LinearSVC().fit(XC, YC), **parameters).fit(XC, YC)


def test_a_class_in_place_of_an_object_is_refused():
    with refused(r"pass an object, LinearRegression\(\)"):
        estimator(LinearRegression).fit(X, Y)


def test_a_fitted_model_gets_the_columns_that_it_names():
    named = pd.DataFrame(XC, columns=NAMES)
    model = LogisticRegression().fit(named, YC)
    target = pd.DataFrame(TC, columns=NAMES)
    straight = error(estimator(model, refit="never").fit(named, YC), target)
    turned = estimator(model, refit="never").fit(named[NAMES[::-1]].assign(more=1.0), YC)
    np.testing.assert_allclose(error(turned, target[["b", "a", "d", "c"]]), straight, rtol=1e-12)
    with refused("lacks the marker"):
        estimator(model, refit="never").fit(named[NAMES[:3]], YC)


@pytest.mark.parametrize("model", ["logistic", LogisticRegression()])
def test_losses_that_are_no_numbers_are_refused(model):
    with refused("NaN or infinite"):
        logistic(loss=lambda y, p: np.full(len(p), np.nan)).set_params(model=model).fit(XC, YC).predict(TC)


# Parameters and files --------------------------------------------------------------------------------------


def test_parameters_of_one_number_are_no_arrays():
    with refused("alpha="):
        logistic().set_params(alpha=np.array([0.1])).fit(XC, YC)
    with refused("tol="):
        estimator(LinearRegression(), tol=np.inf).fit(X, Y)


def test_what_is_set_after_a_fit_is_checked_and_does_not_pass_for_what_was_fitted():
    fitted = ols(n_bootstrap=B).fit(X, Y)
    fitted.set_params(forget=2.0, method="cv", n_bootstrap=99)
    with refused("forget="):
        fitted.update(T)
    assert fitted.targets_ == {}
    told = fitted.predict(T).attrs["parameters"]
    assert '"n_bootstrap": 8' in told
    assert '"direct"' in told


def test_forgetting_weighs_rows():
    """Least squares: sigma^2 (1 + weighted mean of the leverages)."""
    fitted = ols(forget=0.5).fit(X, Y)
    fitted.update({"t": T[:30]})
    z, zt = (np.column_stack([np.ones(len(x)), x]) for x in (X, T))
    residual = Y - z @ np.linalg.lstsq(z, Y, rcond=None)[0]
    leverage = np.einsum("ij,jk,ik->i", zt, np.linalg.inv(z.T @ z), zt)
    mean = np.average(leverage, weights=np.repeat([0.5, 1.0], 30))
    found = fitted.update({"t": T[30:]})["error"].sel({"method": "direct"}).item()
    assert found == pytest.approx(residual @ residual / 115 * (1 + mean), rel=1e-10)


def test_a_path_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with refused("cannot be written"):
        ols().fit(X, Y).save(tmp_path / "file" / "model")


def test_a_checkpoint_of_other_outcomes_or_noise_is_not_taken(tmp_path):
    def fitted(y, **noise):
        return estimator(LogisticRegression(), checkpoint=tmp_path / "kept").fit(XC, y, **noise)

    expected = error(fitted(YC), TC)
    np.testing.assert_array_equal(error(fitted(YC), TC), expected)
    other = YC.copy()
    other[np.flatnonzero(YC == "b")[0]] = "a"
    with refused("of other data"):
        error(fitted(other), TC)
    with refused("of other data"):
        error(fitted(YC, noise={"train": uniform(160, 4), "fresh": uniform(160, 4)}), TC)


def test_a_clean_run_of_odd_inputs_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parts = da.concatenate([da.from_array(X, chunks=(50, -1))[:0], da.from_array(X, chunks=(50, -1))])
        unknown = parts[parts[:, 0] > -9]
        y = da.from_array(Y, chunks=70)
        np.testing.assert_allclose(error(ols().fit(unknown, y), T), error(ols().fit(X, Y), T), rtol=1e-12)
