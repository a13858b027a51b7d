"""What do the benchmarks of endurance run, on which workers, and what did the scheduler see meanwhile?"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dask
import numpy as np
import psutil
import xarray as xr
from distributed import Client, LocalCluster
from distributed.diagnostics.plugin import SchedulerPlugin
from sklearn.exceptions import ConvergenceWarning
from sklearn.tree import DecisionTreeRegressor
from slices_out_of_core import arrays_of

import scaleshift as ss
from scaleshift.blocks import graph
from scaleshift.cluster.settings import chosen
from scaleshift.encoding import encode
from scaleshift.kernels import dispatch

BANDWIDTH, CLASSES, MARKERS, COLUMNS = 2.0, 5, 10, 32
REFIT_ROWS, REFIT_COLUMNS = 20_000, 20
SPARE = 1.1  # longer than asked for: blocks that are alone on a core are faster
ALLOWED_FAILURES = 20


@dataclass(frozen=True)
class Job:
    """Something that takes a while."""

    run: Callable[[], Any]
    size: dict[str, Any] = field(default_factory=dict)  # how much of it there is


def digest(found: Any) -> str:
    """SHA-256 of all that was learned or answered, to the bit."""
    if isinstance(found, xr.Dataset):
        arrays = {str(name): np.asarray(found[name].values) for name in sorted(found.variables, key=str)}
        tree: Any = [(name, str(array.dtype), array.shape) for name, array in arrays.items()]
        arrays = {name: a if a.dtype != object else a.astype(str) for name, a in arrays.items()}
    else:
        tree, arrays = encode(found)
    total = hashlib.sha256(json.dumps(tree, sort_keys=True).encode())
    for name in sorted(arrays):
        total.update(np.ascontiguousarray(arrays[name]).tobytes())
    return total.hexdigest()


def class_sums(path: Path, seconds: float, workers: int = 2) -> Job:
    """`DFM.fit` over a study: one pass of class sums, of as many features as take so long."""
    study = ss.open_cells(path)
    head = study.isel(cell=slice(0, study["X"].data.chunks[0][0]))
    x, code = head["X"].values, head["label_code"].values
    frequencies = np.random.default_rng(0).normal(size=(500, MARKERS))
    one = _seconds_of(lambda: dispatch.fourier_sums(x, code, CLASSES, frequencies))
    passes = study.sizes["cell"] / len(x) * one / workers
    features = max(2 * round(500 * SPARE * seconds / passes), 2)
    if 8 * CLASSES * features > graph.FOLD_BYTES:
        raise SystemExit(f"{features} features a cell are too many to be a block's state: give more --cells")
    model = ss.DFM(ss.FourierFeatures(features), bandwidth=BANDWIDTH, n_bootstrap=0, random_state=0)
    size = {"cells": study.sizes["cell"], "blocks": study["X"].data.numblocks[0], "features": features}
    return Job(lambda: model.fit(study), {**size, "block_s": one * features / 1000})


def mixture(path: Path, seconds: float, workers: int = 2) -> Job:
    """`DominoSlicer.fit` over a store, its prepared blocks kept: as many iterations as take so long."""
    found = arrays_of(path)

    def fit(n_iter: int) -> ss.DominoSlicer:
        slicer = ss.DominoSlicer(random_state=0, tol=0, max_iter=n_iter)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a given number of iterations is meant
            return slicer.fit(embeddings=found["x"], targets=found["y"], pred_probs=found["p"])

    fit(1)
    few, more = (_once(lambda n=n: fit(n)) for n in (1, 5))
    one = max((more - few) / 4, 1e-3) * dask.system.CPU_COUNT / workers
    n_iter = max(5, round(SPARE * (seconds - few) / one))
    rows, columns = found["x"].shape
    size = {"rows": rows, "columns": columns, "blocks": found["x"].numblocks[0]}
    return Job(lambda: fit(n_iter), {**size, "iterations": n_iter})


def refits(seconds: float, workers: int = 2) -> Job:
    """`PredictionError` of a tree: as many replicates as take so long."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(REFIT_ROWS, REFIT_COLUMNS))
    y = np.sin(x[:, 0]) + x[:, 1] * x[:, 2] + rng.normal(size=REFIT_ROWS)
    tree = DecisionTreeRegressor(max_depth=12, random_state=0)
    one = _seconds_of(lambda: tree.fit(x, y))
    n = max(8, round(SPARE * seconds * workers / one))

    def fit() -> xr.Dataset:
        model = ss.PredictionError(tree, n_bootstrap=n, random_state=0).fit(x, y)
        return model.predict({"far": 1.5 * x[:5_000]})

    return Job(fit, {"rows": REFIT_ROWS, "replicates": n, "replicate_s": one})


def _once(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _seconds_of(work: Callable[[], Any]) -> float:
    """Seconds of one call, on a machine where others may work: the median of five, after one."""
    work()
    return float(np.median([_once(work) for _ in range(5)]))


class Watch(SchedulerPlugin):
    """Counts what the scheduler of this process sees: computed tasks, lost ones, workers."""

    name = "watch"

    def __init__(self) -> None:
        self.computed: Counter[Any] = Counter()
        self.interrupted = 0  # tasks whose worker left while it computed them
        self.workers: set[str] = set()

    def add_worker(self, scheduler: Any, worker: str) -> None:
        """Note a worker."""
        self.workers.add(worker)

    def transition(self, key: Any, start: str, finish: str, *args: Any, **kwargs: Any) -> None:
        """Note a task."""
        if start == "processing":
            self.computed[key] += finish == "memory"
            self.interrupted += finish in ("released", "waiting")

    def counts(self) -> dict[str, int]:
        """As numbers."""
        tasks = sum(n > 0 for n in self.computed.values())
        recomputed = self.computed.total() - tasks
        return {
            "tasks": tasks,
            "tasks_recomputed": recomputed,
            "tasks_interrupted": self.interrupted,
            "workers_seen": len(self.workers),
        }


@contextmanager
def cluster_of(
    n_workers: int, folder: Path, as_default: bool = True
) -> Iterator[tuple[LocalCluster, Client, Watch]]:
    """Worker processes of one thread, which nannies start again, with their kernels loaded."""
    settings = chosen({"allowed_failures": ALLOWED_FAILURES})  # as `ss.cluster.connect` has them
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=logging.ERROR,  # every kill would be told
            local_directory=str(folder),
        ) as cluster,
        Client(cluster, set_as_default=as_default) as client,
    ):
        watch = Watch()
        watch.workers |= set(cluster.scheduler.workers)
        client.run(warm)
        cluster.scheduler.add_plugin(watch)
        yield cluster, client, watch


def warm() -> None:
    """Imports, and kernels compiled or loaded."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1_000, MARKERS)).astype(np.float32)
    model = ss.DFM(ss.FourierFeatures(10), bandwidth=BANDWIDTH, n_bootstrap=0, random_state=0)
    model.fit(x, np.arange(len(x)) % CLASSES)


class Memory(threading.Thread):
    """The largest resident memory of any process that this one has started, in GB."""

    def __init__(self, seconds: float = 0.5) -> None:
        super().__init__(daemon=True)
        self.seconds, self.ended, self.largest = seconds, threading.Event(), 0.0

    def __enter__(self) -> Memory:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.ended.set()
        self.join()

    def run(self) -> None:
        """Look, until it is over."""
        while not self.ended.wait(self.seconds):
            for process in psutil.Process().children(recursive=True):
                try:
                    self.largest = max(self.largest, process.memory_info().rss / 1e9)
                except psutil.Error:  # gone meanwhile
                    continue


def folder_digest(folder: Path, patterns: tuple[str, ...]) -> str:
    """SHA-256 over those files of a folder, in the order of their names."""
    found = {
        re.sub("arrays-[0-9a-f]{32}", "arrays", str(path.relative_to(folder))): path  # drawn at each saving
        for pattern in patterns
        for path in folder.glob(pattern)
        if path.is_file()
    }
    if not found:
        raise SystemExit(f"{folder} holds nothing to compare")
    total = hashlib.sha256()
    for name in sorted(found):
        total.update(os.fsencode(name) + found[name].read_bytes())
    return total.hexdigest()


def told(name: str, found: Mapping[str, Any]) -> None:
    """One line, at once."""
    short = {key: round(v, 3) if isinstance(v, float) else v for key, v in found.items()}
    print(f"{name}: {', '.join(f'{key} {value}' for key, value in short.items())}", flush=True)
