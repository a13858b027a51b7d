"""Class moments: the reference case, the objective they make, and sums of them."""

import itertools
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
from scipy import stats

from scaleshift.auc.moments import class_moments, contrast
from scaleshift.auc.ranking import debiased, objective, scales, sparse_path, t_statistic
from scaleshift.auc.screening import class_spread
from scaleshift.blocks.buckets import random_buckets
from scaleshift.blocks.folds import divide
from scaleshift.blocks.rows import as_rows, with_numbers
from scaleshift.errors import DataError

SIGN = np.array([-1, 1], np.int8)


@pytest.fixture(scope="module")
def quad():
    with np.load(Path(__file__).parents[1] / "data" / "auc" / "quad.npz") as case:
        return dict(case)


def moments_of(X, y, weight=None, **options):
    rows = as_rows(X, y)
    if weight is not None:
        rows = with_numbers(rows, weight=weight)
    return class_moments(rows, None, weighted=weight is not None, **options)


def close(a, b, tolerance=1e-10):
    """Whether two contrasts are the same, relative to the spread of their features."""
    unit = np.sqrt(np.maximum(a.variance, 1e-300))
    np.testing.assert_allclose(a.weight, b.weight, rtol=tolerance)
    np.testing.assert_array_equal(a.count, b.count)
    np.testing.assert_allclose(a.mean / unit, b.mean / unit, atol=tolerance)
    units = np.outer(unit, unit) if a.covariance.ndim == 3 else unit**2
    np.testing.assert_allclose(a.covariance / units, b.covariance / units, atol=tolerance)


@pytest.mark.parametrize("chunks", [None, 1, 7, 499, 500, (3, 0, 100, 397), (250, 250)])
@pytest.mark.parametrize("shuffled", [False, True])
def test_reference_case_from_any_chunking(quad, chunks, shuffled):
    X, y = quad["X"], quad["y"]
    order = np.random.default_rng(1).permutation(len(X)) if shuffled else np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    if chunks is not None:
        X = da.from_array(X, chunks=(chunks, -1))
    found = contrast(moments_of(X, y), SIGN)
    np.testing.assert_allclose(found.delta, quad["delta"], rtol=1e-10)
    np.testing.assert_allclose(found.within, quad["W"], rtol=1e-10, atol=1e-10 * np.abs(quad["W"]).max())
    A = found.within + np.outer(found.delta, found.delta)
    w = np.linalg.solve(A, found.delta)
    np.testing.assert_allclose(w, quad["w_dense"], rtol=1e-8, atol=1e-10)
    assert objective(found, w) == pytest.approx(float(quad["F_dense_min"]), rel=1e-10)
    assert 1 - found.delta @ w == pytest.approx(float(quad["F_dense_min"]), rel=1e-10)


def test_a_path_of_all_features_ends_at_the_dense_ranking(quad):
    found = contrast(moments_of(quad["X"], quad["y"]), SIGN)
    path = sparse_path(found, [1, 10, 40], alpha=0.0)
    np.testing.assert_allclose(path[-1], quad["w_dense"], rtol=1e-7, atol=1e-9)
    values = objective(found, path)
    assert (np.diff(values) < 0).all()
    assert values[-1] == pytest.approx(float(quad["F_dense_min"]), rel=1e-10)


def test_the_objective_is_the_mean_over_pairs_and_over_rows(quad):
    X, y = quad["X"], quad["y"]
    found = contrast(moments_of(X, y), SIGN)
    w = np.random.default_rng(0).normal(size=X.shape[1])
    s, t = X[y > 0] @ w, X[y < 0] @ w
    over_pairs = np.mean((1 - (s[:, None] - t)) ** 2)
    r, gap = np.mean(y > 0), s.mean() - t.mean()
    over_rows = (
        np.where(y > 0, (X @ w - s.mean()) ** 2 / r, (X @ w - t.mean()) ** 2 / (1 - r)) + (1 - gap) ** 2
    )
    assert objective(found, w) == pytest.approx(over_pairs, rel=1e-12)
    assert over_rows.mean() == pytest.approx(over_pairs, rel=1e-12)


def test_rarer_positives_change_nothing(quad):
    """Label shift: each negative three times is the same objective."""
    X, y = quad["X"], quad["y"]
    times = np.where(y > 0, 1, 3)
    once, more = moments_of(X, y), moments_of(np.repeat(X, times, axis=0), np.repeat(y, times))
    once, more = contrast(once, SIGN), contrast(more, SIGN)
    np.testing.assert_allclose(once.within, more.within, atol=1e-12)
    np.testing.assert_allclose(once.delta, more.delta, atol=1e-12)


@pytest.mark.parametrize("spread", [False, True])
def test_another_centre_is_the_same_moments(quad, spread):
    rows = as_rows(quad["X"], quad["y"])
    found = class_spread(rows, None, weighted=False) if spread else class_moments(rows, None)
    far = found.about(found.centre + 1_000)
    np.testing.assert_allclose(far.about(found.centre).sum, found.sum, atol=1e-8)
    close(contrast(far, SIGN), contrast(found, SIGN), 1e-8)


@pytest.mark.parametrize("spread", [False, True])
def test_parts_with_other_centres_add_up_to_the_whole(quad, spread):
    X, y = quad["X"] + 50, quad["y"]
    moments = (
        (lambda rows: class_spread(rows, None, weighted=False))
        if spread
        else (lambda rows: class_moments(rows, None))
    )
    order = np.argsort(X[:, 0])  # parts that differ
    parts = [moments(as_rows(X[some], y[some])) for some in np.array_split(order, 3)]
    whole = contrast(moments(as_rows(X, y)), SIGN)
    for a, b, c in itertools.permutations(parts):
        close(contrast(a + b + c, SIGN), whole)
        close(contrast(a + (b + c), SIGN), whole)


def test_moments_that_do_not_fit_are_refused(quad):
    X, y = quad["X"], quad["y"]
    with pytest.raises(DataError, match=r"of 40 features cannot be added to those .* of 39"):
        moments_of(X, y) + moments_of(X[:, 1:], y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_far_from_zero_nothing_is_lost(dtype):
    """An offset of 1e4 standard deviations: right to 1e-5 of float64 on the very same values."""
    rng = np.random.default_rng(0)
    y = np.arange(4_000) % 5 == 0
    X = (
        rng.normal(size=(4_000, 6)) * 2.0 ** np.arange(6)
        + np.outer(y, np.arange(6))
        + 1e4 * 2.0 ** np.arange(6)
    )
    X = X.astype(dtype)
    exact = X.astype(np.longdouble)
    expected = sum(np.cov(exact[y == side].T.astype(np.float64), bias=True) for side in (False, True))
    delta = (exact[y].mean(axis=0) - exact[~y].mean(axis=0)).astype(np.float64)
    for values in (X, da.from_array(X, chunks=(333, -1))):
        found = contrast(moments_of(values, y), SIGN)
        unit = np.sqrt(np.diagonal(expected))
        np.testing.assert_allclose(
            found.within / np.outer(unit, unit), expected / np.outer(unit, unit), atol=1e-5
        )
        np.testing.assert_allclose(found.delta / unit, delta / unit, atol=1e-5)


def test_a_first_block_far_from_the_others_does_no_harm():
    """The centre comes from the first rows, which may be odd."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3_000, 4)), np.arange(3_000) % 3 == 0
    X[:1_000] += 1_000
    found = contrast(moments_of(da.from_array(X, chunks=(1_000, -1)), y), SIGN)
    expected = np.cov(X[y].T, bias=True) + np.cov(X[~y].T, bias=True)
    np.testing.assert_allclose(found.within, expected, rtol=1e-10)


def test_weights_are_repeated_rows(quad):
    X, y = quad["X"], quad["y"]
    times = np.random.default_rng(0).integers(0, 4, len(X))
    weighted, repeated = moments_of(X, y, times), moments_of(np.repeat(X, times, 0), np.repeat(y, times))
    for a, b in zip(_shape(contrast(weighted, SIGN)), _shape(contrast(repeated, SIGN)), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-10)
    assert weighted.count.sum() == (times > 0).sum()


def _shape(found):
    return found.weight, found.mean, found.covariance


def test_buckets_are_the_rows_of_folds(quad):
    """Moments of some buckets are those of the rows in them."""
    X, y = quad["X"], quad["y"]
    rows = as_rows(da.from_array(X, chunks=(77, -1)), y)
    folds = divide(rows, "label", 6, 3, "buckets")
    found = class_moments(rows, random_buckets(rows, 6, 3))
    fold = np.concatenate(
        [folds(start, (y[start : start + 77] > 0).astype(int)) for start in range(0, len(X), 77)]
    )
    for buckets in ([0], [1, 4], [0, 2, 3, 5]):
        some = np.isin(fold, buckets)
        close(contrast(found, SIGN, buckets), contrast(moments_of(X[some], y[some]), SIGN))


def test_held_out_spread_of_few_rows():
    """n - 1 in place of n; of one row the other class's; of one row each unknown."""
    y = np.array([0, 0, 0, 1, 1])
    X = np.array([[0.0], [1.0], [5.0], [2.0], [4.0]])
    found = contrast(moments_of(X, y), SIGN).unbiased()
    np.testing.assert_allclose(found.covariance.ravel(), [X[:3].var(ddof=1), X[3:].var(ddof=1)])
    one = contrast(moments_of(X[:4], y[:4]), SIGN).unbiased()
    np.testing.assert_allclose(one.covariance.ravel(), [X[:3].var(ddof=1)] * 2)
    assert np.isnan(contrast(moments_of(X[2:4], y[2:4]), SIGN).unbiased().covariance).all()


def test_t_statistics_are_students(quad):
    X, y = quad["X"], quad["y"]
    expected = stats.ttest_ind(X[y > 0], X[y < 0]).statistic
    np.testing.assert_allclose(t_statistic(contrast(moments_of(X, y), SIGN)), expected, rtol=1e-10)
    spread = class_spread(as_rows(X, y), None, weighted=False)
    np.testing.assert_allclose(t_statistic(contrast(spread, SIGN)), expected, rtol=1e-8)


@pytest.mark.parametrize("offset", [0.0, 1.0, 0.1, 1e4, -1e-3])
def test_constant_features_have_no_scale_and_no_t(offset):
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3 == 0
    X = np.stack([np.full(90, offset), rng.normal(size=90) + y, y + offset], axis=1)
    for found in (
        contrast(moments_of(X, y), SIGN),
        contrast(class_spread(as_rows(X, y), None, weighted=False), SIGN),
    ):
        assert np.isfinite(scales(found)).tolist() == [False, True, True]
        assert t_statistic(found)[0] == 0
        path = sparse_path(found, [1, 3], alpha=0.0)
        assert np.isfinite(path).all()
        assert not path[:, 0].any()
        assert path[0, 2] != 0  # constant in each class and other between them: the best there is


def test_debiased_weights_are_best_for_their_support(quad):
    found = contrast(moments_of(quad["X"], quad["y"]), SIGN)
    path = sparse_path(found, [1, 5, 12], alpha=10.0)
    again = debiased(found, path, scale=True, positive=False)
    assert ((path != 0) == (again != 0)).all()
    for weights, shrunk in zip(again, path, strict=True):
        S = np.flatnonzero(weights)
        A = (found.within + np.outer(found.delta, found.delta))[np.ix_(S, S)]
        np.testing.assert_allclose(weights[S], np.linalg.solve(A, found.delta[S]), rtol=1e-9)
        assert objective(found, weights) <= objective(found, shrunk)
