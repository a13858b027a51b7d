"""Run the benchmarks, one after another, and make one page of their results: benchmarks/RESULTS.md.

    python benchmarks/run.py [--only NAME ...] [--quick] [--table] [--list]

Each runs in a process of its own, on the CPU, on one thread of BLAS, without OPENBLAS_CORETYPE, and writes
JSON into benchmarks/results/; the page is made of all files there. NAME is a benchmark or a group:
"kernels" and "passes", which run where nothing is named (half an hour on two quiet cores), "studies"
(hours), or "endurance" (half an hour). --quick is a look at whether all works, at small sizes, into
build/benchmarks/. --table runs nothing. Data and prototypes that are not redistributed are looked for in
SCALESHIFT_SHARED. The exit code says how many failed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import claims_endurance
import claims_kernels
import claims_passes
import claims_studies
from claims import Rows, page

HERE = Path(__file__).parent
SHARED = Path(os.environ.get("SCALESHIFT_SHARED", ""))
DATA = str(SHARED / "data")
DEFAULT = ("kernels", "passes")
# a GPU's work would not show on the clocks of a CPU; gpu.py calls its kernels by name
ENVIRONMENT = {"SCALESHIFT_DEVICE": "cpu"}
ENVIRONMENT |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Benchmark(NamedTuple):
    """A script, what it is called with, and with --quick."""

    group: str
    rows: Rows | None = None  # None: it has no rows on the page
    script: str = ""  # where it is not its name
    arguments: tuple[str, ...] = ()
    quick: tuple[str, ...] = ()


_k, _p, _s, _e = claims_kernels, claims_passes, claims_studies, claims_endurance
BENCHMARKS = {
    "fma_limit": Benchmark("kernels", _k.fma_limit, quick=("--rounds", "3")),
    "fourier": Benchmark("kernels", _k.fourier, quick=("--rounds", "2")),
    "fourier_keops": Benchmark(
        "kernels",
        _k.fourier_keops,
        "fourier",
        ("--only", "PyKeOps", "--keops-flags", "", "--rounds", "3"),
        ("--rounds", "1"),
    ),
    "landmarks": Benchmark("kernels", _k.landmarks, quick=("--rounds", "2")),
    "mixture": Benchmark("kernels", _k.mixture, quick=("--rounds", "2")),
    "scatter": Benchmark("kernels", _k.scatter, quick=("--rounds", "1")),
    "simplex": Benchmark("kernels", _k.simplex, quick=("--rounds", "2")),
    "equal_error": Benchmark("kernels", _k.equal_error, quick=("--draws", "3", "--rounds", "2")),
    "five_million": Benchmark(
        "kernels", _k.five_million, quick=("--rows", "1000000", "--exact-rows", "5000", "--rounds", "1")
    ),
    "gpu": Benchmark("kernels", _k.gpu, quick=("--rounds", "2")),
    "out_of_core": Benchmark("passes", _p.out_of_core, quick=("--cells", "2000000", "--rounds", "1")),
    "out_of_core_1e8": Benchmark(
        "passes",
        _p.out_of_core,
        "out_of_core",
        ("--cells", "100000000", "--rounds", "1"),
        ("--cells", "3000000"),
    ),
    "threads": Benchmark("passes", _p.threads, quick=("--blocks", "8", "--rounds", "2")),
    "scaling": Benchmark(
        "passes",
        _p.scaling,
        quick=(
            *("--cells", "100000", "--most-cells", "1000000", "--most-classes", "100"),
            *("--blocks", "10", "100", "1000"),
        ),
    ),
    "many_samples": Benchmark("passes", _p.many_samples, quick=("--samples", "100", "--rounds", "1")),
    "slices_out_of_core": Benchmark("passes", _p.slices_out_of_core, quick=("--rows", "1000000")),
    "auc_out_of_core": Benchmark("passes", _p.auc_out_of_core, quick=("--rows", "200000")),
    "fcs": Benchmark("passes", _p.fcs, arguments=(str(SHARED / "fcs"),), quick=("--rounds", "1")),
    "ingest": Benchmark("passes", _p.ingest, quick=("--files", "200", "--large", "500000")),
    "import_time": Benchmark("passes", _p.import_time, quick=("--rounds", "2")),
    "accuracy": Benchmark("studies", _s.accuracy, arguments=("--data", DATA)),
    "auc_colon": Benchmark("studies", _s.auc_colon, quick=("--repeats", "1", "--methods", "default")),
    "auc_peers": Benchmark(
        "studies", _s.auc_peers, quick=("--rows", "10000", "--columns", "200", "--rounds", "1")
    ),
    "auc_simulation": Benchmark("studies", quick=("--rates", ".5", "--planted", "20", "--seeds", "0", "1")),
    "coverage": Benchmark("studies", _s.coverage, "quantify", ("--coverage", "30"), ("--coverage", "2")),
    "energy": Benchmark("studies", _s.energy, quick=("--cells", "1000000")),
    "error_cost": Benchmark(
        "studies", _s.error_cost, quick=("--rows-by", "20", "--refits", "2", "--rounds", "1")
    ),
    "error_digits": Benchmark("studies", quick=("--draws", "1", "--bootstrap", "5")),
    "error_lasso": Benchmark("studies", quick=("--draws", "2", "--bootstrap", "20")),
    "error_logistic": Benchmark("studies", quick=("--draws", "2", "--bootstrap", "10")),
    "error_ols": Benchmark("studies", _s.error_ols, quick=("--draws", "100")),
    "intervals": Benchmark(
        "studies",
        _s.intervals,
        arguments=("--data", DATA),
        quick=("--draws", "4", "--null", "4", "--power", "4"),
    ),
    "open_set": Benchmark(
        "studies", _s.open_set, arguments=("--data", DATA), quick=("--only", "synthetic none")
    ),
    "quantify": Benchmark("studies", arguments=("--data", DATA), quick=("--methods", "cc", "soft-fourier")),
    "slices": Benchmark("studies", _s.slices, quick=("--seeds", "100", "102")),
    "slices_null": Benchmark("studies", _s.slices_null, quick=("--draws", "10")),
    "kills": Benchmark("endurance", _e.kills, quick=("--seconds", "9", "--kills", "3", "--cells", "2000000")),
    "driver_kills": Benchmark(
        "endurance", _e.driver, "kills", ("--driver", "--seconds", "40"), ("--seconds", "5", "--kills", "3")
    ),
    "adaptive": Benchmark("endurance", _e.adaptive, quick=("--seconds", "6", "--cells", "1000000")),
    "soak": Benchmark("endurance", _e.soak, quick=("--seconds", "20", "--rows", "30000")),
}


def run(name: str, folder: Path, quick: bool) -> bool:
    """Run one, its output shown where it fails; whether it succeeded."""
    one = BENCHMARKS[name]
    to = folder / f"{name}.json"
    before = to.stat().st_mtime_ns if to.exists() else 0
    command = [sys.executable, str(HERE / f"{one.script or name}.py"), *one.arguments]
    command += [*(one.quick if quick else ()), "--json", str(to)]
    environment = {key: value for key, value in os.environ.items() if key != "OPENBLAS_CORETYPE"}
    with tempfile.TemporaryFile("w+") as output:
        start = time.perf_counter()
        code = subprocess.run(
            command, stdout=output, stderr=subprocess.STDOUT, env=environment | ENVIRONMENT
        ).returncode
        print(f"{'failed' if code else 'done'}, {time.perf_counter() - start:.0f} s", flush=True)
        output.seek(0)
        told = output.read().splitlines()
        if code:
            print("\n".join(told[-30:]), flush=True)
        elif not to.exists() or to.stat().st_mtime_ns == before:
            print("  no results:", *told[-1:], flush=True)
    return code == 0


def write_page(folder: Path, to: Path) -> None:
    """Remake the page from what is on disk."""
    rows = {name: one.rows for name, one in BENCHMARKS.items() if one.rows is not None}
    files = {name: folder / f"{name}.json" for name in rows}
    results = {name: json.loads(file.read_text()) for name, file in files.items() if file.exists()}
    to.write_text(page(results, rows))
    print(f"wrote {to}")


def chosen(names: list[str]) -> list[str]:
    """Benchmarks by name or group, in their order."""
    unknown = set(names) - set(BENCHMARKS) - {one.group for one in BENCHMARKS.values()}
    if unknown:
        raise SystemExit(f"no such benchmark: {', '.join(sorted(unknown))}; --list tells them")
    return [
        name
        for name, one in BENCHMARKS.items()
        if (name in names or one.group in names) and (HERE / f"{one.script or name}.py").exists()
    ]


def main() -> None:
    """Run, and make the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", default=list(DEFAULT))
    parser.add_argument("--quick", action="store_true", help="small sizes, into build/benchmarks/")
    parser.add_argument("--table", action="store_true", help="only make the page from what is on disk")
    parser.add_argument("--list", action="store_true", help="tell the names")
    options = parser.parse_args()
    if options.list:
        for name, one in BENCHMARKS.items():
            print(f"{one.group:9} {name}")
        return
    folder = HERE.parent / "build" / "benchmarks" if options.quick else HERE / "results"
    folder.mkdir(parents=True, exist_ok=True)
    failed = []
    names = [] if options.table else chosen([part for name in options.only for part in name.split(",")])
    for number, name in enumerate(names, start=1):
        print(f"[{number}/{len(names)}] {name} ... ", end="", flush=True)
        if not run(name, folder, options.quick):
            failed.append(name)
    write_page(folder, folder / "RESULTS.md" if options.quick else HERE / "RESULTS.md")
    if failed:
        print(f"FAILED: {', '.join(failed)}")
    raise SystemExit(len(failed))


if __name__ == "__main__":
    main()
