"""The source's comparators: reference numbers, whatever the chunks and workers, and odd rows."""

from pathlib import Path

import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score

import scaleshift as ss
from scaleshift import auc
from scaleshift.blocks import chained
from scaleshift.errors import DataError
from scaleshift.kernels.cpu.sequential import keep_largest

CASE = np.load(Path(__file__).parents[1] / "data/auc/baselines.npz", allow_pickle=False)
X, Y = CASE["X"], CASE["y"]
MODELS = {
    "spam_l1": auc.SPAM("l1", l1=1e-3, xi=1),
    "spam_l2": auc.SPAM("l2", l2=1e-2, xi=1),
    "spam_en": auc.SPAM("elasticnet", l1=1e-3, l2=1e-2, xi=1),
    "solam": auc.SOLAM(radius=100, xi=10),
    "fsauc": auc.FSAUC(radius=10, eta=1, delta=0.1, n_passes=10),
    "stoiht_logistic": auc.StoIHT("logistic", k=6, step_size=1, block_size=30, order=CASE["order"]),
    "stoiht_ls": auc.StoIHT("least_squares", k=6, step_size=0.5, block_size=30, order=CASE["order"]),
    "hsg": auc.HSGHT(k=6, step_size=3, tau=10, zeta=1.033, n_passes=5),
}


def suited(name):
    """The model of a case; SOLAM there starts so far away that it never learns to rank."""
    model = clone(MODELS[name])
    return model.set_params(radius=1, xi=1) if name == "solam" else model


def lazy(chunk, x=X, y=Y):
    return da.from_array(x, chunks=(chunk, -1)), da.from_array(y, chunks=chunk)


@pytest.mark.parametrize("name", MODELS)
def test_the_reference_coefficients(name):
    np.testing.assert_allclose(clone(MODELS[name]).fit(X, Y).coef_, CASE[name], rtol=0, atol=1e-8)


@pytest.mark.parametrize("run_bytes", [0, 64_000_000])
@pytest.mark.parametrize("chunk", [7, 50])
@pytest.mark.parametrize("name", MODELS)
def test_chunks_change_nothing(name, chunk, run_bytes, monkeypatch):
    monkeypatch.setattr(chained, "RUN_BYTES", run_bytes)  # 0: every chunk is a task of its own
    expected = clone(MODELS[name]).fit(X, Y)
    found = clone(MODELS[name]).fit(*lazy(chunk))
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.intercept_, expected.intercept_, rtol=0, atol=1e-12)


@pytest.mark.parametrize("processes", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_workers_change_nothing(processes, monkeypatch):
    monkeypatch.setattr(chained, "RUN_BYTES", 0)
    names = ["spam_l1"] if processes else list(MODELS)  # every process compiles its own kernels
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=processes, dashboard_address=":0"
        ) as cluster,
        Client(cluster),
    ):
        found = {name: clone(MODELS[name]).fit(*lazy(50)).coef_ for name in names}
    for name in names:
        np.testing.assert_allclose(found[name], clone(MODELS[name]).fit(X, Y).coef_, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["spam_en", "solam", "fsauc", "hsg"])
@pytest.mark.parametrize("chunk", [None, 7])
def test_rows_in_a_given_order_are_those_rows(name, chunk):
    order = np.random.default_rng(0).permutation(len(X))
    expected = clone(MODELS[name]).fit(X[order], Y[order]).coef_
    found = clone(MODELS[name]).set_params(order=order).fit(*(lazy(chunk) if chunk else (X, Y))).coef_
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["spam_en", "solam", "fsauc", "hsg"])
def test_rows_sorted_by_class_can_come_in_a_random_order(name):
    by_class = np.argsort(Y, kind="stable")
    x, y = X[by_class], Y[by_class]
    model = suited(name)
    model.set_params(order="random", random_state=3)
    first, again = (model.fit(x, y).coef_.copy() for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert roc_auc_score(y, x @ first) > 0.8
    assert not np.array_equal(first, model.set_params(random_state=4).fit(x, y).coef_)


@pytest.mark.parametrize("name", ["spam_en", "solam", "fsauc", "hsg"])
@pytest.mark.parametrize("order", [None, "random"])
def test_unlabelled_rows_are_skipped(name, order):
    x, y = np.repeat(X, 2, axis=0), np.repeat(Y, 2)
    x[::2], y[::2] = 7.0, np.nan
    found = clone(MODELS[name]).set_params(order=order, random_state=0).fit(*lazy(7, x, y))
    if order is None:
        np.testing.assert_allclose(found.coef_, clone(MODELS[name]).fit(X, Y).coef_, rtol=0, atol=1e-12)
    assert np.isfinite(found.coef_).all()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("labels", [("healthy", "sick"), (False, True), (3, 10)])
def test_names_of_the_classes_change_nothing(name, labels):
    found = clone(MODELS[name]).fit(X, np.where(Y > 0, labels[1], labels[0]))
    np.testing.assert_array_equal(found.coef_, clone(MODELS[name]).fit(X, Y).coef_)
    assert found.classes_.tolist() == list(labels)


@pytest.mark.parametrize("name", MODELS)
def test_the_other_class_can_be_the_positive_one(name):
    found = clone(MODELS[name]).set_params(pos_label=-1).fit(X, Y)
    np.testing.assert_array_equal(found.coef_, clone(MODELS[name]).fit(X, -Y).coef_)
    assert found.classes_.tolist() == [1, -1]


def test_scores_rank_the_positives_higher(tmp_path):
    for name in MODELS:
        fitted = suited(name).fit(X, Y)
        scores = fitted.decision_function(X)
        np.testing.assert_allclose(scores, X @ fitted.coef_ + fitted.intercept_, rtol=1e-12, atol=1e-14)
        assert roc_auc_score(Y, scores) > 0.7
        np.testing.assert_allclose(fitted.decision_function(lazy(7)[0]).compute(), scores, rtol=1e-12)
        fitted.save(tmp_path / name)
        np.testing.assert_array_equal(ss.load(tmp_path / name).coef_, fitted.coef_)


@pytest.mark.parametrize("name", MODELS)
def test_float32_and_integer_rows(name):
    whole = np.round(50 * X)
    expected = clone(MODELS[name]).fit(whole / 64, Y).coef_
    np.testing.assert_allclose(
        clone(MODELS[name]).fit((whole / 64).astype("f4"), Y).coef_, expected, rtol=0, atol=1e-12
    )
    small = (whole / 50).astype(int)
    found, expected = (clone(MODELS[name]).fit(x, Y).coef_ for x in (small, small.astype(float)))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("k", [0, 1, 3, 5, 6, 9])
def test_exactly_k_entries_stay_and_the_first_of_equal_ones(k):
    w = np.array([1.0, -3.0, 2.0, 3.0, -2.0, 2.0])
    keep_largest(w, k)
    kept = np.argsort(-np.abs([1.0, -3.0, 2.0, 3.0, -2.0, 2.0]), kind="stable")[:k]
    assert np.flatnonzero(w).tolist() == sorted(kept)


def test_what_cannot_be_learned_from_is_named():
    with pytest.raises(NotFittedError):
        auc.SOLAM().decision_function(X)
    with pytest.raises(DataError, match="n_passes=0: expected a whole number from 1"):
        auc.SOLAM(n_passes=0).fit(X, Y)
    with pytest.raises(DataError, match="penalty='l3': expected one of l1, l2, elasticnet"):
        auc.SPAM("l3").fit(X, Y)
    with pytest.raises(DataError, match="order='sorted': expected None, 'random' or an array"):
        auc.SOLAM(order="sorted").fit(X, Y)
    with pytest.raises(DataError, match="order names block 4: there are 4 of them"):
        auc.StoIHT(block_size=30, order=[0, 4]).fit(X, Y)
    with pytest.raises(DataError, match="order names row -1: there are 120 of them"):
        auc.HSGHT(order=[-1, 0]).fit(X, Y)
    with pytest.raises(DataError, match="some are unlabelled"):
        auc.HSGHT(order=np.arange(120)).fit(X, np.where(np.arange(120) < 3, np.nan, Y))
    with pytest.raises(DataError, match=r"y has 1 class\(es\)"):
        auc.FSAUC().fit(X, np.ones(120))
    with pytest.raises(DataError, match="y is missing"):
        auc.FSAUC().fit(X)
    bad = X.copy()
    bad[17, 3] = np.nan
    for model in MODELS.values():
        with pytest.raises(DataError, match="NaN or infinite values"):
            clone(model).fit(*lazy(50, bad))
    with pytest.raises(DataError, match="the coefficients of SPAM are not finite: its steps are too long"):
        auc.SPAM(xi=1e200).fit(X, Y)


def test_blocks_drawn_at_random_come_back_with_the_seed():
    first, again = (auc.StoIHT(k=6, block_size=30, random_state=0).fit(X, Y).coef_ for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert np.count_nonzero(first) == 6
    other = auc.StoIHT(k=6, block_size=30, random_state=1).fit(X, Y).coef_
    assert not np.array_equal(first, other)
