"""Does a driver that asks all four questions again and again stay as it is?

    python benchmarks/soak.py [--seconds 300] [--rows 100000] [--folder DIR] [--json FILE]

One process, and a client of two worker processes: small jobs over a store, in turn on the workers and on
threads. After each round, when all is idle: resident memory, open files and threads of the driver and of
each worker, tasks that the scheduler knows, futures, clients, files in the folder of temporary ones and
in Dask's. The first third warms up; of the rest the slope of the memory, with its standard error, and by
how much the median of each count in the last third exceeds that in the middle one.
"""

from __future__ import annotations

import argparse
import gc
import os
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from distributed import Client, LocalCluster
from jobs import cluster_of, told
from sklearn.exceptions import ConvergenceWarning
from sklearn.tree import DecisionTreeRegressor
from slices_out_of_core import arrays_of, make_store
from stores import in_child
from timing import machine, write_json

import scaleshift as ss

COLUMNS, FEW = 32, 1_500
WARM_UP = 1 / 3
IDLE = 5.0  # seconds that the scheduler has to forget what nobody holds
MEMORY = "rss_mb"


def make(folder: Path, rows: int) -> None:
    """A store of embeddings, labels and predictions, and a study of the same rows."""
    make_store(folder / "store.zarr", rows, COLUMNS)
    found = arrays_of(folder / "store.zarr")
    sample = np.repeat(["a", "b"], [rows // 2, rows - rows // 2])
    cells = ss.as_cells(found["x"], sample=sample, label=found["y"].compute())
    ss.write_cells(cells, folder / "study.zarr", chunk_cells=65_536)


class Questions:
    """The jobs of a round; one model lives through all of them and is told new rows each time."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.monitor, self.round = folder, None, 0

    def ask(self) -> None:
        """One of each; what is opened, is opened anew."""
        found = arrays_of(self.folder / "store.zarr")
        x, y, p = (found[name] for name in "xyp")
        study = ss.open_cells(self.folder / "study.zarr")
        ss.DFM(random_state=0).fit(study).predict(study)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            slicer = ss.DominoSlicer(random_state=0, max_iter=3, n_mixture_components=8)
            slicer.fit(embeddings=x, targets=y, pred_probs=p).describe()
        ss.SparseAUC(random_state=0).fit(x, y).decision_function(x[:1_000])
        numbers = ss.PredictionError("ols", random_state=0).fit(x, y.astype(np.float64))
        numbers.predict({"all": x})
        self.monitor = self.monitor or numbers
        self.monitor.update({"site": x[: len(x) // 2], f"site {self.round % 3}": x[len(x) // 2 :]})
        few, outcome = x[:FEW].compute(), y[:FEW].compute().astype(np.float64)
        tree = ss.PredictionError(DecisionTreeRegressor(max_depth=4), n_bootstrap=8, cv=2, random_state=0)
        tree.fit(few, outcome).update({"site": few})
        self.round += 1


def looked_at(cluster: LocalCluster, client: Client, folders: dict[str, Path]) -> dict[str, float]:
    """What there is when all is idle."""
    gc.collect()
    tasks = cluster.scheduler.tasks
    end = time.monotonic() + IDLE
    while tasks and time.monotonic() < end:
        time.sleep(0.05)
    found: dict[str, float] = {
        "tasks": len(tasks),
        "futures": len(client.futures),
        "clients": len(cluster.scheduler.clients),
    }
    pids = {"driver": os.getpid()}
    pids |= {f"worker {i}": nanny.pid for i, nanny in enumerate(cluster.workers.values())}
    for name, pid in pids.items():
        process = psutil.Process(pid)
        found[f"{name} {MEMORY}"] = process.memory_info().rss / 1e6
        found[f"{name} files"] = process.num_fds()
        found[f"{name} threads"] = process.num_threads()
    for name, folder in folders.items():
        found[f"{name} files on disk"] = sum(path.is_file() for path in folder.rglob("*"))
    return found


def soak(folder: Path, seconds: float) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Times in seconds, and what was seen then, by name."""
    folders = {"temporary": folder / "temporary", "dask": folder / "dask"}
    for path in folders.values():
        path.mkdir()
    before = tempfile.tempdir, dict(os.environ)
    os.environ["TMPDIR"] = tempfile.tempdir = str(folders["temporary"])
    times: list[float] = []
    seen: list[dict[str, float]] = []
    try:
        with cluster_of(2, folders["dask"], as_default=False) as (cluster, client, _):
            on_workers, here = Questions(folder), Questions(folder)
            start = time.monotonic()
            while (now := time.monotonic() - start) < seconds or len(seen) < 6:
                with client.as_current():
                    on_workers.ask()
                here.ask()
                seen.append(looked_at(cluster, client, folders))
                times.append(now)
    finally:
        tempfile.tempdir = before[0]
        os.environ.pop("TMPDIR")
        os.environ.update(before[1])
    return np.array(times), {name: np.array([one[name] for one in seen]) for name in seen[0]}


def slope(minutes: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """By how much values grow a minute, least squares, and its standard error."""
    centred = minutes - minutes.mean()
    width = centred @ centred
    found = centred @ values / width
    left = values - values.mean() - found * centred
    return float(found), float(np.sqrt(left @ left / (len(values) - 2) / width))


def verdict(times: np.ndarray, seen: dict[str, np.ndarray]) -> dict[str, Any]:
    """Slopes of the memory after the warm-up, and growth of the counts."""
    first = int(np.searchsorted(times, times[0] + WARM_UP * (times[-1] - times[0])))
    memory, counts = {}, {}
    for name, values in seen.items():
        if name.endswith(MEMORY):
            per_minute, error = slope(times[first:] / 60, values[first:])
            ends = {"first_mb": float(values[first]), "last_mb": float(values[-1])}
            memory[name.removesuffix(MEMORY).strip()] = {"mb_per_minute": per_minute, "se": error, **ends}
        else:
            middle, last = np.array_split(values[first:], 2)
            grown = float(np.median(last) - np.median(middle))  # one that breathes is no leak
            counts[name] = {"most": int(values[first:].max()), "grown": grown}
    return {"rounds": len(times), "rounds_of_warm_up": first, "memory": memory, "counts": counts}


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, help="where to write the data")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        in_child(make, Path(name), options.rows)
        times, seen = soak(Path(name), options.seconds)
    found = {"seconds": float(times[-1]), "rows": options.rows, **verdict(times, seen)}
    for name, one in {**found["memory"], **found["counts"]}.items():
        told(name, one)
    if options.json:
        series = {name: [round(float(v), 2) for v in values] for name, values in seen.items()}
        series["seconds"] = [round(float(t), 1) for t in times]
        write_json(options.json, {"machine": machine(), **found, "series": series})


if __name__ == "__main__":
    main()
