"""What must hold of a mixture's slices: algebra, invariance, and what was planted is found."""

import anndata
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from planted import LOSS, P, X, Y, lazy
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.mixture._gaussian_mixture import _compute_precision_cholesky, _estimate_gaussian_parameters

import scaleshift as ss
from scaleshift import DominoSlicer
from scaleshift.slices import metrics
from scaleshift.slices.mixtures.ranking import wilson_interval

COVARIANCES = ("diag", "spherical", "full", "tied")
INITS = (None, "confusion", "kmeans", "random", "random_from_data", "k-means++")
N, K = len(Y), 8
RESP = np.random.default_rng(1).dirichlet(np.full(K, 0.3), N)
COMPAT = "domino-0.1.5"
PARAMETERS = ("weights_", "means_", "covariances_", "y_probs_", "y_hat_probs_")


def slicer(**parameters):
    return DominoSlicer(**{"n_slices": 3, "n_mixture_components": K, "random_state": 0, **parameters})


def assert_same_fit(found, expected, rtol=0, atol=0):
    np.testing.assert_array_equal(found.slice_components_, expected.slice_components_)
    assert found.n_iter_ == expected.n_iter_
    for name in PARAMETERS:
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=rtol, atol=atol, err_msg=name
        )


@pytest.fixture(scope="module")
def fitted():
    return slicer().fit(None, X, Y, P)


# Against scikit-learn ----------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [None, 400])
@pytest.mark.parametrize("covariance_type", COVARIANCES)
def test_without_labels_and_predictions_it_is_scikit_learns_mixture(covariance_type, chunk):
    seeds = X[np.random.default_rng(2).choice(N, K, replace=False)]
    nearest = ((X[:, None] - seeds) ** 2).sum(axis=2).argmin(axis=1)
    resp = np.eye(K)[nearest]
    weights, means, covariances = _estimate_gaussian_parameters(X, resp, 1e-6, covariance_type)[:3]
    root = _compute_precision_cholesky(covariances, covariance_type)
    if covariance_type == "full":
        precisions = root @ root.transpose(0, 2, 1)
    else:
        precisions = root @ root.T if covariance_type == "tied" else root**2
    start = {"weights_init": weights / N, "means_init": means, "precisions_init": precisions}
    reference = GaussianMixture(K, covariance_type=covariance_type, max_iter=200, tol=1e-4, **start).fit(X)
    found = slicer(
        covariance_type=covariance_type,
        n_pca_components=None,
        max_iter=200,
        tol=1e-4,
        y_log_likelihood_weight=0,
        y_hat_log_likelihood_weight=0,
        compat=COMPAT,
    ).fit(None, *(lazy(part, chunk) for part in (X, Y, P)), init_resp=lazy(resp, chunk))
    assert found.n_iter_ == reference.n_iter_ > 10
    assert found.lower_bound_ == pytest.approx(reference.lower_bound_, abs=1e-6)
    for name in ("weights_", "means_", "covariances_"):
        np.testing.assert_allclose(getattr(found, name), getattr(reference, name), atol=1e-6, err_msg=name)
    np.testing.assert_allclose(
        found.predict_proba(None, X, None, None, all_components=True), reference.predict_proba(X), atol=1e-6
    )


@pytest.mark.parametrize("known", ["nothing", "targets", "predictions", "both"])
def test_what_is_not_known_of_a_row_is_left_out_of_its_memberships(known):
    found = slicer(n_pca_components=None, compat=COMPAT, y_hat_log_likelihood_weight=0.5)
    found.fit(None, X, Y, P, init_resp=RESP)
    logs = np.log(found.weights_) + np.column_stack(
        [
            stats.multivariate_normal.logpdf(X, mean, np.diag(variance))
            for mean, variance in zip(found.means_, found.covariances_, strict=True)
        ]
    )
    targets, predictions = None, None
    if known in ("targets", "both"):
        targets = Y
        logs += np.log(found.y_probs_[:, Y].T + np.finfo(float).eps)
    if known in ("predictions", "both"):
        predictions = P
        logs += 0.5 * np.log(P @ found.y_hat_probs_.T + np.finfo(float).eps)
    expected = np.exp(logs - logs.max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    memberships = found.predict_proba(None, X, targets, predictions, all_components=True)
    np.testing.assert_allclose(memberships, expected, atol=1e-9)


# Invariance --------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:the mixture did not converge")
@pytest.mark.parametrize("init_params", INITS)
def test_chunks_change_nothing(init_params):
    expected = slicer(init_params=init_params).fit(None, X, Y, P)
    for chunks in [(1_500, 1_500), (333, 400), (61, 61)]:
        rows = (lazy(X, chunks[0]), lazy(Y, chunks[1]), lazy(P, chunks[0]))
        found = slicer(init_params=init_params).fit(None, *rows)
        assert_same_fit(found, expected, rtol=1e-6, atol=1e-6)
        memberships = found.predict_proba(None, *rows)
        assert isinstance(memberships, da.Array)
        # Of float32 rows: exponents turn the parameters' last digits into more.
        np.testing.assert_allclose(memberships, expected.predict_proba(None, X, Y, P), atol=1e-5)


@pytest.mark.parametrize("covariance_type", COVARIANCES)
def test_chunks_change_nothing_for_any_covariance(covariance_type):
    expected = slicer(covariance_type=covariance_type).fit(None, X, Y, P)
    found = slicer(covariance_type=covariance_type).fit(None, *(lazy(part, 217) for part in (X, Y, P)))
    assert_same_fit(found, expected, rtol=1e-6, atol=1e-6)


def test_the_order_of_rows_is_none_of_the_start_that_is_given():
    order = np.random.default_rng(0).permutation(N)
    expected = slicer(compat=COMPAT).fit(None, X, Y, P, init_resp=RESP)
    found = slicer(compat=COMPAT).fit(None, X[order], Y[order], P[order], init_resp=RESP[order])
    assert_same_fit(found, expected, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(
        found.predict_proba(None, X[order], Y[order], P[order]),
        expected.predict_proba(None, X, Y, P)[order],
        atol=1e-8,
    )


@pytest.mark.filterwarnings("ignore:the mixture did not converge")
@pytest.mark.parametrize("compat", [None, COMPAT])
def test_a_row_of_weight_2_is_the_row_twice(compat):
    n = np.random.default_rng(0).integers(0, 4, N)
    weighted = slicer(compat=compat, holdout=0, max_iter=30)
    weighted.fit(None, X, Y, P, init_resp=RESP, sample_weight=n)
    rows = np.repeat(np.arange(N), n)
    repeated = slicer(compat=compat, holdout=0, max_iter=30)
    repeated.fit(None, X[rows], Y[rows], P[rows], init_resp=RESP[rows])
    tolerance = 1e-9 if compat else 1e-4  # of float32 rows
    assert_same_fit(weighted, repeated, rtol=tolerance, atol=tolerance)
    assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_, abs=tolerance)
    assert weighted.bic_[str(K)] == pytest.approx(repeated.bic_[str(K)], abs=10 * tolerance)
    np.testing.assert_allclose(weighted.slice_scores_, repeated.slice_scores_, atol=N * tolerance)


def test_the_scale_of_weights_is_none_of_the_slices():
    weight = np.random.default_rng(0).random(N) + 0.5
    expected = slicer().fit(None, X, Y, P, sample_weight=weight)
    found = slicer().fit(None, X, Y, P, sample_weight=weight / weight.sum())
    np.testing.assert_array_equal(found.slice_components_, expected.slice_components_)
    np.testing.assert_allclose(found.means_, expected.means_, atol=1e-4)


@pytest.mark.parametrize("scale", [2.0**-30, 2.0**-10, 2.0**10, 2.0**30])
def test_embeddings_on_another_scale_have_the_same_slices(fitted, scale):
    found = slicer().fit(None, scale * X, Y, P)
    np.testing.assert_allclose(
        found.predict_proba(None, scale * X, Y, P), fitted.predict_proba(None, X, Y, P), atol=1e-9
    )
    assert found.lower_bound_ == pytest.approx(fitted.lower_bound_ - X.shape[1] * np.log(scale))


@pytest.mark.parametrize("n_pca_components", [None, 128])
def test_an_offset_costs_no_digits(n_pca_components):
    far = (X + 1e4).astype("f4")
    near = far.astype("f8") - 1e4  # the very same rows about zero
    expected = slicer(n_pca_components=n_pca_components).fit(None, near, Y, P)
    found = slicer(n_pca_components=n_pca_components).fit(None, far, Y, P)
    np.testing.assert_array_equal(found.slice_components_, expected.slice_components_)
    assert found.lower_bound_ == pytest.approx(expected.lower_bound_, abs=1e-4)
    np.testing.assert_allclose(
        found.predict_proba(None, far, Y, P), expected.predict_proba(None, near, Y, P), atol=1e-3
    )


def test_a_constant_feature_changes_nothing(fitted):
    wider = np.column_stack([X, np.full(N, 7.0)])
    found = slicer().fit(None, wider, Y, P)
    assert_same_fit(found, fitted, rtol=1e-5, atol=1e-5)


# Labels and predictions of any type --------------------------------------------------------------------

LETTERS = np.array(["no", "yes"])[Y]
LABELS = {
    "integers": Y,
    "int8": Y.astype("i1"),
    "decimals": Y.astype("f8"),
    "strings": LETTERS,
    "objects": LETTERS.astype(object),
    "bools": Y == 1,
    "categorical": pd.Categorical(LETTERS),
    "series": pd.Series(LETTERS, index=np.arange(N)[::-1]),
    "list": Y.tolist(),
    "dask": da.from_array(Y == 1, chunks=100),
    "dask strings": da.from_array(LETTERS, chunks=300),
    "dask decimals": da.from_array(Y.astype("f8"), chunks=300),
}


@pytest.mark.parametrize("labels", LABELS)
def test_labels_of_any_type_have_the_same_slices(fitted, labels):
    for predictions in (P, P[:, 1], P[:, 1:]):
        found = slicer().fit(None, X, LABELS[labels], predictions)
        assert_same_fit(found, fitted, rtol=1e-6, atol=1e-6)
    memberships = found.predict_proba(None, X, LABELS[labels], P[:, 1])
    np.testing.assert_allclose(memberships, fitted.predict_proba(None, X, Y, P), atol=1e-6)


def test_predicted_labels_are_probabilities_of_0_and_1():
    one_hot = np.eye(2)[P.argmax(axis=1)]
    expected = slicer().fit(None, X, LETTERS, one_hot)
    predicted = np.array(["no", "yes"])[P.argmax(axis=1)]
    for values in (predicted, pd.Categorical(predicted), lazy(predicted, 200)):
        found = slicer().fit(None, X, LETTERS, values)
        assert_same_fit(found, expected)
        np.testing.assert_array_equal(
            found.predict_proba(None, X, LETTERS, values), expected.predict_proba(None, X, LETTERS, one_hot)
        )


def test_classes_have_the_order_of_scikit_learns_columns():
    labels = np.array(["2", "10", "9"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    model = LogisticRegression().fit(X[:, 1:], labels)
    for given in (labels, da.from_array(labels, chunks=200)):
        found = slicer().fit(None, X, given, model.predict_proba(X[:, 1:]))
        np.testing.assert_array_equal(found.classes_, model.classes_)
    own = pd.Categorical(labels, categories=["9", "2", "none", "10"])
    found = slicer().fit(None, X, own, np.full((N, 4), 0.25))
    assert found.classes_.tolist() == ["9", "2", "none", "10"]


def test_classes_that_are_predicted_only_are_known():
    predicted = np.where(np.arange(N) % 100 == 0, "maybe", LETTERS)
    for chunk in (None, 300):
        found = slicer().fit(None, X, lazy(LETTERS, chunk), lazy(predicted, chunk))
        assert found.classes_.tolist() == ["maybe", "no", "yes"]
        assert found.y_probs_[:, 0].max() == 0
        assert found.y_hat_probs_[:, 0].max() > 0


@pytest.mark.parametrize("predictions", [P[:, 1], P[:, 1:], P])
def test_one_class_of_two_is_enough(predictions):
    found = slicer().fit(None, X, np.zeros(N, int), predictions)
    assert found.classes_.tolist() == [0, 1]
    np.testing.assert_allclose(found.y_probs_, np.tile([1.0, 0.0], (K, 1)), atol=1e-6)


def test_a_class_may_be_absent_from_blocks_and_batches(fitted):
    order = np.argsort(Y, kind="stable")
    rows = X[order], Y[order], P[order]
    in_memory = slicer().fit(None, *rows)
    in_blocks = slicer().fit(None, *(lazy(part, 100) for part in rows))
    assert_same_fit(in_blocks, in_memory, rtol=1e-6, atol=1e-6)
    batch = Y == 1
    np.testing.assert_array_equal(
        fitted.predict_proba(None, X[batch], Y[batch], P[batch]),
        fitted.predict_proba(None, X, Y, P)[batch],
    )


def tables():
    names = [f"e{i}" for i in range(X.shape[1])]
    columns = {"embedding": X, "target": Y, "pred_probs": P}
    dims = {"embedding": ("row", "e"), "target": ("row",), "pred_probs": ("row", "class")}
    return {
        "dict": columns,
        "dict of lists": {name: values.tolist() for name, values in columns.items()},
        "frame": pd.DataFrame({"embedding": list(X), "target": Y, "pred_probs": list(P)}),
        "dataset": xr.Dataset({name: (dims[name], values) for name, values in columns.items()}),
        "lazy dataset": xr.Dataset({name: (dims[name], lazy(v, 400)) for name, v in columns.items()}),
        "annotated": anndata.AnnData(
            X, obs=pd.DataFrame({"target": Y}, index=map(str, range(N))), obsm={"pred_probs": P}
        ),
        "annotated further": anndata.AnnData(
            np.zeros((N, 1)),
            obs=pd.DataFrame({"target": Y}, index=map(str, range(N))),
            obsm={"pred_probs": pd.DataFrame(P, index=map(str, range(N))), "embedding": X},
        ),
        "named columns": {**columns, "embedding": pd.DataFrame(X, columns=names)},
    }


@pytest.mark.parametrize("kind", list(tables()))
def test_tables_of_any_kind_have_the_same_slices(fitted, kind):
    table = tables()[kind]
    found = slicer().fit(table)
    assert_same_fit(found, fitted, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.predict_proba(table), fitted.predict_proba(None, X, Y, P), atol=1e-6)
    np.testing.assert_array_equal(found.predict(table), fitted.predict(None, X, Y, P))


def test_columns_go_by_the_names_that_the_caller_gives(fitted):
    table = {"clip": X, "label": Y, "model": P}
    found = slicer().fit(table, "clip", "label", "model")
    assert_same_fit(found, fitted)


# Memberships -------------------------------------------------------------------------------------------


def test_rows_of_no_slice_are_all_zero(fitted):
    every = fitted.predict_proba(None, X, Y, P, all_components=True)
    assigned = fitted.predict(None, X, Y, P)
    assert every.shape == (N, K)
    np.testing.assert_allclose(every.sum(axis=1), 1, atol=1e-9)
    np.testing.assert_array_equal(fitted.predict_proba(None, X, Y, P), every[:, fitted.slice_components_])
    np.testing.assert_array_equal(assigned, every.argmax(axis=1)[:, None] == fitted.slice_components_)
    none = assigned.sum(axis=1) == 0
    assert 0 < none.sum() < N
    np.testing.assert_array_equal(fitted.transform(None, X, Y, P), fitted.predict_proba(None, X, Y, P))


def test_faithful_mode_gives_every_row_a_slice():
    found = slicer(compat=COMPAT).fit(None, X, Y, P)
    assigned, memberships = found.predict(None, X, Y, P), found.predict_proba(None, X, Y, P)
    np.testing.assert_array_equal(assigned.sum(axis=1), 1)
    np.testing.assert_array_equal(assigned.argmax(axis=1), memberships.argmax(axis=1))
    assert found.mm is found
    np.testing.assert_array_equal(found.mm.y_hat_probs, found.y_hat_probs_)


def test_memberships_of_a_row_do_not_depend_on_the_other_rows(fitted):
    alone = [fitted.predict_proba(None, X[i : i + 1], Y[i : i + 1], P[i : i + 1]) for i in range(20)]
    np.testing.assert_allclose(np.concatenate(alone), fitted.predict_proba(None, X, Y, P)[:20], atol=1e-6)
    assert fitted.predict_proba(None, X[:0], Y[:0], P[:0]).shape == (0, 3)
    assert fitted.predict(None, X[:0]).shape == (0, 3)


# Starts and rankings -----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:the mixture did not converge")
@pytest.mark.parametrize("covariance_type", COVARIANCES)
@pytest.mark.parametrize("init_params", INITS)
def test_every_start_climbs(init_params, covariance_type):
    # Of predicted labels the M-step is exact, of probabilities it is not; reg_covar costs a little.
    found = slicer(init_params=init_params, covariance_type=covariance_type)
    found.fit(None, X, Y, P.argmax(axis=1))
    assert (np.diff(found.lower_bounds_) > -1e-5).all()
    assert found.weights_.sum() == pytest.approx(1)
    np.testing.assert_allclose(found.y_probs_.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(found.y_hat_probs_.sum(axis=1), 1, atol=1e-6)
    assert found.n_iter_ == len(found.lower_bounds_)


@pytest.mark.filterwarnings("ignore:the mixture did not converge")
def test_the_default_start_ends_highest():
    bounds = {init: slicer(init_params=init).fit(None, X, Y, P).lower_bound_ for init in INITS}
    assert bounds[None] >= max(bounds.values()) - 0.02


def test_components_may_be_fewer_than_cells_of_the_confusion_matrix():
    labels = np.digitize(X[:, 0], [-0.5, 0.5])
    for init in INITS:
        found = slicer(n_mixture_components=4, n_slices=4, init_params=init, tol=1)
        found.fit(None, X, labels, np.eye(3)[labels] * 0.7 + 0.1)
        assert found.y_probs_.shape == (4, 3)
        assert np.isfinite(found.means_).all()
    slicer(n_mixture_components=1, n_slices=1, init_params="confusion").fit(None, X, Y, P)


def evidence(memberships):
    wrong = (P.argmax(axis=1) != Y).astype(float)
    return memberships.sum(axis=0), wrong @ memberships, LOSS @ memberships, wrong.mean()


RANKINGS = {
    "excess_errors": lambda n, errors, loss, rate: errors - rate * n,
    "error_rate": lambda n, errors, loss, rate: errors / n,
    "loss": lambda n, errors, loss, rate: loss - LOSS.mean() * n,
    "wilson": lambda n, errors, loss, rate: wilson_interval(errors, n, 0.95)[0],
}


@pytest.mark.parametrize("ranking", [*RANKINGS, "mismatch"])
def test_slices_are_the_components_that_rank_highest(ranking):
    found = slicer(ranking=ranking, holdout=0, n_slices=K, tol=1e-6).fit(None, X, Y, P)
    memberships = found.predict_proba(None, X, Y, P, all_components=True)
    if ranking == "mismatch":
        expected = abs((found.y_hat_probs_ - found.y_probs_).max(axis=1))
    else:
        expected = RANKINGS[ranking](*evidence(memberships))
    np.testing.assert_allclose(found.slice_scores_, expected, atol=1e-2 if ranking != "error_rate" else 1e-4)
    assert (memberships.sum(axis=0) > 5).all()  # so that none is last for its few rows
    np.testing.assert_array_equal(found.slice_components_, np.argsort(-found.slice_scores_, kind="stable"))
    assert found.slice_components_.dtype == np.int64


def test_a_component_that_is_wrong_both_ways_is_not_overlooked():
    rng = np.random.default_rng(0)
    bad = np.arange(2_000) < 200
    x = rng.normal(size=(2_000, 3)) + 8 * bad[:, None]
    y = rng.integers(0, 2, 2_000)
    predicted = np.where(bad | (rng.random(2_000) < 0.05), 1 - y, y)
    shares = {}
    for ranking in ("excess_errors", "mismatch"):
        found = slicer(ranking=ranking, n_mixture_components=4, n_slices=1, y_log_likelihood_weight=0)
        found.set_params(y_hat_log_likelihood_weight=0).fit(None, x, y, predicted)
        shares[ranking] = bad[found.predict(None, x)[:, 0] == 1].mean()
    assert shares["excess_errors"] > 0.99


# What was planted is found -----------------------------------------------------------------------------


@pytest.mark.parametrize("n_clusters", [5, 10, 15])
def test_the_information_criterion_finds_the_number_of_clusters(n_clusters):
    rng = np.random.default_rng(n_clusters)
    cluster = rng.integers(0, n_clusters, 4_000)
    x = 20 * rng.normal(size=(n_clusters, 6))[cluster] + rng.normal(size=(4_000, 6))
    y = cluster % 2
    wrong = rng.random(4_000) < np.where(cluster == 0, 0.6, 0.05)
    found = slicer(n_mixture_components="auto", n_slices=2).fit(None, x, y, np.where(wrong, 1 - y, y))
    assert list(found.bic_) == ["5", "10", "15", "25", "40"]
    assert len(found.weights_) == int(min(found.bic_, key=found.bic_.get)) == n_clusters
    assert metrics.precision_at_k(found.predict_proba(None, x)[:, 0], cluster == 0) == 1


def planted_cluster(n=3_000):
    rng = np.random.default_rng(0)
    cluster = rng.integers(0, 10, n)
    x = 5 * rng.normal(size=(10, 5))[cluster] + rng.normal(size=(n, 5))
    return x, cluster == 3, rng


@pytest.mark.parametrize("chunk", [None, 500])
def test_losses_alone_find_a_cluster_of_high_loss(chunk):
    x, bad, rng = planted_cluster()
    losses = rng.exponential(np.where(bad, 4.0, 1.0))
    found = slicer(n_mixture_components=15, n_slices=2).fit(None, lazy(x, chunk), losses=lazy(losses, chunk))
    result = metrics.score(np.asarray(found.predict_proba(None, x, losses=losses)), bad, k=50)
    assert result["precision_at_k"].max() > 0.95
    assert found.y_hat_probs_ is None
    assert losses[found.predict(None, x)[:, 0] == 1].mean() > 2  # without knowing them


@pytest.mark.parametrize("kind", ["decimals", "whole numbers"])
@pytest.mark.parametrize("chunk", [None, 500])
def test_regression_finds_a_cluster_of_large_residuals(chunk, kind):
    x, bad, rng = planted_cluster()
    target = 50 * x[:, 0]
    target = np.rint(target).astype(int) if kind == "whole numbers" else target
    predicted = target + rng.normal(size=len(x)) * np.where(bad, 20.0, 4.0)
    found = slicer(n_mixture_components=15, n_slices=2)
    found.fit(None, *(lazy(part, chunk) for part in (x, target, predicted)))
    memberships = found.predict_proba(None, x, target, predicted)
    assert metrics.precision_at_k(memberships, bad, k=50).max() > 0.95


def test_losses_may_come_beside_labels_and_predictions(fitted):
    found = slicer(ranking="loss").fit(None, X, Y, P, LOSS)
    expected = slicer(ranking="loss").fit(None, X, Y, P)
    assert_same_fit(found, expected)
    mirrored = slicer(ranking="loss").fit(None, X, Y, P, -LOSS)
    assert mirrored.slice_components_[0] != expected.slice_components_[0]


def test_many_classes_are_no_obstacle():
    rng = np.random.default_rng(0)
    label = rng.integers(0, 60, 6_000)
    x = 4 * rng.normal(size=(60, 10))[label] + rng.normal(size=(6_000, 10))
    bad = (label == 7) & (x[:, 0] > x[label == 7, 0].mean())
    wrong = rng.random(6_000) < np.where(bad, 0.9, 0.05)
    predicted = np.where(wrong, rng.integers(0, 60, 6_000), label)
    for predictions in (predicted, np.eye(60)[predicted] * 0.9 + 0.1 / 60):
        found = slicer(n_mixture_components=60).fit(None, x, label, predictions)
        assert found.y_probs_.shape == (60, 60)
        memberships = found.predict_proba(None, x, label, predictions)
        assert metrics.precision_at_k(memberships, label == 7).max() == 1


# As scikit-learn's estimators --------------------------------------------------------------------------


def test_parameters_are_stored_as_given():
    model = slicer(ranking="wilson", compat=COMPAT, tol=0.5)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert copy.set_params(tol=0.1, n_slices=2).get_params()["tol"] == 0.1
    assert model.tol == 0.5
    assert set(DominoSlicer().get_params()) >= {"n_slices", "holdout", "checkpoint", "random_state"}


def test_a_fit_is_the_same_again_and_another_with_another_seed(fitted):
    assert_same_fit(slicer().fit(None, X, Y, P), fitted)
    other = slicer(random_state=1).fit(None, X, Y, P)
    assert not np.array_equal(other.means_, fitted.means_)
    for state in (np.random.default_rng(5), np.random.RandomState(5)):
        slicer(random_state=state, compat=COMPAT).fit(None, X, Y, P)


@pytest.mark.parametrize("kind", ["classes", "losses", "residuals", "faithful"])
def test_a_saved_slicer_says_the_same(tmp_path, kind):
    rows = {
        "classes": (None, X, LETTERS, P),
        "faithful": (None, X, LETTERS, P),
        "losses": (None, X, None, None, LOSS),
        "residuals": (None, X, X[:, 0], X[:, 1]),
    }[kind]
    model = slicer(compat=COMPAT if kind == "faithful" else None).fit(*rows)
    model.save(tmp_path / "model")
    loaded = ss.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(*rows), model.predict_proba(*rows))
    np.testing.assert_array_equal(loaded.predict(*rows), model.predict(*rows))
    np.testing.assert_array_equal(loaded.classes_, model.classes_)
    assert loaded.get_params() == model.get_params()
    for name in ("weights_", "means_", "covariances_", "lower_bounds_", "slice_scores_"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(model, name))


@pytest.mark.parametrize("chunks", [None, 300])
def test_rows_that_are_not_finite_are_left_out_where_asked(chunks):
    broken = X.copy()
    broken[[3, 500]] = np.nan
    given = broken if chunks is None else da.from_array(broken, chunks=chunks)
    found = slicer(invalid="drop").fit(None, given, Y, P)
    assert found.n_invalid_ == 2
    weight = np.ones(len(X))
    weight[[3, 500]] = 0
    expected = slicer().fit(None, X, Y, P, sample_weight=weight)
    np.testing.assert_allclose(found.means_, expected.means_, atol=1e-6)
    np.testing.assert_array_equal(found.slice_components_, expected.slice_components_)
    memberships, assigned = found.predict_proba(None, given, Y, P), found.predict(None, given, Y, P)
    assert np.isnan(memberships[[3, 500]]).all()
    assert not np.asarray(assigned)[[3, 500]].any()
    assert int(found.describe()["size"].sum()) <= len(X) - 2


def test_columns_in_another_order_are_doubted():
    columns = np.column_stack([1 - P, P]) if P.ndim == 1 else P
    with pytest.warns(UserWarning, match="than by chance: are the columns of pred_probs in the order"):
        slicer().fit(None, X, Y, np.roll(columns, 1, axis=1))
