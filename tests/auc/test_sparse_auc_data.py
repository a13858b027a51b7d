"""SparseAUC on every kind of data: the same ranking, in as few passes as it says."""

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from distributed import Client, LocalCluster
from scipy import sparse

import scaleshift as ss
from scaleshift.errors import DataError

NAMES = [f"m{i}" for i in range(10)]


def made(n=900, d=10):
    rng = np.random.default_rng(3)
    y = rng.random(n) < 0.25
    X = rng.normal(size=(n, d)) + 0.4 * rng.normal(size=(n, 1))
    X[:, :3] += np.outer(y, [1.0, -1.2, 0.9])
    return X, y


X, Y = made()
LABELS = np.where(Y, "sick", "healthy")


def fit(X, y=None, weight=None, **options):
    return ss.SparseAUC(**{"random_state": 0, "k": [1, 3, 5], **options}).fit(X, y, weight)


def same(found, expected, tolerance=1e-8):
    np.testing.assert_array_equal(found.support_, expected.support_)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found.auc_, expected.auc_, atol=max(tolerance, 1e-6))
    np.testing.assert_allclose(found.intercept_, expected.intercept_, atol=max(100 * tolerance, 1e-6))


@pytest.fixture(scope="module")
def plain():
    return {solver: fit(X, LABELS, solver=solver) for solver in ("moments", "stream", "screen")}


@pytest.fixture(scope="module")
def single():
    return {
        solver: fit(X.astype(np.float32), LABELS, solver=solver) for solver in ("moments", "stream", "screen")
    }


@pytest.mark.parametrize("solver", ["moments", "stream", "screen"])
@pytest.mark.parametrize("chunks", [77, 450, (1, 0, 899), 900])
def test_chunks_do_not_matter(solver, chunks, plain, single):
    x = da.from_array(X, chunks=(chunks, -1))
    for labels in (LABELS, da.from_array(LABELS, chunks=300)):
        same(fit(x, labels, solver=solver), plain[solver])
    same(fit(x.astype(np.float32), LABELS, solver=solver), single[solver], 1e-6)


def test_unknown_chunks_are_counted(plain):
    known = da.from_array(X, chunks=(200, -1))
    keep = da.from_array(np.ones(900, bool), chunks=200)
    x, y = known[keep], da.from_array(LABELS, chunks=200)[keep]
    assert np.isnan(x.shape[0])
    model = fit(x, y)
    same(model, plain["moments"])
    found = model.predict_proba(x)
    assert isinstance(found, da.Array)
    np.testing.assert_allclose(found.compute(), plain["moments"].predict_proba(X), atol=1e-6)


def test_features_in_several_chunks_are_merged_with_a_warning(plain):
    with pytest.warns(UserWarning, match="chunks along the markers"):
        same(fit(da.from_array(X, chunks=(300, 4)), LABELS), plain["moments"])


@pytest.mark.parametrize("solver", ["moments", "stream", "screen"])
def test_lazy_weights_are_weights(solver):
    weight = np.random.default_rng(0).integers(0, 3, 900).astype(float)
    expected = fit(X, LABELS, weight, solver=solver)
    x, y, w = (da.from_array(a, chunks=(250, *a.shape[1:])) for a in (X, LABELS, weight))
    for labels in (LABELS, y):
        for weights in (weight, w):
            same(fit(x, labels, weights, solver=solver), expected)
    some = weight > 0  # the same rows, and folds of them
    removed = fit(X[some], LABELS[some], weight[some], solver=solver)
    same(expected, removed)
    with pytest.raises(DataError, match="sample_weight of row 640 is -1"):
        fit(x, y, da.from_array(np.where(np.arange(900) == 640, -1.0, 1.0), chunks=250))


def test_answers_of_lazy_rows_are_lazy_and_the_same(plain):
    x, model = da.from_array(X, chunks=(123, -1)), plain["moments"]
    for ask in ("predict_proba", "decision_function"):
        found = getattr(model, ask)(x)
        assert isinstance(found, da.Array)
        assert found.chunks[0] == x.chunks[0]
        np.testing.assert_allclose(found.compute(), getattr(model, ask)(X), rtol=1e-12)
    predicted = model.predict(x)
    assert predicted.dtype == model.classes_.dtype
    np.testing.assert_array_equal(predicted.compute(), model.predict(X))


def test_names_of_columns_are_kept_and_matched(plain):
    table = pd.DataFrame(X, columns=NAMES)
    model = fit(table, LABELS)
    same(model, plain["moments"])
    assert model.feature_names_in_.tolist() == NAMES
    assert not hasattr(
        ss.SparseAUC(**model.get_params()).fit(table, LABELS).fit(X, LABELS), "feature_names_in_"
    )
    assert model.path_["feature"].values.tolist() == NAMES
    assert model.describe()["feature"].values.tolist() == NAMES
    expected = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict_proba(table), expected)
    turned = table[NAMES[::-1]].assign(more=1.0)
    np.testing.assert_allclose(model.predict_proba(turned), expected, rtol=1e-12)
    lazy = xr.DataArray(
        da.from_array(turned.to_numpy(), chunks=(300, -1)),
        dims=("row", "marker"),
        coords={"marker": list(turned)},
    )
    np.testing.assert_allclose(model.predict_proba(lazy).compute(), expected, rtol=1e-12)


def test_xarray_and_cells_are_rows(plain):
    array = xr.DataArray(X, dims=("cell", "marker"), coords={"marker": NAMES})
    same(fit(array, LABELS), plain["moments"])
    cells = ss.as_cells(array, label=LABELS, sample=np.arange(900) % 3)
    for rows in (cells, cells.chunk({"cell": 200})):
        model = fit(rows)
        same(model, plain["moments"])
        assert model.classes_.tolist() == ["healthy", "sick"]
        np.testing.assert_allclose(
            np.asarray(model.decision_function(rows)), plain["moments"].decision_function(X), atol=1e-6
        )
    same(fit(cells, np.where(Y, "z", "a"), cv=None, k=3), fit(X, Y, cv=None, k=3))


FORMATS = [sparse.csr_array, sparse.csc_matrix, sparse.coo_array]


def thin():
    """Counts, most of them zero."""
    x = np.maximum(X + 0.2 * np.arange(10) - 1, 0).round(2)
    x[:, 7] = 0
    return x


@pytest.mark.parametrize("solver", ["stream", "screen"])
@pytest.mark.parametrize("form", FORMATS)
def test_sparse_rows_are_dense_rows(solver, form):
    dense = thin()
    weight = np.random.default_rng(0).random(900)
    for options in ({}, {"cv": None, "k": 4}):
        expected = fit(dense, LABELS, weight, solver=solver, **options)
        model = fit(form(dense), LABELS, weight, solver=solver, **options)
        np.testing.assert_array_equal(model.support_, expected.support_)
        np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-5)
        np.testing.assert_allclose(model.auc_, expected.auc_, atol=1e-3)
        np.testing.assert_allclose(model.predict_proba(form(dense)), model.predict_proba(dense), atol=1e-5)
        lazy = da.from_array(dense, chunks=(200, -1)).map_blocks(
            sparse.csr_array, meta=sparse.csr_array((0, 0))
        )
        there = fit(lazy, LABELS, weight, solver=solver, **options)
        np.testing.assert_allclose(there.coef_, model.coef_, rtol=1e-7)
        np.testing.assert_allclose(there.predict_proba(lazy).compute(), model.predict_proba(dense), atol=1e-5)


def test_auto_takes_sparse_rows_with_the_stream():
    assert fit(sparse.csr_array(thin()), LABELS, solver="auto").solver_ == "stream"
    assert fit(X, LABELS, solver="auto").solver_ == "moments"


def test_workers_give_the_ranking_of_threads(plain):
    x, y = da.from_array(X, chunks=(150, -1)), da.from_array(LABELS, chunks=150)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        for solver, expected in plain.items():
            model = fit(x, y, solver=solver)
            same(model, expected)
            np.testing.assert_allclose(
                model.decision_function(x).compute(), expected.decision_function(X), atol=1e-6
            )


# Passes ------------------------------------------------------------------------------------------------


class Counted:
    """Blocks of rows, and how often each was read, whole or in part."""

    def __init__(self, n_blocks=4):
        self.reads = np.zeros(n_blocks, int)
        self.size = 900 // n_blocks
        self.array = da.map_blocks(
            self.read, chunks=((self.size,) * n_blocks, (10,)), dtype=float, meta=np.empty((0, 0))
        )

    def read(self, block_info=None):
        number = block_info[None]["chunk-location"][0]
        self.reads[number] += 1
        return X[number * self.size : (number + 1) * self.size]


@pytest.mark.parametrize(
    ("options", "passes"),
    [
        ({"cv": None, "k": 3}, 1),
        ({}, 2),
        ({"multi_class": "ovo"}, 2),
        ({"solver": "screen"}, 2),
        ({"solver": "screen", "cv": None, "k": 3}, 1),
        ({"solver": "stream"}, 3),
        ({"solver": "stream", "cv": None, "k": 3}, 3),
        ({"solver": "stream", "n_screened": 4}, 3),
    ],
)
def test_passes_over_the_rows(options, passes):
    """And one look at the first block, for the centre of covariances."""
    data = Counted()
    with dask.config.set(scheduler="synchronous"):
        model = fit(data.array, LABELS, **options)
    first = passes + (options.get("solver") != "screen")
    extra = 0
    if options.get("n_screened"):  # one more pass for what was overlooked, and the centre again
        extra = 2 if data.reads[1] > passes else 0
    assert data.reads[1:].tolist() == [passes + extra] * 3
    assert data.reads[0] == first + (extra + 1 if extra else 0)
    assert set(model.support_) <= set(range(10))
    before = data.reads.copy()
    with dask.config.set(scheduler="synchronous"):
        model.predict_proba(data.array).compute()
        assert (data.reads - before).tolist() == [1] * 4
        model.set_prior(0.3).describe()
    assert (data.reads - before).tolist() == [1] * 4
