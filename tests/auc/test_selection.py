"""Size and shrinkage: every pairing of the buckets has a say, but for those of a held-out fold."""

import numpy as np
import pytest

import scaleshift as ss
from scaleshift.auc.job import FEW_ROWS
from scaleshift.auc.selection import HeldOut, best, divided, re_paired, smoothed, standard_error


@pytest.mark.parametrize("n_folds", [2, 3, 5, 10])
def test_every_pairing_leaves_each_bucket_out_once_and_no_pair_comes_twice(n_folds):
    folds = divided(2 * n_folds, n_folds) + re_paired(n_folds, 2)
    n_pairings = min(3, n_folds)
    assert len(folds) == n_pairings * n_folds
    for first in range(0, len(folds), n_folds):
        assert sorted(np.concatenate(folds[first : first + n_folds]).tolist()) == list(range(2 * n_folds))
    assert len({frozenset(out) for out in folds}) == len(folds)


def held(gap, out):
    gap = np.asarray(gap, float)
    return HeldOut(gap, np.ones_like(gap), out)


def test_folds_that_leave_a_bucket_out_have_no_say_without_it():
    gap = np.zeros((6, 1, 2))
    gap[:, 0, 0] = 1
    touching = [i for i, out in enumerate(divided(6, 3) + re_paired(3, 1)) if 0 in out or 1 in out]
    gap[touching, 0, 1] = 50
    found = held(gap, divided(6, 3) + re_paired(3, 1))
    assert best(found, "best") == (0, 1)
    assert best(found, "best", left_out=[0, 1]) == (0, 0)


def test_the_standard_error_of_one_pairing_is_the_jackknife_over_folds():
    gap = np.random.default_rng(0).normal(1, 0.3, size=(5, 1, 1))
    found = held(gap, divided(10, 5))
    auc = [held(np.delete(gap, i, 0), divided(10, 5)[1:]).pooled()[0, 0] for i in range(5)]
    expected = np.sqrt(4 / 5 * np.sum((auc - np.mean(auc)) ** 2))
    np.testing.assert_allclose(standard_error(found, 0, 0), expected, rtol=1e-12)
    alone = held(gap, [[i] for i in range(5)])
    np.testing.assert_allclose(standard_error(alone, 0, 0), expected, rtol=1e-12)


def test_smoothing_keeps_what_is_even_and_weighs_neighbours():
    np.testing.assert_allclose(smoothed(np.full((3, 4), 0.7)), 0.7, rtol=1e-15)
    peak = np.zeros((5, 5))
    peak[2, 2] = 16
    np.testing.assert_allclose(smoothed(peak)[1:4, 1:4], [[1, 2, 1], [2, 4, 2], [1, 2, 1]])


@pytest.mark.parametrize(("n_positive", "again"), [(FEW_ROWS - 1, True), (FEW_ROWS, False)])
def test_folds_are_paired_again_where_positives_are_few(n_positive, again, monkeypatch):
    rng = np.random.default_rng(0)
    y = np.arange(400) < n_positive
    x = rng.normal(size=(400, 6)) + y[:, None]
    n_folds = []
    original = ss.auc.selection.cross_validated

    def counted(evidence, sign, folds, options):
        n_folds.append(len(folds))
        return original(evidence, sign, folds, options)

    monkeypatch.setattr("scaleshift.auc.fitting.cross_validated", counted)
    model = ss.SparseAUC(random_state=0).fit(x, y)
    assert n_folds == [15 if again else 5]
    assert np.isfinite(model.auc_)
