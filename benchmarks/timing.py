"""Who is faster, and by how much? Interleaved rounds of one thread's CPU time, medians of ratios."""

import json
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits


def interleave(
    contenders: Mapping[str, Callable[[], Any]], rounds: int, clock: Callable[[], float] = time.thread_time
) -> dict[str, np.ndarray]:
    """Return the CPU seconds by a clock, (rounds,) for each contender, BLAS held to one thread.

    That of the calling thread, or, where contenders have threads of their own, `time.process_time`.
    Contenders take turns inside a round, so that a noisy neighbour or a slower clock meets all of them.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    with threadpool_limits(1):
        for run in contenders.values():
            run()  # compilation, page faults, caches
        for _ in range(rounds):
            for name, run in contenders.items():
                start = clock()
                run()
                seconds[name].append(clock() - start)
    return {name: np.array(values) for name, values in seconds.items()}


def ratios(seconds: Mapping[str, np.ndarray], base: str) -> dict[str, float]:
    """Return how many times longer than `base` each other contender takes: the median over rounds."""
    return {name: float(np.median(s / seconds[base])) for name, s in seconds.items() if name != base}


def fastest(times: Mapping[str, float], but: Sequence[str] = ()) -> dict[str, float]:
    """Return the least of the times of each peer, which is named before the comma of a contender."""
    found: dict[str, float] = {}
    for name, value in times.items():
        if name not in but:
            peer = name.split(",")[0]
            found[peer] = min(value, found.get(peer, value))
    return found


def print_speeds(results: Sequence[Mapping[str, Any]], base: str, speed: str) -> None:
    """Print one line a contender: its speed, and how many times longer than `base` it takes."""
    print(f"{'columns':>7}  {'contender':28} {speed.replace('_', ' '):>15} {'time/' + base:>11}")
    for result in results:
        for name, value in result[speed].items():
            ratio = result[f"time_over_{base}"].get(name, 1.0)
            print(f"{result['n_columns']:7}  {name:28} {value:15.3f} {ratio:11.2f}")
        for name, reason in result["missing"].items():
            print(f"{result['n_columns']:7}  {name:28} not here: {reason}")


def machine() -> dict[str, Any]:
    """Return what the numbers depend on: the CPU, the libraries, the BLAS kernels in use."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    fields = dict(line.replace("\t", "").split(": ", 1) for line in lines if ": " in line)
    return {
        "cpu": fields.get("model name", platform.processor()),
        "cpu_family_model": f"{fields.get('cpu family', '?')}/{fields.get('model', '?')}",
        "avx512": "avx512f" in fields.get("flags", ""),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "scikit-learn", "numba", "llvmlite")},
        "blas": sorted(
            {str(lib.get("architecture")) for lib in threadpool_info() if lib["user_api"] == "blas"}
        ),
        "OPENBLAS_CORETYPE": os.environ.get("OPENBLAS_CORETYPE"),
        "OPENBLAS_L2_SIZE": os.environ.get("OPENBLAS_L2_SIZE"),
        "load_average": round(os.getloadavg()[0], 2),
    }


def write_json(path: str | Path, content: Mapping[str, Any]) -> None:
    """Write results for people to diff: indented, with a newline at the end."""
    Path(path).write_text(json.dumps(content, indent=2) + "\n")
