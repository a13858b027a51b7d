"""Coordinate descent finds the minimum that its conditions say."""

import numpy as np
import pytest

from scaleshift.solve.penalised_quadratic import penalised_quadratic


def problems(d=8, n=5, seed=0):
    r = np.random.default_rng(seed)
    root = r.normal(size=(n, 3 * d, d))
    curvature = np.einsum("nij,nik->njk", root, root) / (3 * d)
    return curvature, r.normal(size=(n, d))


def test_the_minimum_has_the_subgradient_of_the_penalty():
    curvature, slope = problems()
    n, d = slope.shape
    penalty = np.full((n, d), 0.6)
    penalty[:, 0] = 0
    found = penalised_quadratic(
        curvature, np.arange(n), slope, penalty, np.zeros((n, d)), np.ones((n, d), bool)
    )
    gradient = np.einsum("nij,nj->ni", curvature, found) + slope
    chosen = found != 0
    assert not chosen.all()
    np.testing.assert_allclose(gradient[chosen], (-penalty * np.sign(found))[chosen], atol=1e-11)
    assert (np.abs(gradient[~chosen]) <= penalty[~chosen] + 1e-11).all()


def test_problems_may_share_a_curvature_and_start_anywhere():
    curvature, slope = problems()
    n, d = slope.shape
    shared = np.zeros(n, np.int64)
    free, penalty = np.ones((n, d), bool), np.full((n, d), 0.3)
    found = penalised_quadratic(curvature[:1], shared, slope, penalty, np.zeros((n, d)), free)
    far = penalised_quadratic(curvature[:1], shared, slope, penalty, np.full((n, d), 9.0), free)
    own = penalised_quadratic(curvature[[0] * n], np.arange(n), slope, penalty, np.zeros((n, d)), free)
    np.testing.assert_allclose(found, far, atol=1e-11)
    np.testing.assert_array_equal(found, own)


def test_what_is_held_stays_and_the_rest_makes_the_best_of_it():
    curvature, slope = problems(n=1)
    d = slope.shape[1]
    free = np.ones((1, d), bool)
    free[0, 2] = False
    start = np.zeros((1, d))
    start[0, 2] = 1.5
    found = penalised_quadratic(curvature, np.zeros(1, np.int64), slope, np.zeros((1, d)), start, free)
    assert found[0, 2] == 1.5
    gradient = (curvature[0] @ found[0] + slope[0])[free[0]]
    np.testing.assert_allclose(gradient, 0, atol=1e-11)


@pytest.mark.parametrize("n_classes", [3, 4])
def test_along_what_changes_nothing_the_penalty_is_smallest(n_classes):
    r = np.random.default_rng(1)
    q = 3
    centred = np.eye(n_classes) - 1 / n_classes
    curvature = np.kron(centred, np.diag(r.random(q) + 0.5))[None]
    slope = (centred @ r.normal(size=(n_classes, q)) * 3).reshape(1, -1)
    penalty = np.full(slope.shape, 0.2)
    start = np.full(slope.shape, 4.0)
    found = penalised_quadratic(
        curvature, np.zeros(1, np.int64), slope, penalty, start, np.ones(slope.shape, bool), n_classes
    )
    runs = np.sort(found.reshape(n_classes, q), axis=0)
    assert (runs[(n_classes - 1) // 2] <= 1e-12).all()  # 0 is a median of the classes
    assert (runs[n_classes // 2] >= -1e-12).all()
    gradient = curvature[0] @ found[0] + slope[0]
    assert (np.abs(gradient) <= penalty[0] + 1e-11).all()
