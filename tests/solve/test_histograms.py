"""The mixture of histograms that comes nearest: against a general solver, and what must change nothing."""

import numpy as np
import pytest
from scipy.optimize import minimize

from scaleshift.solve.histograms import HELLINGER, TOPSOE, hellinger, nearest_mixture, topsoe

STAGES = {"topsoe": TOPSOE, "hellinger": HELLINGER}
DISTANCES = {"topsoe": topsoe, "hellinger": hellinger}


def problem(c, n_histograms, n_bins, seed, n=1_000, m=1_000, shape=2.0):
    """Histograms of classes, (c, n_histograms, n_bins), and of a sample drawn of them."""
    rng = np.random.default_rng(seed)
    p = rng.gamma(shape, size=(c, n_histograms, n_bins))
    p /= p.sum(axis=2, keepdims=True)
    alpha = rng.dirichlet(np.full(c, 0.7))
    means = rng.multinomial(n, p) / n
    return means, rng.multinomial(m, np.einsum("c,cjb->jb", alpha, p)) / m


def value(name, alpha, means, target):
    mixture = np.einsum("c,cjb->jb", alpha, means)
    return DISTANCES[name](target[None], mixture[None]).value[0]


def by_slsqp(name, means, target, n_starts=3):
    """The lowest value that a general solver finds."""
    c, rng = len(means), np.random.default_rng(0)
    found = []
    for start in [np.full(c, 1 / c), *rng.dirichlet(np.ones(c), n_starts - 1)]:
        answer = minimize(
            lambda a: value(name, np.maximum(a, 0), means, target),
            start,
            method="SLSQP",
            bounds=[(0, 1)] * c,
            constraints={"type": "eq", "fun": lambda a: 1 - a.sum()},
            options={"ftol": 1e-15, "maxiter": 300},
        )
        alpha = np.maximum(answer.x, 0)
        found.append(value(name, alpha / alpha.sum(), means, target))
    return min(found)


@pytest.mark.parametrize("name", STAGES)
@pytest.mark.parametrize(
    ("shape", "settings"),
    [
        ((5, 5, 8), {}),
        ((2, 1, 8), {"n": 300, "m": 300}),
        ((5, 5, 8), {"n": 100_000, "m": 50, "shape": 0.3}),
        ((12, 6, 10), {"shape": 0.3}),
        ((5, 5, 3), {}),  # histograms that are met exactly: a mean of Hellinger distances has a kink there
        ((3, 20, 20), {"n": 30, "m": 30, "shape": 0.3}),
    ],
    ids=["usual", "one score", "few cells", "many classes", "few bins", "empty bins"],
)
def test_no_general_solver_finds_a_lower_distance(name, shape, settings):
    for seed in range(3):
        means, target = problem(*shape, seed, **settings)
        alpha = nearest_mixture(STAGES[name], means[None], target[None])[0]
        assert alpha.min() >= 0
        assert alpha.sum() == pytest.approx(1, abs=1e-12)
        assert value(name, alpha, means, target) <= by_slsqp(name, means, target) + 1e-9


def test_topsoe_meets_the_optimality_conditions():
    """Convex: where no class has a slope below that of the mixture, nothing is lower."""
    for seed in range(20):
        means, target = problem(6, 6, 8, seed, shape=0.5)
        alpha = nearest_mixture(TOPSOE, means[None], target[None])[0]
        mixture = np.einsum("c,cjb->jb", alpha, means)
        slope = topsoe(target[None], mixture[None]).slope[0]
        by_class = np.einsum("cjb,jb->c", means, np.where(mixture > 0, slope, 0))
        assert alpha @ by_class - by_class.min() < 1e-13


@pytest.mark.parametrize("name", STAGES)
def test_an_exact_mixture_is_found(name):
    rng = np.random.default_rng(0)
    means, _ = problem(5, 5, 8, 0, n=100_000)
    alpha = np.array([0.4, 0.3, 0.2, 0.1, 0.0])
    target = np.einsum("c,cjb->jb", alpha, means)
    found = nearest_mixture(STAGES[name], means[None], target[None])[0]
    np.testing.assert_allclose(found, alpha, atol=1e-8)
    order = rng.permutation(5)
    again = nearest_mixture(STAGES[name], means[order][None], target[None])[0]
    np.testing.assert_allclose(again, alpha[order], atol=1e-8)


@pytest.mark.parametrize("name", STAGES)
def test_a_problem_has_the_same_bits_in_any_company(name):
    problems = [problem(4, 3, 8, seed) for seed in range(6)]
    means, targets = (np.stack(part) for part in zip(*problems, strict=True))
    together = nearest_mixture(STAGES[name], means, targets)
    for i in range(6):
        alone = nearest_mixture(STAGES[name], means[i : i + 1], targets[i : i + 1])
        np.testing.assert_array_equal(alone[0], together[i])


@pytest.mark.parametrize("name", STAGES)
def test_bins_that_nobody_fills_and_constant_histograms_change_nothing(name):
    means, target = problem(4, 3, 8, 1)
    found = nearest_mixture(STAGES[name], means[None], target[None])
    constant = np.zeros((1, 10))
    constant[0, 3] = 1
    wider = np.concatenate([np.pad(means, ((0, 0), (0, 0), (1, 1))), np.tile(constant, (4, 1, 1))], axis=1)
    wide = np.concatenate([np.pad(target, ((0, 0), (1, 1))), constant])
    again = nearest_mixture(STAGES[name], wider[None], wide[None])
    np.testing.assert_allclose(again, found, atol=1e-9)


@pytest.mark.parametrize("name", STAGES)
def test_cells_where_no_class_has_any(name):
    means = np.array([[[0.5, 0.5, 0.0]], [[0.2, 0.8, 0.0]]])
    found = nearest_mixture(STAGES[name], means[None], np.array([[[0.0, 0.0, 1.0]]]))
    assert found.sum() == pytest.approx(1)
    partly = nearest_mixture(STAGES[name], means[None], np.array([[[0.35, 0.35, 0.3]]]))
    np.testing.assert_allclose(partly[0], [1, 0], atol=1e-8)


@pytest.mark.parametrize("name", STAGES)
def test_slopes_are_those_of_the_distance(name):
    means, target = problem(3, 2, 5, 0)
    rng, step = np.random.default_rng(0), 1e-6
    mixture, way = means.mean(axis=0), rng.normal(size=(2, 5))
    distance = DISTANCES[name]
    up, down = (distance(target[None], (mixture + s * step * way)[None]).value[0] for s in (1, -1))
    here = distance(target[None], mixture[None])
    assert (up - down) / (2 * step) == pytest.approx((here.slope[0] * way).sum(), rel=1e-6)
    by_histogram = (here.slope[0] * way).sum(axis=1)
    second = (here.curvature[0] * way**2).sum() - (here.bend[0] * by_histogram**2).sum()
    slopes = [distance(target[None], (mixture + s * step * way)[None]).slope[0] for s in (1, -1)]
    assert ((slopes[0] - slopes[1]) * way).sum() / (2 * step) == pytest.approx(second, rel=1e-5)
