"""Proportions with a penalty on importance weights: against a general solver, and at the ends."""

import numpy as np
import pytest
from scipy.optimize import minimize

from scaleshift.solve.regularised import regularised_mixture


def problem(c, seed, m=500, sharp=0.6):
    """Confusion by class, (c, c), class shares of the source, and predicted shares of a sample."""
    rng = np.random.default_rng(seed)
    means = sharp * np.eye(c) + (1 - sharp) * rng.dirichlet(np.ones(c), c)
    share, alpha = rng.dirichlet(np.full(c, 3.0)), rng.dirichlet(np.full(c, 0.6))
    return means, rng.multinomial(m, alpha @ means) / m, share


def value(alpha, means, target, share, penalty):
    return np.linalg.norm(alpha @ means - target) + penalty * np.linalg.norm(alpha / share - 1)


@pytest.mark.parametrize("penalty", [0.001, 0.01, 0.05, 0.1, 0.2])
@pytest.mark.parametrize("c", [2, 5, 9])
def test_no_general_solver_finds_a_lower_value(penalty, c):
    for seed in range(4):
        given = (*problem(c, seed), penalty)
        found = regularised_mixture(given[0][None], given[1][None], *given[2:])[0]
        assert found.min() >= 0
        starts = [given[2], np.full(c, 1 / c), found]
        lowest = min(
            minimize(
                value, start, given, "L-BFGS-B", bounds=[(0, None)] * c, options={"maxiter": 2_000, "ftol": 0}
            ).fun
            for start in starts
        )
        assert value(found, *given) <= lowest + 1e-10


def test_between_the_ends_the_ridge_is_what_the_norms_say():
    """At the minimiser the slopes of both norms balance for classes that are present."""
    seen = 0
    for seed in range(20):
        means, target, share = problem(4, seed)
        found = regularised_mixture(means[None], target[None], share, 0.1)[0]
        missed, strayed = found @ means - target, found / share - 1
        if min(np.linalg.norm(missed), np.linalg.norm(strayed)) < 1e-9:
            continue
        slope = means @ missed / np.linalg.norm(missed) + 0.1 * strayed / share / np.linalg.norm(strayed)
        np.testing.assert_allclose(slope[found > 0], 0, atol=1e-7)
        assert (slope[found == 0] > -1e-9).all()
        seen += 1
    assert seen > 3


def test_without_penalty_it_is_the_inverse_where_that_is_positive():
    means, _, share = problem(4, 0)
    alpha = np.array([0.4, 0.3, 0.2, 0.1])
    found = regularised_mixture(means[None], (alpha @ means)[None], share, 0.0)[0]
    np.testing.assert_allclose(found, alpha, atol=1e-12)


def test_a_large_penalty_leaves_the_source_as_it_is():
    means, target, share = problem(4, 0)
    np.testing.assert_array_equal(regularised_mixture(means[None], target[None], share, 10.0)[0], share)


def test_a_problem_has_the_same_bits_in_any_company():
    given = [problem(4, seed) for seed in range(5)]
    means, targets = np.stack([g[0] for g in given]), np.stack([g[1] for g in given])
    together = regularised_mixture(means, targets, given[0][2], 0.05)
    for i in range(5):
        alone = regularised_mixture(means[i : i + 1], targets[i : i + 1], given[0][2], 0.05)
        np.testing.assert_array_equal(alone[0], together[i])


def test_rare_classes_are_solved_as_well():
    means, target, _ = problem(3, 1)
    share = np.array([1e-5, 0.3, 0.69999])
    given = (means, target, share, 0.02)
    found = regularised_mixture(means[None], target[None], *given[2:])[0]
    for other in np.random.default_rng(0).dirichlet(np.ones(3), 200):
        near = found + 1e-4 * (other - found)
        assert value(found, *given) <= value(near, *given) + 1e-12
