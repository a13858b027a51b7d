"""How much sooner is a pass over when two threads, or two worker processes, do the work of one?

    python benchmarks/threads.py [--blocks 128] [--rounds 5] [--folder DIR] [--json FILE]

The same work, 10 columns and Fourier class sums with D = 1000, wall seconds, interleaved: the library's pass
over rows in memory, in chunks of the default size; `DFM.fit` over a store on one and two threads; the same on
one and two worker processes. "busy cores" is arithmetic in registers on one thread and on two: what the
machine gives. Two CPUs that are threads of one core give far less than 2.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import fma_limit
import numpy as np
from distributed import Client, LocalCluster
from stores import CHUNK, CLASSES, in_child, make_study
from timing import interleave, machine, write_json

import scaleshift as ss
from scaleshift.blocks import passes
from scaleshift.blocks.block import Block
from scaleshift.blocks.rows import as_rows
from scaleshift.kernels.dispatch import fourier_sums

MARKERS, FREQUENCIES, BANDWIDTH = 10, 500, 2.0
CORES = "busy cores"
WITH_BAR = "the pass, in memory, threads"


def class_sums(block: Block, frequencies: np.ndarray) -> dict[str, np.ndarray]:
    """What the pass sums."""
    return {"sums": fourier_sums(block.x, block.codes("label"), CLASSES, frequencies)}


def on_threads(work: Callable[[], Any], n: int) -> Callable[[], Any]:
    """The same with so many of Dask's threads."""

    def run() -> Any:
        with dask.config.set(scheduler="threads", num_workers=n):
            return work()

    return run


def on_workers(work: Callable[[], Any], client: Client) -> Callable[[], Any]:
    """The same on a client's workers."""

    def run() -> Any:
        with client.as_current():
            return work()

    return run


def in_memory_pass(blocks: int) -> Callable[[], Any]:
    """The library's pass over rows that are there already."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((blocks * CHUNK, MARKERS), dtype=np.float32)
    labels = rng.integers(0, CLASSES, len(x), dtype=np.int32)
    frequencies = rng.normal(size=(FREQUENCIES, MARKERS)) / BANDWIDTH
    rows = as_rows(da.from_array(x, chunks=(CHUNK, -1), name=False), labels)
    layout = {"sums": (CLASSES, 2 * FREQUENCIES)}
    return lambda: passes.total(class_sums, rows, layout, frequencies=frequencies)


def busy(pool: ThreadPoolExecutor, n: int) -> Callable[[], Any]:
    """Two parts of work in registers on so many threads."""
    part = fma_limit.work(1, 0, 20 * fma_limit.N_LANES, fma_limit.best_width())
    if n == 1:
        return lambda: [part(), part()]
    return lambda: list(pool.map(lambda _: part(), range(2)))


def measure(path: Path, blocks: int, rounds: int) -> dict[str, dict[str, float]]:
    """Wall seconds on one and on two, and the median of their ratio."""
    study = ss.open_cells(path)
    model = ss.DFM(ss.FourierFeatures(2 * FREQUENCIES), bandwidth=BANDWIDTH, n_bootstrap=0, random_state=0)
    work = in_memory_pass(blocks)

    def fit() -> Any:
        return model.fit(study)

    def cluster(n: int) -> LocalCluster:
        return LocalCluster(n_workers=n, threads_per_worker=1, dashboard_address=":0")

    with (
        ThreadPoolExecutor(2) as pool,
        cluster(1) as one,
        cluster(2) as two,
        Client(one, set_as_default=False) as client_one,
        Client(two, set_as_default=False) as client_two,
    ):
        pairs = {
            CORES: (busy(pool, 1), busy(pool, 2)),
            WITH_BAR: (on_threads(work, 1), on_threads(work, 2)),
            "DFM.fit from Zarr, threads": (on_threads(fit, 1), on_threads(fit, 2)),
            "DFM.fit from Zarr, worker processes": (on_workers(fit, client_one), on_workers(fit, client_two)),
        }
        runs = {f"{name} {n}": pair[n - 1] for name, pair in pairs.items() for n in (1, 2)}
        seconds = interleave(runs, rounds, time.perf_counter)
    return {
        name: {
            "one_s": float(np.median(seconds[f"{name} 1"])),
            "two_s": float(np.median(seconds[f"{name} 2"])),
            "one_over_two": float(np.median(seconds[f"{name} 1"] / seconds[f"{name} 2"])),
        }
        for name in pairs
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--blocks", type=int, default=128, help="chunks of rows")
    parser.add_argument("--folder", type=Path, help="where to write the study")
    parser.add_argument("--json", metavar="FILE", help="write the results here")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    facts = machine()
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "study.zarr"
        in_child(make_study, path, options.blocks * CHUNK, MARKERS)
        found = measure(path, options.blocks, options.rounds)
    for name, of in found.items():
        print(f"{name:36} {of['one_s']:7.2f} s {of['two_s']:7.2f} s {of['one_over_two']:6.2f}")
    if options.json:
        cores = found.pop(CORES)["one_over_two"]
        results = [{"what": name, "has_bar": name == WITH_BAR, **of} for name, of in found.items()]
        settings = {"n_rows": options.blocks * CHUNK, "n_columns": MARKERS, "rounds": options.rounds}
        write_json(
            options.json, {"machine": facts, **settings, "cores_one_over_two": cores, "results": results}
        )


if __name__ == "__main__":
    main()
