"""SHT-AUC: the reference trajectories in every way of stepping, and what must hold whatever the data."""

import tracemalloc
from dataclasses import replace
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster
from scipy import sparse

from scaleshift.auc import sht
from scaleshift.auc.classes import signs
from scaleshift.auc.descent import epochs
from scaleshift.auc.descent.thresholding import hard_threshold
from scaleshift.auc.sht import descend
from scaleshift.blocks import chained
from scaleshift.blocks.rows import as_rows, with_numbers
from scaleshift.errors import DataError

CASES = {
    name: np.load(Path(__file__).parents[1] / f"data/auc/{name}.npz", allow_pickle=False)
    for name in ("sht_s_small", "sht_s_rem")
}
WAYS = {"moments": (32, 64_000_000), "chain": (0, 64_000_000), "rows": (0, 0)}
RNG = np.random.default_rng(0)
N, D = 120, 6
Y = (RNG.random(N) < 0.3).astype(int)
X = RNG.normal(size=(N, D)) @ RNG.normal(size=(D, D)) + np.outer(Y, [2.0, 0, 0, -1, 0, 0]) + 5


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    """Every way of stepping, whatever the size."""
    blocks, n_bytes = WAYS[request.param]
    monkeypatch.setattr(sht, "MOMENT_BLOCKS", blocks)
    monkeypatch.setattr(sht, "CHAIN_BYTES", n_bytes)
    monkeypatch.setattr(chained, "RUN_BYTES", 0)
    return request.param


def lazy(x, chunk):
    return x if chunk is None else da.from_array(x, chunks=(chunk, -1))


def run(x=X, y=Y, chunk=None, weight=None, invalid="raise", **parameters):
    rows = as_rows(lazy(x, chunk), y, invalid=invalid)
    if weight is not None:
        rows = with_numbers(rows, weight=weight)
    return descend(rows, signs(rows.categories("label")), **parameters)


def pairwise(w, x=X, y=Y, weight=None):
    """F by its definition: the weighted mean over all pairs."""
    weight = np.ones(len(x)) if weight is None else weight
    margin = (x[y == 1] @ w)[:, None] - x[y == 0] @ w
    return np.average((1 - margin) ** 2, weights=np.outer(weight[y == 1], weight[y == 0]))


def of_block(w, block, x=X, y=Y):
    """f_B of eq. (5) by its definition, with the means of all rows."""
    share, up, down = y.mean(), x[y == 1].mean(axis=0), x[y == 0].mean(axis=0)
    mine = [
        ((x[i] - up) @ w) ** 2 / share if y[i] == 1 else ((x[i] - down) @ w) ** 2 / (1 - share) for i in block
    ]
    return np.mean(mine) + (1 - (up - down) @ w) ** 2


def slopes(function, w):
    """Central differences, exact for a quadratic but for rounding."""
    return np.array([(function(w + e) - function(w - e)) / 2 for e in np.eye(len(w))])


@pytest.mark.parametrize("chunk", [None, 7, 50])
@pytest.mark.parametrize("name", CASES)
def test_the_reference_trajectory(name, chunk, way):
    case = CASES[name]
    given = {"k": int(case["k"]), "block_size": int(case["b"]), "step_size": float(case["step"])}
    found = run(case["X"], case["y"], chunk, order=case["order"], scale=False, **given)
    np.testing.assert_allclose(found.history, case["traj"], rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.coef, case["w"], rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.objective[-1], case["F"], rtol=1e-12)
    np.testing.assert_array_equal(found.history_steps, np.arange(len(case["order"]) + 1))
    assert (found.n_iter, found.step_size) == (len(case["order"]), case["step"])


def test_the_dense_minimum_and_its_gradient(shared, way):
    case = np.load(shared / "cases/auc/quad.npz", allow_pickle=False)
    x, y, n = case["X"], (case["y"] > 0).astype(int), len(case["X"])
    rows = {"x": x, "y": y, "k": 40, "block_size": n, "order": [0], "scale": False}
    at_minimum = run(**rows, start=case["w_dense"], step_size=1.0)
    np.testing.assert_allclose(at_minimum.objective, [case["F_dense_min"]] * 2, rtol=1e-10)
    np.testing.assert_allclose(at_minimum.coef, case["w_dense"], rtol=0, atol=1e-10)  # the gradient is 0
    at_zero = run(**rows, step_size=1.0)
    np.testing.assert_allclose(at_zero.coef, 2 * case["delta"], rtol=0, atol=1e-12)


def test_the_single_sum_is_the_mean_over_pairs(way):
    w = RNG.normal(size=D)
    found = run(start=w, k=D, block_size=N, order=[0], step_size=1e-3)
    np.testing.assert_allclose(found.objective, [pairwise(w), pairwise(found.coef)], rtol=1e-12)
    blocks = np.array_split(np.arange(N), 4)
    np.testing.assert_allclose(np.mean([of_block(w, block) for block in blocks]), pairwise(w), rtol=1e-12)


@pytest.mark.parametrize("sort", [False, True])
def test_the_gradient_of_a_block_is_that_of_its_objective(sort, way):
    rows = np.argsort(Y, kind="stable") if sort else np.arange(N)  # sorted: blocks of one class
    x, y, w = X[rows], Y[rows], RNG.normal(size=D)
    for number in range(4):
        block = np.arange(30 * number, 30 * number + 30)
        if sort and number < 2:
            assert not y[block].any()
        found = run(x, y, 50, start=w, k=D, block_size=30, order=[number], scale=False, step_size=1e-2)
        expected = slopes(lambda v, block=block: of_block(v, block, x, y), w)
        np.testing.assert_allclose((w - found.coef) / 1e-2, expected, rtol=1e-9, atol=1e-9)


def test_steps_in_units_of_the_spread_are_those_on_divided_rows(way):
    variance = X[Y == 1].var(axis=0) + X[Y == 0].var(axis=0)
    given = {"k": 3, "block_size": 30, "order": RNG.integers(0, 4, 12), "step_size": 0.1}
    found, expected = run(**given), run(X / np.sqrt(variance), scale=False, **given)
    np.testing.assert_allclose(found.coef * np.sqrt(variance), expected.coef, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.objective, expected.objective, rtol=1e-10)


@pytest.mark.parametrize("parameters", [{}, {"alpha": 0.3}, {"block_size": 10, "max_iter": 30}])
def test_units_and_offsets_of_the_features_do_not_matter(parameters, way):
    units, offsets = np.array([1e-6, 1, 1e5, 30, 1e-2, 7]), RNG.normal(size=D) * 100
    expected = run(k=3, **parameters)
    found = run((X + offsets) * units, k=3, **parameters)
    np.testing.assert_allclose(found.coef * units, expected.coef, rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("chunk", [7, 50])
@pytest.mark.parametrize(
    "parameters", [{}, {"block_size": 3, "max_iter": 80}, {"step_size": 0.05, "max_iter": 30}]
)
def test_chunks_and_ways_change_nothing(chunk, parameters, monkeypatch):
    expected = run(k=3, **parameters)
    np.testing.assert_allclose(run(k=3, chunk=chunk, **parameters).history, expected.history, atol=1e-9)
    monkeypatch.setattr(sht, "MOMENT_BLOCKS", 0)
    found = run(k=3, chunk=chunk, **parameters)
    np.testing.assert_allclose(found.history, expected.history, atol=1e-9)
    np.testing.assert_allclose(found.objective, expected.objective, rtol=1e-9)
    assert found.step_size == pytest.approx(expected.step_size, rel=1e-9)


def test_workers_change_nothing(way):
    given = {"k": 3, "chunk": 50, "block_size": 30}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        found = run(order=RNG.integers(0, 4, 6), step_size=0.05, **given), run(max_iter=6, **given)
    assert np.isfinite(found[0].coef).all()
    np.testing.assert_array_equal(found[1].history, run(max_iter=6, **given).history)


def planted(n=2_000, d=30):
    y = (RNG.random(n) < 0.2).astype(int)
    return RNG.normal(size=(n, d)) + np.outer(y, np.repeat([1.0, 0.0], [4, d - 4])), y


def test_rows_sorted_by_class_lead_to_the_features_of_shuffled_ones(way):
    x, y = planted()
    by_class = np.argsort(y, kind="stable")
    shuffled, ordered = run(x, y, k=4), run(x[by_class], y[by_class], 500, k=4)
    assert np.flatnonzero(ordered.coef).tolist() == np.flatnonzero(shuffled.coef).tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(ordered.objective[-1], shuffled.objective[-1], rtol=1e-3)
    np.testing.assert_allclose(shuffled.objective[-1], pairwise(shuffled.coef, x, y), rtol=1e-10)


def test_copies_of_one_class_change_nothing():
    """F does not depend on the share of the positives."""
    copies = np.where(Y == 1, 3, 1)
    x, y = np.repeat(X, copies, axis=0), np.repeat(Y, copies)
    np.testing.assert_allclose(run(x, y, k=3, block_size=len(y)).coef, run(k=3, block_size=N).coef, rtol=1e-6)


def test_all_rows_in_one_block_descend_to_the_minimum(way):
    delta = X[Y == 1].mean(axis=0) - X[Y == 0].mean(axis=0)
    spread = np.cov(X[Y == 1].T, bias=True) + np.cov(X[Y == 0].T, bias=True)
    for alpha in (0.0, 0.5):
        inner = spread + alpha * np.diag(np.diag(spread)) + np.outer(delta, delta)
        found = run(k=D, block_size=N, alpha=alpha, max_iter=20_000)
        assert found.converged
        np.testing.assert_allclose(found.coef, np.linalg.solve(inner, delta), rtol=0, atol=2e-3)
        assert (np.diff(found.objective[:5]) < 0).all()
        units = 1 / np.sqrt(np.diag(spread))
        largest = np.linalg.eigvalsh(inner * np.outer(units, units))[-1]
        assert found.step_size == pytest.approx(1 / (2 * largest), rel=0.02)


def test_going_on_from_an_iterate_is_going_on(way):
    order = RNG.integers(0, 4, 12)
    given = {"k": 3, "block_size": 30, "step_size": 0.1}
    whole = run(order=order, **given)
    half = run(order=order, max_iter=5, **given)
    assert half.n_iter == 5
    rest = run(order=order[5:], start=half.coef, **given)
    np.testing.assert_allclose(rest.coef, whole.coef, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("k", [0, 1, 2, 3, 4, 5, 6, 7])
def test_exactly_k_entries_stay_and_the_first_of_equal_ones(k):
    v = np.array([1.0, -3.0, 2.0, 3.0, -2.0, 2.0])
    stay = np.argsort(-np.abs(v), kind="stable")[:k]
    found = hard_threshold(v, k)
    assert np.flatnonzero(found).tolist() == sorted(stay)
    assert (found[stay] == v[stay]).all()
    assert np.isnan(hard_threshold(np.array([np.nan, 1.0, 2.0]), 1)).any()  # not hidden


def test_equal_features_are_told_apart_by_their_place(way):
    x = np.repeat(X[:, :2], 3, axis=1)
    found = run(x, k=4, block_size=30, order=[0, 1, 2, 3], step_size=0.05)
    assert np.flatnonzero(found.history[1]).tolist() == [0, 1, 2, 3]  # of three equal to the bit or not
    assert all(np.count_nonzero(w) == 4 for w in found.history[1:])


def test_no_feature_and_all_features(way):
    none = run(k=0, max_iter=8)
    assert not none.coef.any()
    assert (none.objective == 1).all()
    many, every = run(k=D + 5, max_iter=8), run(k=D, max_iter=8)
    np.testing.assert_array_equal(many.coef, every.coef)
    assert np.count_nonzero(every.coef) == D


def test_steps_that_are_too_long_are_named_where_given_and_halved_else(way):
    with pytest.raises(
        DataError, match=r"not finite by step \d+: the step_size 1000 is too long for these rows"
    ):
        run(k=D, block_size=30, step_size=1e3, order=RNG.integers(0, 4, 400))
    rising = run(k=D, block_size=30, step_size=1.0, order=[0, 1, 2, 3])
    assert rising.objective[-1] > 1  # as it was asked for
    found = run(k=D, block_size=1, max_iter=6 * N)  # steps on single rows, of which many are too long
    assert np.isfinite(found.history).all()
    assert found.objective[-1] < 1


def test_weights_are_repeated_rows(way):
    weight = RNG.integers(0, 4, N)
    x, y = np.repeat(X, weight, axis=0), np.repeat(Y, weight)
    given = {"k": 3, "step_size": 0.1, "max_iter": 10}
    expected = run(x, y, block_size=len(x), **given)
    for chunk in (None, 50):
        found = run(weight=weight.astype(float), chunk=chunk, block_size=N, **given)
        np.testing.assert_allclose(found.coef, expected.coef, rtol=1e-10)
        np.testing.assert_allclose(found.objective, expected.objective, rtol=1e-10)
    blocks = run(weight=weight, block_size=30, k=3, order=[0, 2, 1, 3], step_size=0.1)
    np.testing.assert_allclose(blocks.objective[-1], pairwise(blocks.coef, weight=weight), rtol=1e-10)
    equal = run(weight=np.full(N, 7.0), block_size=30, k=3, order=[0, 2, 1, 3], step_size=0.1)
    np.testing.assert_allclose(
        equal.coef, run(block_size=30, k=3, order=[0, 2, 1, 3], step_size=0.1).coef, rtol=1e-9
    )


def test_constant_features_are_left_out(way):
    x = np.column_stack([np.full(N, 0.1), X[:, :2], np.full(N, 1e6), X[:, 2:]])
    for scale in (True, False):
        given = {"block_size": 30, "scale": scale, "order": [0, 1, 2, 3], "step_size": 0.01}
        found, expected = run(x, k=D + 2, **given), run(k=D, **given)
        assert found.coef[[0, 3]].tolist() == [0, 0]
        np.testing.assert_allclose(np.delete(found.coef, [0, 3]), expected.coef, rtol=1e-9)


@pytest.mark.parametrize("kind", ["unlabelled", "dropped"])
def test_rows_that_do_not_count(kind, way):
    x, y = np.repeat(X, 2, axis=0), np.repeat(Y, 2).astype(object)
    if kind == "unlabelled":
        x[1::2], y[1::2] = 1e3, None
    else:
        x[1::2, 2] = np.nan
    found = run(x, y, 7, invalid="drop", k=3, block_size=2 * N, max_iter=10)
    np.testing.assert_allclose(found.coef, run(k=3, block_size=N, max_iter=10).coef, rtol=1e-9)
    if kind == "dropped":
        with pytest.raises(DataError, match="NaN or infinite values"):
            run(x, y, 7, k=3, block_size=2 * N, max_iter=10)


def test_a_block_without_labelled_rows_moves_nothing(way):
    y = Y.astype(object)
    y[30:60] = None
    found = run(X, y, k=3, block_size=30, order=[0, 1, 1, 2], step_size=0.1)
    np.testing.assert_array_equal(found.history[2], found.history[1])
    np.testing.assert_array_equal(found.history[3], found.history[1])
    assert (found.history[4] != found.history[1]).any()


def test_sparse_rows_are_the_same_rows(way):
    x = np.where(RNG.random(X.shape) < 0.4, X, 0.0)
    rows = as_rows(sparse.csr_array(x), Y, sparse=True)
    given = {"k": 3, "block_size": 30, "order": [0, 1, 2, 3, 1, 2], "step_size": 0.1}
    found = descend(rows, signs(rows.categories("label")), **given)
    np.testing.assert_allclose(found.history, run(x, **given).history, rtol=0, atol=1e-10)


def test_single_precision_rows(way):
    given = {"k": 3, "block_size": 30, "order": [0, 1, 2, 3, 1, 2], "step_size": 0.1}
    np.testing.assert_allclose(run(X.astype("f4"), **given).coef, run(**given).coef, rtol=1e-5)


def test_many_features_need_no_square_array():
    n, d = 60, 20_000
    y = np.arange(n) % 2
    x = RNG.normal(size=(n, d)) + np.outer(y, np.arange(d) < 3) * 4
    for order, size in ((None, None), ([0, 1, 2] * 4, 20)):
        tracemalloc.start()
        found = run(x, y, 25, k=3, order=order, block_size=size, max_iter=12)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 20 * x.nbytes < d * d * 8 / 10
        assert np.flatnonzero(found.coef).tolist() == [0, 1, 2]


def test_long_histories_are_thinned(monkeypatch):
    whole = run(k=3, block_size=30, max_iter=40, step_size=0.05)
    assert len(whole.history) == whole.n_iter + 1
    monkeypatch.setattr(epochs, "HISTORY_BYTES", 8 * D * 7)
    monkeypatch.setattr(epochs, "TRACE_BYTES", 8 * D * 3)  # steps are handed on in parts of an epoch
    thin = run(k=3, block_size=30, max_iter=40, step_size=0.05)
    assert 1 < len(thin.history) <= 7
    np.testing.assert_array_equal(thin.history, whole.history[thin.history_steps])
    np.testing.assert_array_equal(thin.coef, whole.coef)
    np.testing.assert_array_equal(thin.objective, whole.objective)


def test_other_seeds_are_other_draws():
    assert not np.array_equal(run(k=3, max_iter=8, seed=0).coef, run(k=3, max_iter=8, seed=1).coef)


def test_what_cannot_be_done_is_named():
    with pytest.raises(DataError, match="k=-1: expected a whole number from 0"):
        run(k=-1)
    with pytest.raises(DataError, match="order names blocks of no known size: give block_size too"):
        run(k=1, order=[0])
    with pytest.raises(DataError, match="order names block 4: there are 4 of them, numbered from 0"):
        run(k=1, order=[4], block_size=30)
    with pytest.raises(DataError, match="start: expected 6 finite numbers"):
        run(k=1, start=np.zeros(5))
    with pytest.raises(DataError, match=r"alpha=-0\.1: expected a number from 0"):
        run(k=1, alpha=-0.1)
    with pytest.raises(DataError, match="the positive rows weigh 0"):
        run(k=1, weight=(Y == 0).astype(float))
    with pytest.raises(DataError, match="1 weights are negative or not finite"):
        run(k=1, weight=np.where(np.arange(N) == 3, -1.0, 1.0))
    rows = as_rows(X, Y)
    with pytest.raises(DataError, match="the positive rows weigh 0"):
        descend(replace(rows.only("label")), np.array([-1, -1], np.int8), k=1)
