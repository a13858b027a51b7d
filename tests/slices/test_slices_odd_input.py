"""Input that was found to break slicers: each is refused by name, or gives what the plain form gives."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from planted import P, X, Y, lazy

from scaleshift import DominoSlicer, SpotlightSlicer
from scaleshift.blocks.block import Block
from scaleshift.errors import DataError
from scaleshift.slices.describing import phrases, words
from scaleshift.slices.mixtures.starts import Confusion
from scaleshift.slices.outcomes import Classification

N = len(X)
PREDICTED = P.argmax(axis=1)
LOSS = -np.log(P[np.arange(N), Y])


def slicer(**parameters):
    return DominoSlicer(**{"n_slices": 3, "n_mixture_components": 6, "random_state": 0, **parameters})


def spotlights(**parameters):
    given = {"spotlight_size": 0.05, "n_slices": 2, "num_steps": 50, "random_state": 0}
    return SpotlightSlicer(**{**given, **parameters})


def memberships(*rows, **named):
    return np.asarray(slicer().fit(*rows, **named).predict_proba(None, X))


def unknown(values):
    """The same in blocks whose sizes are not known."""
    values = lazy(values, 400)
    return values[da.ones(N, chunks=400, dtype=bool)]


PLAIN = memberships(None, X, Y, P)


# Tables ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", [[1.0], None])
@pytest.mark.parametrize("row", [0, 7])
def test_a_column_of_rows_of_other_lengths_names_the_row(odd, row):
    rows = [odd if i == row else x.tolist() for i, x in enumerate(X)]
    table = pd.DataFrame({"embedding": rows, "target": Y, "pred_probs": list(P)})
    with pytest.raises(
        DataError, match=rf"'embedding' has rows of different lengths: row {row or 1} has the"
    ):
        slicer().fit(table)


def test_lists_of_other_lengths_name_the_row():
    short = [row if i != 9 else row[:1] for i, row in enumerate(P.tolist())]
    with pytest.raises(
        DataError, match=r"pred_probs are rows of different lengths: row 9 has the shape \(1,"
    ):
        slicer().fit(None, X, Y, short)
    with pytest.raises(DataError, match=r"embeddings are rows of different lengths: row 9 has the shape"):
        slicer().fit(None, short, Y, P)


class OtherSeries:
    """As tables of other libraries have their columns: an array on request, and no dtype of numpy's."""

    dtype = "List(Float64)"

    def __init__(self, values):
        self.values = values

    def __len__(self):
        return len(self.values)

    def __getitem__(self, row):
        return self.values[row]

    def __array__(self, dtype=None, copy=None):
        found = np.empty(len(self.values), object)
        found[:] = self.values
        return found


def test_columns_of_other_libraries_are_taken():
    table = {"embedding": list(X), "target": Y.tolist(), "pred_probs": list(P)}
    found = memberships({name: OtherSeries(values) for name, values in table.items()})
    np.testing.assert_allclose(found, PLAIN)


def test_a_dask_data_frame_is_refused_with_the_way_out():
    frame = dd.from_pandas(pd.DataFrame({"a": X[:, 0], "b": X[:, 1]}), npartitions=2)
    with pytest.raises(DataError, match=r"X is a Dask data frame: pass X\.to_dask_array"):
        slicer().fit(None, frame, Y, P)
    with pytest.raises(DataError, match=r"data is a dask\w*.DataFrame: expected a pandas DataFrame"):
        slicer().fit(frame)


def test_rows_that_pandas_names_in_another_order_are_refused():
    order = np.random.default_rng(0).permutation(N)
    frame = pd.DataFrame(X, index=order)
    for targets, predicted in [(pd.Series(Y), P), (Y, pd.DataFrame(P))]:
        with pytest.raises(DataError, match="have rows of different names or order: bring them to the same"):
            slicer().fit(None, frame, targets, predicted)
    with pytest.raises(DataError, match="X and losses have rows of different names"):
        slicer().fit(pd.DataFrame({"embedding": list(X)}), losses=pd.Series(LOSS, index=order))
    same = memberships(None, frame, pd.Series(Y, index=order), pd.DataFrame(P, index=order))
    np.testing.assert_array_equal(same, PLAIN)


# Predictions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [None, 400])
def test_false_and_true_may_be_predicted_as_0_and_1(chunk):
    expected = memberships(None, lazy(X, chunk), Y, PREDICTED)
    found = memberships(None, lazy(X, chunk), lazy(Y == 1, chunk), lazy(PREDICTED, chunk))
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(DataError, match="prediction 2 is not known"):
        slicer().fit(None, X, Y == 1, 2 * PREDICTED)


def test_one_probability_a_row_is_no_label_of_three():
    with pytest.raises(DataError, match=r"pred_probs has one number a row, .* and there are 3 classes"):
        slicer().fit(None, X, np.arange(N) % 3, P[:, 1])


@pytest.mark.parametrize("names", [["no", "yes"], ["yes", "no"]])
def test_columns_of_probabilities_that_are_called_as_the_classes_go_by_name(names):
    table = pd.DataFrame({"no": P[:, 0], "yes": P[:, 1]})[names]
    np.testing.assert_array_equal(memberships(None, X, np.where(Y, "yes", "no"), table), PLAIN)


def test_nullable_numbers_are_numbers():
    np.testing.assert_array_equal(memberships(None, X, Y, pd.DataFrame(P).astype("Float64")), PLAIN)


def test_a_start_from_few_cells_of_many_labels_is_small():
    """All C^2 cells of the rows would be 200 GB."""
    rng = np.random.default_rng(0)
    x, label = rng.normal(size=(300, 2)), rng.integers(0, 3_000, 300)
    predicted = np.where(rng.random(300) < 0.5, label, 0)
    targets = pd.Categorical(label, np.arange(3_000))
    model = slicer(compat="domino-0.1.5", max_iter=100).fit(None, x, targets, predicted)
    assert np.isfinite(model.means_).all()


@pytest.mark.parametrize("n_components", [3, 9, 20])
def test_components_take_turns_at_the_cells(n_components):
    prediction = np.array([[0.5, 0.3, 0.2], [0.1, 0.7, 0.2]])
    columns = {"label": np.array([2, 0]), "prediction": prediction}
    block = Block(np.zeros((2, 1)), columns, 0, np.ones(2, bool), np.zeros(1))
    kind = Classification(np.arange(3))
    found = Confusion(n_components, 0.0, 0)(block, kind)
    cells = np.zeros((2, 9))
    cells[0, 6:], cells[1, :3] = prediction
    expected = np.tile(cells, 3)[:, :n_components]
    mass = expected.sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(
        found, np.divide(expected, mass, out=np.zeros_like(expected), where=mass > 0)
    )


# Numbers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [slicer, spotlights])
@pytest.mark.parametrize("largest", [1e31, -1e200])
def test_losses_that_overflow_are_named(make, largest):
    losses = np.where(np.arange(N) == 4, largest, LOSS)
    with pytest.raises(DataError, match=r"losses are beyond 1e\+30.* in 1 of the rows .* first in 4"):
        make().fit(None, X, losses=losses)
    make().fit(None, X, losses=np.where(np.arange(N) == 4, 1e29, LOSS))  # a giant alone is let in


@pytest.mark.parametrize("target", [1e20, 1e200])
def test_residuals_whose_squares_overflow_are_named(target):
    with pytest.raises(DataError, match="losses are"):
        slicer().fit(None, X, X[:, 0].astype(float) * target, X[:, 1].astype(float))


@pytest.mark.parametrize("make", [slicer, spotlights])
def test_weights_of_any_sane_scale_are_the_same_and_others_are_refused(make):
    for scale in (1e-300, 1e-40, 1e300):
        with pytest.raises(DataError, match=r"sample_weight is .* in the mean: bring it to a scale near 1"):
            make().fit(None, X, Y, P, sample_weight=np.full(N, scale))
    expected = make().fit(None, X, Y, P).describe()["words"].values.tolist()
    for scale in (2.0**-30, 2.0**66):  # powers of 2: a spotlight follows rounding errors
        found = make().fit(None, X, Y, P, sample_weight=np.full(N, scale)).describe()
        assert found["words"].values.tolist() == expected


@pytest.mark.parametrize("make", [slicer, spotlights])
def test_blocks_of_unknown_size_are_counted(make):
    losses = make().fit(None, X, losses=LOSS)
    found = make().fit(None, unknown(X), losses=unknown(LOSS))
    np.testing.assert_allclose(found.profile_.tallies, losses.profile_.tallies)
    expected = make().fit(None, X, Y, PREDICTED)
    found = make().fit(None, unknown(X), unknown(Y), unknown(PREDICTED))
    np.testing.assert_allclose(found.profile_.tallies, expected.profile_.tallies)


@pytest.mark.parametrize(
    "parameters", [{"barrier_scale": 1e300}, {"learning_rate": 1e300}, {"barrier_scale": np.inf}], ids=str
)
def test_parameters_that_overflow_are_named(parameters):
    with pytest.raises(DataError, match=f"{next(iter(parameters))}="):
        spotlights(**parameters).fit(None, X, losses=LOSS)


@pytest.mark.parametrize("make", [slicer, spotlights])
def test_a_checkpoint_that_is_no_path_is_named(make):
    with pytest.raises(DataError, match="checkpoint=7: expected the path of a folder"):
        make(checkpoint=7).fit(None, X, losses=LOSS)


# Descriptions ------------------------------------------------------------------------------------------


def test_odd_metadata_and_features_are_named():
    model = slicer().fit(None, X, Y, P)
    rows = {"data": None, "embeddings": X, "targets": Y, "pred_probs": P}
    with pytest.raises(DataError, match="the column 'tags' of metadata holds lists"):
        model.describe(**rows, metadata=pd.DataFrame({"tags": [["a", "b"]] * N}))
    with pytest.raises(DataError, match="the column 'z' of metadata holds complex numbers"):
        model.describe(**rows, metadata=pd.DataFrame({"z": X[:, 0] + 1j}))
    with pytest.raises(DataError, match="features has dtype <U1, expected numbers"):
        model.describe(**rows, features=np.full((N, 2), "a"))
    with pytest.raises(DataError, match="squares of the features overflow"):
        model.describe(**rows, features=X.astype(float) * 1e300)


def test_the_rest_is_not_told_of_where_there_is_none():
    assert words.wrong(0.5, 0.4, 0.6, np.nan) == "wrong in 50 % (40 to 60 %)"
    assert words.lost(2.0, np.nan) == "mean loss 2"
    equal = np.full_like(X, 3)
    told = slicer().fit(None, equal, Y, P).describe()["words"].values
    assert not any("?" in text or "nan" in text for text in told)


def test_phrases_of_any_length_are_ranked_alike():
    directions, vectors = np.array([[0.0, 2.0]]), np.array([[1.0, 0.0], [3.0, 3.0], [0.0, 0.0]])
    number, cosine = phrases.ranked(directions, vectors)
    for scale in (1e-200, 1e200):
        again = phrases.ranked(directions, vectors * scale)
        np.testing.assert_array_equal(again[0], number)
        np.testing.assert_allclose(again[1], cosine)


def test_metadata_and_features_in_another_order_are_refused():
    order = np.random.default_rng(0).permutation(N)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = slicer().fit(None, frame, Y, P)
    beside = pd.DataFrame({"size": X[:, 0]}, index=order)
    for name in ("metadata", "features"):
        with pytest.raises(DataError, match=f"X and {name} have rows of different names or order"):
            model.describe(None, frame, Y, P, **{name: beside})
        model.describe(None, frame, Y, P, **{name: beside.reset_index(drop=True)})
