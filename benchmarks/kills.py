"""Do jobs whose processes are killed end with the same bits, and what does a kill cost?

    python benchmarks/kills.py [--seconds 180] [--kills 20] [--cells 40000000] [--only NAME ...] [--driver]
        [--seed 0] [--folder DIR] [--json FILE]

Worker processes: two of one thread, which nannies start again; 20 failures are allowed. A pass of class
sums over a study on disk (1.6 GB), of as many features as take `--seconds`; then, a third as long, a
mixture whose prepared blocks lie in the workers, and refits. Each undisturbed, with SIGKILLs at random
times to a random worker, and undisturbed again; results are compared to the bit. Seconds lost a kill are
those beyond the mean of the two undisturbed runs. A worker that is only starting is spared until the
scheduler knows it.

The driver (--driver alone does only that): commands of the command line are killed at random times and
started again, until they end. "lost" is how many units of work (a chunk, an iteration) were begun and had
to be done again, for each kill.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from distributed import LocalCluster
from driver_kills import COMMANDS, killed_driver
from jobs import CLASSES, COLUMNS, MARKERS, Job, Memory, class_sums, cluster_of, digest, mixture, refits, told
from slices_out_of_core import make_store
from stores import in_child, make_study
from timing import machine, write_json

ROWS = 2_000_000  # of the mixture
SMALLER = 3  # the share of the time, and of the kills, that other jobs get
BETWEEN = 0.02, 0.9  # kills, as parts of the undisturbed time: all fall into the job
PASS = "class sums"


class Killer(threading.Thread):
    """Kills a random worker of a cluster at each of these seconds."""

    def __init__(self, cluster: LocalCluster, times: list[float], chance: random.Random) -> None:
        super().__init__(daemon=True)
        self.cluster, self.times, self.chance = cluster, times, chance
        self.ended, self.killed = threading.Event(), dict[int, float]()  # seconds by process

    def __enter__(self) -> Killer:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.ended.set()
        self.join()

    def run(self) -> None:
        """Kill, until it is over."""
        start = time.perf_counter()
        for seconds in self.times:
            if self.ended.wait(max(seconds - (time.perf_counter() - start), 0)):
                return
            while not (known := self._known()):
                if self.ended.wait(0.05):
                    return
            victim = self.chance.choice(known)
            os.kill(victim, signal.SIGKILL)
            self.killed[victim] = time.perf_counter() - start

    def _known(self) -> list[int]:
        """Processes of the workers that the scheduler knows, and that were not killed."""
        nannies, workers = list(self.cluster.workers.values()), self.cluster.scheduler.workers
        pids = [nanny.pid for nanny in nannies if nanny.worker_address in workers]
        return [pid for pid in pids if pid and pid not in self.killed]


def measured(job: Job, kills: int, seed: int, folder: Path) -> dict[str, Any]:
    """A job undisturbed, with kills, and undisturbed again."""
    before, first, _ = one_run(job, [], seed, folder)
    chance = random.Random(seed)
    times = sorted(chance.uniform(*(part * before for part in BETWEEN)) for _ in range(kills))
    seconds, found, seen = one_run(job, times, seed, folder)
    after, again, _ = one_run(job, [], seed, folder)
    undisturbed = (before + after) / 2
    return {
        **job.size,
        "undisturbed_s": [before, after],
        "killed_s": seconds,
        **seen,
        "lost_s_per_kill": (seconds - undisturbed) / max(seen["kills"], 1),
        "equal": found == first == again,
    }


def one_run(job: Job, times: list[float], seed: int, folder: Path) -> tuple[float, str, dict[str, Any]]:
    """Seconds, the result, and what was seen, on a cluster of its own."""
    with (
        cluster_of(2, folder) as (cluster, _, watch),
        Killer(cluster, times, random.Random(seed)) as killer,
        Memory() as memory,
    ):
        start = time.perf_counter()
        found = job.run()
        seconds = time.perf_counter() - start
        seen = {"kills": len(killer.killed), **watch.counts(), "largest_worker_gb": memory.largest}
        return seconds, digest(found), seen


def jobs_of(folder: Path, cells: int, seconds: float) -> dict[str, Callable[[], Job]]:
    """The jobs by name; their data are made when they are asked for."""

    def pass_over_study() -> Job:
        in_child(make_study, folder / "study.zarr", cells, MARKERS, CLASSES)
        return class_sums(folder / "study.zarr", seconds)

    def kept_blocks() -> Job:
        in_child(make_store, folder / "store.zarr", min(ROWS, cells), COLUMNS)
        return mixture(folder / "store.zarr", seconds / SMALLER)

    return {
        PASS: pass_over_study,
        "mixture": kept_blocks,
        "refits": lambda: refits(seconds / SMALLER),
    }


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=180.0, help="of the pass; of other jobs a third")
    parser.add_argument("--kills", type=int, default=20, help="of the pass; of other jobs a third")
    parser.add_argument("--cells", type=int, default=40_000_000)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="jobs, or commands with --driver")
    parser.add_argument("--driver", action="store_true", help="kill the driver, not workers")
    parser.add_argument("--seed", type=int, default=0, help="of the times and the victims")
    parser.add_argument("--folder", type=Path, help="where to write the data")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results: dict[str, Any] = {"machine": machine(), "seconds": options.seconds}
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        if options.driver:
            for name in options.only or COMMANDS:
                found = killed_driver(
                    COMMANDS[name], options.seconds, options.kills, options.seed, folder / name
                )
                results.setdefault("commands", {})[name] = found
                told(name, found)
        else:
            jobs = jobs_of(folder, options.cells, options.seconds)
            for name in options.only or jobs:
                kills = options.kills if name == PASS else -(-options.kills // SMALLER)
                found = measured(jobs[name](), kills, options.seed, folder)
                results.setdefault("jobs", {})[name] = found
                told(name, found)
    if options.json:
        write_json(options.json, results)


if __name__ == "__main__":
    main()
