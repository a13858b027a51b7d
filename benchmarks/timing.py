"""Who is faster, and by how much? Interleaved rounds of one thread's CPU time, medians of ratios."""

import json
import os
import platform
import time
from collections.abc import Callable, Mapping
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


def write_json(path: str, content: Mapping[str, Any]) -> None:
    """Write results for people to diff: indented, with a newline at the end."""
    Path(path).write_text(json.dumps(content, indent=2) + "\n")
