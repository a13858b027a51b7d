"""How rows are cut, and how many replicates there are, changes nothing of what is told."""

import dask.array as da
import numpy as np
import pytest
from categorical_jobs import learned, sums_of, three_classes, two_classes

from scaleshift.encoding import decode, encode


@pytest.mark.parametrize(
    ("model", "penalty", "loss"),
    [("logistic", "l2", "counting"), ("logistic", "l1", "deviance"), ("multinomial", "l2", "brier")],
)
def test_chunks_change_nothing(model, penalty, loss):
    x, y = two_classes(n=5_000) if model == "logistic" else three_classes(n=5_000)
    asked = {"penalty": penalty, "loss": loss, "folds": 3, "n_bootstrap": 8, "alpha": 0.01}
    whole = learned(x, y, model, **asked)
    cut = learned(da.from_array(x, chunks=(1_300, 2)).rechunk({1: -1}), y, model, **asked)
    for name in ("theta", "of_folds", "replicates"):
        np.testing.assert_allclose(getattr(cut, name), getattr(whole, name), rtol=1e-10, atol=1e-10)
    for name in ("apparent", "optimism", "in_b", "in_drawn", "cv_error", "cv_error_se"):
        np.testing.assert_allclose(getattr(cut, name), getattr(whole, name), rtol=1e-10, err_msg=name)
    sums = sums_of(whole, 1.2 * x), sums_of(cut, da.from_array(1.2 * x, chunks=(777, -1)))
    for name in sums[0]:
        np.testing.assert_allclose(sums[1][name], sums[0][name], rtol=1e-10, err_msg=name)


def test_more_replicates_leave_the_earlier_ones():
    x, y = two_classes()
    few, many = (learned(x, y, n_bootstrap=b) for b in (20, 45))
    np.testing.assert_allclose(many.replicates[:20], few.replicates, atol=1e-11)
    np.testing.assert_allclose(many.in_b[:20], few.in_b, rtol=1e-11)
    err = [family.err_b(sums_of(family, x * 1.3)) for family in (few, many)]
    np.testing.assert_allclose(err[1][:20], err[0], rtol=1e-11)


def test_a_seed_gives_the_same_numbers_twice_and_another_one_others():
    x, y = two_classes()
    first, second, other = (learned(x, y, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.replicates, second.replicates)
    assert not np.allclose(first.replicates, other.replicates)


def test_float32_rows_are_summed_in_float64():
    x, y = two_classes()
    narrow = x.astype(np.float32)
    np.testing.assert_array_equal(learned(narrow, y).theta, learned(narrow.astype(np.float64), y).theta)


def test_a_saved_family_answers_the_same():
    x, y = three_classes()
    family = learned(x, y, "multinomial", folds=3)
    node, arrays = encode(family)
    again = decode(node, lambda name, dtype, shape: arrays[name].reshape(shape).astype(dtype))
    np.testing.assert_equal(again.answers(sums_of(again, x)), family.answers(sums_of(family, x)))
