"""Odd data: separated labels, lost classes, more features than rows, constants, rows that are not finite."""

import numpy as np
import pytest
from categorical_jobs import learned, settings, sums_of, three_classes, two_classes

from scaleshift.blocks.rows import as_rows, with_numbers
from scaleshift.error.categorical import learn
from scaleshift.error.family import Job
from scaleshift.errors import DataError


def test_separated_labels_without_a_penalty_are_refused_with_a_way_out():
    x = np.random.default_rng(0).normal(size=(60, 2))
    y = (x[:, 0] > 0).astype(int)
    with pytest.raises(DataError, match=r"separates the labels .*alpha > 0"):
        learned(x, y, alpha=0)
    assert np.isfinite(learned(x, y, alpha=1e-3).replicates).all()


def test_more_features_than_rows_need_a_penalty():
    r = np.random.default_rng(0)
    x = r.normal(size=(40, 60))
    y = (x[:, 0] + r.normal(size=40) > 0).astype(int)
    with pytest.raises(DataError, match="alpha > 0"):
        learned(x, y, alpha=0)
    family = learned(x, y, alpha=0.1, folds=3)
    answer = family.answers(sums_of(family, r.normal(size=(30, 60))))["direct"]
    assert 0 < answer.error < 0.5


def test_replicates_whose_labels_are_separated_are_counted_and_bounded():
    r = np.random.default_rng(0)
    x = r.normal(size=(16, 2))
    y = (1.2 * x[:, 0] + r.logistic(size=16) > 0).astype(int)
    family = learned(x, y, alpha=0, n_bootstrap=60)
    assert 0 < family.n_separated < 60
    assert np.abs(family.replicates).max() < 50
    sums = sums_of(family, x)
    assert any("separated" in remark for remark in family.remarks(sums))
    assert 0 < family.answers(sums)["direct"].error < 0.5


@pytest.mark.parametrize("model", ["logistic", "multinomial"])
@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_a_class_that_a_replicate_has_lost_has_the_probability_0(model, penalty):
    x, y = two_classes(n=40) if model == "logistic" else three_classes(n=60)
    given = np.random.default_rng(0).random((len(x), 4))
    given[:, 1] = 0  # all labels are the first class
    given[:, 2] = 1 - 1e-12  # the last
    rows = with_numbers(as_rows(x, y), train=given, fresh=given)
    asked = settings(model, penalty=penalty, alpha=0.02, n_bootstrap=4, generator="plugin", loss="deviance")
    family = learn(Job(rows, None, asked))
    assert family.n_lost == 2
    assert family.n_separated == 0
    sums = sums_of(family, x)
    dearest = -2 * np.log(1e-12)  # of a label whose probability is 0
    expected = dearest * (1 - family.predict(x)[:, [0, -1]]).sum(axis=0)
    np.testing.assert_allclose(sums["err"][[1, 2]], expected, rtol=1e-6)
    assert any("drew no row" in remark for remark in family.remarks(sums))


def test_of_three_classes_one_is_lost_and_two_are_fitted():
    x, y = three_classes(n=90)
    given = np.random.default_rng(0).random((90, 3))
    family = learned(x, y, "multinomial", alpha=0.02)
    proba = family.predict(x)
    first = proba[:, 0]
    given[:, 0] = np.where(given[:, 0] < 0.5, 0, first + 1e-9)  # the first class or the second
    rows = with_numbers(as_rows(x, y), train=given, fresh=given)
    lost = learn(Job(rows, None, settings("multinomial", alpha=0.02, n_bootstrap=3, generator="plugin")))
    drawn = (given[:, 0, None] >= np.cumsum(proba, axis=1)[:, :-1]).sum(axis=1)
    assert set(drawn) == {0, 1}
    alone = learned(x, drawn, "multinomial", alpha=0.02, n_bootstrap=2)
    found = lost.replicates[0]
    np.testing.assert_allclose(found[0] - found[1], alone.theta[0] - alone.theta[1], atol=1e-8)
    assert found[2, 0] == -40
    assert not found[2, 1:].any()


def test_a_class_with_few_rows_may_be_absent_without_a_fold():
    x, y = three_classes(n=120)
    y = np.where(np.arange(120) < 2, 2, np.minimum(y, 1))
    family = learned(x, y, "multinomial", folds=5, alpha=0.05)
    assert np.isfinite(family.cv_error)
    assert 0 < family.error_in_sample["decomposed"] < 1


@pytest.mark.parametrize("alpha", [0, 0.05])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e9])
def test_constant_columns_have_no_weight(alpha, value):
    x, y = two_classes()
    with_constant = np.c_[x, np.full(len(x), value)]
    family, plain = learned(with_constant, y, alpha=alpha), learned(x, y, alpha=alpha)
    assert family.coef[0, -1] == 0
    np.testing.assert_allclose(family.replicates[..., :-1], plain.replicates, atol=1e-9)


def test_a_column_twice_shares_its_weight():
    x, y = two_classes()
    family, plain = learned(np.c_[x, x[:, 0]], y, alpha=0), learned(x, y, alpha=0)
    np.testing.assert_allclose(family.coef[0, [0, -1]], plain.coef[0, 0] / 2, rtol=1e-6)
    np.testing.assert_allclose(family.predict(np.c_[x, x[:, 0]]), plain.predict(x), atol=1e-7)


def test_rows_that_are_not_finite_are_left_out_and_counted():
    x, y = two_classes()
    family = learned(x, y)
    target = x[:50].copy()
    target[[3, 7], 1] = np.nan
    found = sums_of(family, target, invalid="drop")
    assert (found["n"], found["n_invalid"]) == (48, 2)
    alone = sums_of(family, np.delete(target, [3, 7], axis=0))
    np.testing.assert_allclose(found["err"], alone["err"], rtol=1e-12)
    assert any("left out" in remark for remark in family.remarks(found))
    with pytest.raises(DataError, match="NaN"):
        sums_of(family, target)


def test_rows_without_label_or_with_nan_are_not_learned_from():
    x, y = two_classes()
    labels = y.astype(object)
    labels[[4, 9]] = None
    spoilt = x.copy()
    spoilt[11] = np.inf
    family = learned(spoilt, labels, invalid="drop")
    keep = np.setdiff1d(np.arange(len(x)), [4, 9, 11])
    alone = learned(x[keep], y[keep])
    assert (family.n, family.n_invalid) == (len(x) - 3, 1)
    np.testing.assert_allclose(family.coef, alone.coef, rtol=1e-9)
    assert family.apparent == pytest.approx(alone.apparent)


def test_a_target_of_one_row_and_one_of_none():
    x, y = two_classes()
    family = learned(x, y)
    answers = family.answers(sums_of(family, x[:1] * 2))
    assert 0 <= answers["direct"].error <= 1
    none = family.answers(sums_of(family, np.full((1, x.shape[1]), np.nan), invalid="drop"))
    assert all(np.isnan(answer.error) and answer.reason for answer in none.values())


@pytest.mark.parametrize("names", [["no", "yes"], [False, True], [3, 12]])
def test_labels_of_any_type(names):
    x, y = two_classes()
    family = learned(x, np.array(names)[y])
    assert family.classes.tolist() == names
    np.testing.assert_array_equal(family.theta, learned(x, y).theta)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"generator": "ols"}, "generator='ols'"),
        ({"generator": "relaxed", "alpha": 0.0}, "alpha > 0"),
        ({"alpha": None}, "folds"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_words(changed, message):
    with pytest.raises(DataError, match=message):
        learned(*two_classes(), **changed)


def test_the_number_of_classes_must_be_that_of_the_model():
    x, y = three_classes()
    with pytest.raises(DataError, match="multinomial"):
        learned(x, y, "logistic")
    with pytest.raises(DataError, match="2 at least"):
        learned(x, np.zeros(len(x), int), "multinomial")


def test_extrapolation_grows_with_the_distance_from_the_source():
    x, y = three_classes()
    family = learned(x, y, "multinomial")
    centre = x.mean(axis=0)
    near, far = family.extrapolation(np.vstack([centre, centre + 20]))
    assert far > 20 * near > 0
    z = family.frame.z(x[:1])
    strayed = z @ np.moveaxis(family.replicates - family.generator_theta, -1, 0).reshape(z.shape[1], -1)
    assert family.extrapolation(x[:1])[0] == pytest.approx((strayed**2).mean(), rel=1e-6)
    assert family.by_feature({}) is None


def test_certain_probabilities_are_told():
    x, y = two_classes()
    family = learned(x, y, alpha=0)
    told = family.remarks(sums_of(family, 3 + (x - 3) * 100))
    assert any("for certain" in remark for remark in told)
    assert family.remarks(sums_of(family, x)) == []
