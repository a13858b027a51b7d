"""Do workers that come and go in mid pass leave all bits as they are, and is what they held kept?

    python benchmarks/adaptive.py [--seconds 30] [--cells 20000000] [--only NAME ...] [--folder DIR]
        [--json FILE]

Each job runs on the threads of this process, then on one worker process, then on one, two and one: a
second worker is asked for after a quarter of the tasks, and one is retired after five eighths of them.
Jobs are a pass of class sums, a mixture whose prepared blocks lie in the workers, and refits. What the
retired worker held is counted: what other workers had afterwards, what nobody needed any more, and what
was computed again. In "adapt" Dask decides, by `cluster.adapt(minimum=1, maximum=2)`; "closed" is
`cluster.scale(1)` alone, which closes a worker without asking the others to take over what it holds.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from distributed import Client, LocalCluster
from jobs import CLASSES, COLUMNS, MARKERS, Job, Watch, class_sums, cluster_of, digest, mixture, refits, told
from slices_out_of_core import make_store
from stores import in_child, make_study
from timing import machine, write_json

ROWS = 2_000_000  # of the mixture
HOW = {"class sums, adapt": "adapt", "mixture, closed": "closed"}
UP, DOWN = 1 / 4, 5 / 8  # of the tasks
ADAPT = {"minimum": 1, "maximum": 2, "interval": "500ms", "wait_count": 2, "target_duration": "2s"}


class Scaler(threading.Thread):
    """Asks for a second worker in mid job, and sends one away later: retired first, or only closed."""

    def __init__(
        self, cluster: LocalCluster, client: Client, watch: Watch, tasks: int, retire: bool = True
    ) -> None:
        super().__init__(daemon=True)
        self.cluster, self.client, self.watch = cluster, client, watch
        self.tasks, self.retire = tasks, retire
        self.ended = threading.Event()
        self.held: dict[str, set[Any]] = {}  # by worker, as one is retired
        self.left: set[str] = set()
        self.elsewhere, self.done_with = 0, 0

    def __enter__(self) -> Scaler:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.ended.set()
        self.join()

    def run(self) -> None:
        """Scale up and down, unless the job ends before."""
        workers = self.cluster.scheduler.workers
        if not self._wait(lambda: self.watch.computed.total() >= UP * self.tasks):
            return
        self.cluster.scale(2)
        if not self._wait(lambda: len(workers) == 2):
            return
        joined = self.watch.computed.total()
        enough = max(DOWN * self.tasks, joined + 2)
        if not self._wait(lambda: self.watch.computed.total() >= enough):
            return
        held = {address: {task.key for task in list(w.has_what)} for address, w in list(workers.items())}
        if self.retire:
            newest = [address for address, worker in workers.items() if worker.name != 0]
            self.client.retire_workers(workers=newest, close_workers=True)
        self.cluster.scale(1)
        if self._wait(lambda: len(workers) == 1):
            self.held, self.left = held, set(held) - set(workers)
            self._look()

    def _look(self) -> None:
        tasks = self.cluster.scheduler.tasks
        for key in self._of_the_left():
            task = tasks.get(key)
            self.elsewhere += task is not None and bool(task.who_has)
            self.done_with += task is None

    def _of_the_left(self) -> set[Any]:
        return set().union(*(self.held[address] for address in self.left))

    def _wait(self, happened: Callable[[], bool]) -> bool:
        """Whether it happened before the job ended."""
        while not happened():
            if self.ended.wait(0.01):
                return False
        return True

    def found(self) -> dict[str, Any]:
        """What became of the worker, and of what it held."""
        held = self._of_the_left()
        again = sum(self.watch.computed[key] > 1 for key in held)
        return {
            "retired_in_mid_job": len(self.left) == 1,
            "held": len(held),
            "held_elsewhere": self.elsewhere,
            "held_done_with": self.done_with,
            "held_computed_again": again,
        }


def measured(job: Job, folder: Path, how: str = "retired") -> dict[str, Any]:
    """A job on threads, on one worker, and on one, two and one: "retired", "closed", or "adapt"."""
    start = time.perf_counter()
    expected = digest(job.run())
    on_threads = time.perf_counter() - start
    with cluster_of(1, folder) as (_, _, watch):
        start = time.perf_counter()
        alone = digest(job.run())
        on_one = time.perf_counter() - start
        tasks = watch.counts()["tasks"]
    with cluster_of(1, folder) as (cluster, client, watch), ExitStack() as stack:
        if how == "adapt":
            cluster.adapt(**ADAPT)
            scaler = None
        else:
            scaler = stack.enter_context(Scaler(cluster, client, watch, tasks, how == "retired"))
        start = time.perf_counter()
        found = digest(job.run())
        adaptive = time.perf_counter() - start
        return {
            **job.size,
            "threads_s": on_threads,
            "one_worker_s": on_one,
            "adaptive_s": adaptive,
            **watch.counts(),
            **(scaler.found() if scaler else {}),
            "equal": expected == alone == found,
        }


def jobs_of(folder: Path, cells: int, seconds: float) -> dict[str, Callable[[], Job]]:
    """The jobs by name; their data are made when they are asked for."""

    def pass_over_study() -> Job:
        path = folder / "study.zarr"
        if not path.exists():
            in_child(make_study, path, cells, MARKERS, CLASSES)
        return class_sums(path, seconds, workers=1)

    def kept_blocks() -> Job:
        path = folder / "store.zarr"
        if not path.exists():
            in_child(make_store, path, min(ROWS, cells), COLUMNS)
        return mixture(path, seconds, workers=1)

    return {
        "class sums": pass_over_study,
        "mixture": kept_blocks,
        "refits": lambda: refits(seconds, workers=1),
        "class sums, adapt": pass_over_study,
        "mixture, closed": kept_blocks,
    }


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=30.0, help="of a job on one worker")
    parser.add_argument("--cells", type=int, default=20_000_000)
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--folder", type=Path, help="where to write the data")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results: dict[str, Any] = {"machine": machine(), "jobs": {}}
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        jobs = jobs_of(folder, options.cells, options.seconds)
        for name in options.only or jobs:
            results["jobs"][name] = found = measured(jobs[name](), folder, HOW.get(name, "retired"))
            told(name, found)
    if options.json:
        write_json(options.json, results)


if __name__ == "__main__":
    main()
