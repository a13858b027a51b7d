"""MLLS: what EM on calibrated posteriors converges to, in a few passes."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from synthetic import make
from three_classes import CENTRES, LABELS, draw

import scaleshift as ss
from scaleshift.errors import DataError
from scaleshift.quantify.families.mlls import USUAL_PASSES

SHARES = [0.7, 0.2, 0.1]
X, Y = draw(3_000, [0.3, 0.3, 0.4], seed=0)
T, TRUTH = draw(2_000, SHARES, seed=1)
REALISED = np.array([(label == TRUTH).mean() for label in LABELS])
EVERY = ["bcts", "vector", None]


def close(n, shares, seed):
    """Three classes that overlap."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=shares)
    return 0.4 * CENTRES[y] + rng.standard_normal((n, 3)), LABELS[y]


CLOSE_X, CLOSE_Y = close(3_000, [0.3, 0.3, 0.4], seed=0)


def model(x=CLOSE_X, y=CLOSE_Y, **settings):
    return ss.MLLS(**{"random_state": 0, **settings}).fit(x, y)


def ratios(fitted, target):
    """Class densities of target rows over that of the source."""
    log_posterior = fitted.embedding_.log_posterior(target)
    np.testing.assert_allclose(np.exp(log_posterior).sum(axis=1), 1)
    return np.exp(log_posterior - np.log(fitted.embedding_.prior))


def em(r, start, change=1e-14, steps=200_000):
    """Plain EM of Saerens and others."""
    a = start.copy()
    for _ in range(steps):
        joint = a * r
        new = (joint / joint.sum(axis=1, keepdims=True)).mean(axis=0)
        moved, a = np.abs(new - a).max(), new
        if moved < change:
            break
    return a


def mean_log_likelihood(r, a):
    return np.log(r @ a).mean()


# The estimate ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("calibration", EVERY)
@pytest.mark.parametrize("shares", [[0.3, 0.3, 0.4], [0.9, 0.08, 0.02], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]])
def test_it_is_what_em_converges_to(calibration, shares):
    fitted = model(calibration=calibration)
    target = close(1_000, shares, seed=1)[0]
    found = fitted.predict(target)
    truth = em(ratios(fitted, target), fitted.embedding_.prior)
    np.testing.assert_allclose(found["proportion"].values[0], truth, atol=1e-6)
    assert found["converged"].item()
    assert found["proportion"].sum().item() == pytest.approx(1, abs=1e-12)


def test_a_class_that_is_absent_from_the_target_is_exactly_zero():
    """Where its gain is negative: EM only nears zero there."""
    fitted, zeros = model(), 0
    for seed in range(8):
        target = close(1_000, [0.0, 0.5, 0.5], seed=seed)[0]
        found = fitted.predict(target)["proportion"].values[0]
        truth = em(ratios(fitted, target), fitted.embedding_.prior)
        np.testing.assert_allclose(found, truth, atol=1e-6)
        if truth[0] < 1e-8:
            zeros += 1
            assert found[0] < 1e-8
    assert zeros >= 2


@pytest.mark.parametrize("calibration", EVERY)
def test_the_likelihood_never_falls(calibration):
    fitted = model(calibration=calibration)
    parts = [
        close(300, np.roll(shares, i), seed=i) for i in range(3) for shares in (SHARES, [0.98, 0.01, 0.01])
    ]
    target = np.concatenate([x for x, _ in parts])
    sample = np.repeat(np.arange(6), 300)
    found = fitted.predict(target, sample)
    trace = found["log_likelihood"].values
    assert trace.shape == (6, found.attrs["n_passes"] - 1)
    assert (np.diff(trace, axis=1) >= 0).all()
    r = ratios(fitted, target)
    for i in range(6):
        last = mean_log_likelihood(r[sample == i], found["proportion"].values[i])
        assert last >= trace[i, -1] - 1e-12


def test_the_likelihood_is_that_of_the_rows_relative_to_the_source():
    fitted = model(tol=1e-13)
    target = close(1_000, SHARES, seed=2)[0]
    found = fitted.predict(target)
    expected = mean_log_likelihood(ratios(fitted, target), found["proportion"].values[0])
    assert found["log_likelihood"].values[0, -1] == pytest.approx(expected, abs=1e-12)
    assert expected > mean_log_likelihood(ratios(fitted, target), fitted.embedding_.prior) == pytest.approx(0)


@pytest.mark.parametrize("calibration", EVERY)
def test_known_results(calibration):
    """Mean L2 error over seeds 0 to 4 where nothing is unknown."""
    errors = []
    for seed in range(5):
        problem = make(seed)
        fitted = ss.MLLS(calibration=calibration, random_state=seed, n_bootstrap=0)
        found = fitted.fit(problem.x, problem.y).predict(problem.target)
        errors.append(np.linalg.norm(found["proportion"].values[0] - problem.proportions))
        assert found.attrs["n_passes"] <= 4
    assert np.mean(errors) < 0.003  # the bar is .006


def test_a_target_like_the_source_has_its_mean_posterior():
    """Which calibration makes the class shares, also of a classifier that is sure, and wrong."""
    rng = np.random.default_rng(0)
    y = rng.choice(2, 20_000, p=[0.8, 0.2])
    x = np.repeat(y[:, None] + rng.normal(0, 1.5, (20_000, 1)), 5, axis=1)  # one marker, five times over
    expected = {"bcts": 0.2, "vector": 0.2, None: GaussianNB().fit(x, y).predict_proba(x)[:, 1].mean()}
    assert expected[None] > 0.25
    for calibration in EVERY:
        fitted = ss.MLLS(GaussianNB(), calibration, n_bootstrap=0, random_state=0).fit(x[:10_000], y[:10_000])
        found = fitted.predict(x[10_000:])["proportion"].values[0, 1]
        assert abs(found - expected[calibration]) < 0.03


def test_calibration_is_what_an_overconfident_classifier_needs():
    rng = np.random.default_rng(0)

    def rows(n, share):
        y = (rng.random(n) < share).astype(int)
        return np.repeat(y[:, None] + rng.normal(0, 1, (n, 1)), 6, axis=1), y

    x, y = rows(8_000, 0.5)
    target, truth = rows(8_000, 0.1)
    error = {}
    for calibration in EVERY:
        fitted = ss.MLLS(GaussianNB(), calibration, n_bootstrap=0, random_state=0).fit(x, y)
        error[calibration] = abs(fitted.predict(target)["proportion"].values[0, 1] - truth.mean())
    assert error[None] > 0.05
    assert error["bcts"] < 0.02
    assert error["vector"] < 0.02


def test_a_source_of_which_rare_classes_are_drawn_more_often():
    """Beyond 20 000 rows the classifier learns of a rare class from more than its share."""
    rng = np.random.default_rng(0)
    y = np.append(rng.choice(2, 60_000), np.full(150, 2))
    x = 2.0 * np.eye(3)[y] + rng.standard_normal((len(y), 3))
    of = rng.choice(3, 4_000, p=[0.5, 0.3, 0.2])
    target = 2.0 * np.eye(3)[of] + rng.standard_normal((4_000, 3))
    for calibration in EVERY:
        fitted = ss.MLLS(calibration=calibration, n_bootstrap=0, random_state=0).fit(x, y)
        assert fitted.embedding_.prior[2] == pytest.approx(150 / len(y))
        np.testing.assert_allclose(fitted.predict(target)["proportion"].values[0], [0.5, 0.3, 0.2], atol=0.04)
        posterior = np.exp(fitted.embedding_.log_posterior(x))
        np.testing.assert_allclose(posterior.mean(axis=0), fitted.embedding_.prior, atol=0.01)


# Intervals ---------------------------------------------------------------------------------------------


def test_intervals_hold_what_cells_were_drawn_with():
    held = []
    for seed in range(40):
        problem = make(seed, n=2_000)
        found = ss.MLLS(random_state=seed).fit(problem.x, problem.y).predict(problem.target)
        low, high = found["proportion_low"].values[0], found["proportion_high"].values[0]
        held.append((low <= problem.alpha) & (problem.alpha <= high))
    assert 0.88 <= np.mean(held) <= 0.99


def test_an_interval_holds_its_estimate_and_is_a_share():
    found = model().predict(close(500, [0.0, 0.3, 0.7], seed=3)[0])
    low, share, high = (found[name].values for name in ("proportion_low", "proportion", "proportion_high"))
    assert ((low >= 0) & (low <= share) & (share <= high) & (high <= 1)).all()
    assert (high > low).all()
    none = model(n_bootstrap=0).predict(T)
    assert np.isnan(none["proportion_low"]).all()
    assert np.isnan(none["p_value"]).all()


def test_an_unknown_population_rejects_label_shift():
    problem = make(1, "background", 0.3)
    fitted = ss.MLLS(random_state=0).fit(problem.x, problem.y)
    assert "label shift rejected" in fitted.predict(problem.target)["flag"].item()
    assert "label shift rejected" not in fitted.predict(make(1).target)["flag"].item()


# What must change nothing ------------------------------------------------------------------------------


@pytest.mark.parametrize("chunks", [(3_000,), (1_000, 1, 1_999), (500,) * 6])
def test_chunks_change_nothing(chunks):
    target, samples = close(2_000, SHARES, seed=4)[0], np.repeat(["s", "t"], 1_000)
    whole = model().predict(target, samples)
    lazy = ss.MLLS(random_state=0).fit(da.from_array(CLOSE_X, chunks=(chunks, (3,))), CLOSE_Y)
    found = lazy.predict(da.from_array(target, chunks=(333, 3)), samples)
    for name in ("proportion", "proportion_low", "proportion_high", "p_value"):
        np.testing.assert_allclose(found[name], whole[name], atol=1e-7)
    np.testing.assert_allclose(found["log_likelihood"], whole["log_likelihood"], rtol=1e-10, atol=1e-12)


def test_a_sample_does_not_depend_on_the_others():
    fitted = model()
    parts = [close(400, np.roll(SHARES, i), seed=10 + i)[0] for i in range(4)]
    together = fitted.predict(np.concatenate(parts), np.repeat(list("abcd"), 400))
    for i, part in enumerate(parts):
        alone = fitted.predict(part, np.repeat(list("abcd")[i], 400))
        for name in ("proportion", "proportion_low", "proportion_high"):
            np.testing.assert_allclose(together[name].values[i], alone[name].values[0], atol=1e-9)


@pytest.mark.parametrize("convert", [lambda y: np.searchsorted(LABELS, y), lambda y: y == "a", list])
def test_labels_of_any_type(convert):
    found = model(X, convert(Y)).predict(T)
    truth = np.array([np.mean(np.asarray(convert(TRUTH)) == label) for label in found["label"].values])
    np.testing.assert_allclose(found["proportion"].values[0], truth, atol=0.005)


@pytest.mark.parametrize("calibration", EVERY)
def test_order_of_rows_and_classes_changes_nothing_given_the_classifier(calibration):
    target = close(1_000, SHARES, seed=5)[0]
    renamed = {"a": "z", "b": "y", "c": "x"}
    estimator = LogisticRegression().fit(CLOSE_X[:1_000], CLOSE_Y[:1_000])
    other = LogisticRegression().fit(CLOSE_X[:1_000], [renamed[label] for label in CLOSE_Y[:1_000]])
    other.coef_, other.intercept_ = estimator.coef_[::-1], estimator.intercept_[::-1]
    settings = {"calibration": calibration, "cv": "prefit", "n_bootstrap": 0}
    first = model(CLOSE_X[1_000:], CLOSE_Y[1_000:], estimator=estimator, **settings).predict(target)
    order = 1_000 + np.random.default_rng(0).permutation(2_000)
    again = model(CLOSE_X[order], [renamed[label] for label in CLOSE_Y[order]], estimator=other, **settings)
    found = again.predict(target[::-1])["proportion"].values[0, ::-1]
    np.testing.assert_allclose(found, first["proportion"].values[0], atol=1e-6)


# Few rows, few classes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("calibration", EVERY)
def test_one_cell_of_a_class_is_enough_to_go_on(calibration):
    x, y = np.vstack([X, [[0, 0, 9.0]]]), np.append(Y, "one")
    found = model(x, y, calibration=calibration).predict(T)
    np.testing.assert_allclose(found["proportion"].sel(label=LABELS).values[0], REALISED, atol=0.005)
    assert "few source cells: one (1)" in found["flag"].item()


def test_one_class_is_everything():
    found = model(X[Y == "a"], Y[Y == "a"]).predict(T)
    assert found["proportion"].values.tolist() == [[1.0]]
    assert found["converged"].item()


def test_a_class_without_rows_stays_in_the_result():
    y = pd.Categorical(Y, categories=["a", "absent", "b", "c"])
    fitted = model(X, y)
    found = fitted.predict(T)
    assert found["label"].values.tolist() == ["a", "absent", "b", "c"]
    assert np.isnan(found["proportion"].sel(label="absent").item())
    assert "not in the source: absent" in found["flag"].item()
    np.testing.assert_allclose(found["proportion"].sel(label=LABELS).values[0], REALISED, atol=0.005)
    assert (fitted.embedding_.log_posterior(T)[:, 1] == -np.inf).all()


def test_samples_of_one_cell_and_of_none():
    fitted = model()
    target = np.vstack([0.4 * CENTRES[[1]], close(500, SHARES, seed=6)[0]])
    cells = xr.Dataset(
        {"X": (("cell", "marker"), target), "sample_code": ("cell", np.r_[2, np.zeros(500, int)])},
        coords={"sample": ["many", "none", "one"]},
    )
    found = fitted.predict(cells)
    assert found["proportion"].sel(sample="one").values.tolist() == [0.0, 1.0, 0.0]
    assert np.isnan(found["proportion"].sel(sample="none")).all()
    assert found["converged"].values.tolist() == [True, True, True]
    many = fitted.predict(target[1:])["proportion"].values[0]
    np.testing.assert_allclose(found["proportion"].sel(sample="many"), many, atol=1e-9)


def test_rows_that_are_not_finite_are_left_out():
    target = np.vstack([T, [[np.nan, 0, 0]]])
    found = model(X, Y, invalid="drop").predict(target)
    np.testing.assert_allclose(found["proportion"], model(X, Y).predict(T)["proportion"], atol=1e-9)
    assert found["n_invalid"].item() == 1
    with pytest.raises(DataError, match="NaN"):
        model(X, Y).predict(target)


# Estimators of the user's ------------------------------------------------------------------------------


@pytest.mark.parametrize("calibration", EVERY)
def test_probabilities_of_exactly_zero_are_no_trouble(calibration):
    forest = RandomForestClassifier(30, max_depth=4, random_state=0)
    found = model(X, Y, estimator=forest, calibration=calibration).predict(T)
    np.testing.assert_allclose(found["proportion"].values[0], REALISED, atol=0.02)
    assert (np.diff(found["log_likelihood"]) >= 0).all()
    assert found["converged"].item()


def test_a_fitted_estimator_is_taken_as_it_is():
    estimator = LogisticRegression().fit(CLOSE_X[:1_500], CLOSE_Y[:1_500])
    target, truth = close(4_000, SHARES, seed=7)
    fitted = model(CLOSE_X[1_500:], CLOSE_Y[1_500:], estimator=estimator, cv="prefit", calibration=None)
    found = fitted.predict(target)["proportion"].values[0]
    np.testing.assert_allclose(found, [np.mean(truth == label) for label in LABELS], atol=0.03)
    posterior = estimator.predict_proba(target) * fitted.embedding_.prior
    posterior /= estimator.predict_proba(CLOSE_X[1_500:]).mean(axis=0)
    posterior /= posterior.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.exp(fitted.embedding_.log_posterior(target)), posterior, atol=1e-3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"estimator": LinearSVC()}, "LinearSVC lacks predict_proba"),
        ({"estimator": LogisticRegression(), "cv": "prefit"}, "has no classes_"),
        ({"calibration": "platt"}, "calibration='platt': expected 'bcts', 'vector' or None"),
        ({"tol": 0}, "tol=0: expected a number above 0"),
        ({"max_iter": -1}, "max_iter=-1: expected a number of passes from 0"),
        ({"cv": 1}, "cv=1: expected a number of parts from 2"),
        (
            {"estimator": LogisticRegression().fit(X[Y != "b"], Y[Y != "b"]), "cv": "prefit"},
            r"does not know the label\(s\) b of the source",
        ),
    ],
)
def test_what_is_refused(settings, message):
    with pytest.raises(DataError, match=message):
        model(X, Y, **settings)


# Kept, told, shown -------------------------------------------------------------------------------------


@pytest.mark.parametrize("calibration", EVERY)
def test_saved_and_loaded_it_answers_the_same_bits(calibration, tmp_path):
    fitted = model(calibration=calibration)
    fitted.save(tmp_path / "model")
    target = close(500, SHARES, seed=8)[0]
    first, again = fitted.predict(target), ss.load(tmp_path / "model").predict(target)
    for name in first:
        np.testing.assert_array_equal(first[name], again[name])


def test_states_are_answered_by_typical_posteriors():
    fitted = model()
    target = close(4_000, SHARES, seed=9)[0]
    exact = fitted.predict(target)
    states = fitted.embed(target[:1_000]) + fitted.embed(target[1_000:])
    found = fitted.predict(states)
    assert "log_likelihood" not in found
    np.testing.assert_allclose(found["proportion"], exact["proportion"], atol=0.005)
    assert (found["proportion_low"] < found["proportion"]).all()
    none = fitted.set_params(max_iter=0).predict(target)
    np.testing.assert_allclose(found["proportion"], none["proportion"], atol=1e-9)
    assert not none["converged"].item()


def test_explain_states_the_passes():
    lazy = da.from_array(CLOSE_X, chunks=(500, 3))
    plan = ss.explain(ss.MLLS(random_state=0), lazy, CLOSE_Y)
    assert plan.passes_over_x == 2
    fitted = model()
    plan = ss.explain(fitted, lazy)
    assert plan.passes_over_x == 1 + USUAL_PASSES
    assert "up to 30" in plan.passes[-1].what


def test_the_result_becomes_a_table(tmp_path):
    found = model().predict(close(500, SHARES, seed=8)[0])
    ss.report.table(found, tmp_path / "table.csv")
    assert len(pd.read_csv(tmp_path / "table.csv")) >= 3
