"""Do many samples cost what one sample with as many cells costs?

python benchmarks/many_samples.py [--samples 1000] [--cells 10000] [--rounds 3] [--folder DIR] [--json FILE]

Writes a synthetic study (400 MB at the default size) and predicts it, as many samples and as one, without and
with 200 replicates, interleaved: wall seconds on the threads of this machine, medians. Then once more with
200 replicates on two worker processes: how much the memory of the driver grows.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from pathlib import Path

import dask.array as da
import numpy as np
import psutil
from distributed import Client, LocalCluster
from stores import in_child
from timing import machine, write_json

import scaleshift as ss

CLASSES, MARKERS, CHUNK = 10, 10, 131_072
CENTRES = np.random.default_rng(0).normal(0, 2.0, (CLASSES, MARKERS))


def draw(n: int, seed: int, shares: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Cells of ten Gaussian classes, and their classes."""
    rng = np.random.default_rng(seed)
    code = rng.choice(CLASSES, n, p=shares)
    return (CENTRES[code] + rng.standard_normal((n, MARKERS))).astype(np.float32), code


def make_block(block: np.ndarray, block_info: dict | None = None) -> np.ndarray:
    """Cells of one chunk; the shares shift from chunk to chunk."""
    number = block_info[None]["chunk-location"][0]
    shares = np.random.default_rng(number).dirichlet(np.ones(CLASSES))
    return draw(block_info[None]["chunk-shape"][0], number + 1, shares)[0]


def make_study(path: Path, samples: int, cells: int) -> None:
    """A study without labels."""
    n = samples * cells
    zeros = da.zeros((n, MARKERS), chunks=(CHUNK, MARKERS), dtype=np.float32)
    x = zeros.map_blocks(make_block, dtype=np.float32, meta=np.empty((0, 0), np.float32))
    names = np.repeat([f"S{i:04d}" for i in range(samples)], cells)
    ss.write_cells(ss.as_cells(x, sample=names), path)


def seconds(model: ss.DFM, study: object) -> float:
    """Wall seconds of one prediction."""
    start = time.perf_counter()
    model.predict(study)
    return time.perf_counter() - start


def measure(path: Path, rounds: int, features: str) -> dict[str, float]:
    """Medians of interleaved rounds, after one that compiles and fills caches."""
    many = ss.open_cells(path)
    one = ss.as_cells(many["X"].data, marker=many["marker"].values)
    x, y = draw(20_000, seed=0)
    models = {n: ss.DFM(features, bandwidth=2.0, n_bootstrap=n, random_state=0).fit(x, y) for n in (0, 200)}
    cases = {"many_0": (0, many), "one_0": (0, one), "many_200": (200, many), "one_200": (200, one)}
    times: dict[str, list[float]] = {name: [] for name in cases}
    for number in range(rounds + 1):
        for name, (n, study) in cases.items():
            found = seconds(models[n], study)
            if number:
                times[name].append(found)
    median = {f"{name}_s": float(np.median(values)) for name, values in times.items()}
    ratio = [a / b for a, b in zip(times["many_0"], times["one_0"], strict=True)]
    more = [a - b for a, b in zip(times["many_200"], times["many_0"], strict=True)]
    return {
        **median,
        "many_over_one": float(np.median(ratio)),
        "replicates_cost_s": float(np.median(more)),
    }


def driver_growth(path: Path, features: str) -> float:
    """By how many MB this process grows, at its largest, while two worker processes predict."""
    x, y = draw(20_000, seed=0)
    model = ss.DFM(features, bandwidth=2.0, random_state=0).fit(x, y)
    model.predict(x[:1_000])
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
        study = ss.open_cells(path)
        resident = psutil.Process().memory_info
        before, largest, done = resident().rss, 0, threading.Event()

        def watch() -> None:
            nonlocal largest
            while not done.wait(0.01):
                largest = max(largest, resident().rss)

        watcher = threading.Thread(target=watch)
        watcher.start()
        model.predict(study)
        done.set()
        watcher.join()
        return (largest - before) / 1e6


def main() -> None:
    """Measure; the study is made in a child, whose memory does not count."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=1_000)
    parser.add_argument("--cells", type=int, default=10_000, help="of each sample")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--features", nargs="+", default=["fourier", "landmarks"])
    parser.add_argument("--folder", type=Path, help="where to write the study")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    result: dict = {name: getattr(arguments, name) for name in ("samples", "cells", "rounds")}
    result["machine"] = machine()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        path = Path(folder) / "study.zarr"
        in_child(make_study, path, arguments.samples, arguments.cells)
        for features in arguments.features:
            growth = driver_growth(path, features)
            result[features] = {"driver_growth_mb": growth, **measure(path, arguments.rounds, features)}
    print(json.dumps(result, indent=2))
    if arguments.json:
        write_json(arguments.json, result)


if __name__ == "__main__":
    main()
