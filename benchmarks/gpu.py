"""How fast are the kernels on a GPU, from its own memory and from the host's, next to the CPU's on one core?

    python benchmarks/gpu.py [--rounds N] [--json FILE]

Times are medians of whole calls on the clock: checks, sorting, copies of results and rotation included. Bars:
five million rows of five columns and 1000 Fourier features in less than 10 ms from the GPU's memory, and from
the host's at half the speed at least at which the same rows are copied to the GPU and nothing else.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from timing import machine, write_json

from scaleshift.kernels import mixture
from scaleshift.kernels.cpu import fourier as cpu_fourier
from scaleshift.kernels.cpu import landmarks as cpu_landmarks
from scaleshift.kernels.cpu import mixture as cpu_mixture
from scaleshift.kernels.cuda import fourier, landmarks
from scaleshift.kernels.cuda.choice import gpu_obstacle

N_ROWS = 5_000_000
N_GROUPS = 10
N_FREQUENCIES = 500  # D = 1000
N_LANDMARKS = 128
CPU_ROWS = 500_000
RESIDENT_MS = 10.0
SHARE_OF_COPYING = 0.5


def seconds(run: Callable[[], Any], rounds: int) -> float:
    """Return the median time of a call that waits for the GPU, after two that warm it up."""
    run(), run()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def facts() -> dict[str, Any]:
    """Return what the numbers depend on."""
    import cupy

    properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.runtime.getDevice())
    free, total = cupy.cuda.runtime.memGetInfo()
    return {
        "device": properties["name"].decode(),
        "compute_capability": f"{properties['major']}.{properties['minor']}",
        "multiprocessors": properties["multiProcessorCount"],
        "memory_gb": round(total / 1e9, 1),
        "free_gb": round(free / 1e9, 1),
        "driver": cupy.cuda.runtime.driverGetVersion(),
        "runtime": cupy.cuda.runtime.runtimeGetVersion(),
        "cupy": cupy.__version__,
        "host": machine(),
    }


def copy_speeds(x: np.ndarray, rounds: int) -> dict[str, float]:
    """Return how fast rows are copied to the GPU as they lie, and from pinned memory, in GB/s."""
    import cupy

    stream, target = cupy.cuda.Stream.null, cupy.empty(x.shape, x.dtype)
    pinned = np.frombuffer(cupy.cuda.alloc_pinned_memory(x.nbytes), x.dtype, x.size).reshape(x.shape)
    pinned[...] = x

    def copy(source: np.ndarray) -> None:
        target.set(source, stream=stream)
        stream.synchronize()

    return {
        "pageable": x.nbytes / seconds(lambda: copy(x), rounds) / 1e9,
        "pinned": x.nbytes / seconds(lambda: copy(pinned), rounds) / 1e9,
    }


def grouped(
    on_gpu: Callable[..., np.ndarray],
    on_cpu: Callable[..., np.ndarray],
    x: np.ndarray,
    groups: np.ndarray,
    rest: tuple[Any, ...],
    rounds: int,
) -> dict[str, Any]:
    """Time sums by group: resident, from the host, on one core; and check that they agree."""
    import cupy

    resident = cupy.asarray(x), cupy.asarray(groups)
    few = x[:CPU_ROWS], groups[:CPU_ROWS]
    expected = on_cpu(*few, N_GROUPS, *rest)
    error = np.linalg.norm(on_gpu(*few, N_GROUPS, *rest) - expected) / np.linalg.norm(expected)
    assert error < 1e-6, error
    one_point = rest[0][:1], *rest[1:]
    times = {
        "resident": seconds(lambda: on_gpu(*resident, N_GROUPS, *rest), rounds),
        "resident_but_for_one_point": seconds(lambda: on_gpu(*resident, N_GROUPS, *one_point), rounds),
        "host": seconds(lambda: on_gpu(x, groups, N_GROUPS, *rest), rounds),
    }
    one_core = seconds(lambda: on_cpu(*few, N_GROUPS, *rest), 3)
    speeds = copy_speeds(x, rounds)
    gigabytes = x.nbytes / times["host"] / 1e9
    return {
        "rows": len(x),
        "columns": x.shape[1],
        "points": len(rest[0]),
        "ms": {name: 1e3 * value for name, value in times.items()},
        "million_rows_per_s": {
            **{name: len(x) / value / 1e6 for name, value in times.items()},
            "one_cpu_core": CPU_ROWS / one_core / 1e6,
        },
        "times_one_cpu_core": len(x) / times["resident"] / (CPU_ROWS / one_core),
        "host_gb_per_s": gigabytes,
        "copy_gb_per_s": speeds,
        "share_of_copying": {name: gigabytes / speed for name, speed in speeds.items()},
        "error_to_cpu": float(error),
    }


def mixtures(rounds: int) -> dict[str, Any] | None:
    """Time a pass over a mixture of 25 components and two labels; None where there is no text for it."""
    try:
        from scaleshift.kernels.cuda import mixture as cuda_mixture
    except ImportError:
        return None
    import cupy

    rng, n, d, k = np.random.default_rng(0), 1_000_000, 32, 25
    x = rng.normal(size=(n, d)).astype(np.float32)
    probs = rng.dirichlet(np.ones(2), n).astype(np.float32)
    labels = rng.integers(0, 2, n).astype(np.int32)
    components = mixture.Components(
        "diag",
        (k,),
        np.full(k, 1 / k),
        rng.normal(size=(k, d)),
        np.ones((k, d)),
        rng.dirichlet(np.ones(2), k),
        rng.dirichlet(np.ones(2), k),
    )
    outcomes = mixture.Outcomes(labels, 2, probs)
    resident = cupy.asarray(x), mixture.Outcomes(cupy.asarray(labels), 2, cupy.asarray(probs))
    few = x[:CPU_ROWS], outcomes.rows(slice(CPU_ROWS))
    found, expected = (module.mixture_sums(*few, components)["x"] for module in (cuda_mixture, cpu_mixture))
    error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
    assert error < 1e-5, error
    times = {
        "resident": seconds(lambda: cuda_mixture.mixture_sums(*resident, components), rounds),
        "host": seconds(lambda: cuda_mixture.mixture_sums(x, outcomes, components), rounds),
        "one_cpu_core": n / CPU_ROWS * seconds(lambda: cpu_mixture.mixture_sums(*few, components), 3),
    }
    ns = {name: 1e9 * value / n for name, value in times.items()}
    return {"rows": n, "columns": d, "components": k, "ns_per_row": ns, "error_to_cpu": float(error)}


def main() -> None:
    """Measure everything in one run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json")
    options = parser.parse_args()
    obstacle = gpu_obstacle()
    if obstacle:
        print(f"nothing is measured: {obstacle}")
        return
    rng = np.random.default_rng(0)
    groups = rng.integers(0, N_GROUPS, N_ROWS).astype(np.int32)
    results: dict[str, Any] = {"facts": facts()}
    for d in (5, 20):
        x = rng.standard_normal((N_ROWS, d), dtype=np.float32)
        points = rng.normal(size=(N_LANDMARKS, d)), d**0.5
        frequencies = (rng.normal(size=(N_FREQUENCIES, d)) / d**0.5,)
        jobs = [
            ("fourier", fourier.fourier_sums, cpu_fourier.fourier_sums, frequencies),
            ("landmarks", landmarks.landmark_sums, cpu_landmarks.landmark_sums, points),
        ]
        for name, on_gpu, on_cpu, rest in jobs:
            results[f"{name}_d{d}"] = grouped(on_gpu, on_cpu, x, groups, rest, options.rounds)
    results["mixture"] = mixtures(options.rounds)
    main_result = results["fourier_d5"]
    share = main_result["share_of_copying"]["pageable"]
    results["bars"] = {
        "resident_ms_below_10": [main_result["ms"]["resident"], main_result["ms"]["resident"] < RESIDENT_MS],
        "half_of_copying_pageable_rows": [share, share >= SHARE_OF_COPYING],
    }
    for name, result in results.items():
        print(name, result)
    if options.json:
        write_json(options.json, results)


if __name__ == "__main__":
    main()
