"""Input without a meaning is refused by name; none gives numbers that mean nothing."""

import json

import numpy as np
import pytest
from scipy import sparse

import scaleshift as ss
from scaleshift import SparseAUC, persistence
from scaleshift.errors import DataError, ScaleshiftError

RNG = np.random.default_rng(0)
N = 120
Y = (RNG.random(N) < 0.4).astype(int)
X = RNG.normal(size=(N, 6))
X[Y == 1, :2] += 1
FOLD = np.arange(N) % 3
SPLITS = [(np.flatnonzero(i != FOLD), np.flatnonzero(i == FOLD)) for i in range(3)]
SOLVERS = ["moments", "stream", "screen", "sht"]


def fitted(x=X, y=Y, weight=None, groups=None, **parameters):
    given = {"k": 2, "random_state": 0, "n_halves": 4, **parameters}
    if given.get("solver") == "sht":
        given.setdefault("max_iter", 20)
    return SparseAUC(**given).fit(x, y, weight, groups)


@pytest.mark.parametrize("n_classes", [13, 20])
def test_all_rows_of_many_classes_count(n_classes):
    y = np.arange(400) % n_classes  # classes times buckets are more than a byte holds
    x = RNG.normal(size=(400, 3)) + np.eye(n_classes)[y][:, -3:]
    model = fitted(x, y, k=1, solver="moments")
    assert model.moments_.count.sum() == 400
    np.testing.assert_array_equal(model.moments_.count.sum(axis=1), np.bincount(y))
    assert np.isfinite(model.coef_).all()


def test_many_folds_take_no_list_of_all_halves():
    model = fitted(cv=30, solver="moments", k=[1, 2])  # C(60, 30) of them
    assert 0.5 < model.auc_ <= 1
    assert ((model.describe()["stability"] >= 0) & (model.describe()["stability"] <= 1)).all()


@pytest.mark.parametrize(
    "cv",
    [
        [[1, 2], [3, 4]],
        [None, None],
        ["ab", "cd"],
        [(1, 2, 3), (4, 5, 6)],
        [(train, test + N) for train, test in SPLITS],
        [(train - N, test - N) for train, test in SPLITS],
        [(train * 1.0, test * 1.0) for train, test in SPLITS],
        [(test[np.arange(len(train)) % len(test)], test) for train, test in SPLITS],
        [SPLITS[0], SPLITS[0], SPLITS[1]],
    ],
    ids=["numbers", "none", "text", "triples", "beyond", "negative", "floats", "train", "overlap"],
)
def test_splits_that_are_none_are_refused(cv):
    with pytest.raises(DataError, match="of cv"):
        fitted(cv=cv)


def test_a_group_with_all_rows_of_a_side_is_refused():
    groups = np.where(Y == 1, 0, FOLD)
    with pytest.raises(DataError, match="all rows of label 1 are in the group"):
        fitted(groups=groups)


@pytest.mark.parametrize("weight", [np.ones((N, 2)), np.ones((N, 1)), np.full(N, 1e300), np.full(N, 5e-324)])
@pytest.mark.parametrize("solver", SOLVERS)
def test_weights_that_cannot_be_used_are_refused(solver, weight):
    with pytest.raises(DataError, match="sample_weight"):
        fitted(weight=weight, solver=solver)


@pytest.mark.parametrize("method", ["exact", "histogram"])
@pytest.mark.parametrize("weight", [1e300, 1e-300])
def test_an_auc_of_weights_beyond_float64_is_refused(method, weight):
    with pytest.raises(DataError, match="beyond 1e-100 to 1e\\+100"):
        ss.roc_auc(Y, X[:, 0], np.full(N, weight), method=method)


@pytest.mark.parametrize("factor", [1e160, 1e300])
@pytest.mark.parametrize("solver", SOLVERS)
def test_values_whose_squares_are_beyond_float64_are_refused(solver, factor):
    with pytest.raises(DataError, match=r"1 column.*first 3.*too large"):
        fitted(X * np.where(np.arange(6) == 3, factor, 1), solver=solver)


@pytest.mark.parametrize("factor", [1e-300, 1e-160])
@pytest.mark.parametrize("solver", SOLVERS)
def test_values_without_squares_are_constants(solver, factor):
    model = fitted(X * np.where(np.arange(6) == 0, factor, 1), solver=solver, k=1)
    assert model.coef_[0] == 0
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("solver", ["moments", "stream"])
def test_float32_values_without_squares_are_refused(solver):
    with pytest.raises(DataError, match=r"6 column.*too small"):
        fitted((X * 1e-30).astype(np.float32), solver=solver)


def test_an_offset_beyond_squares_about_0_does_not_look_for_more_features():
    model = fitted(X + 1e8, solver="stream")
    np.testing.assert_array_equal(model.support_, fitted(solver="stream").support_)


@pytest.mark.parametrize("left", [0, 1])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_side_whose_rows_are_dropped_is_refused(solver, left):
    x = X.copy()
    x[np.flatnonzero(Y == 1)[left:], 2] = np.nan
    with pytest.raises(DataError, match=f"positive rows {left} are finite, 2 are needed"):
        fitted(x, solver=solver, invalid="drop")


@pytest.mark.parametrize("parameters", [{"positive": True}, {"debias": True}, {"alpha": [0.0, 1.0]}], ids=str)
def test_sht_refuses_what_it_would_ignore(parameters):
    with pytest.raises(DataError, match="solver='sht'"):
        fitted(solver="sht", **parameters)


@pytest.mark.parametrize("alpha", [[[0, 1]], 1e300, 10**400], ids=["nested", "large", "beyond floats"])
def test_shrinkage_without_a_meaning_is_refused(alpha):
    with pytest.raises(DataError, match="alpha="):
        fitted(alpha=alpha)


@pytest.mark.parametrize("label", [np.array([0, 1]), [1]])
def test_several_positive_labels_are_refused(label):
    with pytest.raises(DataError, match=r"pos_label.* several values"):
        fitted(pos_label=label)


def test_a_label_of_another_type_is_told():
    with pytest.raises(DataError, match="'1' is not known; did you mean 1"):
        fitted(pos_label="1")


@pytest.mark.parametrize("prior", ["a", {0: "a", 1: 2}])
def test_a_prior_that_is_no_number_is_refused(prior):
    with pytest.raises(DataError, match="prior="):
        fitted().set_prior(prior)


@pytest.mark.parametrize("prior", [0, 1])
def test_a_prior_that_rules_a_class_out_leaves_the_ranks(prior):
    model = fitted()
    before = model.decision_function(X)
    model.set_prior(prior)
    np.testing.assert_array_equal(np.argsort(model.decision_function(X)), np.argsort(before))
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], prior, atol=1e-12)


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_a_prior_that_rules_two_of_four_classes_out(multi_class):
    model = fitted(y=np.arange(N) % 4, multi_class=multi_class).set_prior([0, 0, 0.5, 0.5])
    found = model.predict_proba(X)
    assert ((found >= 0) & (found <= 1)).all()
    assert set(model.predict(X).tolist()) <= {2, 3}


def test_what_cannot_be_merged_is_refused():
    for other in (3, ss.auc.SOLAM()):
        with pytest.raises(DataError, match="merge: expected a fitted SparseAUC"):
            fitted().merge(other)


@pytest.mark.parametrize("column", [77, -1])
def test_sparse_rows_with_columns_beyond_are_refused(column):
    rows = sparse.csr_array(np.where(X > 0, X, 0))
    rows.indices[3] = column
    with pytest.raises(DataError, match="sparse rows hold column"):
        fitted(rows, solver="stream")


@pytest.mark.parametrize("name", ["SOLAM", "SPAM", "FSAUC", "StoIHT", "HSGHT"])
def test_no_steps_at_all_are_refused(name):
    method = getattr(ss.auc, name)
    if "order" in method().get_params():
        with pytest.raises(DataError, match="order is empty"):
            method(order=[]).fit(X, Y)


@pytest.mark.parametrize("solver", ["stream", "screen", pytest.param("moments", marks=pytest.mark.slow)])
def test_noise_of_many_features_ranks_held_out_rows_by_chance(solver):
    found = []
    for seed in range(10):
        draw = np.random.default_rng(seed)
        y = np.arange(100) % 2
        x = draw.normal(size=(100, 800)).astype(np.float32)
        found.append(fitted(x, y, solver=solver, k=5, alpha=1.0, n_halves=0, n_screened=50).auc_)
    assert abs(np.mean(found) - 0.5) < 0.08  # standard error .02; screened on all rows it is .8


def test_probabilities_are_those_observed():
    draw = np.random.default_rng(3)
    y = (draw.random(20_000) < 0.2).astype(int)
    x = draw.normal(size=(20_000, 5)) + np.outer(y, [1.0, 0.5, 0, 0, 0])
    told = fitted(x, y, n_halves=0).predict_proba(x)[:, 1]
    tenth = np.argsort(np.argsort(told)) // 2_000
    for part in range(10):
        assert abs(told[tenth == part].mean() - y[tenth == part].mean()) < 0.035


@pytest.mark.parametrize(
    "part", ["classes_", "contrasts_", "support_", "n_features_in_", "prior_", "moments_"]
)
@pytest.mark.parametrize("other", ["popped", 5, "x", []])
def test_a_saved_ranking_whose_parts_do_not_fit_is_refused(tmp_path, part, other):
    fitted().save(tmp_path / "model")
    root = json.loads((tmp_path / "model" / "zarr.json").read_text())
    record = root["attributes"][persistence.RECORD]
    record["object"]["fitted"][part] = other
    if other == "popped":
        del record["object"]["fitted"][part]
    record["checksum"] = persistence._checksum(record["object"])
    (tmp_path / "model" / "zarr.json").write_text(json.dumps(root))
    with pytest.raises(ScaleshiftError):
        ss.load(tmp_path / "model").predict(X)
