"""A fit that was killed goes on to the same bits; sums of other data are refused, wherever they differ."""

import subprocess
import sys
import textwrap
from pathlib import Path

import dask.array as da
import numpy as np
import pytest

from scaleshift import SparseAUC
from scaleshift.errors import DataError

RNG = np.random.default_rng(0)
Y = (RNG.random(3_000) < 0.3).astype(int)
X = RNG.normal(size=(3_000, 8))
X[Y == 1, :3] += 0.7
W = RNG.random(3_000) + 0.5
SPLIT = np.arange(3_000) % 4
OTHER = "is of other data or parameters: choose another path, or delete it"


def model(solver, path=None, **parameters):
    given = {"sht": {"k": 2, "max_iter": 30}, "stream": {"k": [1, 2], "n_screened": 4}}.get(
        solver, {"k": [1, 2]}
    )
    return SparseAUC(solver=solver, random_state=0, n_halves=4, checkpoint=path, **{**given, **parameters})


def splits(part):
    return [(np.flatnonzero(part != i), np.flatnonzero(part == i)) for i in range(4)]


@pytest.mark.parametrize(
    ("solver", "how", "n"),
    [
        ("moments", "written", 2),
        pytest.param("stream", "written", 2, marks=pytest.mark.slow),
        ("stream", "replacing", 3),
        pytest.param("sht", "written", 4, marks=pytest.mark.slow),
    ],
)
def test_a_process_that_is_killed_leaves_what_is_needed(tmp_path, solver, how, n):
    script = f"""
        import os, signal, sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from test_auc_resumed import X, Y, model
        from scaleshift import checkpoint
        done = []
        def mortal(act, first):
            def acting(*given, **named):
                if first:
                    act(*given, **named)
                done.append(1)
                if len(done) == {n}:
                    os.kill(os.getpid(), signal.SIGKILL)
                if not first:
                    return act(*given, **named)
            return acting
        if {how!r} == "written":
            checkpoint.write = mortal(checkpoint.write, True)
        else:
            os.replace, os.rename = mortal(os.replace, False), mortal(os.rename, False)
        model({solver!r}, {str(tmp_path / "state")!r}).fit(X, Y)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False)
    assert done.returncode == -9
    found, expected = model(solver, str(tmp_path / "state")).fit(X, Y), model(solver).fit(X, Y)
    for name in ("coef_", "intercept_", "auc_"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


LATE = np.arange(3_000) >= 2_900


@pytest.mark.parametrize(
    ("x", "y", "w", "parameters"),
    [
        (X + LATE[:, None], Y, W, {}),
        (X, np.where(np.arange(3_000) < 2_000, Y, np.roll(Y, 1)), W, {}),
        (X, np.concatenate([Y[:2_000], Y[2_000:][::-1]]), W, {}),
        (X, Y, np.where(np.arange(3_000) == 2_500, 3.0, W), {}),
        (X, Y, W, {"cv": splits(np.sort(SPLIT))}),
        (X, Y, W, {"invalid": "drop"}),
    ],
    ids=["rows", "shifted", "labels", "weights", "splits", "invalid"],
)
def test_sums_of_other_data_are_refused(tmp_path, x, y, w, parameters):
    given = {"cv": splits(SPLIT)}
    model("moments", tmp_path / "state", **given).fit(X, Y, W)
    with pytest.raises(DataError, match=OTHER):
        model("moments", tmp_path / "state", **{**given, **parameters}).fit(x, y, w)


def test_other_chunks_are_the_same_job(tmp_path):
    centred = X - X.mean(axis=0)
    first = model("moments", tmp_path / "state").fit(da.from_array(centred, chunks=(400, -1)), Y)
    found = model("moments", tmp_path / "state").fit(da.from_array(centred, chunks=(700, -1)), Y)
    np.testing.assert_array_equal(found.coef_, first.coef_)


@pytest.mark.parametrize("path", ["", "a\0b", 3, ["a"]])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(DataError, match="checkpoint="):
        model("moments", path).fit(X, Y)


def test_a_file_and_a_place_without_folders_are_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "file" / "below", "/proc/none"):
        with pytest.raises(DataError, match="checkpoint="):
            model("moments", path).fit(X, Y)
