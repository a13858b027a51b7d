"""What does it cost to import scaleshift, to use a name for the first time, to ask the command line for help?

    python benchmarks/import_time.py [--rounds 7] [--json FILE]

CPU seconds of fresh interpreters, which take turns, beside those of ``import dask.array, xarray``, which
scaleshift stands on: medians over rounds, after one that does not count. `import scaleshift` alone imports
next to nothing, since what it offers is imported when it is used: the first use of a name is what a script
waits for.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from timing import machine, ratios, write_json

BASE = "import dask.array, xarray"
PACKAGE = "import scaleshift"
NAMES = ("open_cells", "as_cells", "OpenSetQuantifier", "DFM", "SparseAUC", "DominoSlicer", "PredictionError")
WORDS = (("--version",), ("--help",), ("quantify", "--help"))


def commands() -> dict[str, list[str]]:
    """Arguments of the interpreter by what they are for."""
    found = {code: ["-c", code] for code in (BASE, PACKAGE)}
    found |= {f"first use of {name}": ["-c", f"{PACKAGE}; scaleshift.{name}"] for name in NAMES}
    return found | {f"scaleshift {' '.join(words)}": ["-m", "scaleshift", *words] for words in WORDS}


def cpu_seconds(arguments: Sequence[str]) -> float:
    """CPU time of an interpreter from its start to its end, one thread."""
    child = subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"{' '.join(arguments)} ended with {child.returncode}")
    return used.ru_utime + used.ru_stime


def measure(asked: Mapping[str, Sequence[str]], rounds: int) -> dict[str, np.ndarray]:
    """CPU seconds of each, (rounds,), after a round that does not count."""
    found = [{name: cpu_seconds(arguments) for name, arguments in asked.items()} for _ in range(rounds + 1)]
    return {name: np.array([one[name] for one in found[1:]]) for name in asked}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    seconds = measure(commands(), options.rounds)
    times = ratios(seconds, BASE)
    for name, values in seconds.items():
        ratio = f"{times[name]:5.2f}" if name in times else ""
        print(f"{name:32} {np.median(values):6.3f} CPU s {ratio}")
    if options.json:
        told = {name: float(np.median(values)) for name, values in seconds.items()}
        result = {"machine": machine(), "base": BASE, "cpu_s": told, "over_base": times}
        write_json(options.json, result)


if __name__ == "__main__":
    main()
