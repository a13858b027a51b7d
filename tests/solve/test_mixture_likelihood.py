"""Mixture proportions of the highest likelihood: what EM converges to."""

import numpy as np
import pytest

from scaleshift.solve.mixture_likelihood import (
    log_likelihood_terms,
    mixture_proportions,
    newton_points,
    redrawn_proportions,
    trial_points,
)


def em(ratios, weights, start, change=1e-14, steps=200_000):
    """Plain EM."""
    a, w = start.copy(), weights / weights.sum()
    for _ in range(steps):
        joint = a * ratios
        new = w @ (joint / joint.sum(axis=1, keepdims=True))
        moved, a = np.abs(new - a).max(), new
        if moved < change:
            break
    return a


def problem(c, seed, n=400):
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.full(c, 3.0))
    posterior = rng.dirichlet(np.full(c, 0.3), n)
    # Rows of the source: their mean posterior is the prior.
    prior = posterior.mean(axis=0)
    weights = rng.multinomial(500, rng.dirichlet(np.full(n, 0.2)), size=4)
    return posterior / prior, weights, prior


@pytest.mark.parametrize("c", [2, 3, 10, 40])
def test_the_solution_is_that_of_em(c):
    ratios, weights, prior = problem(c, seed=c)
    found = mixture_proportions(ratios, weights, prior)
    for w, a in zip(weights, found, strict=True):
        np.testing.assert_allclose(a, em(ratios, w, prior), atol=1e-7)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)


def test_the_optimality_conditions_hold():
    """No class would gain: the gradient is at most 1, and 1 where the share is positive."""
    ratios, weights, prior = problem(8, seed=1)
    found = mixture_proportions(ratios, weights, prior, tol=1e-13)
    gradient = log_likelihood_terms(ratios, weights / weights.sum(axis=1, keepdims=True), found).gradient
    assert gradient.max() < 1 + 1e-6
    np.testing.assert_allclose(gradient[found > 1e-6], 1, atol=1e-6)
    assert (found == 0).any()


def test_a_class_that_no_row_supports_gets_exactly_nothing():
    ratios = np.array([[2.0, 0.0, 0.01], [0.0, 2.0, 0.01]])
    found = mixture_proportions(ratios, np.array([[3, 1], [5, 0]]), np.array([0.4, 0.4, 0.2]))
    np.testing.assert_allclose(found[0, :2], [0.75, 0.25], atol=1e-9)
    assert found[:, 2].tolist() == [0.0, 0.0]
    assert found[1].tolist() == [1.0, 0.0, 0.0]


def test_a_problem_does_not_depend_on_its_company():
    ratios, weights, prior = problem(5, seed=3)
    together = mixture_proportions(ratios, weights, prior)
    for w, a in zip(weights, together, strict=True):
        np.testing.assert_array_equal(mixture_proportions(ratios, w[None], prior)[0], a)


def test_rows_far_rarer_in_the_source_are_no_trouble():
    """A class of one in a million that is nearly all of the target."""
    ratios = np.array([[0.0, 1e6], [1.000001, 0.0]])
    found = mixture_proportions(ratios, np.array([[999, 1]]), np.array([1 - 1e-6, 1e-6]))
    np.testing.assert_allclose(found[0], [0.001, 0.999], atol=1e-12)


def test_a_class_that_owns_rows_is_not_dropped():
    """A hundredth of the rows are impossible without their class: Newton's step would drop it."""
    ratios, weights = np.array([[1.1, 0.0], [0.0, 10.0]]), np.array([[0.99, 0.01]])
    at = np.array([[0.9, 0.1]])
    terms = log_likelihood_terms(ratios, weights, at)
    points, _ = newton_points(at, terms)
    assert points[0, 1] == 0
    np.testing.assert_allclose(trial_points(at, terms, points), [[0.99, 0.01]], atol=1e-3)


def test_derivatives_are_those_of_the_value():
    ratios, weights, prior = problem(4, seed=5)
    weights = weights[:1] / weights[0].sum()
    terms = log_likelihood_terms(ratios, weights, prior[None])
    step = 1e-6 * np.eye(4)
    up, down = (
        log_likelihood_terms(ratios, np.repeat(weights, 4, axis=0), prior + sign * step) for sign in (1, -1)
    )
    np.testing.assert_allclose(terms.gradient[0], (up.value - down.value) / 2e-6, atol=1e-8)
    np.testing.assert_allclose(-terms.information[0], (up.gradient - down.gradient) / 2e-6, atol=1e-6)


def test_a_point_at_which_a_row_is_impossible_has_no_value():
    terms = log_likelihood_terms(np.eye(2), np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([[1.0, 0], [1, 0]]))
    assert terms.value.tolist() == [-np.inf, 0.0]
    assert np.isfinite(terms.information).all()


def test_redrawn_problems_are_solved_to_first_order():
    ratios, weights, prior = problem(3, seed=7)
    w, rng = weights[0], np.random.default_rng(0)
    at = mixture_proportions(ratios, w[None], prior)[0]
    drawn = rng.multinomial(200_000, w / w.sum(), size=50)
    found = redrawn_proportions(ratios, drawn, 0.9999 * at + 0.0001 * prior)
    exact = mixture_proportions(ratios, drawn, prior)
    spread = exact.std(axis=0).max()
    assert spread > 1e-3
    assert np.abs(found - exact).max() < 0.05 * spread


def test_the_step_of_newton_promises_what_the_quadratic_model_says():
    ratios, weights, prior = problem(3, seed=8)
    weights = weights / weights.sum(axis=1, keepdims=True)
    at = np.tile(prior, (len(weights), 1))
    points, rise = newton_points(at, log_likelihood_terms(ratios, weights, at))
    assert (rise > 0).all()
    assert (points >= 0).all()
    solved = mixture_proportions(ratios, weights, prior, tol=1e-14)
    _, left = newton_points(solved, log_likelihood_terms(ratios, weights, solved))
    assert np.abs(left).max() < 1e-12
