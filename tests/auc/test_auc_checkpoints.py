"""Sums that are kept are those of the same question, or not taken."""

import numpy as np
import pytest
from scipy import sparse

import scaleshift as ss
from scaleshift.errors import DataError

RNG = np.random.default_rng(0)
N, D = 800, 60
Y = RNG.random(N) < 0.4
X = RNG.normal(size=(N, D)) + 0.15 * Y[:, None] * (RNG.random(D) < 0.5)
NOISE = RNG.normal(size=N)
X[:, 0] = 0.3 * Y + NOISE  # features 1 and 3 are useful beside 0 and 2, and useless alone
X[:, 1] = NOISE + 0.1 * RNG.normal(size=N)
X[:, 2] = 0.2 * Y + NOISE[::-1]
X[:, 3] = NOISE[::-1] + 0.1 * RNG.normal(size=N)
GROUPS = RNG.integers(0, 12, N)


def fit(path=None, x=X, y=Y, groups=None, weight=None, **parameters):
    parameters = {"solver": "stream", "n_screened": 6, "alpha": 0.1, "random_state": 0, **parameters}
    return ss.SparseAUC(checkpoint=path, **parameters).fit(x, y, weight, groups)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"k": 1, "cv": None}, {"k": 4, "cv": None}),
        ({"n_halves": 20}, {"n_halves": 0}),
        ({"n_screened": 6}, {"n_screened": 7}),
        ({"k": 3}, {"k": 5, "alpha": 1.0}),
    ],
)
def test_other_parameters_find_what_they_find_without_a_checkpoint(tmp_path, before, after):
    """Which features were summed depends on the parameters: sums of others are not taken."""
    path = tmp_path / "fit"
    fit(path, **before)
    np.testing.assert_array_equal(fit(path, **after).coef_, fit(**after).coef_)


def test_the_descent_of_another_positive_label_is_not_taken(tmp_path):
    y = RNG.integers(0, 3, N)
    how = {"y": y, "solver": "sht", "k": 3, "cv": None, "alpha": None, "max_iter": 16}
    for label in (0, 1):
        found = fit(tmp_path / "fit", pos_label=label, **how)
        np.testing.assert_array_equal(found.coef_, fit(pos_label=label, **how).coef_)


@pytest.mark.parametrize("other", ["labels", "weights", "groups"])
def test_the_sums_of_other_columns_are_refused(tmp_path, other):
    """A permutation has the same counts."""
    given = {"groups": GROUPS, "weight": RNG.integers(1, 4, N).astype(float)}
    changed = {
        "labels": {"y": RNG.permutation(Y)},
        "weights": {"weight": given["weight"][::-1]},
        "groups": {"groups": RNG.permutation(GROUPS)},
    }[other]
    path = tmp_path / "fit"
    fit(path, k=2, **given)
    with pytest.raises(DataError, match="other data or parameters"):
        fit(path, k=2, **{**given, **changed})


@pytest.mark.parametrize("first", [200, 400, 795])
def test_the_sums_of_other_sparse_rows_are_refused(tmp_path, first):
    """All rows from one on are others; none among the first hundred."""
    x = np.where(abs(X) > 1, X, 0.0)
    other = x.copy()
    other[first:] *= 2
    path = tmp_path / "fit"
    fit(path, x=sparse.csr_array(x), k=2)
    with pytest.raises(DataError, match="other data or parameters"):
        fit(path, x=sparse.csr_array(other), k=2)
