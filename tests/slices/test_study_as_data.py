"""A cells dataset in place of a table: markers are embeddings, labels targets; what weighs 0 is not seen."""

import dask.array as da
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import scaleshift as ss
from scaleshift.errors import DataError
from scaleshift.models import predictions

N = 2_000
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3)).astype("f4")
Y = np.where(X[:, 0] > 0, "T10", "T9").astype(object)
WRONG = RNG.random(N) < np.where(X[:, 2] > 1.2, 0.7, 0.02)
P = np.where(WRONG ^ (Y == "T10"), 0.9, 0.1)  # of T10
SETTINGS = {"n_slices": 2, "n_mixture_components": 6, "random_state": 0}


def same(a, b):
    np.testing.assert_allclose(a.means_, b.means_, rtol=1e-6, atol=1e-6)
    assert a.slice_components_.tolist() == b.slice_components_.tolist()


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "study.zarr"
    names = ["CD3", "CD19", "CD45"]
    ss.write_cells(ss.as_cells(X, label=Y, marker=names), path, chunk_cells=600)
    return path


def test_a_study_is_its_markers_and_labels(study):
    cells = ss.open_cells(study)
    assert cells["label"].values.tolist() == ["T9", "T10"]  # in natural order, which columns have too
    of_cells = ss.DominoSlicer(**SETTINGS).fit(cells, pred_probs=np.column_stack([1 - P, P]))
    assert of_cells.classes_.tolist() == ["T9", "T10"]
    assert of_cells.markers_ == ("CD3", "CD19", "CD45")
    codes = (Y == "T10").astype(int)
    same(of_cells, ss.DominoSlicer(**SETTINGS).fit(None, X, codes, np.column_stack([1 - P, P])))
    assert of_cells.describe()["feature"].values.tolist() == ["CD3", "CD19", "CD45"]


def test_names_that_are_given_are_looked_up_in_a_study(study):
    with pytest.raises(DataError, match="no column 'truth' for targets"):
        ss.DominoSlicer(**SETTINGS).fit(ss.open_cells(study), targets="truth", pred_probs=P)


def test_labels_that_were_renamed_under_their_codes_are_refused(study):
    cells = ss.open_cells(study).assign_coords(label=["T10", "T9"])
    with pytest.raises(DataError, match="were selected, sorted or renamed"):
        ss.DominoSlicer(**SETTINGS).fit(cells, pred_probs=P)


def test_a_model_fails_where_it_was_not_trained(study):
    fine = X[:, 2] < 1.2
    turned = np.where(fine, X[:, 0] > 0, X[:, 0] < 0)  # in the corner the labels are the other way round
    model = LogisticRegression().fit(X[fine], np.where(turned[fine], "T10", "T9"))
    cells = ss.as_cells(da.from_array(X, chunks=(700, -1)), label=np.where(turned, "T10", "T9"))
    asked = predictions(model, cells, classes=cells["label"].values)
    slicer = ss.DominoSlicer(**SETTINGS).fit(cells, pred_probs=asked)
    inside = slicer.predict(cells, pred_probs=asked).compute()[:, 0] == 1
    assert (X[inside, 2] > 1.2).mean() > 0.8
    assert slicer.describe()["q_value"][0] < 0.001


@pytest.mark.parametrize("n_blocks", [1, 3])
def test_rows_of_weight_0_need_no_target_and_change_nothing(n_blocks):
    def blocks(values):
        return da.from_array(values, chunks=-(-len(values) // n_blocks)) if n_blocks > 1 else values

    p = 1 - P  # of T9, the second in the order of arrays
    plain = ss.DominoSlicer(**SETTINGS).fit(None, X, Y, p)
    more = np.vstack([X, X[:300] + 4])
    target, probability = np.append(Y, [None] * 300), np.append(p, p[:300])
    weight = np.append(np.ones(N), np.zeros(300))
    given = [da.from_array(more, chunks=(len(more) // n_blocks, -1)), blocks(target), blocks(probability)]
    weighted = ss.DominoSlicer(**SETTINGS).fit(None, *given, sample_weight=weight)
    same(plain, weighted)
    a, b = plain.describe(), weighted.describe()
    assert a["words"].values.tolist() == b["words"].values.tolist()
    assert int(b["n_rows"]) == N
    assert np.isfinite(np.asarray(weighted.predict_proba(None, *given))).all()


def test_rows_with_a_weight_need_a_target():
    target = Y.copy()
    target[7] = None
    with pytest.raises(DataError, match=r"targets are missing in 1 of the rows .* first in 7"):
        ss.DominoSlicer(**SETTINGS).fit(None, X, target, P)
