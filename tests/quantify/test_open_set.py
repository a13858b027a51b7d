"""The default procedure: what it finds, and what must not change it."""

import io

import dask.array as da
import numpy as np
import pytest
from rich.console import Console
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB
from synthetic import make
from three_classes import LABELS, draw

import scaleshift as ss
from scaleshift.errors import DataError

SHARES = [0.7, 0.2, 0.1]
X, Y = draw(3_000, [0.3, 0.3, 0.4], seed=0)
T, TRUTH = draw(2_000, SHARES, seed=1)
REALISED = np.array([(label == TRUTH).mean() for label in LABELS])
FAR = np.random.default_rng(2).normal(20, 1, (500, 3)).astype("f4")
UNGATED = np.random.default_rng(3).normal([0, -6, 0], 1, (600, 3)).astype("f4")


def model(**parameters):
    return ss.OpenSetQuantifier(**{"random_state": 0, "n_bootstrap": 20, **parameters})


@pytest.fixture(scope="module")
def fitted():
    return model().fit(X, Y)


@pytest.fixture(scope="module")
def with_ungated():
    return model().fit(np.r_[X, UNGATED], np.r_[Y.astype(object), [None] * 600])


def batches(shift=0.3, n=1_500):
    """Three labelled samples that differ by a shift, and one to predict."""
    moved = [draw(n, [0.2 + 0.1 * i, 0.4, 0.4 - 0.1 * i], seed=10 + i) for i in range(4)]
    return [(x + shift * (i - 1), y) for i, (x, y) in enumerate(moved)]


@pytest.fixture(scope="module")
def of_three():
    three = batches()[:3]
    x, y = (np.concatenate(parts) for parts in zip(*three, strict=True))
    return model().fit(x, y, np.repeat(["S1", "S2", "S3"], 1_500))


# What it finds -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("noise", "eps", "bar"),
    [
        ("none", 0.0, 0.02),
        ("background", 0.1, 0.04),
        ("background", 0.3, 0.04),
        ("far", 0.1, 0.04),
        ("far", 0.3, 0.04),
        ("near", 0.3, 0.25),
    ],
)
def test_synthetic_problems_within_the_bar(noise, eps, bar):
    problem = make(0, noise, eps)
    result = model(n_bootstrap=0).fit(problem.x, problem.y).predict(problem.target).isel(sample=0)
    assert np.abs(result["proportion"].values - problem.proportions).sum() <= bar
    assert result["proportion"].sum() + result["unknown"] == pytest.approx(1)


def test_far_cells_are_unknown_and_said_to_be(fitted):
    result = fitted.predict(np.r_[T, FAR]).isel(sample=0)
    assert float(result["unknown"]) == pytest.approx(0.2, abs=0.01)
    np.testing.assert_allclose(result["proportion"], 0.8 * REALISED, atol=0.01)
    assert "cells unlike every class: at least" in str(result["flag"].values)
    assert float(result["novel_unaligned"]) == pytest.approx(float(result["novel"]), abs=0.05)


def test_without_unknown_all_cells_are_of_a_class():
    result = model(unknown=False).fit(X, Y).predict(np.r_[T, FAR]).isel(sample=0)
    assert float(result["proportion"].sum()) == pytest.approx(1)
    assert np.isnan(result["unknown"])
    assert np.isnan(result["novel"])


def test_a_shifted_batch_is_no_unknown_population(fitted):
    result = fitted.predict(T + np.float32(0.7)).isel(sample=0)
    np.testing.assert_allclose(result["proportion"], REALISED, atol=0.02)
    assert float(result["unknown"]) == 0


def test_alignment_tells_batch_shift_from_contamination(of_three):
    x = T.copy()
    x[TRUTH == "a", 0] -= 1.6
    x[TRUTH == "b", 1] += 1.6
    result = of_three.predict(x).isel(sample=0)
    assert float(result["novel_unaligned"]) > 0.05 + float(result["novel"])
    np.testing.assert_allclose(result["proportion"], REALISED, atol=0.03)


def test_class_shifts_are_told_in_standard_deviations(of_three):
    x = T.copy()
    x[TRUTH == "a", 0] += 0.8
    result = of_three.predict(x).isel(sample=0)
    assert float(result["shift"].sel(label="a", marker=0)) == pytest.approx(0.8, abs=0.2)
    assert float(np.abs(result["shift"].sel(label="b", marker=2))) < 0.2


def test_ungated_cells_of_the_source_are_a_class_of_their_own(with_ungated):
    alone = model(unknown_class=None).fit(np.r_[X, UNGATED], np.r_[Y.astype(object), [None] * 600])
    assert with_ungated.n_unknown_ == 600
    assert alone.n_unknown_ == 0
    result = with_ungated.predict(np.r_[T, UNGATED[:500] + np.float32(0.1)]).isel(sample=0)
    assert result["label"].values.tolist() == ["a", "b", "c"]
    assert float(result["unknown"]) == pytest.approx(0.2, abs=0.01)
    assert float(result["unknown_low"]) < 0.2 < float(result["unknown_high"])
    np.testing.assert_allclose(result["proportion"], 0.8 * REALISED, atol=0.01)
    assert str(result["flag"].values) == ""


def test_a_label_can_be_the_unknown_class():
    named = model(unknown_class="rest").fit(np.r_[X, UNGATED], np.r_[Y, ["rest"] * 600])
    assert named.labels_.tolist() == ["a", "b", "c"]
    result = named.predict(np.r_[T, UNGATED[:500]]).isel(sample=0)
    assert float(result["unknown"]) == pytest.approx(0.2, abs=0.01)
    with pytest.raises(DataError, match="unknown_class='nobody'"):
        model(unknown_class="nobody").fit(X, Y)


def test_few_ungated_cells_are_none_of_the_source():
    few = model().fit(np.r_[X, UNGATED[:49]], np.r_[Y.astype(object), [None] * 49])
    assert few.n_unknown_ == 0
    assert few.class_counts_.sum() == 3_000


def test_samples_without_labels_are_no_ungated_cells():
    y = np.r_[Y.astype(object), [None] * 600]
    found = model().fit(np.r_[X, UNGATED], y, np.repeat(["S1", "S2"], [3_000, 600]))
    assert found.n_unknown_ == 0
    assert found.source_samples_ == ["S1"]


def test_labelled_samples_choose_the_estimator_and_the_gate(of_three):
    errors = {name: np.mean(of) for name, of in of_three.leave_one_out_.items()}
    assert len(of_three.leave_one_out_[of_three.estimator_]) == 3
    assert of_three.estimator_ in errors
    assert 0.03 <= of_three.gate_ < 0.2
    x, y = batches()[3]
    result = of_three.predict(x).isel(sample=0)
    truth = np.array([(y == label).mean() for label in LABELS])
    assert np.abs(result["proportion"].values - truth).sum() < 0.1


def test_a_hopeless_sample_is_flagged():
    """Classes that overlap, in a sample whose class shares the two estimators tell otherwise."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 2_000)
    x = rng.normal(size=(4_000, 2)) + y[:, None]
    target = rng.normal(size=(4_000, 2)) + (np.arange(4_000) < 3_900)[:, None]
    result = model(unknown=False).fit(x, y).predict(target)
    assert float(result["disagreement"][0]) > 0.2
    assert str(result["flag"].values[0]).startswith("do not use: the estimators' shares differ by ")


def test_demo_study_within_the_bar():
    study = ss.datasets.load_demo()
    names = study["sample"].values[study["sample_code"].values]
    drawn = np.random.default_rng(0).random(len(names)) < 0.2
    labels = np.append(study["label"].values.astype(object), None)[study["label_code"].values]
    x, names, labels = study["X"].values[drawn], names[drawn], labels[drawn]
    source = np.isin(names, ["S01", "S09", "S15"])
    found = model(n_bootstrap=0).fit(x[source], labels[source], names[source])
    result = found.predict(x[~source], names[~source])
    errors = []
    for sample in result["sample"].values:
        own = labels[names == sample]
        truth = np.array([np.mean(own == label) for label in result["label"].values])
        errors.append(np.abs(result["proportion"].sel(sample=sample).values - truth).sum())
        assert float(result["unknown"].sel(sample=sample)) == pytest.approx(1 - truth.sum(), abs=0.05)
    assert np.mean(errors) <= 0.04


# What must not change it -------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [5_000, 700])
def test_chunks_change_nothing(fitted, chunk):
    names = np.random.default_rng(5).permutation(np.repeat(["p", "q"], [1_900, 600]))
    target = np.r_[T, FAR]
    whole = fitted.predict(target, sample=names)
    chunked = model().fit(da.from_array(X, chunks=(chunk, 3)), Y)
    result = chunked.predict(da.from_array(target, chunks=(chunk, 3)), sample=names)
    for name in ("proportion", "proportion_low", "unknown", "shift", "novel", "disagreement", "flag_rate"):
        np.testing.assert_allclose(result[name], whole[name], atol=1e-9)


def test_row_order_hardly_matters(fitted):
    order = np.random.default_rng(6).permutation(len(X))
    shuffled = model().fit(X[order], Y[order]).predict(np.r_[T, FAR][::-1])
    result = fitted.predict(np.r_[T, FAR])
    np.testing.assert_allclose(shuffled["proportion"], result["proportion"], atol=0.01)
    np.testing.assert_allclose(shuffled["unknown"], result["unknown"], atol=0.01)


def test_names_of_labels_do_not_matter(fitted):
    result = fitted.predict(np.r_[T, FAR])["proportion"].values
    as_numbers = model().fit(X, np.searchsorted(LABELS, Y) * 10)
    assert as_numbers.labels_.tolist() == [0, 10, 20]
    np.testing.assert_array_equal(as_numbers.predict(np.r_[T, FAR])["proportion"], result)
    renamed = model().fit(X, np.array(["z", "y", "x"])[np.searchsorted(LABELS, Y)])
    np.testing.assert_allclose(
        renamed.predict(np.r_[T, FAR])["proportion"].values[:, ::-1], result, atol=2e-3
    )


def test_a_sample_has_the_same_answer_in_any_company(fitted):
    names = np.repeat(["p", "q"], [2_000, 500])
    both = fitted.predict(np.r_[T, FAR], sample=names).sel(sample="p")
    alone = fitted.predict(T, sample=names[:2_000]).sel(sample="p")
    for name in ("proportion", "unknown", "shift"):
        np.testing.assert_array_equal(both[name], alone[name])


def test_a_saved_model_gives_the_same_bits(fitted, with_ungated, of_three, tmp_path):
    for number, one in enumerate((fitted, with_ungated, of_three)):
        one.save(tmp_path / str(number))
        again = ss.load(tmp_path / str(number))
        assert again.predict(np.r_[T, FAR]).identical(one.predict(np.r_[T, FAR]))
        assert again.leave_one_out_ == one.leave_one_out_


# What is odd -------------------------------------------------------------------------------------------


def test_one_cell_and_no_cells(fitted):
    study = ss.as_cells(T, sample=np.repeat(["one", "rest"], [1, len(T) - 1]))
    result = fitted.predict(study)
    one = result.sel(sample="one")
    assert float(one["proportion"].sum() + one["unknown"]) == pytest.approx(1)
    assert str(one["flag"].values).startswith("few cells: 1")
    lost = np.full((5, 3), np.nan, "f4")
    names = np.repeat(["lost", "rest"], [5, len(T)])
    empty = model(invalid="drop").fit(X, Y).predict(np.r_[lost, T], sample=names).sel(sample="lost")
    assert np.isnan(empty["proportion"]).all()
    assert str(empty["flag"].values).startswith("no cells")
    assert int(empty["n_invalid"]) == 5


def test_one_class():
    result = model().fit(X[Y == "a"], Y[Y == "a"]).predict(np.r_[T[TRUTH == "a"], FAR]).isel(sample=0)
    n = (TRUTH == "a").sum()
    assert float(result["unknown"]) == pytest.approx(500 / (500 + n), abs=0.02)


def test_a_class_of_one_cell():
    y = Y.astype("U4")
    y[0] = "rare"
    result = model().fit(X, y).predict(T).isel(sample=0)
    assert result["label"].values.tolist() == ["a", "b", "c", "rare"]
    np.testing.assert_allclose(result["proportion"].values[:3], REALISED, atol=0.02)
    assert "few source cells: rare (1)" in str(result["flag"].values)


def test_a_class_that_one_sample_alone_has():
    """It cannot be held out by sample: parts are random."""
    sample = np.where(Y == "c", "S2", np.where(np.arange(len(Y)) % 2, "S1", "S2"))
    found = model().fit(X, Y, sample)
    assert found.leave_one_out_[found.estimator_] == []
    np.testing.assert_allclose(found.predict(T)["proportion"].values[0], REALISED, atol=0.02)


def test_nothing_but_ungated_cells_is_refused():
    with pytest.raises(DataError, match="none of the source's 600 rows has a label"):
        model().fit(UNGATED, np.array([None] * 600, object))


def test_invalid_rows(fitted):
    x = X.copy()
    x[3, 1] = np.nan
    with pytest.raises(DataError, match="NaN or infinite values by column"):
        model().fit(x, Y)
    with pytest.raises(DataError, match="NaN or infinite values by column"):
        fitted.predict(np.r_[x[:10], T])
    dropping = model(invalid="drop").fit(x, Y)
    assert dropping.n_invalid_ == 1
    assert dropping.class_counts_.sum() == 2_999


def test_labels_that_the_source_lacks_stay_as_nan(fitted):
    study = ss.as_cells(T, label=np.where(TRUTH == "c", "d", TRUTH))
    result = fitted.predict(study)
    assert np.isnan(result["proportion"].sel(label="d")).all()
    assert "not in the source: d" in str(result["flag"].values[0])


def test_a_classifier_of_the_users_own(tmp_path):
    own = model(classifier=GaussianNB()).fit(X, Y)
    np.testing.assert_allclose(own.predict(T)["proportion"].values[0], REALISED, atol=0.02)
    with pytest.raises(DataError, match="GaussianNB cannot be saved"):
        own.save(tmp_path / "own")
    with pytest.raises(DataError, match="estimator: int"):
        model(classifier=3).fit(X, Y)


def test_as_scikit_learn_expects():
    one = model(level=0.9)
    assert clone(one).get_params() == one.get_params()
    with pytest.raises(NotFittedError):
        one.predict(T)
    for wrong in ({"level": 2}, {"n_bootstrap": 1}, {"n_landmarks": 0}):
        with pytest.raises(DataError, match=next(iter(wrong))):
            model(**wrong).fit(X, Y)


def test_no_intervals_where_none_are_asked_for():
    result = model(n_bootstrap=0).fit(X, Y).predict(T)
    assert np.isnan(result["proportion_low"]).all()
    assert np.isfinite(result["proportion"]).all()


def test_tables_cope_with_what_is_not_computed(fitted, tmp_path):
    result = fitted.predict(np.r_[T, FAR])
    table = ss.report.table(result, tmp_path / "shares.csv")
    assert np.isnan(table["p_value"]).all()
    screen = io.StringIO()
    Console(file=screen, width=120).print(ss.report.text(result, width=120))
    assert " N " in screen.getvalue()


def test_it_is_explained(fitted):
    rows = da.from_array(X, chunks=(1_000, 3))
    assert len(ss.explain(model(), rows, Y).passes) == 3
    assert len(ss.explain(fitted, da.from_array(T, chunks=(500, 3))).passes) == 3


# Posteriors --------------------------------------------------------------------------------------------


def test_posteriors_tell_classes_and_unknown_cells_apart():
    problem = make(0, "far", 0.3)
    model = ss.OpenSetQuantifier(n_bootstrap=0, random_state=0).fit(problem.x, problem.y)
    result = model.predict(problem.target)
    lazy = model.posterior(da.from_array(problem.target, chunks=(3_000, -1)), result)
    assert isinstance(lazy.data, da.Array)
    found = lazy.values
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)
    assert lazy["label"].values.tolist() == [0, 1, 2, 3, 4, "unknown"]
    n = round(len(found) * (1 - problem.unknown))
    assert (found[n:, -1] > 0.9).mean() > 0.99  # the far cells come last
    assert (found[:n, -1] < 0.5).mean() > 0.9
    np.testing.assert_allclose(found.mean(axis=0)[:5], result["proportion"].values[0], atol=0.02)
    whole = model.posterior(problem.target).values
    np.testing.assert_allclose(found, whole, atol=1e-9)


def test_posteriors_of_ungated_cells_count_as_unknown():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(m, 1, (1_000, 2)) for m in (-4, 4, 12)])
    y = np.repeat(np.array(["a", "b", None], dtype=object), 1_000)
    model = ss.OpenSetQuantifier(n_bootstrap=0, random_state=0).fit(x, y)
    target = np.concatenate([rng.normal(m, 1, (n, 2)) for m, n in ((-4, 300), (4, 500), (12, 200))])
    found = model.posterior(target)
    assert found["label"].values.tolist() == ["a", "b", "unknown"]
    assert found.values.argmax(axis=1).tolist() == [0] * 300 + [1] * 500 + [2] * 200


def test_posteriors_follow_the_proportions_of_each_sample():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(4_000, 1)), np.repeat(["a", "b"], 2_000)
    x[:2_000] -= 1
    x[2_000:] += 1
    model = ss.OpenSetQuantifier(n_bootstrap=0, unknown=False, random_state=0).fit(x, y)
    sample = np.repeat(["few", "many"], [4_000, 4_000])
    of = np.concatenate([np.repeat([-1, 1], [3_600, 400]), np.repeat([-1, 1], [400, 3_600])])
    target = of[:, None] + rng.normal(size=(8_000, 1))
    result = model.predict(target, sample)
    found = model.posterior(target, result, sample)
    means = [found[:4_000].mean("cell")[:2], found[4_000:].mean("cell")[:2]]
    np.testing.assert_allclose(means, result["proportion"], atol=0.04)
    assert means[0][0] > 0.8 > 0.2 > means[1][0]


def test_unknown_cells_do_not_pass_for_a_batch_shift():
    """A third of the cells, given to one of two classes, would move its median and with it all cells."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(m, 1, (500, 2)) for m in (-3, 3)])
    model = ss.OpenSetQuantifier(n_bootstrap=0, random_state=0).fit(x, np.repeat(["a", "b"], 500))
    target = np.concatenate([rng.normal(m, 1, (300, 2)) for m in (-3, 3, 12)])
    found = model.predict(target)
    np.testing.assert_allclose(found["proportion"].values[0], [1 / 3, 1 / 3], atol=0.03)
    moved = model.predict(target[:600] + 1.5)  # this is one
    np.testing.assert_allclose(moved["proportion"].values[0], [0.5, 0.5], atol=0.03)
    assert moved["unknown"].item() < 0.05


def test_novel_cells_below_the_gate_are_said_and_lie_within_the_intervals():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(m, 1, (2_000, 2)) for m in (-3, 3)])
    found = ss.OpenSetQuantifier(random_state=0).fit(x, np.repeat(["a", "b"], 2_000))
    target = np.concatenate([rng.normal(m, 1, (n, 2)) for m, n in ((-3, 4_800), (3, 4_800), (14, 400))])
    result = found.predict(target)
    assert result["unknown"].item() == 0
    assert result["unknown_high"].item() >= 0.04
    assert (result["proportion_low"].values <= 0.48).all()
    assert (result["proportion_high"].values >= 0.48).all()
    assert result["flag"].item().startswith("unlike every class, counted as known: ")
    clean = found.predict(target[:9_600])
    assert clean["flag"].item() == ""
    assert (clean["proportion_high"] - clean["proportion_low"]).max() < 0.04
