"""Any object with fit(X, y) and transform(X) is a feature map."""

import threading

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, SplineTransformer, StandardScaler
from three_classes import draw

import scaleshift as ss
from scaleshift.quantify.features.user import FITTED_ON

X, Y = draw(3_000, [0.3, 0.3, 0.4], seed=0)
T, TY = draw(2_000, [0.7, 0.2, 0.1], seed=1)
TRUTH = np.array([(label == TY).mean() for label in "abc"])


class Spy:
    """No scikit-learn: notes what it was fitted on, and gives rows as they are."""

    def __init__(self, give=lambda x: x):
        self.give, self.seen, self.threads = give, [], set()

    def fit(self, X, y):
        self.seen.append((X, y))
        return self

    def transform(self, X):
        return self.give(X)

    def __deepcopy__(self, memo):
        return self  # to look into the copy that is fitted


def fitted(features, x=X, y=Y, **settings):
    return ss.DFM(features, random_state=0, **settings).fit(x, y)


def proportions(features, x=X, y=Y, t=T, **settings):
    return fitted(features, x, y, **settings).predict(t)["proportion"].values[0]


MAPS = [
    SplineTransformer(8, extrapolation="constant"),
    KBinsDiscretizer(12, encode="onehot", quantile_method="averaged_inverted_cdf"),  # sparse
    make_pipeline(StandardScaler(), RBFSampler(gamma=1.0, n_components=300)),
    Nystroem(gamma=0.1, n_components=60),
]


@pytest.mark.parametrize("features", MAPS, ids=lambda m: type(m).__name__)
def test_transformers_of_scikit_learn_find_the_proportions(features):
    result = fitted(features).predict(T)
    found = result["proportion"].values[0]
    assert np.abs(found - TRUTH).max() < 0.05
    assert (result["proportion_low"].values[0] < found).all()
    assert np.isfinite(result["p_value"]).all()


def test_the_mean_of_features_is_what_is_matched():
    model = fitted(Spy(lambda x: np.column_stack([x, x**2])), X.astype(float))
    means = np.array([np.column_stack([X, X.astype(float) ** 2])[label == Y].mean(axis=0) for label in "abc"])
    np.testing.assert_allclose(model.gram_, means @ means.T, rtol=1e-6)
    # Debiased without the pairs of a row with itself, whose product differs by class.
    phi = np.column_stack([X, X.astype(float) ** 2])
    clean = means @ means.T
    for i, label in enumerate("abc"):
        own = phi[label == Y]
        products = own @ own.T
        np.fill_diagonal(products, 0)
        clean[i, i] = products.sum() / (len(own) * (len(own) - 1))
    assert model.lambda_min_ == pytest.approx(np.linalg.eigvalsh(clean)[0], rel=1e-4)


def test_it_is_fitted_on_a_bounded_draw_with_labels_in_their_own_type():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60_000, 2)).astype("f4")
    y = np.where(np.arange(60_000) < 30, "rare", "common")
    spy = Spy()
    fitted(spy, x, y, n_bootstrap=0)
    ((seen, labels),) = spy.seen
    assert len(seen) <= FITTED_ON + 30
    assert sorted(set(labels)) == ["common", "rare"]
    assert (labels == "rare").sum() == 20
    rows = {row.tobytes(): label for row, label in zip(x, y, strict=True)}
    assert all(rows[row.tobytes()] == label for row, label in zip(seen, labels, strict=True))


def test_the_object_that_was_given_stays_as_it_is():
    given = StandardScaler()
    model = fitted(given)
    assert not hasattr(given, "mean_")
    assert hasattr(model.embedding_.transformer, "mean_")
    assert clone(model).features is not given
    assert model.get_params()["features__with_mean"] is True


def test_a_random_state_that_is_not_given_is_the_quantifiers():
    features = make_pipeline(StandardScaler(), RBFSampler(n_components=20))
    np.testing.assert_array_equal(fitted(features).gram_, fitted(features).gram_)
    other = ss.DFM(features, random_state=1).fit(X, Y)
    assert not np.array_equal(other.gram_, fitted(features).gram_)
    own = make_pipeline(StandardScaler(), RBFSampler(n_components=20, random_state=5))
    np.testing.assert_array_equal(ss.DFM(own, random_state=1).fit(X, Y).gram_, fitted(own).gram_)


@pytest.mark.parametrize("features", MAPS[:3], ids=lambda m: type(m).__name__)
def test_rows_chunks_and_class_names_in_any_order_give_the_same_proportions(features):
    expected = proportions(features)
    cut = proportions(features, da.from_array(X, chunks=(137, -1)), t=da.from_array(T, chunks=(411, -1)))
    np.testing.assert_allclose(cut, expected, atol=1e-7)
    order = np.random.default_rng(0).permutation(len(T))
    np.testing.assert_allclose(proportions(features, t=T[order]), expected, atol=1e-7)
    learned = fitted(features).embedding_
    turned = np.array([{"a": 3, "b": 2, "c": 1}[label] for label in Y])
    np.testing.assert_allclose(proportions(learned, y=turned), proportions(learned)[::-1], atol=1e-7)


def test_transform_runs_on_the_workers_block_by_block():
    spy = Spy()

    def give(x):
        spy.threads.add(threading.get_ident())
        assert len(x) <= 700
        return x

    model = fitted(spy, X[:600], Y[:600], n_bootstrap=0)
    spy.give = give
    model.predict(da.from_array(T, chunks=(500, -1)))
    assert spy.threads - {threading.get_ident()}


def test_data_frames_and_integers_are_features_too():
    expected = proportions(Spy(lambda x: np.column_stack([x > 0, x > 2]).astype(float)))
    for give in (
        lambda x: pd.DataFrame(np.column_stack([x > 0, x > 2])),
        lambda x: sparse.csr_matrix(np.column_stack([x > 0, x > 2]).astype("i1")),
    ):
        np.testing.assert_allclose(proportions(Spy(give)), expected, atol=1e-9)


class OnlyFit:
    def fit(self, X, y):
        return self


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (OnlyFit(), "an object of OnlyFit, which has no transform: .*fit.X, y. and transform"),
        (LogisticRegression(), r"LogisticRegression, which has no transform: ClassifierFeatures\(Logistic"),
        (StandardScaler, "the class StandardScaler, not an object of it"),
        (Spy(lambda x: x[:, 0]), r"Spy.transform gave an array of shape \(1,\)"),
        (Spy(lambda x: x[:0]), r"Spy.transform gave an array of shape \(0, 3\) .* for 1 rows"),
        (Spy(lambda x: x * np.nan), "Spy.transform gave NaN or infinite values"),
        (Spy(lambda x: x.astype(str)), "dtype <U"),
        (Spy(lambda x: np.ones((len(x), min(len(x), 2)))), "gave 2 features for some rows and 1 for others"),
    ],
    ids=range(8),
)
def test_what_is_no_map_is_refused_by_its_class(features, message):
    with pytest.raises(ss.DataError, match=message):
        fitted(features)


def test_a_bandwidth_is_refused_where_there_is_none():
    with pytest.raises(ss.DataError, match=r"bandwidth=2.0: features=StandardScaler\(\) has no bandwidth"):
        fitted(StandardScaler(), bandwidth=2.0)


def test_more_features_than_a_worker_should_hold_are_refused():
    wide = Spy(lambda x: np.zeros((len(x), 3_000_000), "i1"))
    with pytest.raises(ss.DataError, match="3000001 features each make a state"):
        fitted(wide, X[:20], np.arange(20) % 3)
