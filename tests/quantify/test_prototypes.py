"""Typical posteriors, and how many rows of a group are near each."""

import numpy as np
import pytest

from scaleshift.quantify.prototypes import ROWS_AT_A_TIME, Prototypes, learn_prototypes
from scaleshift.solve.mixture_likelihood import mixture_proportions


def posteriors(n, c=4, seed=0):
    rng = np.random.default_rng(seed)
    code = rng.integers(c, size=n)
    logits = 2.0 * np.eye(c)[code] + rng.normal(0, 1.5, (n, c))
    p = np.exp(logits)
    return p / p.sum(axis=1, keepdims=True), code


def test_nearest_is_nearest_between_square_roots():
    p, code = posteriors(3 * ROWS_AT_A_TIME + 5)
    found = learn_prototypes(p, code, seed=0)
    distance = np.linalg.norm(np.sqrt(p)[:, None] - found.centres, axis=2)
    np.testing.assert_array_equal(found.nearest(p), distance.argmin(axis=1))


def test_counts_are_of_rows_by_group():
    p, code = posteriors(1_000)
    found = learn_prototypes(p, code, seed=0, n_prototypes=20)
    groups = np.where(np.arange(1_000) % 5 == 0, -1, np.arange(1_000) % 3)
    counts = found.counts(p, groups, 4)
    assert counts.shape == (4, len(found))
    for g in range(4):
        np.testing.assert_array_equal(
            counts[g], np.bincount(found.nearest(p[groups == g]), minlength=len(found))
        )


def test_the_same_rows_give_the_same_prototypes():
    p, code = posteriors(2_000)
    first, again = (learn_prototypes(p, code, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first.centres, again.centres)
    assert len(first) == 256


def test_no_more_prototypes_than_different_rows():
    p = np.repeat(np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]), 100, axis=0)
    found = learn_prototypes(p, np.repeat([0, 1, 1], 100), seed=0)
    assert len(found) == 3
    np.testing.assert_allclose(np.sort(found.posterior[:, 0]), [0.2, 0.5, 0.9])


def test_a_rare_class_has_prototypes_of_its_own():
    rng = np.random.default_rng(0)
    common, rare = rng.dirichlet([20, 2, 1], 20_000), rng.dirichlet([1, 2, 50], 20)
    p, code = np.vstack([common, rare]), np.repeat([0, 2], [20_000, 20])
    found = learn_prototypes(p, code, seed=0, n_prototypes=32)
    near = found.nearest(rare)
    assert len(np.unique(near)) >= 4
    assert np.abs(found.posterior[near] - rare).max() < 0.1


@pytest.mark.parametrize("c", [2, 5])
def test_counts_tell_the_proportions_almost_as_well_as_all_rows(c):
    p, code = posteriors(20_000, c)
    found, prior = learn_prototypes(p, code, seed=0), p.mean(axis=0)
    rng = np.random.default_rng(1)
    rows = rng.permutation(20_000)[:8_000]
    rows = rows[rng.random(8_000) < np.linspace(0.05, 0.95, c)[code[rows]]]
    counts = found.counts(p[rows], np.zeros(len(rows), int), 1)
    by_counts = mixture_proportions(found.posterior / prior, counts, prior)[0]
    by_rows = mixture_proportions(p[rows] / prior, np.ones((1, len(rows))), prior)[0]
    assert np.abs(by_counts - by_rows).max() < 0.003
    assert np.abs(by_rows - prior).max() > 0.1


def test_prototypes_know_their_number_and_weight():
    some = Prototypes(np.eye(3), np.eye(3))
    assert (len(some), some.nbytes) == (3, 144)
