"""Do slices of a store cost what reading and the kernel cost, in as many passes as `explain` says?

python benchmarks/slices_out_of_core.py [--rows 10000000] [--columns 32] [--folder DIR] [--json FILE]

Writes embeddings, labels and predictions (1.3 GB at the default size), explains `DominoSlicer().fit` and runs
it, once with prepared rows kept in memory and once without. CPU seconds of the process, and peak resident
memory, each in a process of its own. Unset OPENBLAS_CORETYPE for this command.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import zarr
from dask.callbacks import Callback
from timing import machine, write_json

import scaleshift as ss
from scaleshift.blocks import passes
from scaleshift.slices.inputs import Given
from scaleshift.slices.mixtures import expectation
from scaleshift.slices.mixtures.mixture import components_of
from scaleshift.slices.prepared import prepare

CHUNK, CLUSTERS, CENTRE_SEED = 131_072, 30, 7
BLOCK = 65_536  # rows in memory that are one block


def make_block(number: int, n: int, columns: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Clusters of which two are hard for the model."""
    centres = np.random.default_rng(CENTRE_SEED).normal(size=(CLUSTERS, columns)).astype(np.float32) * 1.2
    rng = np.random.default_rng(number)
    cluster = rng.integers(0, CLUSTERS, n)
    y = (cluster % 2).astype(np.int8)
    x = centres[cluster] + rng.standard_normal((n, columns), np.float32)
    wrong = rng.random(n) < np.where(cluster < 2, 0.6, 0.1)
    sure = rng.beta(6, 2, n) / 2 + 0.5
    return x, y, np.where((y == 1) != wrong, sure, 1 - sure).astype(np.float32)


def make_store(path: Path, rows: int, columns: int) -> None:
    """Three arrays, written in pieces."""
    group = zarr.open_group(path, mode="w")
    shapes = {
        "x": ((rows, columns), (CHUNK, columns), "f4"),
        "y": ((rows,), (CHUNK,), "i1"),
        "p": ((rows,), (CHUNK,), "f4"),
    }
    arrays = {
        name: group.create_array(name, shape=s, chunks=c, dtype=t, dimension_names=("row", "d")[: len(s)])
        for name, (s, c, t) in shapes.items()
    }
    for number, start in enumerate(range(0, rows, CHUNK)):
        n = min(CHUNK, rows - start)
        for name, values in zip("xyp", make_block(number, n, columns), strict=True):
            arrays[name][start : start + n] = values


class Count(Callback):
    """How many computes there were, and what each took of the processor."""

    def __init__(self) -> None:
        super().__init__(start=self._begin, finish=self._end)
        self.seconds: list[float] = []

    def _begin(self, dsk: Any) -> None:
        self.began = time.process_time()

    def _end(self, dsk: Any, state: Any, failed: bool) -> None:
        self.seconds.append(time.process_time() - self.began)


def arrays_of(path: Path) -> dict[str, da.Array]:
    """The store as Dask arrays, a block a chunk."""
    return {name: da.from_zarr(str(path), component=name) for name in "xyp"}


def fit(path: Path, kept: bool) -> dict[str, Any]:
    """One fit, explained and measured."""
    passes.SHARE_KEPT = passes.SHARE_KEPT if kept else 0.0
    found = arrays_of(path)
    slicer = ss.DominoSlicer(random_state=0)
    plan = ss.explain(slicer, found["x"], found["y"], pred_probs=found["p"])
    print(plan, flush=True)
    steps: list[float] = []
    original = expectation.step

    def timed(*arguments: Any) -> Any:
        began = time.process_time()
        result = original(*arguments)
        if not arguments[0].is_one_block:
            steps.append(time.process_time() - began)
        return result

    expectation.step = timed
    start, wall = time.process_time(), time.perf_counter()
    with Count() as count:
        slicer.fit(embeddings=found["x"], targets=found["y"], pred_probs=found["p"])
    cpu, elapsed = time.process_time() - start, time.perf_counter() - wall
    return {
        "cpu_s": cpu,
        "elapsed_s": elapsed,
        "computes": len(count.seconds),
        "expectation_passes": slicer.n_iter_,
        "expectation_cpu_s": float(np.median(steps)),
        "planned_passes_over_x": plan.passes_over_x,
        "planned_passes": sum(part.times for part in plan.passes),
        "planned_passes_at_most": sum(part.at_most for part in plan.passes),
        "planned_cpu_s": plan.cpu_seconds,
        "planned_gb": (2 * plan.thread_bytes + plan.worker_bytes + 3e8) / 1e9,
        "peak_memory_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
        "worst_slices": slicer.slice_components_.tolist(),
    }


def read_and_kernel(path: Path) -> dict[str, float]:
    """What reading every block takes, and the mixture kernel on one block times the blocks."""
    found = arrays_of(path)
    head = {name: array[:BLOCK].compute() for name, array in found.items()}
    slicer = ss.DominoSlicer(random_state=0).fit(
        embeddings=head["x"], targets=head["y"], pred_probs=head["p"]
    )
    kind = slicer.preparation_.kind
    rows = kind.rows(Given(head["x"], head["y"], head["p"]))
    block = passes.keep(rows, prepare, 1, preparation=slicer.preparation_).x
    components = components_of([slicer.mixture_], slicer._settings.powers)
    times: dict[str, list[float]] = {"read": [], "kernel": []}
    for _ in range(4):
        start = time.process_time()
        da.blockwise(
            lambda *_: np.zeros((1, 1)), "ij", found["x"], "ij", found["y"], "i", found["p"], "i",
            adjust_chunks={"i": 1, "j": 1}, align_arrays=False, meta=np.empty((0, 0)), dtype=float,
        ).sum(split_every=16).compute()  # fmt: skip
        times["read"].append(time.process_time() - start)
        start = time.process_time()
        for _ in range(5):
            expectation.mixture_leaf(block, kind, components)
        seconds = (time.process_time() - start) / 5
        times["kernel"].append(seconds * found["x"].shape[0] / len(block.x))
    return {f"{name}_cpu_s": float(np.median(values[1:])) for name, values in times.items()}


def in_child(function: Any, *arguments: Any) -> Any:
    """Run in a fresh process, whose memory is its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def main() -> None:
    """Make the store, and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=32)
    parser.add_argument("--folder", type=Path, help="where to write the store")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        path = Path(folder) / "store.zarr"
        make_store(path, arguments.rows, arguments.columns)
        result: dict[str, Any] = {"rows": arguments.rows, "columns": arguments.columns, "machine": machine()}
        result["base"] = in_child(read_and_kernel, path)
        for name, kept in {"kept": True, "read_again": False}.items():
            result[name] = in_child(fit, path, kept)
    base = result["base"]
    for name in ("kept", "read_again"):
        whole = base["kernel_cpu_s"] + base["read_cpu_s"]
        result[name]["pass_over_kernel_plus_read"] = result[name]["expectation_cpu_s"] / whole
    print(json.dumps(result, indent=2))
    if arguments.json:
        write_json(arguments.json, result)


if __name__ == "__main__":
    main()
