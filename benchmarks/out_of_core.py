"""Does a pass over a store cost what reading and the kernel cost, and stay small in memory?

python benchmarks/out_of_core.py [--cells 20000000] [--markers 10] [--rounds 3] [--folder DIR] [--json FILE]

Writes a synthetic study (1 GB at the default size), then measures in one process, interleaved: a pass
that only reads, the kernel alone on one block in memory, and `DFM.fit` at a given bandwidth. CPU seconds
of the whole process, medians; peak resident memory. Unset OPENBLAS_CORETYPE for this command.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import dask.array as da
import numpy as np
from timing import machine

import scaleshift as ss
from scaleshift.kernels import dispatch

CLASSES, FEATURES, BANDWIDTH, CHUNK = 10, 1000, 2.0, 131_072


def make_block(block: np.ndarray, block_info: dict | None = None) -> np.ndarray:
    """Standard normal cells: what they hold does not change the cost."""
    number = block_info[None]["chunk-location"][0]
    rng = np.random.default_rng(number)
    return rng.standard_normal(block_info[None]["chunk-shape"], np.float32)


def make_study(path: Path, cells: int, markers: int) -> None:
    """A study of one sample with labels, written in pieces."""
    zeros = da.zeros((cells, markers), chunks=(CHUNK, markers), dtype=np.float32)
    x = zeros.map_blocks(make_block, dtype=np.float32, meta=np.empty((0, 0), np.float32))
    labels = np.random.default_rng(0).integers(0, CLASSES, cells, dtype=np.int8)
    ss.write_cells(ss.as_cells(x, label=labels), path)


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


def measure(path: Path, rounds: int) -> dict[str, float]:
    """Medians of interleaved rounds, after one that compiles and fills caches."""
    study = ss.open_cells(path)
    model = ss.DFM(ss.FourierFeatures(FEATURES), bandwidth=BANDWIDTH, n_bootstrap=0, random_state=0)
    folded = ss.DFM(ss.FourierFeatures(FEATURES), bandwidth=BANDWIDTH, random_state=0)
    head = ss.open_cells(path).isel(cell=slice(0, CHUNK))
    x, code = head["X"].values, head["label_code"].values
    frequencies = model.fit(x, code).embedding_.frequencies
    blocks = study.sizes["cell"] / len(x)
    times: dict[str, list[float]] = {"read": [], "kernel": [], "pass": [], "pass_with_folds": []}
    for number in range(rounds + 1):
        found = {
            "read": cpu(lambda: read(study)),
            "kernel": np.median(
                [cpu(lambda: dispatch.fourier_sums(x, code, CLASSES, frequencies)) for _ in range(15)]
            )
            * blocks,
            "pass": cpu(lambda: model.fit(study)),
            "pass_with_folds": cpu(lambda: folded.fit(study)),
        }
        for name, seconds in found.items():
            if number:
                times[name].append(float(seconds))
    result = {f"{name}_cpu_s": float(np.median(values)) for name, values in times.items()}
    ratios = [p / (r + k) for p, r, k in zip(times["pass"], times["read"], times["kernel"], strict=True)]
    result["pass_over_read_plus_kernel"] = float(np.median(ratios))
    scale = 1 if sys.platform == "darwin" else 1024
    result["peak_memory_gb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale / 1e9
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
        _in_child(make_study, path, arguments.cells, arguments.markers)
        sizes = {name: getattr(arguments, name) for name in ("cells", "markers", "rounds")}
        result = {**sizes, "machine": machine(), **measure(path, arguments.rounds)}
    print(json.dumps(result, indent=2))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=2) + "\n")


def _in_child(function: Callable[..., None], *args: object) -> None:
    import multiprocessing

    child = multiprocessing.get_context("spawn").Process(target=function, args=args)
    child.start()
    child.join()
    if child.exitcode:
        raise SystemExit(f"making the study failed with exit code {child.exitcode}")


if __name__ == "__main__":
    main()
