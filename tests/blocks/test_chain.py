"""Sequential steps: any cut into chunks and tasks gives the same state, on threads and workers."""

import os
import signal
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
from dask.callbacks import Callback
from distributed import Client, LocalCluster

from scaleshift.blocks import chained, passes
from scaleshift.blocks.rows import as_rows, with_numbers
from scaleshift.errors import DataError

RNG = np.random.default_rng(0)
N = 100
X = RNG.normal(size=(N, 3))
Y = RNG.choice(["a", "b"], N)
ORDER = RNG.integers(0, 6, 25)  # blocks of 15 rows: six, the last has 25


def step(block, state):
    """Depends on the order of the steps, every row and label of the block; changes the state itself."""
    pull = block.x.T @ (1.0 + block.codes("label")) / len(block.x)
    state["w"] += pull - 0.5 * state["w"]
    state["trace"][int(state["t"])] = state["w"]
    return {**state, "t": state["t"] + 1}


def by_row(block, state):
    """For rows one by one: the state is the same wherever the rows are cut."""
    for x, code in zip(block.x, block.codes("label"), strict=True):
        state["w"] = 0.9 * state["w"] + x * (1 + code)
    return state


def start():
    return {"w": np.zeros(3), "trace": np.zeros((len(ORDER), 3)), "t": np.zeros((), int)}


def rows(chunk=None):
    return as_rows(X, Y) if chunk is None else as_rows(da.from_array(X, chunks=(chunk, -1)), Y)


def replayed():
    """The steps, written out."""
    code = (Y == "b") + 1.0
    w, trace = np.zeros(3), []
    for number in ORDER:
        block = slice(15 * number, 15 * number + 15 if number < 5 else N)
        w = w + X[block].T @ code[block] / len(X[block]) - 0.5 * w
        trace.append(w)
    return np.array(trace)


class Tasks(Callback):
    """Counts what runs."""

    def __init__(self):
        self.graphs, self.walks = 0, 0

    def _start(self, graph):
        self.graphs += 1

    def _posttask(self, key, result, graph, state, worker):
        self.walks += isinstance(key, tuple) and str(key[0]).startswith("chain-")


@pytest.mark.parametrize("run_bytes", [0, 1_000, 64_000_000])
@pytest.mark.parametrize("chunk", [None, 1, 7, 15, 50, 100])
def test_steps_on_blocks_are_those_of_a_loop(chunk, run_bytes, monkeypatch):
    monkeypatch.setattr(chained, "RUN_BYTES", run_bytes)
    given = start()
    found = passes.chain(step, given, rows(chunk), ORDER, block_size=15)
    np.testing.assert_allclose(found["trace"], replayed(), rtol=0, atol=1e-14)
    assert found["t"] == len(ORDER)
    assert not given["w"].any()  # the state that was given stays


@pytest.mark.parametrize("chunk", [None, 1, 7, 50])
@pytest.mark.parametrize("kept", [False, True, "made again"])
def test_kept_blocks_and_lazy_labels(chunk, kept, monkeypatch):
    monkeypatch.setattr(chained, "RUN_BYTES", 0)
    if kept == "made again":
        monkeypatch.setattr(passes, "SHARE_KEPT", 0)
    lazy = as_rows(*(X, Y) if chunk is None else (da.from_array(X, chunks=(chunk, 3)), da.from_array(Y)))
    source = passes.keep(lazy, itself, 8) if kept else lazy
    found = passes.chain(step, start(), source, ORDER, block_size=15)
    np.testing.assert_allclose(found["trace"], replayed(), rtol=0, atol=1e-14)


def itself(block):
    return block


@pytest.mark.parametrize("run_bytes", [0, 700, 64_000_000])
@pytest.mark.parametrize("chunk", [None, 1, 7, 50])
@pytest.mark.parametrize(
    "order", [None, RNG.permutation(N), RNG.integers(0, N, 130)], ids=["rows", "all", "some"]
)
def test_kernels_that_go_by_row_see_them_in_order(chunk, order, run_bytes, monkeypatch):
    monkeypatch.setattr(chained, "RUN_BYTES", run_bytes)
    numbers = np.arange(N) if order is None else order
    expected = by_row(
        rows().loader(X[numbers], Y[numbers] == "b", np.zeros(len(numbers), int), start=0), {"w": 0.0}
    )
    found = passes.chain(by_row, {"w": np.zeros(3)}, rows(chunk), order)
    np.testing.assert_allclose(found["w"], expected["w"], rtol=0, atol=1e-14)


def test_one_block_in_memory_is_no_graph():
    with Tasks() as seen:
        passes.chain(step, start(), rows(), ORDER, block_size=15)
    assert seen.graphs == 0


def test_light_blocks_are_one_task_and_heavy_ones_one_a_run(monkeypatch):
    with Tasks() as seen:
        passes.chain(step, start(), rows(7), ORDER, block_size=15)
    assert (seen.graphs, seen.walks) == (1, 1)
    monkeypatch.setattr(chained, "RUN_BYTES", 0)
    with Tasks() as seen:  # blocks 0, 1 and 2 lie in the first chunk, 4 and 5 in the second, 3 in both
        passes.chain(step, start(), rows(50), [0, 2, 1, 5, 4, 5, 3, 3, 0], block_size=15)
    assert (seen.graphs, seen.walks) == (1, 3)
    with Tasks() as seen:
        passes.chain(by_row, {"w": np.zeros(3)}, rows(7))
    assert (seen.graphs, seen.walks) == (1, 15)


def test_a_block_is_read_when_the_state_comes_to_it(monkeypatch):
    monkeypatch.setattr(chained, "RUN_BYTES", 0)
    events = []

    def noted(x, block_info):
        events.append(("read", block_info[0]["chunk-location"][0]))
        return x

    def met(block, state):
        events.append(("met", block.start // 10))
        return state

    x = da.from_array(X, chunks=(10, -1)).map_blocks(noted, dtype=X.dtype, meta=X[:0])
    passes.chain(met, {"w": np.zeros(1)}, as_rows(x, Y))
    assert events == [(what, number) for number in range(10) for what in ("read", "met")]


def test_a_large_parameter_and_numbers_by_row(monkeypatch):
    monkeypatch.setattr(chained, "RUN_BYTES", 0)
    numbered = with_numbers(rows(7), weight=np.arange(float(N)))
    large = np.full(200_000, 2.0)
    found = passes.chain(weighed, {"w": np.zeros(())}, numbered, [0, 0, 1], block_size=50, factor=large)
    assert found["w"] == 2 * (2 * np.arange(50).sum() + np.arange(50, 100).sum())


def weighed(block, state, factor):
    return {"w": state["w"] + factor[-1] * block.columns["weight"].sum()}


def test_rows_that_are_not_finite_are_refused_or_marked():
    x = X.copy()
    x[33, 1] = np.inf
    for given in (as_rows(x, Y), as_rows(da.from_array(x, chunks=(7, -1)), Y)):
        with pytest.raises(DataError, match="NaN or infinite values in rows 33"):
            passes.chain(step, start(), given, [2], block_size=15)
    dropped = as_rows(da.from_array(x, chunks=(7, -1)), Y, invalid="drop")
    state = passes.chain(step, start(), dropped, [2], block_size=15)
    assert np.isfinite(state["w"]).all()
    passes.chain(step, start(), as_rows(x[:30], Y[:30]), [0, 1], block_size=15)  # not in these blocks


def test_no_steps_are_the_state_that_was_given():
    for chunk in (None, 7):
        assert passes.chain(step, start(), rows(chunk), [], block_size=15)["t"] == 0


@pytest.fixture(scope="module")
def two_processes():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize("kept", [False, True])
def test_workers_give_the_bits_of_threads(two_processes, kept, monkeypatch):
    monkeypatch.setattr(chained, "RUN_BYTES", 0)
    source = passes.keep(rows(7), itself, 8) if kept else rows(7)
    found = passes.chain(step, start(), source, ORDER, block_size=15)
    np.testing.assert_array_equal(
        found["trace"], passes.chain(step, start(), rows(), ORDER, block_size=15)["trace"]
    )


def mortal(block, state, marker):
    """Kills its own worker process at one step in the middle, once."""
    if state["t"] == 12 and not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return step(block, state)


@pytest.mark.parametrize("kept", [False, True])
def test_a_killed_worker_changes_nothing(two_processes, kept, monkeypatch, tmp_path):
    monkeypatch.setattr(chained, "RUN_BYTES", 0)
    source = passes.keep(rows(7), itself, 8) if kept else rows(7)
    marker = tmp_path / "dead"
    found = passes.chain(mortal, start(), source, ORDER, block_size=15, marker=str(marker))
    assert marker.exists()
    np.testing.assert_array_equal(
        found["trace"], passes.chain(step, start(), rows(), ORDER, block_size=15)["trace"]
    )
