"""What all rows are asked once rankings are learned."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from scaleshift.auc.judging import Final, judge, judged_block
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
    for contrast, sign in enumerate(SIGNS):
        for place, side in enumerate((-1, 1)):
            inside = sign[Y] == side
            expected = scores[inside, contrast] @ X[inside].astype(float)
            np.testing.assert_allclose(found[contrast, place], expected, rtol=1e-12, atol=1e-12)


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
