"""What a plan says of memory is what a worker takes: measured in a process of its own, by the kernel."""

import ctypes
import gc
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from distributed import Client, LocalCluster

import scaleshift as ss
from scaleshift.slices import DominoSlicer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")

D, CHUNK, N_CHUNKS, THREADS = 40, 250_000, 4, 2  # 40 MB a chunk
FACTOR = 1.5


def resident():
    """Bytes of this process: now and at most since the last call, which starts the peak anew."""
    gc.collect()
    status = Path("/proc/self/status").read_text()
    peak = int(re.search(r"VmHWM:\s+(\d+)", status)[1]) * 1024
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    now = int(re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024
    return now, peak


def written(path, n, chunk, d=D):
    """Four classes in ten samples; a fifth of the cells has another class than a model says."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d)).astype("f4").round(2)
    code = rng.integers(0, 4, n)
    x[:, :4] += 3 * np.eye(4, dtype="f4")[code]
    label, sample = np.array(["a", "b", "c", "d"])[code], np.sort(np.arange(n) % 10)
    ss.write_cells(ss.as_cells(x, sample, label), path, chunk_cells=chunk)
    return path


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    return written(tmp_path_factory.mktemp("large") / "study.zarr", N_CHUNKS * CHUNK, CHUNK)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return written(tmp_path_factory.mktemp("tiny") / "study.zarr", 4_000, 1_000)


@pytest.fixture(scope="module")
def worker():
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=THREADS, memory_limit="6GB", dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def said(code):
    """Probabilities of labels, of which every fifth cell has a wrong one."""
    return np.eye(4, dtype="f4")[(code + (np.arange(len(code)) % 5 == 0)) % 4]


def of_a_slicer(cells):
    code = cells["label_code"].data
    probabilities = code.map_blocks(said, dtype="f4", chunks=(code.chunks[0], (4,)), new_axis=1)
    return {"embeddings": cells["X"].data, "targets": code, "pred_probs": probabilities}


JOBS = {
    "DFM": lambda: ss.DFM(bandwidth=5.0, random_state=0),
    "SparseAUC": lambda: ss.SparseAUC(pos_label="a", random_state=0),
    "OpenSetQuantifier": lambda: ss.OpenSetQuantifier(random_state=0),
}
SLOW = pytest.param("OpenSetQuantifier", marks=pytest.mark.slow)


def taken(client, work):
    """Bytes by which the peak of the worker lies above what it had before."""
    client.run(resident)
    ((before, _),) = client.run(resident).values()
    work()
    ((_, peak),) = client.run(resident).values()
    return peak - before


def check(name, plan, measured):
    planned = THREADS * plan.thread_bytes + plan.worker_bytes
    print(f"{name}: {measured / 1e6:.0f} MB taken, {planned / 1e6:.0f} MB planned, {planned / measured:.2f}")
    assert plan.room.whose == "a worker"
    assert planned > measured / FACTOR, "the plan promises too little"
    assert planned < measured * FACTOR, "the plan frightens away what would fit"


@pytest.mark.parametrize("name", ["DFM", SLOW])
def test_a_fit_takes_the_memory_that_is_planned(name, worker, tiny, large):
    make, cells = JOBS[name], ss.open_cells(large)
    make().fit(ss.open_cells(tiny))  # compiles
    measured = taken(worker, lambda: make().fit(cells))
    check(f"{name}.fit", ss.explain(make(), cells), measured)


def test_states_as_large_as_blocks_take_the_memory_that_is_planned(worker, tmp_path):
    """Moments of 300 features, by class and fold: runs of blocks are folded, and eight of them merge."""
    few = written(tmp_path / "few.zarr", 4_000, 1_000, d=300)
    many = written(tmp_path / "many.zarr", 16 * 12_500, 12_500, d=300)
    model = ss.SparseAUC(k=3, cv=5, pos_label="a", random_state=0)
    model.fit(ss.open_cells(few))  # compiles
    cells = ss.open_cells(many)
    measured = taken(worker, lambda: model.fit(cells))
    plan = ss.explain(model, cells)
    assert plan.passes[-2].state_bytes > plan.block_bytes
    check("SparseAUC.fit of 300 features", plan, measured)


@pytest.mark.slow
def test_blocks_that_are_kept_take_the_memory_that_is_planned(worker, tiny, large):
    slicer = DominoSlicer(n_slices=3, n_mixture_components=8, max_iter=5, random_state=0)
    slicer.fit(**of_a_slicer(ss.open_cells(tiny)))  # compiles
    given = of_a_slicer(ss.open_cells(large))
    measured = taken(worker, lambda: slicer.fit(**given))
    plan = ss.explain(slicer, given["embeddings"], given["targets"], pred_probs=given["pred_probs"])
    assert any("kept rows" in part.over for part in plan.passes)
    check("DominoSlicer.fit", plan, measured)


@pytest.mark.parametrize("name", ["DFM", SLOW])
def test_a_prediction_takes_the_memory_that_is_planned(name, worker, tiny, large):
    model = JOBS[name]().fit(ss.open_cells(tiny))
    model.predict(ss.open_cells(tiny))  # compiles
    cells = ss.open_cells(large)
    measured = taken(worker, lambda: model.predict(cells))
    check(f"{name}.predict", ss.explain(model, cells), measured)
