"""How do time a row and memory of a fit grow by one factor at a time, and what does scheduling a block cost?

    python benchmarks/scaling.py [--cells 1000000] [--most-cells 100000000] [--folder DIR] [--json FILE]

`DFM.fit` with Fourier features, D = 1000, at a given bandwidth, over made-up stores written in pieces (4 GB
for the largest), around 1e6 rows, 10 columns, 10 classes, chunks of the default size and all threads.
Each point in a process of its own, after a small fit that compiles; the best of three fits, or of those that
ten seconds hold. CPU seconds of all threads, peak resident memory. Worker processes: of the workers, summed,
and the largest. "Scheduling": a pass over tiny blocks whose kernel only counts rows, wall time a block, and
as many blocks with plain Dask; 10^6 blocks are arithmetic, not measured.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from stores import CHUNK, CLASSES, in_child, make_study, peak_memory_gb
from timing import machine, write_json

import scaleshift as ss
from scaleshift.blocks import passes
from scaleshift.blocks.block import Block
from scaleshift.blocks.rows import as_rows
from scaleshift.kernels.dispatch import fourier_sums

FEATURES, BANDWIDTH = 1000, 2.0
SECONDS_ENOUGH, FITS = 10.0, 3
N_BLOCKS = (100, 1_000, 10_000)
MILLION = 1_000_000


class Point(NamedTuple):
    """One study."""

    cells: int
    columns: int = 10
    classes: int = CLASSES
    chunk: int = CHUNK


def curves(base: Point, most_cells: int, most_classes: int) -> Iterator[tuple[str, int, Point]]:
    """Factors, their values, and the studies."""
    factors = {
        "cells": [n for k in range(-1, 3) if (n := round(base.cells * 10**k)) <= most_cells],
        "columns": [2, 10, 30, 100],
        "classes": [n for n in (2, 10, 100, 1000, 4000) if n <= most_classes],
        "chunk": [20_000, CHUNK, min(MILLION, base.cells)],
    }
    for factor, values in factors.items():
        for value in values:
            yield factor, value, base._replace(**{factor: value})


def model() -> ss.DFM:
    """What is fitted."""
    return ss.DFM(ss.FourierFeatures(FEATURES), bandwidth=BANDWIDTH, n_bootstrap=0, random_state=0)


def timed(fit: Callable[[], Any], cpu: Callable[[], float]) -> dict[str, float]:
    """The least CPU and wall seconds of some fits."""
    found: list[tuple[float, float]] = []
    while len(found) < FITS and sum(wall for _, wall in found) < SECONDS_ENOUGH:
        start, began = cpu(), time.perf_counter()
        fit()
        found.append((cpu() - start, time.perf_counter() - began))
    return {"cpu_s": min(c for c, _ in found), "wall_s": min(w for _, w in found)}


def compiled(columns: int) -> None:
    """A small fit."""
    rng = np.random.default_rng(0)
    model().fit(rng.standard_normal((1_000, columns), dtype=np.float32), np.arange(1_000) % 2)


def fit_here(path: Path, columns: int) -> dict[str, float]:
    """On the threads of this process."""
    compiled(columns)
    study = ss.open_cells(path)
    return {**timed(lambda: model().fit(study), time.process_time), "peak_memory_gb": peak_memory_gb()}


def fit_on_workers(path: Path, n_workers: int, columns: int) -> dict[str, float]:
    """On worker processes of one thread."""
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        client.run(compiled, columns)
        study = ss.open_cells(path)
        found = timed(lambda: model().fit(study), lambda: sum(client.run(time.process_time).values()))
        return {**found, "peak_memory_gb": max(client.run(peak_memory_gb).values())}


def measured(point: Point, fit: Callable[[Path], dict[str, float]], folder: Path) -> dict[str, float]:
    """A point: its study is made, fitted, and removed."""
    with tempfile.TemporaryDirectory(dir=folder) as inner:
        path = Path(inner) / "study.zarr"
        in_child(make_study, path, point.cells, point.columns, point.classes, point.chunk)
        found = fit(path)
    return {**found, "ns_per_row": 1e9 * found["cpu_s"] / point.cells}


def all_curves(base: Point, most: tuple[int, int], folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Points by factor; the base is measured once."""
    result: dict[str, list[dict[str, Any]]] = {}
    known: dict[Point, dict[str, float]] = {}
    for factor, value, point in curves(base, *most):
        if point not in known:
            columns = point.columns
            known[point] = measured(
                point, lambda path, columns=columns: in_child(fit_here, path, columns), folder
            )
        result.setdefault(factor, []).append({"value": value, "is_base": point == base, **known[point]})
        tell(factor, value, known[point])
    for n in (1, 2):
        found = measured(base, lambda path, n=n: fit_on_workers(path, n, base.columns), folder)
        result.setdefault("worker processes", []).append({"value": n, "is_base": n == 1, **found})
        tell("worker processes", n, found)
    return result


def tell(factor: str, value: int, found: dict[str, float]) -> None:
    print(
        f"{factor:16} {value:12,} {found['ns_per_row']:9.1f} ns a row, {found['wall_s']:7.2f} s wall, "
        f"{found['peak_memory_gb']:.2f} GB",
        flush=True,
    )


def count(block: Block) -> dict[str, Any]:
    """Next to nothing."""
    return {"n": len(block.x)}


def plain(x: da.Array) -> Any:
    """The least that Dask itself does with as many blocks: one task a block, and a tree of sums."""
    ones = x.map_blocks(
        lambda block: np.ones((1, 1)), chunks=((1,) * x.numblocks[0], (1,)), meta=np.empty((0, 0))
    )
    return ones.sum(split_every=16).compute()


def overhead(scheduler: str, n_blocks: list[int]) -> list[dict[str, Any]]:
    """Seconds of a pass by its number of tiny blocks, and of plain Dask: wall, and CPU of this process."""
    found = []
    for n in n_blocks:
        x = da.zeros((10 * n, 2), chunks=(10, 2), dtype=np.float32)
        rows = as_rows(x)
        runs = {"ours": lambda rows=rows: passes.total(count, rows, {"n": ()}), "plain": lambda x=x: plain(x)}
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
        for _ in range(3):
            for name, run in runs.items():
                start, began = time.process_time(), time.perf_counter()
                run()
                times[name].append((time.perf_counter() - began, time.process_time() - start))
        (wall, cpu), (plain_wall, _) = (np.median(times[name], axis=0) / n for name in runs)
        one = {
            "scheduler": scheduler,
            "blocks": n,
            "us_per_block": 1e6 * wall,
            "cpu_us_per_block": 1e6 * cpu,
            "plain_us_per_block": 1e6 * plain_wall,
            "seconds_of_million": MILLION * wall,
        }
        found.append(
            {key: value if isinstance(value, str | int) else float(value) for key, value in one.items()}
        )
        print(
            f"{scheduler}, {n:6,} blocks: {1e6 * wall:.0f} us a block, {1e6 * cpu:.0f} us of CPU in this "
            f"process; plain Dask {1e6 * plain_wall:.0f} us",
            flush=True,
        )
    return found


def kernel_seconds() -> float:
    """CPU seconds of the kernel for one block of the default size."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((CHUNK, 10), dtype=np.float32)
    codes, frequencies = rng.integers(0, CLASSES, CHUNK), rng.normal(size=(FEATURES // 2, 10))
    seconds = []
    for _ in range(6):
        start = time.thread_time()
        fourier_sums(x, codes, CLASSES, frequencies)
        seconds.append(time.thread_time() - start)
    return float(np.median(seconds[1:]))


def all_overheads(n_blocks: list[int]) -> list[dict[str, Any]]:
    """On this machine's threads, and on two worker processes."""
    with dask.config.set(scheduler="threads"):
        found = overhead("threads", n_blocks)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        found += overhead("two worker processes", n_blocks)
    kernel = kernel_seconds()
    for one in found:
        share = one["us_per_block"] / 1e6 / kernel
        one["note"] = f"{share:.1%} of the {1e3 * kernel:.0f} ms that {CHUNK:,} rows take one core"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cells", type=int, default=1_000_000, help="of the base")
    parser.add_argument("--most-cells", type=int, default=100_000_000)
    parser.add_argument("--most-classes", type=int, default=4_000)
    parser.add_argument("--blocks", type=int, nargs="+", default=list(N_BLOCKS))
    parser.add_argument("--folder", type=Path, help="where to write the studies")
    parser.add_argument("--json", metavar="FILE", help="write the results here")
    options = parser.parse_args()
    facts = machine()
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    overheads = all_overheads(options.blocks)
    most = options.most_cells, options.most_classes
    found = all_curves(Point(options.cells), most, options.folder)
    if options.json:
        content = {"base": Point(options.cells)._asdict(), "curves": found, "overhead": overheads}
        write_json(options.json, {"machine": facts, **content})


if __name__ == "__main__":
    main()
