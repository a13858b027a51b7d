"""What all rows are asked once rankings are learned."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from scaleshift.auc.judging import Final, judge, judged_block, overlooked
from scaleshift.auc.moments import class_moments, contrast
from scaleshift.auc.ranking import sparse_path
from scaleshift.auc.screening import class_spread
from scaleshift.blocks.block import Block
from scaleshift.blocks.rows import as_rows, with_numbers

RNG = np.random.default_rng(0)
N, D = 700, 9
X = RNG.normal(size=(N, D)).astype(np.float32) * (RNG.random((N, D)) < 0.3)
Y = RNG.integers(0, 3, N)
WEIGHT = RNG.random(N)
SIGNS = np.array([[-1, 1, -1], [0, -1, 1]], np.int8)
FINAL = Final(RNG.normal(size=(2, D)) * (np.arange(D) % 3 == 0), SIGNS)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
def test_features_are_crossed_with_the_scores_of_each_side(kind, weighted):
    rows = as_rows(kind(X), Y, sparse=True)
    if weighted:
        rows = with_numbers(rows, weight=WEIGHT)
    found = judge(rows, None, 0, [], FINAL, weighted=weighted).across
    scores = X.astype(float) @ FINAL.weights.T * (WEIGHT[:, None] if weighted else 1)
    for number, sign in enumerate(SIGNS):
        for place, side in enumerate((-1, 1)):
            inside = sign[Y] == side
            expected = scores[inside, number] @ X[inside].astype(float)
            np.testing.assert_allclose(found[number, place], expected, rtol=1e-12, atol=1e-12)


def test_no_copy_of_a_wide_block_is_made():
    n, d = 4_000, 4_000
    x = np.ones((n, d), np.float32)
    block = Block(x, {"label": np.arange(n) % 2}, 0, np.ones(n, bool), np.zeros(d))
    final = Final(np.eye(1, d), np.array([[-1, 1]], np.int8))
    tracemalloc.start()
    judged_block(block, None, 0, [], final, weighted=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < x.nbytes / 2


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("positive", [True, False])
def test_what_is_overlooked_gains_more_than_the_least_useful_costs(scale, positive):
    """Told from scores alone, the same as from all covariances: in any units, and with signs known."""
    rng, candidates, alpha, n_found = np.random.default_rng(1), np.arange(4), 0.5, 0
    how = {"scale": scale, "positive": positive}
    for _ in range(20):
        y = rng.integers(0, 2, 300)
        x = rng.normal(size=(300, 8)) @ rng.normal(size=(8, 8)) * rng.uniform(0.2, 5, 8)
        x += y[:, None] * rng.normal(size=8) * x.std(axis=0) / 3
        rows, sign = as_rows(x, y), np.array([-1, 1], np.int8)
        found = contrast(class_moments(rows, None), sign)
        final = sparse_path(found, [2], alpha=alpha, among=candidates, **how)
        across = judge(rows, None, 0, [], Final(final, sign[None]), weighted=False).across[0]
        spread = class_spread(rows, None, weighted=False)
        told = overlooked(across, spread, sign, final[0], alpha, candidates, **how)

        unit = np.sqrt(found.variance if scale else np.full(8, found.variance[candidates].mean()))
        matrix, gain = found.within / np.outer(unit, unit) + alpha * np.eye(8), found.delta / unit
        support = np.flatnonzero(final[0])
        weights = np.linalg.solve(matrix[np.ix_(support, support)], gain[support])
        residual = gain - matrix[:, support] @ weights
        gained = residual**2 / np.diagonal(matrix) * ((residual > 0) | (not positive))
        cost = (weights**2 * np.diagonal(matrix)[support]).min(initial=np.inf if support.size else 0)
        expected = [j for j in np.argsort(-gained) if j not in candidates and gained[j] > cost]
        assert told.tolist() == expected
        n_found += len(told)
    assert n_found
