"""The simplex quadratic program: against quadprog, by its optimality conditions, on degenerate Grams."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import quadprog
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from scaleshift.solve import simplex
from scaleshift.solve.simplex import simplex_least_squares

exhaustive = settings(max_examples=100, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)
softness = pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])


# Geometries: class embeddings (c, D) and target embeddings (D,).


def normal_embeddings(rng, c):
    return rng.normal(size=(c, 2 * c))


def fourier_embeddings(rng, c, n_dims=5, n_frequencies=200, bandwidth=3.0):
    """Expected Fourier features of Gaussian classes N(mean, L L'), mean ~ N(0, 9 I): in closed form."""
    frequencies = rng.normal(size=(n_frequencies, n_dims)) / bandwidth
    roots = rng.normal(size=(c, n_dims, n_dims)) / np.sqrt(n_dims)
    damping = np.exp(-0.5 * np.square(frequencies @ roots).sum(axis=2))
    phase = rng.normal(scale=3, size=(c, n_dims)) @ frequencies.T
    return np.hstack([np.cos(phase) * damping, np.sin(phase) * damping]) / np.sqrt(n_frequencies)


def target(rng, embeddings, noise=(0, 0.01, 0.3, 1)):
    """A sparse or dense mixture with or without an unknown part, plus noise of a given relative size."""
    proportion = rng.dirichlet(np.full(len(embeddings), rng.choice([0.1, 1, 5])))
    direction = rng.normal(size=embeddings.shape[1])
    direction *= np.linalg.norm(embeddings[0]) / np.linalg.norm(direction)
    return rng.choice([1, 0.7]) * proportion @ embeddings + rng.choice(noise) * direction


def separated_problem(seed, embed=fourier_embeddings, max_classes=12):
    rng = np.random.default_rng(seed)
    embeddings = embed(rng, int(rng.integers(2, max_classes + 1)))
    return rng, embeddings, target(rng, embeddings)


@st.composite
def degenerate_problems(draw):
    """Points of a coarse grid, so that classes coincide or are dependent, exactly or up to a small step."""
    c, n_dims = draw(st.integers(1, 9)), draw(st.integers(1, 5))
    embeddings = draw(arrays(np.float64, (c, n_dims), elements=st.integers(-3, 3)))
    goal = draw(arrays(np.float64, n_dims, elements=st.integers(-3, 3)))
    step = draw(st.sampled_from([0, 0, 1e-9, 1e-8, 1e-7, 1e-6, 1e-4]))
    noise = np.random.default_rng(draw(seeds)).normal(size=embeddings.shape)
    return embeddings + step * noise, goal * draw(st.sampled_from([0.1, 0.5, 1]))


# References.


def solve(embeddings, goal, soft=False):
    return simplex_least_squares(embeddings @ embeddings.T, embeddings @ goal, soft=soft)


def by_quadprog(gram, products, soft):
    c = len(products)
    total = -np.ones((c, 1)) if soft else np.ones((c, 1))
    bound = np.append(total[0, 0], np.zeros(c))
    return quadprog.solve_qp(gram, products, np.hstack([total, np.eye(c)]), bound, 0 if soft else 1)[0]


def extended(gram, products, soft):
    """The hard program that the soft one is, in extended precision."""
    gram, products = gram.astype(np.longdouble), products.astype(np.longdouble)
    return (np.pad(gram, (1, 0)), np.pad(products, (1, 0))) if soft else (gram, products)


def excess(gram, products, alpha, soft):
    """Bound of a's objective above the least one, relative to the entries, and in extended precision.

    f(a) - min f <= 2 max_i (a - e_i)'(Ga - q) on the simplex: zero where the optimality conditions hold.
    """
    gram, products = extended(gram, products, soft)
    alpha = alpha.astype(np.longdouble)
    if soft:
        alpha = np.append(1 - alpha.sum(), alpha)
    gradient = gram @ alpha - products
    size = np.abs(gram).max() + np.abs(products).max()
    return 2 * (alpha @ gradient - gradient.min() * alpha.sum()) / (size or 1)


def certified(gram, products, alpha, soft):
    """The minimiser in extended precision: from the support of `alpha`, mended until all conditions hold."""
    gram, products = extended(gram, products, soft)
    support = np.append([alpha.sum() < 1] if soft else [], alpha > 0).astype(bool)
    for _ in range(10):
        exact, gap = on_support(gram, products, support)
        if exact.min() >= 0 and gap.min() >= 0:
            return exact.astype(float)[1:] if soft else exact.astype(float)
        support[exact.argmin() if exact.min() < 0 else gap.argmin()] ^= True
    raise AssertionError("the support is not that of the minimiser, nor near it")


def on_support(gram, products, support):
    """Minimiser over the affine hull of a support, refined to extended precision, and the gaps outside."""
    members = np.flatnonzero(support)
    matrix = np.ones((len(members) + 1,) * 2, np.longdouble)
    matrix[:-1, :-1], matrix[-1, -1] = gram[np.ix_(members, members)], 0
    right = np.append(products[members], np.longdouble(1))
    solution = np.zeros_like(right)
    for _ in range(30):
        residual = right - matrix @ solution
        solution = solution + np.linalg.solve(matrix.astype(float), residual.astype(float))
    assert np.abs(right - matrix @ solution).max() < 1e-17
    alpha = np.zeros(len(gram), np.longdouble)
    alpha[members] = solution[:-1]
    return alpha, np.where(support, 0, gram @ alpha - products + solution[-1])


def assert_feasible(alpha, soft):
    assert alpha.min() >= 0
    if soft:
        assert alpha.sum() <= 1
    else:
        assert abs(alpha.sum() - 1) <= 1e-15 * len(alpha)


# Against quadprog.


@softness
@pytest.mark.parametrize("embed", [normal_embeddings, fourier_embeddings])
def test_equals_quadprog_on_2_to_100_classes(embed, soft):
    for seed in range(150):
        _, embeddings, goal = separated_problem(seed, embed, max_classes=100 if seed % 3 == 0 else 12)
        gram, products = embeddings @ embeddings.T, embeddings @ goal
        alpha = simplex_least_squares(gram, products, soft=soft)
        assert_feasible(alpha, soft)
        np.testing.assert_allclose(alpha, by_quadprog(gram, products, soft), rtol=0, atol=1e-8)


@softness
@pytest.mark.parametrize("distance", [1e-4, 1e-3])
def test_nearly_coincident_classes_are_told_apart_to_1e_6(distance, soft):
    """Pairs or triples within `distance` of the norm: alpha against quadprog and the certified minimiser."""
    n_interior = 0
    for seed in range(60):
        rng, embeddings, _ = separated_problem(seed, max_classes=60 if seed % 4 == 0 else 10)
        for twin in range(1, min(len(embeddings), 2 + seed % 2)):
            noise = rng.normal(size=embeddings.shape[1])
            step = distance * np.linalg.norm(embeddings[0]) / np.linalg.norm(noise)
            embeddings[twin] = embeddings[0] + step * noise
        goal = target(rng, embeddings, noise=(0, 0.1 * distance, distance))
        gram, products = embeddings @ embeddings.T, embeddings @ goal
        alpha = simplex_least_squares(gram, products, soft=soft)
        np.testing.assert_allclose(alpha, certified(gram, products, alpha, soft), rtol=0, atol=1e-6)
        np.testing.assert_allclose(alpha, by_quadprog(gram, products, soft), rtol=0, atol=1e-6)
        assert excess(gram, products, alpha, soft) <= 1e-13
        n_interior += min(alpha[:2]) > 0.001
    assert n_interior >= 20  # the pair really had to be told apart


@softness
@pytest.mark.parametrize("c", [6, 20, 100])
def test_every_class_may_have_a_near_twin(c, soft):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        half = fourier_embeddings(rng, c // 2)
        noise = rng.normal(size=half.shape)
        size = np.linalg.norm(half, axis=1, keepdims=True) / np.linalg.norm(noise, axis=1, keepdims=True)
        embeddings = np.vstack([half, half + 1e-4 * size * noise])
        goal = target(rng, embeddings, noise=(0, 1e-5, 1e-4))
        gram, products = embeddings @ embeddings.T, embeddings @ goal
        alpha = simplex_least_squares(gram, products, soft=soft)
        np.testing.assert_allclose(alpha, by_quadprog(gram, products, soft), rtol=0, atol=1e-6)
        assert excess(gram, products, alpha, soft) <= 1e-13


# Optimality, also where the minimiser is not the only one.


@exhaustive
@given(degenerate_problems(), st.booleans())
def test_the_optimality_conditions_hold_whatever_coincides(problem, soft):
    embeddings, goal = problem
    gram, products = embeddings @ embeddings.T, embeddings @ goal
    alpha = simplex_least_squares(gram, products, soft=soft)
    assert_feasible(alpha, soft)
    assert excess(gram, products, alpha, soft) <= 1e-13


@exhaustive
@given(seeds, st.booleans())
def test_the_optimality_conditions_hold_for_fourier_embeddings(seed, soft):
    _, embeddings, goal = separated_problem(seed)
    gram, products = embeddings @ embeddings.T, embeddings @ goal
    alpha = simplex_least_squares(gram, products, soft=soft)
    assert_feasible(alpha, soft)
    assert excess(gram, products, alpha, soft) <= 1e-13


@softness
def test_coincident_classes_do_not_cycle(soft):
    rng = np.random.default_rng(0)
    cube = rng.integers(0, 2, size=(100, 4)).astype(float)  # 100 classes at 16 points
    for goal in (np.full(4, 0.5), np.array([0.25, 0.25, 0, 0]), np.full(4, 2.0), np.zeros(4)):
        alpha = solve(cube, goal, soft)
        assert_feasible(alpha, soft)
        np.testing.assert_allclose(alpha @ cube, goal.clip(0, 1), rtol=0, atol=1e-14)


@softness
def test_classes_far_from_the_origin_and_nearly_on_a_line_through_it(soft):
    """The squared distance of a class from the hull of others is then mere rounding, even below zero."""
    rng = np.random.default_rng(1)
    for _ in range(300):
        embeddings = 1e4 + rng.normal(size=(rng.integers(2, 8), rng.integers(1, 3)))
        gram, products = embeddings @ embeddings.T, embeddings @ (1e4 + rng.normal(size=embeddings.shape[1]))
        alpha = simplex_least_squares(gram, products, soft=soft)
        assert_feasible(alpha, soft)
        assert excess(gram, products, alpha, soft) <= 1e-13


def test_the_unknown_share_is_right_though_the_classes_differ_by_rounding_alone():
    """Squared distances of 1e-14 between classes: only the slope still shows an unknown share of 1e-8."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        embeddings = 1e-7 * rng.normal(size=(6, 4)) - 1
        gram, products = embeddings @ embeddings.T, embeddings @ -np.ones(4)
        alpha = simplex_least_squares(gram, products, soft=True)
        assert excess(gram, products, alpha, soft=True) <= 1e-13


@softness
def test_all_classes_in_one_point_share_its_proportion(soft):
    point = fourier_embeddings(np.random.default_rng(0), 1)
    alpha = solve(np.repeat(point, 100, axis=0), 0.6 * point[0], soft)
    assert alpha.sum() == pytest.approx(0.6 if soft else 1, abs=1e-14)


def test_two_coincident_classes_get_the_sum_that_their_union_gets():
    _, embeddings, goal = separated_problem(3)
    merged = solve(embeddings, goal, soft=True)
    twins = solve(np.vstack([embeddings, embeddings[:1]]), goal, soft=True)
    assert twins[0] + twins[-1] == pytest.approx(merged[0], abs=1e-12)
    np.testing.assert_allclose(twins[1:-1], merged[1:], rtol=0, atol=1e-12)


# Algebra.


@exhaustive
@given(degenerate_problems(), seeds, st.booleans())
def test_the_matched_embedding_does_not_depend_on_the_order_of_classes(problem, seed, soft):
    """The matched embedding sum_i a_i Phi_i is unique even where a is not."""
    embeddings, goal = problem
    order = np.random.default_rng(seed).permutation(len(embeddings))
    matched = solve(embeddings, goal, soft) @ embeddings
    reordered = solve(embeddings[order], goal, soft) @ embeddings[order]
    np.testing.assert_allclose(reordered, matched, rtol=0, atol=1e-6)


@exhaustive
@given(seeds, st.booleans())
def test_the_proportions_follow_the_order_of_classes(seed, soft):
    rng, embeddings, goal = separated_problem(seed)
    order = rng.permutation(len(embeddings))
    np.testing.assert_allclose(
        solve(embeddings[order], goal, soft), solve(embeddings, goal, soft)[order], rtol=0, atol=1e-11
    )


@exhaustive
@given(seeds, st.booleans(), st.sampled_from([0.0, 0.5]))
def test_a_mixture_of_the_classes_is_recovered(seed, soft, zeros):
    rng, embeddings, _ = separated_problem(seed)
    proportion = rng.dirichlet(np.ones(len(embeddings))) * (rng.random(len(embeddings)) >= zeros)
    assume(proportion.sum() > 0)
    proportion *= (rng.uniform(0.1, 1) if soft else 1) / proportion.sum()
    np.testing.assert_allclose(
        solve(embeddings, proportion @ embeddings, soft), proportion, rtol=0, atol=1e-11
    )


@exhaustive
@given(seeds)
def test_soft_is_hard_with_one_more_class_at_zero(seed):
    _, embeddings, goal = separated_problem(seed)
    padded = solve(np.vstack([embeddings, np.zeros(embeddings.shape[1])]), goal)
    soft = solve(embeddings, goal, soft=True)
    np.testing.assert_allclose(soft, padded[:-1], rtol=0, atol=1e-11)
    assert 1 - soft.sum() == pytest.approx(padded[-1], abs=1e-11)


@exhaustive
@given(seeds, st.sampled_from([0.5, 1.0, 2.0]))
def test_soft_equals_hard_exactly_where_the_total_wants_to_exceed_one(seed, length):
    """The sign of the hard program's multiplier a'(Ga - q) decides."""
    _, embeddings, goal = separated_problem(seed)
    goal = length * goal
    hard, soft = solve(embeddings, goal), solve(embeddings, goal, soft=True)
    multiplier = hard @ embeddings @ (hard @ embeddings - goal)
    assume(abs(multiplier) > 1e-9)
    if multiplier < 0:
        np.testing.assert_allclose(soft, hard, rtol=0, atol=1e-12)
    else:
        assert soft.sum() < 1 - 1e-12


@softness
@pytest.mark.parametrize("scale", [1e-309, 1e-12, 3.0, 2.0**20, 1e306])
def test_scaling_gram_and_products_changes_nothing(scale, soft):
    _, embeddings, goal = separated_problem(5)
    gram, products = embeddings @ embeddings.T, embeddings @ goal
    scaled = simplex_least_squares(scale * gram, scale * products, soft=soft)
    np.testing.assert_allclose(scaled, simplex_least_squares(gram, products, soft=soft), rtol=0, atol=1e-11)


def test_only_the_symmetric_part_of_the_gram_counts():
    rng, embeddings, goal = separated_problem(5)
    gram, products = embeddings @ embeddings.T, embeddings @ goal
    skew = rng.normal(size=gram.shape)
    turned = simplex_least_squares(gram + skew - skew.T, products)
    np.testing.assert_allclose(turned, simplex_least_squares(gram, products), rtol=0, atol=1e-11)


@exhaustive
@given(seeds)
def test_hard_matching_does_not_depend_on_the_origin(seed):
    rng, embeddings, goal = separated_problem(seed)
    origin = rng.normal(size=embeddings.shape[1])
    np.testing.assert_allclose(
        solve(embeddings - origin, goal - origin), solve(embeddings, goal), rtol=0, atol=1e-9
    )


# Corner cases and inputs.


@pytest.mark.parametrize(("product", "soft"), [(-1.0, 0.0), (0.0, 0.0), (0.3, 0.15), (2.0, 1.0), (5.0, 1.0)])
def test_one_class(product, soft):
    assert simplex_least_squares([[2.0]], [product]).tolist() == [1.0]
    assert simplex_least_squares([[2.0]], [product], soft=True) == pytest.approx(soft, abs=1e-15)


def test_a_class_at_zero_takes_the_rest_in_hard_and_yields_to_the_unknown_in_soft():
    gram, products = np.diag([0.0, 1.0]), np.array([0.0, 0.25])
    assert simplex_least_squares(gram, products) == pytest.approx([0.75, 0.25], abs=1e-15)
    assert simplex_least_squares(gram, products, soft=True) == pytest.approx([0.0, 0.25], abs=1e-15)


def test_a_zero_gram_leaves_a_feasible_answer():
    assert_feasible(simplex_least_squares(np.zeros((3, 3)), np.zeros(3)), soft=False)
    assert simplex_least_squares(np.zeros((3, 3)), np.zeros(3), soft=True).tolist() == [0, 0, 0]


@softness
def test_each_row_of_products_is_a_problem_of_its_own(soft):
    rng, embeddings, _ = separated_problem(11)
    gram = embeddings @ embeddings.T
    products = np.array([target(rng, embeddings) for _ in range(20)]) @ embeddings.T
    together = simplex_least_squares(gram, products, soft=soft)
    alone = [simplex_least_squares(gram, row, soft=soft) for row in products]
    np.testing.assert_array_equal(together, alone)
    assert simplex_least_squares(gram, products[:0], soft=soft).shape == (0, len(gram))
    assert simplex_least_squares(gram[None][:0], products[:0], soft=soft).shape == (0, len(gram))


def batch(seed, c, n, embed=fourier_embeddings):
    """One gram a problem: replicates of one problem, each with a little noise."""
    rng = np.random.default_rng(seed)
    embeddings = embed(rng, c)
    goal = target(rng, embeddings)
    noise = 0.01 * rng.normal(size=(n, *embeddings.shape)) / np.sqrt(embeddings.shape[1])
    noisy = embeddings + noise
    return noisy @ noisy.transpose(0, 2, 1), noisy @ goal


@softness
@pytest.mark.parametrize(("c", "n"), [(1, 7), (2, 50), (5, 200), (12, 100), (100, 230)])
def test_a_problem_gets_the_same_bits_alone_and_in_any_batch(c, n, soft):
    """With 100 classes the batch is longer than one block."""
    gram, products = batch(c, c, n)
    together = simplex_least_squares(gram, products, soft=soft)
    some = range(0, n, max(n // 30, 1))
    alone = [simplex_least_squares(gram[i], products[i], soft=soft) for i in some]
    np.testing.assert_array_equal(together[some], alone)
    order = np.random.default_rng(0).permutation(n)
    parts = [simplex_least_squares(gram[o], products[o], soft=soft) for o in np.array_split(order, 3)]
    np.testing.assert_array_equal(np.concatenate(parts), together[order])


@softness
def test_one_gram_for_all_is_that_gram_for_each(soft):
    _, products = batch(3, 6, 40)
    gram = batch(3, 6, 1)[0][0]
    each = simplex_least_squares(np.repeat(gram[None], 40, axis=0), products, soft=soft)
    np.testing.assert_array_equal(simplex_least_squares(gram, products, soft=soft), each)


@softness
def test_the_bits_do_not_depend_on_what_else_is_hard_in_the_batch(soft):
    """Degenerate neighbours leave work arrays full of classes, factors and refusals behind."""
    gram, products = batch(0, 4, 3)
    hostile = np.stack([np.ones((4, 4)), np.zeros((4, 4)), np.diag([0, 1e300, 1e-300, 1])])
    mixed = np.stack([gram, hostile], axis=1).reshape(6, 4, 4)
    mixed_products = np.repeat(products, 2, axis=0)
    mixed_products[1::2] *= [[1], [0], [1e300]]
    together = simplex_least_squares(mixed, mixed_products, soft=soft)
    np.testing.assert_array_equal(together[::2], simplex_least_squares(gram, products, soft=soft))


def test_threads_may_share_the_compiled_core():
    gram, products = batch(1, 8, 400)
    parts = np.array_split(np.arange(400), 16)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda part: simplex_least_squares(gram[part], products[part]), parts))
    np.testing.assert_array_equal(np.concatenate(found), simplex_least_squares(gram, products))


def test_each_function_is_compiled_once_whatever_comes_in():
    """The first call of every process waits for the compilation: a second signature would double that."""
    gram, products = batch(1, 3, 4)
    frozen = gram.copy()
    frozen.flags.writeable = False
    for soft in (False, True):
        for grams in (gram, frozen, gram.astype(np.float32), np.asfortranarray(gram), gram[0], gram[0].T):
            for rows in (products, products[::-1], np.asfortranarray(products), products.tolist()):
                simplex_least_squares(grams, rows, soft=soft)
    compiled = {name: f.signatures for name, f in vars(simplex).items() if hasattr(f, "signatures")}
    assert "_solve_rows" in compiled
    assert {name: len(signatures) for name, signatures in compiled.items()} == dict.fromkeys(compiled, 1)


# Systems that are singular, or nearly, and numbers at the ends of float64.

exponents = st.sampled_from([-300, -200, -16, 0, 16, 200, 300])


@exhaustive
@given(degenerate_problems(), exponents, exponents, st.booleans())
def test_gram_and_products_may_be_of_any_size_whatever_that_of_the_other(problem, power, other, soft):
    embeddings, goal = problem
    gram, products = 10.0**power * (embeddings @ embeddings.T), 10.0**other * (embeddings @ goal)
    alpha = simplex_least_squares(gram, products, soft=soft)
    assert_feasible(alpha, soft)
    assert excess(gram, products, alpha, soft) <= 1e-13


@softness
def test_class_embeddings_may_be_of_any_length_whatever_that_of_the_others(soft):
    rng = np.random.default_rng(0)
    for _ in range(300):
        c = rng.integers(1, 9)
        embeddings = 10.0 ** rng.integers(-160, 153, size=(c, 1)) * rng.normal(size=(c, 3))
        goal = 10.0 ** rng.integers(-160, 153) * rng.normal(size=3)
        gram, products = embeddings @ embeddings.T, embeddings @ goal
        alpha = simplex_least_squares(gram, products, soft=soft)
        assert_feasible(alpha, soft)
        assert excess(gram, products, alpha, soft) <= 1e-13


@softness
@pytest.mark.parametrize("step", [0, 1e-16, 1e-15, 1e-12, 1e-8])
@pytest.mark.parametrize("rank", [1, 2, 5])
def test_a_hundred_classes_within_rounding_of_a_few_points(rank, step, soft):
    rng = np.random.default_rng(rank)
    for _ in range(5):
        embeddings = rng.normal(size=(5, rank))[rng.integers(5, size=100)]
        gram = embeddings @ embeddings.T + step * rng.normal(size=(100, 100))  # no longer semidefinite
        products = gram @ rng.dirichlet(np.ones(100)) + step * rng.normal(size=100)
        alpha = simplex_least_squares(gram, products, soft=soft)
        assert_feasible(alpha, soft)
        assert excess((gram + gram.T) / 2, products, alpha, soft) <= 100 * max(step, 1e-15)


@exhaustive
@given(seeds, st.booleans())
def test_a_gram_that_is_no_gram_still_ends_on_the_simplex(seed, soft):
    """Indefinite, with entries of any size, some zero: no answer is right, but one comes back."""
    rng = np.random.default_rng(seed)
    c = rng.integers(1, 12)
    gram = rng.normal(size=(20, c, c)) * 10.0 ** rng.integers(-320, 308, size=(20, c, c))
    gram[rng.random(gram.shape) < rng.choice([0, 0.5, 0.9])] = 0
    gram[::2] = np.sign(gram[::2])
    products = rng.normal(size=(20, c)) * 10.0 ** rng.integers(-320, 308, size=(20, c))
    products[::4] = np.sign(products[::4])
    for alpha in simplex_least_squares(gram, products, soft=soft):
        assert_feasible(alpha, soft)


def test_the_inputs_are_left_as_they_were():
    _, embeddings, goal = separated_problem(2)
    gram, products = embeddings @ embeddings.T, embeddings @ goal
    copies = gram.copy(), products.copy()
    simplex_least_squares(gram, products, soft=True)
    np.testing.assert_array_equal(gram, copies[0])
    np.testing.assert_array_equal(products, copies[1])


@pytest.mark.parametrize(
    ("gram", "products", "message"),
    [
        (np.ones((2, 3)), np.ones(2), r"gram has shape \(2, 3\)"),
        (np.ones((0, 0)), np.ones(0), "at least one class"),
        (np.eye(2), np.ones(3), r"products have shape \(3,\).*\(n_samples, 2\)"),
        (np.eye(2), np.ones((2, 2, 2)), r"products have shape \(2, 2, 2\)"),
        (np.eye(2), 1.0, r"products have shape \(\)"),
        (np.ones(4), np.ones(4), r"gram has shape \(4,\)"),
        (np.ones((3, 2, 1)), np.ones((3, 2)), r"gram has shape \(3, 2, 1\)"),
        (np.ones((3, 0, 0)), np.ones((3, 0)), "at least one class"),
        (np.ones((1, 3, 2, 2)), np.ones((3, 2)), r"gram has shape \(1, 3, 2, 2\)"),
        (np.ones((3, 2, 2)), np.ones(2), r"products have shape \(2,\): .* expected \(3, 2\)"),
        (np.ones((3, 2, 2)), np.ones((2, 2)), r"products have shape \(2, 2\): .* expected \(3, 2\)"),
        (np.ones((1, 2, 2)), np.ones((3, 2)), r"products have shape \(3, 2\): .* expected \(1, 2\)"),
        (np.diag([1, np.nan]), np.ones(2), "gram: 1 of 4 values not finite"),
        (np.eye(2), [[1, np.inf], [np.nan, 0]], "products: 2 of 4 values not finite"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(gram, products, message):
    with pytest.raises(ValueError, match=message):
        simplex_least_squares(gram, products)
