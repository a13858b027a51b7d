"""Best subsets against all subsets, and what must not matter to them."""

import itertools

import numpy as np
import pytest
from scipy.optimize import nnls

from scaleshift.solve import best_subset
from scaleshift.solve.best_subset import Support, best_subsets

P, SIZES = 12, [1, 2, 3, 4]


def problem(seed, p=P, n=30, floor=0.0, share=0.5):
    """Correlated variables, few of which matter, and noise: c = M w + noise."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(n, 2))
    rows = (1 - share) * rng.normal(size=(n, p)) + share * common @ rng.normal(size=(2, p))
    rows *= np.exp(rng.normal(size=p))  # units
    weights = np.where(rng.random(p) < 0.4, rng.normal(size=p), 0) / rows.std(axis=0)
    noise = rng.normal(size=n)
    return rows.T @ rows / n + floor * np.eye(p), rows.T @ (rows @ weights + noise) / n


def ill_conditioned(seed):
    """Nearly collinear variables: condition numbers of 1e5 and beyond, and gains that cancel."""
    return problem(seed, n=P + 1 + seed % 3, share=0.97)


def objective(matrix, gain, weights):
    return weights @ matrix @ weights - 2 * gain @ weights


def best_of_all(matrix, gain, size, positive=False):
    """The smallest objective over all supports: exact."""
    best = 0.0
    for support in map(list, itertools.combinations(range(len(gain)), size)):
        among, c = matrix[np.ix_(support, support)], gain[support]
        if positive:
            root = np.linalg.cholesky(among)
            w, _ = nnls(root.T, np.linalg.solve(root, c))
        else:
            w = np.linalg.solve(among, c)
        best = min(best, w @ among @ w - 2 * c @ w)
    return best


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("positive", [False, True])
def test_the_best_of_all_subsets_is_found(seed, positive):
    matrix, gain = problem(seed)
    found = best_subsets(matrix, gain, SIZES, positive=positive)
    for size, weights in zip(SIZES, found, strict=True):
        assert np.count_nonzero(weights) <= size
        assert not positive or weights.min() >= 0
        best = best_of_all(matrix, gain, size, positive)
        assert objective(matrix, gain, weights) == pytest.approx(best, rel=1e-8)


@pytest.mark.parametrize(
    ("kind", "positive", "share"),
    [
        (problem, False, 0.97),
        (ill_conditioned, False, 0.97),
        (problem, True, 0.97),
        (ill_conditioned, True, 0.97),
    ],
)
def test_the_search_alone_finds_nearly_all(kind, positive, share, monkeypatch):
    """Without trying each of few subsets: at least 97 % of 400 optima, and nothing much worse."""
    monkeypatch.setattr(best_subset, "FEW", 0)
    gaps = []
    for seed in range(100, 200):
        matrix, gain = kind(seed)
        found = best_subsets(matrix, gain, SIZES, positive=positive)
        for size, weights in zip(SIZES, found, strict=True):
            best = best_of_all(matrix, gain, size, positive)
            gaps.append(1 - objective(matrix, gain, weights) / best)
    gaps = np.array(gaps)

    assert gaps.min() > -1e-6  # the reference is the best
    assert (gaps < 1e-6).mean() >= share


def test_two_variables_that_help_only_together_enter_together():
    """The second alone would want a weight below 0; beside the first, which it is correlated with, not."""
    matrix = np.array(
        [[1.0, -0.99, 0.0, 0.0], [-0.99, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
    )
    gain = np.array([1.0, -0.8, 1.2, 1.1])
    found = Support(matrix, gain, True, [2, 3]).exchanged_in_pairs()
    assert found is not None
    assert sorted(found.chosen) == [0, 1]
    assert found.weights.min() > 0
    assert found.objective == pytest.approx(best_of_all(matrix, gain, 2, positive=True))


@pytest.mark.parametrize("positive", [False, True])
def test_a_larger_subset_is_never_worse(positive):
    for seed in range(20):
        matrix, gain = problem(seed, p=40, n=50)
        found = best_subsets(matrix, gain, range(1, 41), positive=positive)
        values = [objective(matrix, gain, weights) for weights in found]
        assert (np.diff(values) <= 1e-9 * np.abs(values[:-1])).all()
        assert (np.count_nonzero(found, axis=1) <= np.arange(1, 41)).all()


def test_all_variables_are_the_plain_solution():
    matrix, gain = problem(3)
    np.testing.assert_allclose(best_subsets(matrix, gain, [P])[0], np.linalg.solve(matrix, gain), rtol=1e-9)
    root = np.linalg.cholesky(matrix)
    expected, _ = nnls(root.T, np.linalg.solve(root, gain))
    np.testing.assert_allclose(best_subsets(matrix, gain, [P], positive=True)[0], expected, atol=1e-10)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("few", [0, 2_000])
def test_units_do_not_choose(positive, few, monkeypatch):
    """Variables in other units: the same supports, weights in reciprocal units."""
    monkeypatch.setattr(best_subset, "FEW", few)
    for seed in range(10):
        matrix, gain = problem(seed)
        unit = 10.0 ** np.random.default_rng(seed).uniform(-5, 5, P)
        plain = best_subsets(matrix, gain, SIZES, positive=positive)
        scaled = best_subsets(matrix * np.outer(unit, unit), gain * unit, SIZES, positive=positive)
        np.testing.assert_allclose(scaled * unit, plain, rtol=1e-6, atol=1e-9 * np.abs(plain).max())


def test_the_order_of_variables_does_not_choose():
    matrix, gain = problem(5)
    order = np.random.default_rng(0).permutation(P)
    shuffled = best_subsets(matrix[np.ix_(order, order)], gain[order], SIZES)
    np.testing.assert_allclose(shuffled, best_subsets(matrix, gain, SIZES)[:, order], atol=1e-10)


@pytest.mark.parametrize("few", [0, 2_000])
def test_of_copies_one_is_chosen(few, monkeypatch):
    """Every variable twice: weights are finite, and no worse than those of single ones."""
    monkeypatch.setattr(best_subset, "FEW", few)
    matrix, gain = problem(1)
    twice = best_subsets(np.tile(matrix, (2, 2)), np.tile(gain, 2), [*SIZES, 2 * P])
    assert np.isfinite(twice).all()
    assert not ((twice[:, :P] != 0) & (twice[:, P:] != 0)).any()
    once = best_subsets(matrix, gain, [*SIZES, P])
    np.testing.assert_allclose(twice[:, :P] + twice[:, P:], once, atol=1e-8)


@pytest.mark.parametrize("few", [0, 2_000])
def test_a_singular_matrix_gives_independent_variables(few, monkeypatch):
    """Five rows of twelve variables: no more than five are chosen, and they solve the problem."""
    monkeypatch.setattr(best_subset, "FEW", few)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(5, P))
    matrix, gain = rows.T @ rows, rows.T @ rng.normal(size=5)
    found = best_subsets(matrix, gain, [2, 5, 8])
    assert np.count_nonzero(found, axis=1).tolist() == [2, 5, 5]
    np.testing.assert_allclose(matrix @ found[2], gain, atol=1e-6)


@pytest.mark.parametrize("few", [0, 2_000])
def test_a_variable_that_is_zero_is_never_chosen(few, monkeypatch):
    monkeypatch.setattr(best_subset, "FEW", few)
    matrix, gain = problem(2)
    matrix[[3, 7]] = matrix[:, [3, 7]] = 0
    gain[3] = 5.0  # of no meaning, and tempting
    with np.errstate(all="raise"):
        found = best_subsets(matrix, gain, [1, 4, P])
    assert not found[:, [3, 7]].any()
    others = np.setdiff1d(np.arange(P), [3, 7])
    alone = best_subsets(matrix[np.ix_(others, others)], gain[others], [1, 4, P])
    np.testing.assert_allclose(found[:, others], alone, atol=1e-10)


def test_without_gain_nothing_is_chosen():
    assert not best_subsets(np.eye(5), np.zeros(5), [1, 3, 5]).any()
    assert not best_subsets(np.eye(5), -np.ones(5), [1, 3, 5], positive=True).any()
    assert not best_subsets(np.zeros((3, 3)), np.ones(3), [1, 3]).any()


def test_one_variable_and_sizes_beyond_all():
    np.testing.assert_allclose(best_subsets(np.array([[4.0]]), np.array([2.0]), [1, 3]), [[0.5], [0.5]])
    assert not best_subsets(np.array([[4.0]]), np.array([-2.0]), [1], positive=True).any()
    matrix, gain = problem(4)
    np.testing.assert_array_equal(*best_subsets(matrix, gain, [P, P + 9]))
    assert best_subsets(matrix, gain, [0, 1])[0].tolist() == [0.0] * P


def test_steps_give_what_starting_over_gives():
    """Supports that grew and shrank in O(k p) steps against those solved from scratch."""
    matrix, gain = problem(6, p=30, n=60)
    support = Support(matrix, gain, False).grown(12)
    for _ in range(8):
        support = support.without_the_least()
    support = support.grown(10)
    anew = Support(matrix, gain, False, support.chosen)
    for name in ("weights", "residual", "inverse", "projected", "left", "objective"):
        np.testing.assert_allclose(getattr(support, name), getattr(anew, name), rtol=1e-7, atol=1e-9)


def test_gains_of_exchanges_are_what_exchanges_gain():
    matrix, gain = problem(7)
    support = Support(matrix, gain, False, [0, 3, 5])
    gains = support._gains_of_exchange()
    for place, j in itertools.product(range(3), set(range(P)) - {0, 3, 5}):
        assert support.objective - support.replaced([place], [j]).objective == pytest.approx(gains[place, j])
