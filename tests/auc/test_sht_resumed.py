"""A descent that was killed goes on to the same bits, and another job's state is refused."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import dask.array as da
import numpy as np
import pytest

from scaleshift import checkpoint
from scaleshift.auc import sht
from scaleshift.auc.classes import signs
from scaleshift.auc.sht import descend
from scaleshift.blocks.rows import as_rows
from scaleshift.errors import DataError

RNG = np.random.default_rng(1)
Y = (RNG.random(300) < 0.3).astype(int)
X = RNG.normal(size=(300, 8)) + np.outer(Y, [1.0, 0.5, 0, 0, 0, 0, 0, 0])


def run(path=None, x=X, chunk=None, **parameters):
    rows = as_rows(x if chunk is None else da.from_array(x, chunks=(chunk, -1)), Y)
    given = {"k": 3, "block_size": 40, **parameters}
    return descend(rows, signs(rows.categories("label")), checkpoint=path, **given)


def assert_same_bits(found, expected):
    for name in ("coef", "history", "history_steps", "objective", "n_iter", "step_size", "converged"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


class Killed(BaseException):
    """As a signal ends a process: nothing of the library catches it."""


def killed_after(n, monkeypatch, path, **parameters):
    """Run until the state was written `n` times."""
    written = []
    write = checkpoint.write

    def write_and_die(where, state):
        write(where, state)
        written.append(where)
        if len(written) == n:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "write", write_and_die)
        with pytest.raises(Killed):
            run(path, **parameters)


@pytest.mark.parametrize("blocks", [32, 0], ids=["moments", "rows"])
@pytest.mark.parametrize("chunk", [None, 70])
@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize(
    "parameters", [{"max_iter": 60}, {"order": np.arange(60) % 7, "step_size": 0.1}], ids=["drawn", "given"]
)
def test_a_killed_run_goes_on_to_the_same_bits(tmp_path, monkeypatch, n, chunk, blocks, parameters):
    monkeypatch.setattr(sht, "MOMENT_BLOCKS", blocks)
    expected = run(chunk=chunk, **parameters)
    killed_after(n, monkeypatch, tmp_path / "state", chunk=chunk, **parameters)
    done = checkpoint.read(tmp_path / "state").state["t"]
    assert 0 < done < expected.n_iter
    assert_same_bits(run(tmp_path / "state", chunk=chunk, **parameters), expected)


def test_a_run_that_is_done_is_not_done_again(tmp_path):
    expected = run(tmp_path / "state")
    before = os.stat(tmp_path / "state" / "zarr.json").st_mtime_ns
    assert_same_bits(run(tmp_path / "state"), expected)
    assert os.stat(tmp_path / "state" / "zarr.json").st_mtime_ns == before


def test_a_seed_that_was_drawn_is_kept(tmp_path, monkeypatch):
    killed_after(1, monkeypatch, tmp_path / "state", seed=None)
    seed = checkpoint.read(tmp_path / "state").seed
    assert_same_bits(run(tmp_path / "state", seed=None), run(seed=seed))


def test_other_chunks_are_the_same_job(tmp_path, monkeypatch):
    start = RNG.normal(size=8)
    killed_after(2, monkeypatch, tmp_path / "state", start=start)
    found, expected = run(tmp_path / "state", chunk=70, start=start), run(start=start)
    np.testing.assert_allclose(found.coef, expected.coef, rtol=1e-8)


@pytest.mark.parametrize(
    "changed",
    [
        {"k": 4},
        {"block_size": 50},
        {"alpha": 0.1},
        {"scale": False},
        {"step_size": 0.01},
        {"start": np.ones(8)},
        {"seed": 1},
        {"x": X + 0.01 * RNG.normal(size=X.shape)},
        {"x": X[:, :7]},
    ],
    ids=["k", "blocks", "alpha", "scale", "step", "start", "seed", "rows", "features"],
)
def test_the_state_of_another_job_is_refused(tmp_path, monkeypatch, changed):
    killed_after(2, monkeypatch, tmp_path / "state")
    with pytest.raises(DataError, match="is of other data or parameters: choose another path, or delete it"):
        run(tmp_path / "state", **changed)


def test_a_process_that_is_killed_leaves_a_state_to_go_on_from(tmp_path):
    script = f"""
        import os, signal, sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from test_sht_resumed import run
        from scaleshift import checkpoint
        write, written = checkpoint.write, []
        def mortal(path, state):
            write(path, state)
            written.append(1)
            if len(written) == 3:
                os.kill(os.getpid(), signal.SIGKILL)
        checkpoint.write = mortal
        run({str(tmp_path / "state")!r})
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert_same_bits(run(str(tmp_path / "state")), run())
