"""Ctrl-C in the middle of a pass: it comes at once, nothing goes on for nobody, the next call works."""

import os
import signal
import threading
import time
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

from scaleshift.blocks import passes
from scaleshift.blocks.rows import as_rows

X = np.arange(400.0).reshape(200, 2).astype("f4")
ROWS = da.from_array(X, chunks=(2, -1))  # 100 blocks


@pytest.fixture(autouse=True)
def ctrl_c():
    """As a program has it: processes that share tests ignore the signal, and so would their workers."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def gated(block, folder):
    """The sum; says that it has begun, and waits until it may go on."""
    (Path(folder) / f"begun-{block.start}").touch()
    while not (Path(folder) / "go on").exists():
        time.sleep(0.02)
    return {"sum": block.x.sum(axis=0)}


def total(folder, x=ROWS):
    return passes.total(gated, as_rows(x), {"sum": (2,)}, folder=str(folder))["sum"]


def begun(folder):
    return len(list(folder.glob("begun-*")))


def interrupted(folder, x=ROWS):
    """Ctrl-C once a block has begun: seconds until the pass has ended."""
    pressed = []

    def press():
        while not begun(folder):
            time.sleep(0.02)
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        total(folder, x)
    ended = time.monotonic()
    thread.join()
    return ended - pressed[0]


@pytest.mark.parametrize("processes", [True, False], ids=["processes", "threads of this process"])
def test_workers_stop_at_once_and_take_the_next_pass(tmp_path, processes):
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=processes, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        assert interrupted(tmp_path) < 5
        wait_until(lambda: not client.run_on_scheduler(unfinished))
        assert begun(tmp_path) < 5  # what had begun cannot be stopped; of the other blocks none begins
        (tmp_path / "go on").touch()
        assert np.array_equal(total(tmp_path), X.sum(axis=0))
        assert begun(tmp_path) == 100


def unfinished(dask_scheduler):
    """Tasks that the scheduler still knows."""
    return len(dask_scheduler.tasks)


def wait_until(true, seconds=60):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("x", [ROWS, X], ids=["lazy", "in memory"])
def test_threads_stop_at_once_and_take_the_next_pass(tmp_path, monkeypatch, x):
    monkeypatch.setattr("scaleshift.blocks.rows.BLOCK_ROWS", 2)  # also rows in memory are blocks then
    with dask.config.set(scheduler="threads", num_workers=2):
        assert interrupted(tmp_path, x) < 5
        assert begun(tmp_path) < 5
        (tmp_path / "go on").touch()
        assert np.array_equal(total(tmp_path, x), X.sum(axis=0))
