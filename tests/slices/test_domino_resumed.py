"""A fit that was killed goes on to the same bits; workers give those of threads."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from distributed import Client, LocalCluster
from planted import P, X, Y, lazy

import scaleshift as ss
from scaleshift import DominoSlicer, checkpoint
from scaleshift.errors import DataError

PARAMETERS = ("weights_", "means_", "covariances_", "y_probs_", "y_hat_probs_", "lower_bounds_")


def slicer(**parameters):
    given = {"n_slices": 3, "n_mixture_components": 8, "random_state": 0, "init_params": "kmeans"}
    return DominoSlicer(**{**given, **parameters})


def assert_same_bits(found, expected):
    np.testing.assert_array_equal(found.slice_components_, expected.slice_components_)
    for name in PARAMETERS:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


class Killed(BaseException):
    """As a signal ends a process: nothing of the library catches it."""


def killed_after(n, monkeypatch, model, rows):
    """Fit until the state was written `n` times."""
    written = []
    write = checkpoint.write

    def write_and_die(path, state):
        write(path, state)
        written.append(path)
        if len(written) == n:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "write", write_and_die)
        with pytest.raises(Killed):
            model.fit(*rows)


@pytest.mark.parametrize("chunk", [None, 200])
@pytest.mark.parametrize("n", [1, 4])
def test_a_killed_fit_goes_on_to_the_same_bits(tmp_path, monkeypatch, n, chunk):
    rows = (None, *(lazy(part, chunk) for part in (X, Y, P)))
    expected = slicer().fit(*rows)
    assert expected.n_iter_ > 5
    model = slicer(checkpoint=tmp_path / "state")
    killed_after(n, monkeypatch, model, rows)
    passes = []
    write = checkpoint.write
    monkeypatch.setattr(checkpoint, "write", lambda *given: (passes.append(1), write(*given)))
    assert_same_bits(model.fit(*rows), expected)
    assert len(passes) == expected.n_iter_ - n  # those that were done are not done again


def test_several_numbers_of_components_go_on_together(tmp_path, monkeypatch):
    rows = (None, X, Y, P)
    expected = slicer(n_mixture_components="auto").fit(*rows)
    model = slicer(n_mixture_components="auto", checkpoint=str(tmp_path / "state"))
    killed_after(7, monkeypatch, model, rows)
    model.fit(*rows)
    assert_same_bits(model, expected)
    assert model.bic_ == expected.bic_


@pytest.mark.parametrize("random_state", [None, "generator"])
def test_a_seed_that_was_drawn_is_kept(tmp_path, monkeypatch, random_state):
    def model():
        state = np.random.default_rng(3) if random_state else None
        return slicer(random_state=state, checkpoint=tmp_path / "state", init_params=None, tol=1e-5)

    killed_after(1, monkeypatch, model(), (None, X, Y, P))
    seed = checkpoint.read(tmp_path / "state").seed
    resumed = model().fit(None, X, Y, P)
    assert resumed.seed_ == seed
    assert_same_bits(resumed, slicer(random_state=seed, init_params=None, tol=1e-5).fit(None, X, Y, P))


def test_a_fit_that_is_done_is_not_done_again(tmp_path):
    model = slicer(checkpoint=tmp_path / "state").fit(None, X, Y, P)
    before = os.stat(tmp_path / "state" / "zarr.json").st_mtime_ns
    assert_same_bits(slicer(checkpoint=tmp_path / "state").fit(None, X, Y, P), model)
    assert os.stat(tmp_path / "state" / "zarr.json").st_mtime_ns == before


def test_other_chunks_are_the_same_job(tmp_path, monkeypatch):
    centred = X - X.mean(axis=0)  # whose means are rounding errors, others for each chunking
    model = slicer(checkpoint=tmp_path / "state")
    killed_after(2, monkeypatch, model, (None, centred, Y, P))
    model.fit(None, *(lazy(part, 170) for part in (centred, Y, P)))
    expected = slicer().fit(None, centred, Y, P)
    np.testing.assert_array_equal(model.slice_components_, expected.slice_components_)
    np.testing.assert_allclose(model.means_, expected.means_, atol=1e-5)


@pytest.mark.filterwarnings("ignore:the predictions are wrong in")  # turned round they are other ones
@pytest.mark.parametrize(
    ("parameters", "rows"),
    [
        ({"random_state": 1}, (X, Y, P)),
        ({"n_mixture_components": 9}, (X, Y, P)),
        ({"tol": 1e-4}, (X, Y, P)),
        ({}, (X + 1, Y, P)),
        ({}, (X[:-1], Y[:-1], P[:-1])),
        ({}, (X, 1 - Y, P)),
        ({}, (X, Y, P[:, ::-1])),
    ],
    ids=["seed", "components", "tol", "embeddings", "rows", "targets", "predictions"],
)
def test_the_checkpoint_of_another_job_is_refused(tmp_path, monkeypatch, parameters, rows):
    killed_after(2, monkeypatch, slicer(checkpoint=tmp_path / "state"), (None, X, Y, P))
    with pytest.raises(DataError, match="is of other data or parameters: choose another path, or delete it"):
        slicer(checkpoint=tmp_path / "state", **parameters).fit(None, *rows)


def test_the_checkpoint_of_another_start_or_other_columns_is_refused(tmp_path, monkeypatch):
    wide = np.column_stack([X, *(X[:, :1] for _ in range(5))])  # the same in the first columns
    model = slicer(checkpoint=tmp_path / "state", n_pca_components=None)
    killed_after(2, monkeypatch, model, (None, np.column_stack([X, X[:, :4]]), Y, P))
    with pytest.raises(DataError, match="is of other data or parameters"):
        model.fit(None, wide, Y, P)
    with pytest.raises(DataError, match="is of other data or parameters"):
        model.fit(None, np.column_stack([X, X[:, :4]]), Y, P, init_resp=np.full((len(X), 8), 1 / 8))


def test_a_path_that_holds_something_else_is_refused(tmp_path):
    slicer().fit(None, X, Y, P).save(tmp_path / "model")
    with pytest.raises(DataError, match="holds a DominoSlicer: choose another path"):
        slicer(checkpoint=tmp_path / "model").fit(None, X, Y, P)


def test_a_slicer_with_a_checkpoint_can_be_saved(tmp_path):
    model = slicer(checkpoint=tmp_path / "state").fit(None, X, Y, P)
    model.save(tmp_path / "model")
    assert_same_bits(ss.load(tmp_path / "model"), model)


def test_a_process_that_is_killed_leaves_a_state_to_go_on_from(tmp_path):
    script = f"""
        import os, signal, sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from planted import P, X, Y
        from scaleshift import DominoSlicer
        from scaleshift import checkpoint
        write, written = checkpoint.write, []
        def mortal(path, state):
            write(path, state)
            written.append(1)
            if len(written) == 3:
                os.kill(os.getpid(), signal.SIGKILL)
        checkpoint.write = mortal
        DominoSlicer(3, n_mixture_components=8, random_state=0, init_params="kmeans",
                     checkpoint={str(tmp_path / "state")!r}).fit(None, X, Y, P)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert_same_bits(
        slicer(checkpoint=str(tmp_path / "state")).fit(None, X, Y, P), slicer().fit(None, X, Y, P)
    )


def test_a_cluster_gives_the_bits_of_threads():
    rows = (None, *(lazy(part, 400) for part in (X, Y, P)))
    models = [slicer(init_params=init) for init in (None, "confusion")]
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        found = [model.fit(*rows) for model in models]
        memberships = [model.predict_proba(*rows).compute() for model in found]
    for model, expected in zip(found, memberships, strict=True):
        assert_same_bits(model, slicer(init_params=model.init_params).fit(*rows))
        np.testing.assert_array_equal(model.predict_proba(*rows).compute(), expected)


def _changed(what, X, Y, P):
    """The same rows with one thing changed whose counts and moments tell little."""
    X, Y, P = X.copy(), Y.copy(), P.copy()
    order = np.random.default_rng(1).permutation(len(X))
    label, wrong = Y, P.argmax(axis=1) != Y
    alike = np.flatnonzero((label == label[0]) & (wrong == wrong[0]))[[0, -1]]
    if what == "order":
        return X[order], Y[order], P[order]
    if what == "column":
        X[:, -1] = X[order, -1]
    if what == "rows of X":
        X[alike] = X[alike[::-1]]
    if what == "predictions":
        P[alike] = P[alike[::-1]]
    if what == "labels":
        other = np.flatnonzero(label != label[0])
        other = other[wrong[other] == wrong[0]][0]
        rows = [0, other]
        Y[rows], P[rows] = Y[rows[::-1]], P[rows[::-1]]
    return X, Y, P


@pytest.mark.parametrize("chunk", [None, 170])
@pytest.mark.parametrize("what", ["order", "column", "rows of X", "predictions", "labels"])
def test_rows_of_the_same_moments_in_another_order_are_another_job(tmp_path, what, chunk):
    wide = np.hstack([X, np.random.default_rng(2).normal(size=(len(X), 10)).astype(X.dtype)])
    path = tmp_path / "state"
    slicer(checkpoint=path, tol=1.0).fit(None, wide, Y, P)
    rows = (lazy(part, chunk) for part in _changed(what, wide, Y, P))
    with pytest.raises(DataError, match="is of other data or parameters"):
        slicer(checkpoint=path, tol=1.0).fit(None, *rows)


def test_wide_rows_in_other_chunks_are_the_same_job(tmp_path):
    wide = np.hstack([X, np.full((len(X), 1), 5), 1e4 + np.random.default_rng(2).random((len(X), 10))])
    path = tmp_path / "state"
    model = slicer(checkpoint=path, tol=1.0).fit(None, wide, Y, P)
    before = os.stat(path / "zarr.json").st_mtime_ns
    for chunk in (90, 170, 333):
        again = slicer(checkpoint=path, tol=1.0)
        again.fit(None, *(lazy(part, chunk) for part in (wide, Y, P)))
        np.testing.assert_array_equal(again.means_, model.means_)
    assert os.stat(path / "zarr.json").st_mtime_ns == before
