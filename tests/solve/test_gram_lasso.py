"""Are weights of a lasso at the minimum, to rounding, whatever the columns are like?"""

import numpy as np
import pytest
from sklearn.linear_model import lasso_path

from scaleshift.solve.gram_lasso import gram_lasso, support_least_squares


def moments(n, p, seed=0, m=1):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p)) @ (np.eye(p) + 0.3 * rng.normal(size=(p, p)) / np.sqrt(p))
    y = x[:, : min(5, p)].sum(axis=1) + 2 * rng.normal(size=(m, n))
    x -= x.mean(axis=0)
    y -= y.mean(axis=1, keepdims=True)
    return x, y, x.T @ x / n, y @ x / n


def violation(gram, cross, penalty, weights):
    """How far the conditions of a minimum are from met, by the largest product."""
    slope = cross - weights @ gram
    off = np.maximum(np.abs(slope) - penalty, 0)
    on = np.abs(slope - penalty * np.sign(weights))
    return np.where(weights == 0, off, on).max() / np.abs(cross).max()


@pytest.mark.parametrize(("n", "p"), [(200, 30), (40, 100), (10, 1)])
def test_paths_are_at_the_minimum_and_as_scikit_learn_has_them(n, p):
    x, y, gram, cross = moments(n, p)
    penalty = np.abs(cross).max() * np.geomspace(1, 1e-2, 30)
    found = gram_lasso(gram, cross, penalty[None])[0]
    _, expected, _ = lasso_path(x, y[0], alphas=penalty, tol=1e-12, max_iter=200_000)
    np.testing.assert_allclose(found.T, expected, atol=1e-7)
    assert max(violation(gram, cross[0], a, w) for a, w in zip(penalty, found, strict=True)) < 1e-12


def test_outcomes_are_solved_alike_alone_together_and_from_elsewhere():
    _, _, gram, cross = moments(50, 20, m=7)
    penalty = np.full((7, 1), 0.2)
    together = gram_lasso(gram, cross, penalty)
    alone = np.stack([gram_lasso(gram, cross[i : i + 1], penalty[:1])[0] for i in range(7)])
    elsewhere = gram_lasso(gram, cross, penalty, np.random.default_rng(0).normal(size=20))
    assert np.array_equal(together, alone)
    np.testing.assert_allclose(elsewhere, together, atol=1e-12)


def test_columns_that_are_alike_share_no_more_than_the_minimum():
    _, _, gram, cross = moments(60, 8)
    twice = np.r_[np.c_[gram, gram], np.c_[gram, gram]]
    found = gram_lasso(twice, np.c_[cross, cross], np.array([[0.1]]))[0, 0]
    alone = gram_lasso(gram, cross, np.array([[0.1]]))[0, 0]
    np.testing.assert_allclose(found[:8] + found[8:], alone, atol=1e-9)


def test_the_largest_penalty_leaves_no_weight_and_none_leaves_least_squares():
    _, _, gram, cross = moments(60, 8)
    found = gram_lasso(gram, cross, np.array([[np.abs(cross).max(), 0.0]]))[0]
    assert not found[0].any()
    np.testing.assert_allclose(found[1], np.linalg.solve(gram, cross[0]), rtol=1e-9)


def test_a_column_without_variance_gets_no_weight():
    _, _, gram, cross = moments(60, 8)
    gram[3], gram[:, 3], cross[:, 3] = 0, 0, 0
    assert gram_lasso(gram, cross, np.array([[0.01]]))[0, 0, 3] == 0


def test_least_squares_on_a_support_of_collinear_columns_is_the_smallest():
    _, _, gram, cross = moments(60, 4)
    twice = np.r_[np.c_[gram, gram], np.c_[gram, gram]]
    on = np.array([[1.0, 1, 0, 0, 1, 0, 0, 0]])
    found = support_least_squares(twice, np.c_[cross, cross], on)[0]
    expected = np.linalg.solve(gram[:2, :2], cross[0, :2])
    np.testing.assert_allclose(
        found, [expected[0] / 2, expected[1], 0, 0, expected[0] / 2, 0, 0, 0], atol=1e-10
    )
