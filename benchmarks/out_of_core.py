"""Does a pass over a store cost what reading and the kernel cost, and stay small in memory?

python benchmarks/out_of_core.py [--cells 20000000] [--markers 10] [--rounds 3] [--folder DIR] [--json FILE]

Writes a synthetic study (1 GB at the default size, in pieces), then measures in one process, interleaved: a
pass that only reads, the kernel alone on one block in memory, and `DFM.fit` at a given bandwidth. CPU seconds
of the whole process, medians, after a round over the first chunks; peak resident memory. For 1e8 cells one
round is enough: --cells 100000000 --rounds 1.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import dask.array as da
import numpy as np
from stores import CHUNK, CLASSES, in_child, make_study, peak_memory_gb
from timing import machine, write_json

import scaleshift as ss
from scaleshift.kernels import dispatch

FEATURES, BANDWIDTH = 1000, 2.0


def touch(x: np.ndarray, code: np.ndarray) -> np.ndarray:
    """What a pass that only reads does with a block."""
    return np.zeros((1, 1))


def read(study: object) -> None:
    """Read every block of X and of the label codes, and do nothing with them."""
    pieces = da.blockwise(
        touch, "ij", study["X"].data, "ij", study["label_code"].data, "i",
        adjust_chunks={"i": 1, "j": 1}, align_arrays=False, meta=np.empty((0, 0)), dtype=float,
    )  # fmt: skip
    pieces.sum(split_every=16).compute()


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds of the process, all threads."""
    start = time.process_time()
    work()
    return time.process_time() - start


def fit_both(study: object) -> dict[str, ss.DFM]:
    """Models of the two passes: without folds, and with those that intervals need."""
    features = ss.FourierFeatures(FEATURES)
    models = {
        "pass": ss.DFM(features, bandwidth=BANDWIDTH, n_bootstrap=0, random_state=0),
        "pass_with_folds": ss.DFM(features, bandwidth=BANDWIDTH, random_state=0),
    }
    return {name: model.fit(study) for name, model in models.items()}


def measure(path: Path, rounds: int) -> dict[str, float]:
    """Medians of interleaved rounds, after one over the first chunks that compiles."""
    study = ss.open_cells(path)
    first = study.isel(cell=slice(0, 2 * CHUNK))
    models = fit_both(first)
    read(first)
    head = study.isel(cell=slice(0, CHUNK))
    x, code = head["X"].values, head["label_code"].values
    frequencies = models["pass"].embedding_.frequencies
    blocks = study.sizes["cell"] / len(x)
    times: dict[str, list[float]] = {
        name: [] for name in ("read", "kernel", "pass", "pass_with_folds", "wall")
    }
    for _ in range(rounds):
        times["read"].append(cpu(lambda: read(study)))
        kernel = [cpu(lambda: dispatch.fourier_sums(x, code, CLASSES, frequencies)) for _ in range(15)]
        times["kernel"].append(float(np.median(kernel)) * blocks)
        start = time.perf_counter()
        times["pass"].append(cpu(lambda: models["pass"].fit(study)))
        times["wall"].append(time.perf_counter() - start)
        times["pass_with_folds"].append(cpu(lambda: models["pass_with_folds"].fit(study)))
    result = {f"{name}_cpu_s": float(np.median(values)) for name, values in times.items() if name != "wall"}
    result["pass_wall_s"] = float(np.median(times["wall"]))
    ratios = [p / (r + k) for p, r, k in zip(times["pass"], times["read"], times["kernel"], strict=True)]
    result["pass_over_read_plus_kernel"] = float(np.median(ratios))
    result["peak_memory_gb"] = peak_memory_gb()
    return result


def main() -> None:
    """Measure in this process; the study is made in a forked child, whose memory does not count."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=20_000_000)
    parser.add_argument("--markers", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where to write the study")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        path = Path(folder) / "study.zarr"
        in_child(make_study, path, arguments.cells, arguments.markers)
        sizes = {name: getattr(arguments, name) for name in ("cells", "markers", "rounds")}
        result = {**sizes, "machine": machine(), **measure(path, arguments.rounds)}
    print(json.dumps(result, indent=2))
    if arguments.json:
        write_json(arguments.json, result)


if __name__ == "__main__":
    main()
