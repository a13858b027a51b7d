"""SparseAUC as scikit-learn's tools use an estimator."""

import pickle

import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import scaleshift as ss
from scaleshift.errors import DataError

rng = np.random.default_rng(0)
Y = np.arange(400) % 4 == 0
X = rng.normal(size=(400, 8)) + np.outer(Y, [1.5, 1, 0, 0, 0, 0, 0, 0])

CHEAP = ss.SparseAUC(k=20, alpha=1.0, solver="stream", multi_class="ovo", n_halves=0, random_state=0)


# Folds, sizes and shrinkages are chosen among few: the checks ask for many fits.
CHOOSING = ss.SparseAUC(k=[1, 2, 5], alpha=[0.1, 1.0], cv=3, n_halves=2, random_state=0)


@parametrize_with_checks([CHOOSING, CHEAP])
def test_scikit_learn_checks_pass(estimator, check):
    check(estimator)


def test_cloned_parameters_are_those_given():
    given = {"k": [1, 3], "alpha": 0.5, "solver": "screen", "cv": 3, "selection": "one_se", "positive": True}
    model = ss.SparseAUC(**given)
    copy = clone(model)
    assert {name: copy.get_params()[name] for name in given} == given
    assert copy.set_params(k=2).k == 2
    assert model.k == [1, 3]
    with pytest.raises(NotFittedError):
        copy.predict(X)
    with pytest.raises(ValueError, match="Invalid parameter 'n_features'"):
        model.set_params(n_features=3)


def test_grid_search_over_features_and_shrinkage():
    grid = {"k": [1, 2], "alpha": [0.0, 1.0]}
    search = GridSearchCV(ss.SparseAUC(cv=None), grid, scoring="roc_auc", cv=3, error_score="raise").fit(X, Y)
    assert search.best_params_["k"] == 2
    assert search.best_score_ > 0.85
    assert search.best_estimator_.support_.tolist() == [0, 1]


def test_a_pipeline_ranks_as_its_last_step():
    chain = make_pipeline(StandardScaler(), ss.SparseAUC(k=2, cv=None)).fit(X, Y)
    alone = ss.SparseAUC(k=2, cv=None).fit(X, Y)
    np.testing.assert_allclose(chain.decision_function(X), alone.decision_function(X), atol=1e-10)
    assert cross_val_score(chain, X, Y, scoring="roc_auc", error_score="raise").mean() > 0.85


def test_a_fitted_model_travels_to_a_worker():
    model = ss.SparseAUC(k=2, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        there = client.submit(ss.SparseAUC.predict_proba, model, X).result()
    np.testing.assert_array_equal(there, model.predict_proba(X))


def test_a_column_of_labels_is_taken_with_a_warning():
    expected = ss.SparseAUC(k=2, cv=None).fit(X, Y).coef_
    for column in (Y[:, None], pd.DataFrame({"sick": Y})):
        with pytest.warns(DataConversionWarning, match="column-vector y"):
            found = ss.SparseAUC(k=2, cv=None).fit(X, column)
        np.testing.assert_array_equal(found.coef_, expected)


def test_objects_that_are_numbers_are_numbers():
    objects = X.astype(object)
    model = ss.SparseAUC(k=2, cv=None).fit(objects, Y)
    np.testing.assert_array_equal(model.coef_, ss.SparseAUC(k=2, cv=None).fit(X, Y).coef_)
    np.testing.assert_array_equal(model.predict(objects), model.predict(X))
    objects[3, 1] = "2.5"
    for error in (DataError, TypeError):
        with pytest.raises(error, match=r"X\[3, 1\] is a str.*astype\('float64'\)"):
            model.predict(objects)


@pytest.mark.parametrize("column", [0, 5])
def test_values_that_are_not_finite_are_refused_in_any_feature(column):
    model = ss.SparseAUC(k=2, cv=None).fit(X, Y)
    bad = X[:3].copy()
    bad[1, column] = np.inf
    for ask in (model.predict, model.predict_proba, model.decision_function):
        with pytest.raises(DataError, match="inf"):
            ask(bad)
    left_out = model.set_params(invalid="drop").decision_function(bad)
    np.testing.assert_array_equal(np.isnan(left_out), [False, True, False])
    with pytest.raises(DataError, match="NaN"):
        ss.SparseAUC(k=2, cv=None).fit(np.where(X > 3, np.nan, X), Y)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((X[:, 0], Y), r"1 dimension.*Reshape your data: X\[:, None\]"),
        ((X[:, :0], Y), r"no columns, 0 feature\(s\) \(shape=\(400, 0\)\) while a minimum of 1"),
        ((X[:0], Y[:0]), "y has 0 class"),
        ((X + 1j, Y), "dtype complex128.*Complex data not supported.*X.real"),
        ((X, None), "y is missing.*requires y to be passed, but the target y is None"),
        ((X, rng.normal(size=400)), r"Unknown label type.*continuous.*y.astype\(str\)"),
        ((X, Y[:-1]), "399 values, X has 400 rows"),
        ((X, np.ones(400)), "only 1.0.*2 classes"),
        ((X, np.stack([Y, Y], axis=1)), "2 dimensions"),
        ((X, Y, np.zeros(400)), "sample_weight is zero in every row"),
        ((X, Y, Y.astype(float)), "only True.*2 classes"),
        ((X, Y, np.ones(399)), "weight has 399 values, X has 400 rows"),
    ],
)
def test_what_cannot_be_fitted_is_named(args, message):
    with pytest.raises(ValueError, match=message):
        ss.SparseAUC(k=2).fit(*args)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k=0: expected a whole number from 1"),
        ({"k": []}, r"k=\[\]"),
        ({"k": 2.5}, "k=2.5"),
        ({"k": "all"}, "k='all'"),
        ({"alpha": -1}, "alpha=-1: expected a number from 0"),
        ({"alpha": [0.1, np.nan]}, "alpha="),
        ({"solver": "fast"}, "solver='fast': expected one of auto, moments"),
        ({"cv": 1}, "cv=1: expected a number from 2"),
        ({"cv": 2.5}, "cv=2.5"),
        ({"positive": "yes"}, "positive='yes'"),
        ({"multi_class": "all"}, "'ovr' or 'ovo'"),
        ({"selection": "worst"}, "expected one of best, one_se"),
        ({"n_halves": -2}, "n_halves=-2"),
        ({"n_screened": 0}, "n_screened=0"),
        ({"pos_label": "sick"}, "label 'sick' is not known; known: False, True"),
        ({"cv": None}, "cv=None: give k"),
        ({"k": 2, "cv": None, "alpha": [0.1, 1.0]}, "alpha names several values"),
    ],
)
def test_parameters_without_a_meaning_are_named(options, message):
    with pytest.raises(DataError, match=message):
        ss.SparseAUC(**options).fit(X, Y)


def test_wrong_columns_are_named_when_asked():
    model = ss.SparseAUC(k=2, cv=None).fit(X, Y)
    with pytest.raises(DataError, match="X has 3 features, but SparseAUC is expecting 8 features as input"):
        model.predict(X[:, :3])
    named = pd.DataFrame(X, columns=list("abcdefgh"))
    model = ss.SparseAUC(k=2, cv=None).fit(named, Y)
    with pytest.raises(DataError, match=r"X lacks the marker\(s\) b"):
        model.predict(named.drop(columns="b"))
    with pytest.raises(DataError, match="sparse rows: take 'stream' or 'screen'"):
        ss.SparseAUC(k=2, solver="moments").fit(sparse.csr_array(X), Y)
