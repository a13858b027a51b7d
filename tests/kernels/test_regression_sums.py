"""Are sums of a regression right by group, for any dtype and memory order, and blind to rows left out?"""

import numpy as np
import pytest

from scaleshift.kernels import dispatch

rng = np.random.default_rng(2)
N, D, M = 5_000, 7, 3
CENTRE = np.linspace(-1, 1, D)
X = rng.normal(size=(N, D)) + CENTRE
OUTCOMES = rng.normal(size=(N, M))
CODES = rng.integers(-1, 4, N)


def expected(x):
    z = np.c_[np.ones(N), x.astype(np.float64) - CENTRE]
    parts = [(z[g == CODES], OUTCOMES[g == CODES]) for g in range(4)]
    return {
        "gram": np.stack([a.T @ a for a, _ in parts]),
        "cross": np.stack([a.T @ b for a, b in parts]),
        "square": np.stack([(b * b).sum(axis=0) for _, b in parts]),
    }


def whole_numbers(x):
    return (9 * x).astype(int)


@pytest.mark.parametrize("form", [np.ascontiguousarray, np.asfortranarray, np.float32, whole_numbers])
def test_sums_are_those_of_float64_products(form):
    x = form(X)
    found = dispatch.regression_sums(x, OUTCOMES, CODES, 4, CENTRE)
    for name, values in expected(x).items():
        np.testing.assert_allclose(found[name], values, rtol=1e-11, atol=1e-9)
    assert np.array_equal(found["gram"], found["gram"].swapaxes(1, 2))


def test_rows_left_out_may_be_anything():
    x, outcomes = X.copy(), OUTCOMES.copy()
    x[CODES < 0], outcomes[CODES < 0] = np.nan, np.inf
    found = dispatch.regression_sums(x, outcomes, CODES, 4, CENTRE)
    np.testing.assert_allclose(found["gram"], expected(X)["gram"], rtol=1e-11, atol=1e-9)
    assert np.isfinite(found["square"]).all()


def test_no_rows_and_no_outcomes_give_zeros():
    found = dispatch.regression_sums(X[:0], OUTCOMES[:0, :0], CODES[:0], 2, CENTRE)
    assert not found["gram"].any()
    assert found["cross"].shape == (2, 1 + D, 0)
