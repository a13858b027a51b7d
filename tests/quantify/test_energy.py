"""The exact energy kernel: its geometry, its origin, and what debiasing takes off."""

import dask.array as da
import numpy as np
import pytest
from scipy.spatial.distance import cdist
from three_classes import draw

import scaleshift as ss

X, Y = draw(1_000, [0.3, 0.3, 0.4], seed=0)
T, TY = draw(1_200, [0.7, 0.2, 0.1], seed=1)
ORIGINS = [0, [1.0, -2.0, 3.0], 100.0, -1e4]


def fitted(origin=0, x=X, y=Y, **settings):
    return ss.DFM(ss.EnergyKernel(origin), random_state=0, **settings).fit(x, y)


def proportions(origin=0, x=X, y=Y, t=T, **settings):
    return fitted(origin, x, y, **settings).predict(t)["proportion"].values[0]


@pytest.mark.parametrize("origin", ORIGINS[1:])
def test_hard_matching_does_not_depend_on_the_origin(origin):
    np.testing.assert_allclose(proportions(origin, soft=False), proportions(soft=False), atol=1e-9)
    assert fitted(origin).delta_min_ == pytest.approx(fitted().delta_min_, rel=1e-9)


def test_soft_matching_takes_cells_at_the_origin_for_unknown_ones():
    for origin in ([20.0, 20.0, 20.0], [-30.0, 0.0, 0.0]):
        t = np.concatenate([T, np.tile(np.array(origin, "f4"), (400, 1))])
        result = fitted(origin).predict(t)
        assert float(result["unknown"][0]) == pytest.approx(0.25, abs=0.01)
        elsewhere = fitted(0.0).predict(t)
        assert abs(float(elsewhere["unknown"][0]) - 0.25) > 0.1


@pytest.mark.parametrize("origin", ORIGINS)
def test_the_gram_matrix_is_that_of_the_kernel(origin):
    x = X.astype(float)
    o = np.broadcast_to(np.asarray(origin, float), 3)
    norms = np.linalg.norm(x - o, axis=1)
    kernel = norms[:, None] + norms - cdist(x, x)
    mean = np.array([(label == Y) / (label == Y).sum() for label in "abc"])
    model = fitted(origin)
    np.testing.assert_allclose(model.gram_, mean @ kernel @ mean.T, rtol=1e-9)
    # k(x, x) is not 1 here, and differs by class: the pairs of a row with itself are left out one by one
    np.fill_diagonal(kernel, 0)
    n = model.class_counts_
    clean = mean @ kernel @ mean.T
    clean[np.diag_indices(3)] *= n / (n - 1)
    basis = np.linalg.qr(np.column_stack([np.ones(3), np.eye(3)[:, 1:]]))[0][:, 1:]
    assert model.delta_min_ == pytest.approx(np.linalg.eigvalsh(basis.T @ clean @ basis)[0], rel=1e-7)
    assert model.lambda_min_ == pytest.approx(np.linalg.eigvalsh(clean)[0], rel=1e-7)


def test_of_two_classes_delta_min_is_half_their_energy_distance():
    x, y = X[Y != "c"].astype(float), Y[Y != "c"]
    a, b = x[y == "a"], x[y == "b"]
    distance = 2 * cdist(a, b).mean() - cdist(a, a).mean() - cdist(b, b).mean()
    assert fitted(x=x, y=y).delta_min_plain_ == pytest.approx(distance / 2, rel=1e-9)


def test_one_population_under_two_names_is_not_identifiable():
    rng = np.random.default_rng(0)
    twice = np.where((Y == "b") & (rng.random(len(Y)) < 0.5), "b again", Y)
    assert fitted(y=twice).confounded_ == [["b", "b again"]]
    assert fitted().confounded_ == []


@pytest.mark.parametrize("settings", [{}, {"soft": False}])
def test_turning_moving_and_scaling_all_cells_and_the_origin_moves_no_proportion(settings):
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    origin, shift = np.array([1.0, 0, -1]), np.array([5.0, 0, 2])

    def moved(x):
        return 7 * (x @ turn) + shift

    found = proportions(moved(origin), moved(X.astype(float)), t=moved(T.astype(float)), **settings)
    np.testing.assert_allclose(
        found, proportions(origin, X.astype(float), t=T.astype(float), **settings), atol=1e-8
    )


@pytest.mark.parametrize("settings", [{}, {"soft": False}])
def test_rows_chunks_and_class_names_in_any_order_give_the_same_proportions(settings):
    expected = proportions(**settings)
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_allclose(proportions(x=X[order], y=Y[order], **settings), expected, atol=1e-9)
    cut = proportions(x=da.from_array(X, chunks=(137, -1)), t=da.from_array(T, chunks=(411, -1)), **settings)
    np.testing.assert_allclose(cut, expected, atol=1e-9)
    turned = np.array([{"a": 3, "b": 2, "c": 1}[label] for label in Y])
    np.testing.assert_allclose(proportions(y=turned, **settings), expected[::-1], atol=1e-9)


def test_no_bound_is_promised_for_a_kernel_that_has_none():
    assert fitted().error_bound() == np.inf
    assert np.isfinite(ss.DFM("gaussian", bandwidth=2.0).fit(X, Y).error_bound())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"origin": [1, 2]}, r"origin=\[1, 2\]: expected a number or one for each of the 3 markers"),
        ({"origin": np.nan}, "origin=nan"),
        ({"origin": "mean"}, "origin='mean'"),
        ({"bandwidth": 2.0}, "bandwidth=2.0: the energy kernel has no bandwidth"),
    ],
)
def test_what_makes_no_sense_is_refused(settings, message):
    with pytest.raises(ss.DataError, match=message):
        fitted(**settings)


def test_large_sources_are_sent_to_the_sliced_kernel():
    n = 50_001
    with pytest.raises(ss.DataError, match="50001: at most 50000; use features='sliced-energy'"):
        fitted(x=np.zeros((n, 1), "f4"), y=np.zeros(n, int))
