"""BBSE, and classifier outputs as features."""

import dask.array as da
import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from synthetic import make
from three_classes import CENTRES, LABELS, draw

import scaleshift as ss
from scaleshift.errors import DataError
from scaleshift.quantify.classifier.logistic import default_classifier, fit_logistic, mean_logistic
from scaleshift.quantify.classifier.parts import divided
from scaleshift.quantify.features.classifier import outputs
from scaleshift.quantify.features.histograms import MarkerHistograms, ScoreHistograms
from scaleshift.quantify.scores import row_features

SHARES = [0.7, 0.2, 0.1]
X, Y = draw(3_000, [0.3, 0.3, 0.4], seed=0)
T, TRUTH = draw(2_000, SHARES, seed=1)
REALISED = np.array([(label == TRUTH).mean() for label in LABELS])


def close(n, seed, apart=0.4):
    """Three classes that overlap."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n)
    return apart * CENTRES[y] + rng.standard_normal((n, 3)), LABELS[y]


# The classifier ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("d", [3, 31])
def test_the_arrays_are_the_fitted_pipeline(classes, d):
    rng = np.random.default_rng(0)
    x = rng.normal(3, 2, (500, d))
    code = 2 * ((x[:, 0] > 3).astype(int) + (x[:, 1] > 3) * (classes == 3))
    model = fit_logistic(x, code)
    expected = default_classifier(d).fit(x, code).predict_proba(x)
    np.testing.assert_allclose(np.exp(model.log_posterior(x)), expected, atol=1e-10)
    assert model.classes.tolist() == np.unique(code).tolist()


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("d", [3, 31])
def test_the_classifiers_of_all_parts_answer_as_one(classes, d):
    """The geometric mean of what they say, at the cost of one."""
    rng = np.random.default_rng(1)
    x = rng.normal(3, np.linspace(0.1, 9, d), (600, d))
    code = (x[:, 0] > 3).astype(int) + (x[:, 1] > 3) * (classes == 3)
    parts = [(x[:400], code[:400]), (x[200:] + 0.5, code[200:]), (2 * x[::2], code[::2])]
    models = [fit_logistic(*part) for part in parts]
    said = sum(model.log_posterior(x) for model in models) / 3
    np.testing.assert_allclose(mean_logistic(models).log_posterior(x), log_softmax(said, axis=1), atol=1e-9)


def test_a_row_has_the_same_part_in_every_block():
    parts = divided(np.array([20_000, 3]), 5, seed=1)
    codes = np.r_[np.zeros(20_000, int), [1, 1, 1, -1]]
    whole = parts.of_block(0, codes)
    cut = np.concatenate(
        [parts.of_block(a, codes[a:b]) for a, b in [(0, 5_000), (5_000, 5_001), (5_001, 20_004)]]
    )
    np.testing.assert_array_equal(whole, cut)
    rows = np.random.default_rng(0).permutation(20_004)
    np.testing.assert_array_equal(parts.of_rows(rows, codes[rows]), whole[rows])
    assert (whole[20_000:] == -1).all()
    assert np.ptp(np.bincount(whole[:20_000])) < 400


def test_source_rows_are_predicted_held_out():
    """A classifier that remembers its rows would see no confusion."""
    x, y = close(600, seed=0)
    model = ss.BBSE(KNeighborsClassifier(1), random_state=0).fit(x, y)
    confusion = model.source_.means
    truth = KNeighborsClassifier(1).fit(x, y)
    x2, y2 = close(20_000, seed=1)
    accuracy = np.mean(truth.predict(x2) == y2)
    assert np.mean(truth.predict(x) == y) == 1
    assert abs(np.trace(confusion) / 3 - accuracy) < 0.05 < 1 - accuracy


MAPS_OF_OUTPUTS = {
    "hard": ss.ClassifierFeatures(),
    "proba": ss.ClassifierFeatures(output="proba"),
    "logit": ss.ClassifierFeatures(output="logit"),
    "fourier of logit": ss.ClassifierFeatures(output="logit", kernel_map=ss.FourierFeatures(200)),
    "landmarks of proba": ss.ClassifierFeatures(output="proba", kernel_map=ss.LandmarkFeatures(32)),
    "histograms": ScoreHistograms(),
}


@pytest.mark.parametrize("estimator", [DecisionTreeClassifier(random_state=0), KNeighborsClassifier(5), None])
@pytest.mark.parametrize("features", MAPS_OF_OUTPUTS.values(), ids=MAPS_OF_OUTPUTS)
def test_rows_of_targets_are_predicted_with_the_errors_that_source_rows_show(features, estimator):
    """A vote among the classifiers would err less, and every correction for the source's errors be wrong."""
    x, y = close(10_000, seed=0, apart=0.2)
    t, truth = close(10_000, seed=1, apart=0.2)
    features = clone(features).set_params(estimator=estimator)
    model = ss.DFM(features, random_state=0, n_bootstrap=0).fit(x, y)
    source = model.embedding_.features(model.source_.means)
    sums = model.embed(t, truth)
    target = model.embedding_.features(sums.sums.sum(axis=1) / sums.counts)
    between = np.linalg.norm(source - np.roll(source, 1, axis=0), axis=1).min()
    assert np.linalg.norm(target - source, axis=1).max() < 0.13 * between


@pytest.mark.parametrize("output", ["hard", "proba", "logit"])
def test_debiasing_leaves_out_each_rows_product_with_itself(output):
    x, y = close(300, seed=0)
    estimator = LogisticRegression().fit(*close(1_000, seed=1))
    features = ss.ClassifierFeatures(estimator, output=output, cv="prefit")
    model = ss.DFM(features, random_state=0, n_bootstrap=0).fit(x, y)
    phi = outputs(estimator.predict_log_proba(x), output)
    mean = np.array([(label == y) / (label == y).sum() for label in LABELS])
    kernel = phi @ phi.T
    np.fill_diagonal(kernel, 0)
    clean, n = mean @ kernel @ mean.T, model.class_counts_
    clean[np.diag_indices(3)] *= n / (n - 1)
    assert model.lambda_min_ == pytest.approx(np.linalg.eigvalsh(clean)[0], rel=1e-9)


def test_a_fit_reads_the_rows_twice():
    """Once for what the classifier learns from, once for the sums."""
    reads = []

    def reading(block):
        reads.append(len(block))
        return block

    x = da.from_array(X, chunks=(1_000, 3)).map_blocks(reading, meta=X[:0])
    ss.BBSE(random_state=0).fit(x, Y)
    assert sum(reads) == 2 * len(X)


# The proportions ---------------------------------------------------------------------------------------


def test_soft_is_the_same_as_hard_where_the_plain_inverse_is_nonnegative():
    for seed in range(5):
        problem = make(seed, "none", 0.0)
        found = {}
        for name, settings in {"plain": {"positive": False}, "hard": {}, "soft": {"soft": True}}.items():
            model = ss.BBSE(n_bootstrap=0, random_state=seed, **settings).fit(problem.x, problem.y)
            found[name] = model.predict(problem.target)["proportion"].values[0]
        assert found["plain"].min() >= 0
        np.testing.assert_allclose(found["hard"], found["plain"], atol=1e-9)
        np.testing.assert_allclose(found["soft"], found["hard"], atol=1e-9)


def test_positive_proportions_stay_on_the_simplex_where_the_inverse_does_not():
    x, y = close(3_000, seed=0)
    target, of = close(100, seed=1)
    target = target[of == "b"]  # of few rows, some class is predicted less often than it is by mistake
    plain = ss.BBSE(positive=False, random_state=0).fit(x, y).predict(target)
    kept = ss.BBSE(random_state=0).fit(x, y).predict(target)
    assert plain["proportion"].values.min() < 0
    assert plain["proportion_low"].values.min() < plain["proportion"].values.min()
    assert kept["proportion"].values.min() >= 0
    assert kept["proportion"].values.sum() == pytest.approx(1)
    assert np.isnan(kept["unknown"].values).all()


def test_bbse_is_matching_of_one_hot_predictions():
    bbse = ss.BBSE(random_state=0).fit(X, Y).predict(T)
    dfm = ss.DFM("classifier", soft=False, random_state=0).fit(X, Y).predict(T)
    for name in bbse:
        np.testing.assert_array_equal(bbse[name], dfm[name])


def test_far_cells_are_no_unknown_share_to_a_classifier():
    problem = make(0, "far", 0.3)
    found = (
        ss.BBSE(soft=True, n_bootstrap=0, random_state=0).fit(problem.x, problem.y).predict(problem.target)
    )
    assert found["unknown"].item() < 0.05
    error = np.linalg.norm(found["proportion"].values[0] - problem.proportions)
    assert error > 0.8 * 0.3022


@pytest.mark.parametrize(
    "features",
    [
        ss.ClassifierFeatures(output="proba"),
        ss.ClassifierFeatures(output="logit"),
        ss.ClassifierFeatures(output="logit", kernel_map=ss.FourierFeatures(200)),
        ss.ClassifierFeatures(output="proba", kernel_map=ss.LandmarkFeatures(32)),
    ],
    ids=["proba", "logit", "fourier of logit", "landmarks of proba"],
)
def test_every_output_gives_the_proportions(features):
    model = ss.DFM(features, soft=False, random_state=0).fit(X, Y)
    found = model.predict(T)
    noisy = features.output == "logit" and features.kernel_map is None  # unbounded means
    np.testing.assert_allclose(found["proportion"].values[0], REALISED, atol=0.03 if noisy else 0.01)
    assert (found["proportion_low"] <= found["proportion"]).all()
    assert (found["proportion_high"] > found["proportion_low"]).all()


# What must change nothing ------------------------------------------------------------------------------


@pytest.mark.parametrize("chunks", [(3_000,), (1_000, 1, 1_999), (500,) * 6])
def test_chunks_change_nothing(chunks):
    whole = ss.BBSE(random_state=0).fit(X, Y).predict(T, np.repeat(["s", "t"], 1_000))
    x = da.from_array(X, chunks=(chunks, (3,)))
    target = da.from_array(T, chunks=(333, 3))
    found = ss.BBSE(random_state=0).fit(x, Y).predict(target, np.repeat(["s", "t"], 1_000))
    for name in ("proportion", "proportion_low", "proportion_high", "p_value"):
        np.testing.assert_allclose(found[name], whole[name], atol=1e-10)


@pytest.mark.parametrize("features", MAPS_OF_OUTPUTS.values(), ids=MAPS_OF_OUTPUTS)
@pytest.mark.parametrize("soft", [True, False])
def test_rows_chunks_and_class_names_in_any_order_give_the_same_proportions(features, soft):
    """Given the classifier, and for kernels of its outputs the landmarks or frequencies."""
    estimator = LogisticRegression().fit(X, Y)
    learned = ss.DFM(clone(features), random_state=0, n_bootstrap=0)
    learned.features.set_params(cv="prefit").estimator = estimator
    given = learned.fit(X, Y).embedding_

    def proportions(x, y, t):
        model = ss.DFM(given, soft=soft, n_bootstrap=0, random_state=0).fit(x, y)
        return model.predict(t)["proportion"].values[0]

    expected = proportions(X, Y, T)
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_allclose(proportions(X[order], Y[order], T[::-1]), expected, atol=1e-6)
    cut = proportions(da.from_array(X, chunks=(137, -1)), Y, da.from_array(T, chunks=(411, -1)))
    np.testing.assert_allclose(cut, expected, atol=1e-6)
    turned = np.array([{"a": 3, "b": 2, "c": 1}[label] for label in Y])
    np.testing.assert_allclose(proportions(X, turned, T), expected[::-1], atol=1e-6)


@pytest.mark.parametrize("convert", [lambda y: np.searchsorted(LABELS, y), lambda y: y == "a", list])
def test_labels_of_any_type(convert):
    y = convert(Y)
    found = ss.BBSE(random_state=0).fit(X, y).predict(T)
    truth = np.array([np.mean(np.asarray(convert(TRUTH)) == label) for label in found["label"].values])
    np.testing.assert_allclose(found["proportion"].values[0], truth, atol=0.01)


def test_order_of_rows_and_classes_changes_nothing_given_the_classifier():
    estimator = LogisticRegression().fit(X, Y)
    first = ss.BBSE(estimator, cv="prefit", n_bootstrap=0).fit(X, Y).predict(T)
    order = np.random.default_rng(0).permutation(len(X))
    renamed = {"a": "z", "b": "y", "c": "x"}
    other = LogisticRegression().fit(X, [renamed[label] for label in Y])
    other.coef_ = estimator.coef_[::-1]
    other.intercept_ = estimator.intercept_[::-1]
    again = ss.BBSE(other, cv="prefit", n_bootstrap=0).fit(X[order], [renamed[label] for label in Y[order]])
    found = again.predict(T[::-1])
    np.testing.assert_allclose(found["proportion"].values[0, ::-1], first["proportion"].values[0], atol=1e-10)


# Few rows, few classes ---------------------------------------------------------------------------------


def test_one_cell_of_a_class_is_enough_to_go_on():
    x, y = np.vstack([X, [[0, 0, 9.0]]]), np.append(Y, "one")
    found = ss.BBSE(random_state=0).fit(x, y).predict(T)
    assert np.isfinite(found["proportion"]).all()
    np.testing.assert_allclose(found["proportion"].sel(label=LABELS).values[0], REALISED, atol=0.02)
    assert "few source cells: one (1)" in found["flag"].item()


def test_one_class_is_everything():
    found = ss.BBSE(random_state=0).fit(X[Y == "a"], Y[Y == "a"]).predict(T)
    assert found["proportion"].values.tolist() == [[1.0]]


def test_a_class_without_rows_stays_in_the_result():
    import pandas as pd

    y = pd.Categorical(Y, categories=["a", "absent", "b", "c"])
    found = ss.BBSE(random_state=0).fit(X, y).predict(T)
    assert found["label"].values.tolist() == ["a", "absent", "b", "c"]
    assert np.isnan(found["proportion"].sel(label="absent").item())
    np.testing.assert_allclose(found["proportion"].sel(label=LABELS).values[0], REALISED, atol=0.01)


# Estimators of the user's ------------------------------------------------------------------------------


def test_hard_predictions_are_enough():
    found = ss.BBSE(LinearSVC(), random_state=0).fit(X, Y).predict(T)
    np.testing.assert_allclose(found["proportion"].values[0], REALISED, atol=0.02)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"estimator": "svm"}, "estimator: str lacks fit, predict"),
        ({"estimator": LogisticRegression}, "is no classifier object"),
        ({"estimator": LogisticRegression(), "cv": "prefit"}, "has no classes_"),
        ({"cv": 1}, "cv=1: expected a number of parts from 2"),
        ({"soft": True, "positive": False}, "has no unknown share"),
        (
            {"estimator": LogisticRegression().fit(X, np.where(Y == "a", "A", Y)), "cv": "prefit"},
            "knows the label 'A', which the source lacks",
        ),
    ],
)
def test_what_is_refused(settings, message):
    with pytest.raises(DataError, match=message):
        ss.BBSE(**settings).fit(X, Y)


# Kept --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        ss.BBSE(random_state=0),
        ss.DFM(ss.ClassifierFeatures(output="logit", kernel_map=ss.FourierFeatures(64))),
    ],
    ids=["bbse", "mapped"],
)
def test_saved_and_loaded_it_answers_the_same_bits(model, tmp_path):
    model.fit(X, Y).save(tmp_path / "model")
    first, again = model.predict(T), ss.load(tmp_path / "model").predict(T)
    for name in first:
        np.testing.assert_array_equal(first[name], again[name])
    merged = ss.load(tmp_path / "model")
    assert merged.embedding_.same_as(model.embedding_)


@pytest.mark.parametrize("output", ["proba", "logit"])
def test_outputs_that_need_probabilities_say_so(output):
    with pytest.raises(DataError, match="estimator: LinearSVC lacks predict_proba"):
        ss.DFM(ss.ClassifierFeatures(LinearSVC(), output=output)).fit(X, Y)


def test_no_row_is_longer_than_the_largest_norm_of_its_map():
    x = X[:200]
    for features in (*MAPS_OF_OUTPUTS.values(), MarkerHistograms()):
        embedding = ss.DFM(clone(features), random_state=0, n_bootstrap=0).fit(X, Y).embedding_
        phi = embedding.features(row_features(embedding, x))[:, : embedding.n_matching]
        norm = np.linalg.norm(phi, axis=1).max()
        assert norm <= embedding.largest_norm * (1 + 1e-5)
        assert norm > 0.5 * embedding.largest_norm or np.isinf(embedding.largest_norm)


def test_an_estimator_of_the_users_cannot_be_saved(tmp_path):
    model = ss.BBSE(LogisticRegression(), random_state=0).fit(X, Y)
    with pytest.raises(DataError, match="LogisticRegression cannot be saved"):
        model.save(tmp_path / "model")
