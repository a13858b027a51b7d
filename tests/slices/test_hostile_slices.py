"""What no one should pass to a slicer, and what real data hold all the same: an answer, or one sentence."""

import re

import anndata
import numpy as np
import pandas as pd
import pytest
from planted import LOSS, P, X, Y, lazy
from sklearn.exceptions import NotFittedError

from scaleshift import DominoSlicer
from scaleshift.errors import ChunkError, DataError
from scaleshift.slices import metrics

N, K = len(Y), 8
BAD = np.isin(np.arange(N), [5, 900])
COMPAT = "domino-0.1.5"


def slicer(**parameters):
    return DominoSlicer(**{"n_slices": 3, "n_mixture_components": K, "random_state": 0, **parameters})


def holds(model, rows):
    """Whether every number of a fit is one, and memberships are shares."""
    every = np.asarray(model.predict_proba(*rows, all_components=True))
    np.testing.assert_allclose(every.sum(axis=1), 1, atol=1e-6)
    numbers = (model.means_, model.covariances_, model.weights_, model.y_probs_, model.lower_bounds_)
    return bool(all(np.isfinite(part).all() for part in numbers) and np.isfinite(every).all())


# Rows --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [None, 3])
@pytest.mark.parametrize("init_params", [None, "confusion", "kmeans"])
@pytest.mark.parametrize("n_rows", [1, 7])
def test_fewer_rows_than_components_are_refused(n_rows, init_params, chunk):
    rows = (None, *(lazy(part[:n_rows], chunk) for part in (X, Y, P)))
    with pytest.raises(DataError, match=f"{n_rows} rows are fewer than 8 components: set n_mixture_comp"):
        slicer(holdout=0, init_params=init_params).fit(*rows)


@pytest.mark.parametrize("init_params", [None, "random"])
def test_rows_that_are_held_out_do_not_count(init_params):
    rows = (None, X[:12], Y[:12], P[:12])
    with pytest.raises(DataError, match=r"rows \(\d+ more are held out\) are fewer than 8 components"):
        slicer(holdout=0.6, init_params=init_params).fit(*rows)
    assert holds(slicer(holdout=0, init_params=init_params).fit(*rows), rows)


def test_rows_of_weight_0_do_not_count():
    weight = np.where(np.arange(N) < 4, 1.0, 0.0)
    with pytest.raises(DataError, match="4 rows are fewer than 8 components"):
        slicer(holdout=0).fit(None, X, Y, P, sample_weight=weight)
    with pytest.raises(DataError, match="all rows have the weight 0"):
        slicer().fit(None, X, Y, P, sample_weight=np.zeros(N))


@pytest.mark.parametrize("outcome", [{"targets": Y[:0], "pred_probs": P[:0]}, {"losses": LOSS[:0]}])
def test_no_rows_are_refused(outcome):
    with pytest.raises(DataError, match="there are no rows to learn slices from"):
        slicer().fit(embeddings=X[:0], **outcome)


def test_as_many_rows_as_components_are_enough():
    rows = (None, X[:K], Y[:K], P[:K])
    assert holds(slicer(holdout=0).fit(*rows), rows)
    one = (None, X[:1], np.zeros(1, int), P[:1])
    assert holds(slicer(n_slices=1, n_mixture_components=1, holdout=0).fit(*one), one)


ODD = {
    "equal embeddings": np.full_like(X, 3),
    "three embeddings": np.repeat(X[:3], N // 3, axis=0),
    "a constant feature": X * [1, 1, 0, 1, 1, 1],
    "features that are the same": X[:, [0, 0, 1, 1, 2, 2]],
    "offset": (X + 1e4).astype("f4"),
    "large": X * 1e12,
    "small": X * 1e-3,
    "whole numbers": (10 * X).astype("i2"),
    "half precision": X.astype("f2"),
    "one feature": X[:, :1],
}


@pytest.mark.filterwarnings("ignore:the mixture did not converge")
@pytest.mark.parametrize("covariance_type", ["diag", "spherical", "full", "tied"])
@pytest.mark.parametrize("n_pca_components", [None, 128])
@pytest.mark.parametrize("embeddings", ODD)
def test_odd_embeddings_have_slices(embeddings, n_pca_components, covariance_type):
    rows = (None, ODD[embeddings], Y, P)
    model = slicer(covariance_type=covariance_type, n_pca_components=n_pca_components)
    assert holds(model.fit(*rows), rows)


@pytest.mark.filterwarnings("ignore:the mixture did not converge")
@pytest.mark.parametrize("init_params", ["confusion", "kmeans", "random", "random_from_data", "k-means++"])
@pytest.mark.parametrize("embeddings", ["equal embeddings", "three embeddings", "offset"])
def test_odd_embeddings_have_slices_from_any_start(embeddings, init_params):
    rows = (None, ODD[embeddings], Y, P)
    assert holds(slicer(init_params=init_params).fit(*rows), rows)


def test_of_equal_embeddings_labels_and_predictions_tell_slices():
    rows = (None, np.full_like(X, 3), Y, P)
    memberships = slicer().fit(*rows).predict_proba(*rows)
    wrong = P.argmax(axis=1) != Y
    assert metrics.precision_at_k(memberships, wrong, 50).max() > 0.9


@pytest.mark.parametrize("chunk", [None, 400])
@pytest.mark.parametrize("scale", [1e30, 1e160, 1e300])
def test_embeddings_whose_squares_overflow_are_refused(scale, chunk):
    for parameters in ({}, {"n_pca_components": None}, {"compat": COMPAT}):
        with pytest.raises(DataError, match="squares of the embeddings overflow: bring their columns"):
            slicer(**parameters).fit(None, lazy(X * scale, chunk), Y, P)


@pytest.mark.parametrize("compat", [None, COMPAT])
def test_a_row_at_any_distance_has_memberships_or_an_error_that_names_it(compat):
    model = slicer(compat=compat).fit(None, X, Y, P)
    assert holds(model, (None, X + 1e12, Y, P))
    with pytest.raises(DataError, match=r"the embedding of row 5 is farther than 1e\+18 from the mean"):
        model.predict(None, np.where(BAD[:, None], 1e200, X), Y, P)


# Values that are none ----------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [None, N])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_are_named(value, chunk):
    x, loss = np.where(BAD[:, None], value, X), np.where(BAD, value, LOSS)
    with pytest.raises(DataError, match=r"column 0: 2, .*first rows 5, 900"):
        slicer().fit(None, lazy(x, chunk), Y, P)
    with pytest.raises(DataError, match=r"losses are NaN or infinite in 2 of the rows .*first in 5, 900"):
        slicer().fit(None, lazy(X, chunk), losses=lazy(loss, chunk))
    with pytest.raises(DataError, match=r"losses are NaN or infinite in 2 of the rows .*first in 5, 900"):
        slicer().fit(None, lazy(X, chunk), Y, P, loss)
    with pytest.raises(DataError, match="predictions of row 5 are no probabilities"):
        slicer().fit(None, lazy(X, chunk), Y, np.where(BAD[:, None], value, P))
    with pytest.raises(DataError, match="predictions of row 5 are no probabilities"):
        slicer().fit(None, lazy(X, chunk), Y, lazy(np.where(BAD, value, P[:, 1]), chunk))
    for target, predicted in [(x[:, 0], X[:, 1]), (X[:, 0], x[:, 1])]:
        with pytest.raises(DataError, match=r"targets or predictions are NaN or infinite in 2 .*in 5, 900"):
            slicer().fit(None, lazy(X, chunk), lazy(target, chunk), lazy(predicted, chunk))
    with pytest.raises(DataError, match=r"sample_weight is negative or not finite in 2 .*first in 5, 900"):
        slicer().fit(None, lazy(X, chunk), Y, P, sample_weight=np.where(BAD, value, 1.0))


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_targets_that_are_missing_are_named(missing):
    targets = np.where(Y, "yes", "no").astype(object)
    targets[BAD] = missing
    with pytest.raises(DataError, match="targets are missing in 2 of the rows 0 to 1499, first in 5, 900"):
        slicer().fit(None, X, targets, P)
    model = slicer().fit(None, X, np.where(Y, "yes", "no"), P)
    found = model.predict_proba(None, X, targets, P)  # what is not known is left out
    np.testing.assert_array_equal(
        found[~BAD], model.predict_proba(None, X, np.where(Y, "yes", "no"), P)[~BAD]
    )
    np.testing.assert_allclose(found[BAD], model.predict_proba(None, X, None, P)[BAD], atol=1e-9)


def test_a_later_block_names_absolute_rows():
    with pytest.raises(DataError, match="first in 900"):
        slicer().fit(None, lazy(X, 300), losses=np.where(np.arange(N) == 900, np.nan, LOSS))
    with pytest.raises(DataError, match="predictions of row 900 are"):
        slicer().fit(None, lazy(X, 300), Y, np.where(np.arange(N)[:, None] == 900, np.nan, P))


@pytest.mark.parametrize("chunk", [None, 400])
def test_logits_and_counts_are_no_probabilities(chunk):
    for values in (np.log(P), 2 * P, P - 0.5, np.zeros_like(P)):
        with pytest.raises(DataError, match=r"are no probabilities: .* pass softmax\(logits\), or predicted"):
            slicer().fit(None, X, Y, lazy(values, chunk))
        with pytest.raises(DataError, match="are no probabilities"):
            np.asarray(slicer().fit(None, X, Y, P).predict(None, X, Y, lazy(values, chunk)))
    rounded = P.round(2)
    assert holds(slicer().fit(None, X, Y, rounded), (None, X, Y, rounded))


# Names and shapes --------------------------------------------------------------------------------------

TABLE = {"embedding": X, "target": Y, "pred_probs": P}
FRAME = pd.DataFrame({"embedding": list(X), "target": Y, "pred_probs": list(P)})
ANNOTATED = anndata.AnnData(X, obs=pd.DataFrame({"target": Y}, index=map(str, range(N))), obsm={"p": P})


@pytest.mark.parametrize("table", [TABLE, FRAME], ids=["dict", "frame"])
def test_unknown_columns_are_told_with_the_one_that_was_meant(table):
    with pytest.raises(DataError, match="no column 'embeding' for embeddings; did you mean 'embedding'"):
        slicer().fit(table, "embeding")
    with pytest.raises(DataError, match="no column 'Target' for targets; did you mean 'target'"):
        slicer().fit(table, targets="Target")
    with pytest.raises(DataError, match="no column 'loss' for losses; known: embedding, target, pred_probs"):
        slicer().fit(table, losses="loss")
    model = slicer().fit(table)
    with pytest.raises(DataError, match="no column 'pred_prob' for pred_probs; did you mean 'pred_probs'"):
        model.predict(table, pred_probs="pred_prob")


def test_unknown_columns_of_annotated_data_are_told():
    with pytest.raises(DataError, match="no column 'tragets' for targets; did you mean 'target'"):
        slicer().fit(ANNOTATED, targets="tragets", pred_probs="p")
    with pytest.raises(DataError, match="targets were given without predictions"):
        slicer().fit(ANNOTATED)


@pytest.mark.parametrize("data", [X, X.tolist(), 7])
def test_arrays_go_by_name(data):
    with pytest.raises(DataError, match=f"data is a {type(data).__name__}: .* as embeddings="):
        slicer().fit(data, Y, P)


def test_what_says_nothing_of_failures_is_refused():
    with pytest.raises(DataError, match="no embeddings were given"):
        slicer().fit()
    with pytest.raises(DataError, match="nothing says where the model fails"):
        slicer().fit(None, X)
    with pytest.raises(DataError, match="targets were given without predictions"):
        slicer().fit(None, X, Y)
    with pytest.raises(DataError, match="'emb' names a column, and there is no data="):
        slicer().fit(None, "emb", Y, P)


def test_parts_of_other_lengths_are_refused():
    for rows in [(X, Y[:-1], P), (X, Y, P[:-1]), (X, Y, P[:-1, 1]), (X[:-1], Y, P)]:
        with pytest.raises(ChunkError, match=r"has \d+ values, X has \d+ rows"):
            slicer().fit(None, *rows)
    with pytest.raises(DataError, match=r"loss has the shape \(1500, 2\): expected one number a row"):
        slicer().fit(None, X, losses=P)
    with pytest.raises(DataError, match="targets have 2 dimensions"):
        slicer().fit(None, X, np.eye(2)[Y], P)
    with pytest.raises(DataError, match="X has 1 dimension"):
        slicer().fit(None, X[:, 0], Y, P)


def test_probabilities_of_other_classes_are_refused():
    three = np.full((N, 3), 1 / 3)
    with pytest.raises(DataError, match=r"tells of 3 classes, targets have 2 \(no, yes\): pass targets as a"):
        slicer().fit(None, X, np.where(Y, "yes", "no"), three)
    assert slicer().fit(None, X, Y, three).classes_.tolist() == [0, 1, 2]
    model = slicer().fit(None, X, Y, P)
    with pytest.raises(DataError, match="pred_probs has 3 columns, there are 2 classes"):
        model.predict(None, X, Y, three)
    with pytest.raises(DataError, match="target 2 is not known; known: 0, 1"):
        model.predict(None, X, Y + 1, P)
    with pytest.raises(DataError, match="X has 5 columns, the model was fitted on 6"):
        model.predict(None, X[:, :5], Y, P)
    with pytest.raises(DataError, match=r"pred_probs has one number a row, .* and there are 3 classes"):
        slicer().fit(None, X, np.arange(N) % 3, P[:, 1:])


def test_columns_are_matched_by_name():
    names = list("abcdef")
    frame = pd.DataFrame(X, columns=names)
    model = slicer().fit(None, frame, Y, P)
    expected = model.predict_proba(None, frame, Y, P)
    np.testing.assert_array_equal(model.predict_proba(None, frame[names[::-1]], Y, P), expected)
    with pytest.raises(DataError, match=re.escape("X lacks the marker(s) f that the model was fitted on")):
        model.predict(None, frame[names[:5]], Y, P)


def test_a_slicer_that_is_not_fitted_says_so():
    for method in ("predict", "predict_proba", "transform"):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(slicer(), method)(TABLE)


def test_a_fit_that_fails_leaves_the_earlier_one():
    model = slicer().fit(TABLE)
    expected = model.predict_proba(TABLE)
    with pytest.raises(DataError, match="no probabilities"):
        model.fit(None, X, Y, 2 * P)
    np.testing.assert_array_equal(model.predict_proba(TABLE), expected)


# Parameters --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_slices": 0},
        {"n_slices": 9},
        {"n_slices": 2.0},
        {"n_mixture_components": 0},
        {"n_mixture_components": "many"},
        {"covariance_type": "diagonal"},
        {"n_pca_components": 0},
        {"init_params": "kmean"},
        {"ranking": "errors"},
        {"compat": "domino"},
        {"holdout": 1},
        {"max_iter": 0},
        {"tol": -1},
        {"tol": np.nan},
        {"reg_covar": -1e-6},
        {"confusion_noise": "a little"},
        {"y_log_likelihood_weight": -1},
        {"random_state": "seed"},
    ],
    ids=str,
)
def test_parameters_without_a_meaning_are_named(parameters):
    with pytest.raises(DataError, match=f"{next(iter(parameters))}="):
        slicer(**parameters).fit(TABLE)


@pytest.mark.parametrize("chunk", [None, 400])
def test_starting_responsibilities_that_are_none_are_refused(chunk):
    resp = np.full((N, K), 1 / K)
    with pytest.raises(DataError, match=r"shape \(1500, 5\): expected a column for each .*components=8"):
        slicer().fit(TABLE, init_resp=lazy(resp[:, :5], chunk))
    with pytest.raises(DataError, match=r"shape \(1500,\): expected a column for each"):
        slicer().fit(TABLE, init_resp=lazy(resp[:, 0], chunk))
    with pytest.raises(ChunkError, match="resp has 1499 values, X has 1500 rows"):
        slicer().fit(TABLE, init_resp=lazy(resp[:-1], chunk))
    for value in (np.nan, -0.1, np.inf):
        with pytest.raises(DataError, match=r"init_resp is negative or no number in .* first in"):
            slicer().fit(TABLE, init_resp=lazy(np.where(BAD[:, None], value, resp), chunk))


def test_faithful_mode_ranks_losses_where_there_are_no_predictions():
    model = slicer(compat=COMPAT).fit(None, X, losses=LOSS)
    assert model.slice_scores_.argmax() == model.slice_components_[0]
