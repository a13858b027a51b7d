"""What a user hears when workers, or the scheduler, are lost for good: which rows, why, what to do."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from contextlib import contextmanager
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

import scaleshift as ss
from scaleshift.blocks import computing, graph, lost, passes
from scaleshift.blocks.rows import as_rows
from scaleshift.errors import ClusterError

X = np.arange(80.0).reshape(40, 2).astype("f4")


@pytest.fixture
def study(tmp_path):
    ss.write_cells(ss.as_cells(X), tmp_path / "study.zarr", chunk_cells=10)
    return tmp_path / "study.zarr"


def summed(block):
    return {"sum": block.x.sum(axis=0)}


def deadly(block):
    """Kills every worker that meets rows 20-29."""
    if block.start == 20:
        os.kill(os.getpid(), signal.SIGKILL)
    return summed(block)


def hungry(block):
    """Asks for more and more memory at rows 20-29."""
    if block.start == 20:
        kept = []
        while True:
            kept.append(np.ones(2_000_000))
            time.sleep(0.02)  # the nanny looks every 100 ms: the kernel must not be faster
    return summed(block)


def total(kernel, rows, **parameters):
    return passes.total(kernel, rows, {"sum": (2,)}, **parameters)["sum"]


@pytest.fixture
def one_worker():
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit="500MiB"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def test_rows_that_kill_every_worker_are_named(one_worker, study):
    with pytest.raises(ClusterError, match=r"2 workers died one after the other") as caught:
        total(deadly, as_rows(ss.open_cells(study)))
    message = str(caught.value)
    # The scheduler cannot tell it from a block that waited at the same workers.
    assert re.search(rf"as they worked on rows [12]0-[23]9 of {study} \(80 B a block\)", message), message
    assert "most often the memory of 500.00 MiB was full; the log of tcp://127.0.0.1:" in message
    assert "more memory or fewer threads, or store smaller chunks" in message
    found = total(summed, as_rows(ss.open_cells(study)))  # the cluster is there for the next job
    assert np.array_equal(found, X.sum(axis=0))


@pytest.mark.slow
@pytest.mark.parametrize(("chunk", "named"), [(10, "[12]0-[23]9"), (5, "(15|20)-2[49]")])
def test_rows_that_are_not_of_a_study_are_named_too(one_worker, chunk, named):
    with pytest.raises(ClusterError, match=rf"worked on rows {named} \({chunk} x 2 values a block\)"):
        total(deadly, as_rows(da.from_array(X, chunks=(chunk, -1))))


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [1, 40])
def test_rows_that_are_summed_inside_one_task_are_named(one_worker, study, monkeypatch, chunk):
    """One task goes over the blocks of a run; or it is the whole graph."""
    monkeypatch.setattr(graph, "FOLD_BYTES", 0)
    one_worker.wait_for_workers(1, timeout=60)
    lazy = da.from_array(X, chunks=(chunk, -1))
    with pytest.raises(ClusterError, match=r"worked on rows (0|8|16)-(23|31|39) "):
        total(deadly if chunk == 1 else deadly_at_once, as_rows(lazy.persist(scheduler="threads")))


def deadly_at_once(block):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_merge_and_rows_of_a_piece_are_told_too():
    rows = as_rows(da.from_array(X, chunks=(10, -1))).between(15, 40)
    leaves, root = graph.reduction(summed, np.add, rows, {})
    assert lost.place_of((root,), {(root.name,)}) == "states that were merged"
    assert lost.place_of((root,), {(leaves.name, 1, 0)}) == "rows 20-29 (10 x 2 values a block)"


@pytest.mark.parametrize("fold_bytes", [graph.FOLD_BYTES, 0])
def test_a_pass_is_planned_also_while_there_are_no_workers(monkeypatch, fold_bytes):
    monkeypatch.setattr(graph, "FOLD_BYTES", fold_bytes)
    with (
        LocalCluster(n_workers=0, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        assert graph.n_threads() == 1
        helper = threading.Timer(1, cluster.scale, [1])
        helper.start()
        assert np.array_equal(total(summed, as_rows(da.from_array(X, chunks=(1, -1)))), X.sum(axis=0))
        helper.join()


@pytest.mark.slow
def test_a_block_too_large_for_a_worker_is_named_with_both_sizes(one_worker, study):
    expected = r"rows [12]0-[23]9 of .*study.zarr \(80 B a block\): the memory of 500.00 MiB was full. Give"
    with pytest.raises(ClusterError, match=expected):
        total(hungry, as_rows(ss.open_cells(study)))


def test_a_job_that_waits_for_workers_says_so_once_and_goes_on(monkeypatch):
    monkeypatch.setattr(computing, "WAIT", 0.2)
    with (
        LocalCluster(n_workers=0, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        address = client.scheduler.address
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            helper = threading.Thread(target=joins_once, args=(cluster, said))
            helper.start()
            found = total(summed, as_rows(da.from_array(X, chunks=(10, -1))))
            helper.join()
    assert np.array_equal(found, X.sum(axis=0))
    about = [str(warning.message) for warning in said if "workers" in str(warning.message)]
    assert len(about) == 1
    assert f"the scheduler {address} has no workers: the job waits until some join" in about[0]


def joins_once(cluster, said):
    """A worker joins some time after the warning."""
    while not said:
        time.sleep(0.05)
    time.sleep(0.5)
    cluster.scale(1)


# The scheduler dies -------------------------------------------------------------------------------------


@contextmanager
def processes():
    """Starts Dask's processes; ends those that are left."""
    started = []

    def start(*arguments):
        command = [
            sys.executable,
            "-m",
            *arguments,
            "--host",
            "127.0.0.1",
            "--dashboard-address",
            "127.0.0.1:0",
        ]
        with_tests = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        started.append(subprocess.Popen(command, env=with_tests, **silent))
        return started[-1]

    try:
        yield start
    finally:
        for process in started:
            process.terminate()
        for process in started:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def scheduler(start, folder, port=0):
    """A scheduler, and its address."""
    file = Path(folder) / f"scheduler-{port}.json"
    process = start("distributed.cli.dask_scheduler", "--port", str(port), "--scheduler-file", str(file))
    while not file.exists():
        assert process.poll() is None
        time.sleep(0.05)
    return process, json.loads(file.read_text())["address"]


def worker(start, folder, address):
    start(
        *("distributed.cli.dask_worker", address, "--nthreads", "1", "--death-timeout", "60"),
        *("--local-directory", str(folder)),
    )


def gated(block, folder):
    """Waits at rows 20-29 until a file is there."""
    if block.start == 20:
        (Path(folder) / "reached").touch()
        while not (Path(folder) / "go on").exists():
            time.sleep(0.05)
    return summed(block)


def dies_in_mid_pass(process, folder):
    """Kills the scheduler once the pass has reached its gate."""

    def watch():
        while not (folder / "reached").exists():
            time.sleep(0.05)
        process.kill()
        process.wait()

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


@pytest.mark.slow
def test_a_scheduler_that_dies_is_an_error_and_one_at_its_place_takes_the_next_job(tmp_path):
    rows = as_rows(da.from_array(X, chunks=(10, -1)))
    with processes() as start:
        process, address = scheduler(start, tmp_path)
        worker(start, tmp_path, address)
        with Client(address, timeout=60) as client:
            client.wait_for_workers(1, timeout=60)
            helper = dies_in_mid_pass(process, tmp_path)
            with pytest.raises(
                ClusterError, match=f"the scheduler {address} was lost, and with it what"
            ) as e:
                total(gated, rows, folder=str(tmp_path))
            helper.join()
            assert "with a checkpoint (--resume) it goes on from where it was" in str(e.value)
            (tmp_path / "go on").touch()
            scheduler(start, tmp_path, int(address.rsplit(":", 1)[1]))
            worker(start, tmp_path, address)
            assert np.array_equal(total(gated, rows, folder=str(tmp_path)), X.sum(axis=0))


def test_a_scheduler_that_does_not_come_back_is_waited_for_no_longer_than_the_client_says(tmp_path):
    rows = as_rows(da.from_array(X, chunks=(10, -1)))
    with processes() as start:
        process, address = scheduler(start, tmp_path)
        client = Client(address, timeout=3)
        process.kill()
        process.wait()
        with pytest.raises(ClusterError, match=f"the scheduler {address} was lost"):
            total(summed, rows)
        client.close()


QUESTIONS = {
    "a pass": lambda rows: total(summed, rows),
    "threads": lambda rows: graph.n_threads(),
    "workers": lambda rows: graph.free_bytes(in_memory=False),
    "blocks to keep": lambda rows: passes.keep(rows, summed, row_bytes=8),
    "tasks of their own": lambda rows: graph.run([list]),
    "blocks that stay": lambda rows: computing.persist(rows.x),
}


def test_a_client_that_has_closed_itself_tells_that_its_scheduler_was_lost_whatever_is_asked(tmp_path):
    rows = as_rows(da.from_array(X, chunks=(10, -1)))
    with processes() as start:
        process, address = scheduler(start, tmp_path)
        with Client(address, timeout=1) as client:
            process.kill()
            process.wait()
            while client.status != "closed":
                time.sleep(0.05)
            for ask in QUESTIONS.values():
                with pytest.raises(ClusterError, match=f"the scheduler {address} was lost"):
                    ask(rows)
