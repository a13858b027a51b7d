"""A prediction that keeps its finished samples: the same answers, and after a kill the same bits."""

import dask.array as da
import numpy as np
import pytest
import xarray as xr
from distributed import Client, LocalCluster

import scaleshift as ss
from scaleshift.errors import DataError
from scaleshift.quantify import pieces

RNG = np.random.default_rng(5)
SIZES = [700, 300, 1, 2_000, 999, 0, 500]
SAMPLE = np.repeat([f"s{i}" for i in range(len(SIZES))], SIZES)
N = len(SAMPLE)
CLASS = RNG.integers(0, 3, N)
X = RNG.normal(size=(N, 3)) + 4 * CLASS[:, None]
Y = np.array(["a", "b", "c"])[CLASS]
SOURCE = slice(0, 1_000)


class Counted:
    """Array-like that counts how often its rows are read."""

    def __init__(self, array):
        self.array, self.shape, self.dtype, self.ndim = array, array.shape, array.dtype, array.ndim
        self.reads = np.zeros(len(array), int)
        self.until = len(array) * 100

    def __getitem__(self, index):
        if self.reads.sum() > self.until:
            raise KeyboardInterrupt
        self.reads[index[0]] += 1
        return self.array[index]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(pieces, "PIECE_ROWS", 600)
    monkeypatch.setattr(pieces, "MOST_PIECES", 10)


MODELS = {
    "fourier": ss.DFM(random_state=0, n_bootstrap=20, bandwidth=2.0),
    "open set": ss.OpenSetQuantifier(random_state=0, n_bootstrap=20, n_landmarks=16),
    "likelihood": ss.MLLS(random_state=0, n_bootstrap=20),
}


@pytest.fixture(scope="module", params=list(MODELS))
def model(request):
    return MODELS[request.param].fit(X[SOURCE], Y[SOURCE], SAMPLE[SOURCE])


def cells(x=X, chunk=250):
    return ss.as_cells(da.from_array(x, chunks=(chunk, 3)), SAMPLE, Y)


def test_pieces_answer_as_the_whole(model, tmp_path):
    whole, found = model.predict(cells()), model.predict(cells(), checkpoint=tmp_path / "kept")
    tolerance = 1e-6 if "log_likelihood" in whole else 1e-7  # its passes end when all samples have converged
    xr.testing.assert_allclose(
        found.drop_vars(["log_likelihood", "converged"], errors="ignore"),
        whole.drop_vars(["log_likelihood", "converged"], errors="ignore"),
        atol=tolerance,
    )
    assert found["flag"].equals(whole["flag"])


def test_a_stopped_prediction_goes_on_to_the_same_bits(model, tmp_path):
    undisturbed = model.predict(cells(), checkpoint=tmp_path / "undisturbed")
    once = Counted(X)
    model.predict(cells(once), checkpoint=tmp_path / "once")
    x = Counted(X)
    x.until = int(0.6 * once.reads.sum())
    with pytest.raises(KeyboardInterrupt):
        model.predict(cells(x), checkpoint=tmp_path / "kept")
    n_kept = len(list((tmp_path / "kept").glob("samples-*")))
    assert 0 < n_kept < 4
    x.until = 100 * N
    x.reads[:] = 0
    again = model.predict(cells(x), checkpoint=tmp_path / "kept")
    assert again.identical(undisturbed)
    # Nothing of the finished pieces is read, but for the few rows that tell data apart.
    begin, end = [(0, 700), (700, 3001), (3001, 4000), (4000, 4500)][n_kept - 1]
    assert x.reads[begin + 100 : end - 250].max() < once.reads[begin + 100 : end - 250].max()
    assert x.reads[end + 250 :].max() >= 1


def test_a_finished_prediction_reads_next_to_nothing(model, tmp_path):
    found = model.predict(cells(), checkpoint=tmp_path / "kept")
    x = Counted(X)
    assert model.predict(cells(x), checkpoint=tmp_path / "kept").identical(found)
    assert x.reads.sum() <= 3 * 250 * 2


def test_other_rows_samples_or_models_are_refused(tmp_path):
    first = MODELS["fourier"].fit(X[SOURCE], Y[SOURCE], SAMPLE[SOURCE])
    first.predict(cells(), checkpoint=tmp_path / "kept")
    other = ss.DFM(random_state=0, n_bootstrap=20, bandwidth=2.5).fit(X[SOURCE], Y[SOURCE], SAMPLE[SOURCE])
    for model, data in [(other, cells()), (first, cells(X + 1)), (first, ss.as_cells(X, SAMPLE[::-1], Y))]:
        with pytest.raises(DataError, match="is of other data or parameters"):
            model.predict(data, checkpoint=tmp_path / "kept")


def test_other_names_of_samples_and_other_foreign_labels_are_refused(tmp_path):
    model = ss.DFM(random_state=0, n_bootstrap=20).fit(X[SOURCE], np.where(Y[SOURCE] == "c", None, Y[SOURCE]))
    model.predict(cells(), checkpoint=tmp_path / "kept")
    names, labels = np.char.add("new-", SAMPLE), np.where(CLASS == 2, np.roll(Y, 1), Y)
    for sample, y in [(names, Y), (SAMPLE, labels)]:
        data = ss.as_cells(da.from_array(X, chunks=(250, 3)), sample, y)
        with pytest.raises(DataError, match="is of other data or parameters"):
            model.predict(data, checkpoint=tmp_path / "kept")


def test_samples_in_no_order_are_answered_at_once(tmp_path):
    model = MODELS["fourier"].fit(X[SOURCE], Y[SOURCE])
    order = RNG.permutation(N)
    found = model.predict(X[order], SAMPLE[order], checkpoint=tmp_path / "kept")
    assert found.equals(model.predict(X[order], SAMPLE[order]))
    assert len(list((tmp_path / "kept").glob("samples-*"))) == 1


def test_foreign_labels_are_counted_over_all_pieces(tmp_path):
    model = MODELS["fourier"].fit(X[SOURCE], np.where(Y[SOURCE] == "c", None, Y[SOURCE]))
    whole, found = model.predict(cells()), model.predict(cells(), checkpoint=tmp_path / "kept")
    assert found["label"].values.tolist() == ["a", "b", "c"]
    assert found["flag"].equals(whole["flag"])


def test_a_model_that_cannot_be_saved_is_refused(tmp_path):
    model = ss.DFM(features=Shifted(), random_state=0).fit(X[SOURCE], Y[SOURCE])
    with pytest.raises(DataError, match="checkpoint= needs a model that can be saved"):
        model.predict(cells(), checkpoint=tmp_path / "kept")


class Shifted:
    """Features of a user's own."""

    def fit(self, X, y):
        return self

    def transform(self, X):
        return X + 1


def test_workers_that_answer_several_pieces_at_a_time_give_the_same_bits(model, tmp_path, monkeypatch):
    here = model.predict(cells(), checkpoint=tmp_path / "here")
    monkeypatch.setattr(pieces, "BLOCKS_AHEAD", 50)
    with (
        LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
        client.as_current(),
    ):
        there = model.predict(cells(), checkpoint=tmp_path / "there")
    assert there.identical(here)
