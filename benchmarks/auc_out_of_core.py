"""Does a sparse ranking of a store cost what reading and its products cost, in one pass, whatever the order?

python benchmarks/auc_out_of_core.py [--rows 1000000] [--columns 200] [--folder DIR] [--json FILE]

Writes the same rows twice (0.8 GB each at the default size), shuffled and sorted by class. CPU seconds of the
process, each fit in a process of its own, after a small one for compilation; rows that were read, in passes.
They are held against the product X'X of float32 rows alone, and a pass that only reads. Then moments of rows
10 000 standard deviations away from 0 against float64 ones of the same float32 values.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import zarr
from auc_methods import markdown
from threadpoolctl import threadpool_limits
from timing import machine, write_json

import scaleshift as ss
from scaleshift.auc.moments import class_moments, contrast
from scaleshift.blocks.rows import as_rows

CHUNK, RATE, PLANTED, BLOCKS = 65_536, 0.05, 20, 4
SHIFT = (0.1, 0.35)
K, OFFSET, OFFSET_ROWS = 20, 1e4, 200_000
BAR, SAME, MOMENTS = 1.5, 1e-6, 1e-5
ORDERS = ("shuffled", "sorted")
FITS: dict[str, dict[str, Any]] = {
    "one pass": {"k": K, "cv": None, "alpha": 0.0},
    "default": {},
}


def make_block(number: int, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose features have common factors, and shifts in a few."""
    rng = np.random.default_rng(number)
    loadings = np.random.default_rng(7).normal(size=(3, d)).astype(np.float32) * 0.5
    y = (rng.random(n) < RATE).astype(np.int8)
    x = rng.standard_normal((n, d), np.float32) + rng.standard_normal((n, 3), np.float32) @ loadings
    x[:, :PLANTED] += y[:, None] * np.linspace(*SHIFT, PLANTED, dtype=np.float32)
    return x, y


def make_stores(folder: Path, rows: int, d: int) -> None:
    """Two stores of the same rows; positives, which are few, are held until the negatives are written."""
    stores = {}
    for order in ORDERS:
        group = zarr.open_group(folder / order, mode="w")
        x = group.create_array("x", shape=(rows, d), chunks=(CHUNK, d), dtype="f4")
        stores[order] = x, group.create_array("y", shape=(rows,), chunks=(CHUNK,), dtype="i1")
    positives, at = [], 0
    for number, start in enumerate(range(0, rows, CHUNK)):
        n = min(CHUNK, rows - start)
        x, y = make_block(number, n, d)
        _write(stores["shuffled"], start, x, y)
        _write(stores["sorted"], at, x[y == 0], y[y == 0])
        positives.append(x[y == 1])
        at += int((y == 0).sum())
    found = np.concatenate(positives)
    _write(stores["sorted"], at, found, np.ones(len(found), np.int8))


def _write(arrays: tuple[Any, Any], start: int, x: np.ndarray, y: np.ndarray) -> None:
    for array, values in zip(arrays, (x, y), strict=True):
        array[start : start + len(values)] = values


class Counted:
    """An array on disk that counts the rows read from it."""

    def __init__(self, array: Any):
        self.array, self.shape, self.dtype, self.ndim = array, array.shape, array.dtype, array.ndim
        self.rows, self.lock = 0, threading.Lock()

    def __getitem__(self, key: Any) -> Any:
        found = self.array[key]
        if found.ndim == 2:
            with self.lock:
                self.rows += len(found)
        return found


def arrays_of(path: Path) -> tuple[da.Array, da.Array, Counted]:
    """The store as Dask arrays, a block a chunk."""
    group = zarr.open_group(path, mode="r")
    counted = Counted(group["x"])
    x = da.from_array(counted, chunks=group["x"].chunks, meta=np.empty((0, 0), np.float32), name=False)
    return x, da.from_array(group["y"], chunks=CHUNK), counted


def fit(path: Path, parameters: dict[str, Any]) -> dict[str, Any]:
    """One fit, measured."""
    x, y, counted = arrays_of(path)
    warm = make_block(0, 4_000, x.shape[1])
    ss.SparseAUC(**parameters, random_state=0).fit(*(da.from_array(part, chunks=1_000) for part in warm))
    counted.rows = 0
    start, wall = time.process_time(), time.perf_counter()
    model = ss.SparseAUC(**parameters, random_state=0).fit(x, y)
    return {
        "cpu_s": time.process_time() - start,
        "elapsed_s": time.perf_counter() - wall,
        "passes": counted.rows / x.shape[0],
        "peak_memory_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
        "objective": float(model.objective_),
        "auc": float(model.auc_),
        "auc_binormal": float(model.auc_binormal_),
        "k": int(model.k_),
        "alpha": float(model.alpha_),
        "coef": model.coef_.tolist(),
    }


def read_and_product(path: Path) -> dict[str, float]:
    """CPU seconds of a pass that only reads, and of X'X in float32 of as many rows as there are."""
    x, _, _ = arrays_of(path)
    block = np.asarray(x[:CHUNK].compute())
    times: dict[str, list[float]] = {"read": [], "product": []}
    with threadpool_limits(1):
        block.T @ block
        for _ in range(3):
            start = time.process_time()
            x.map_blocks(lambda part: part[:1, :1], chunks=(1, 1), meta=x._meta).compute()
            times["read"].append(time.process_time() - start)
            start = time.process_time()
            for _ in range(BLOCKS):
                block.T @ block
            times["product"].append((time.process_time() - start) * x.shape[0] / (BLOCKS * len(block)))
    return {f"{name}_cpu_s": float(np.median(values)) for name, values in times.items()}


def far_moments(d: int, rows: int) -> float:
    """Largest error of covariances within classes, in units of the spreads, of rows far away from 0."""
    x, y = make_block(0, rows, d)
    x += np.float32(OFFSET) * x.std(axis=0)
    blocks = as_rows(da.from_array(x, chunks=(20_000, d)), da.from_array(y, chunks=20_000)).only("label")
    found = contrast(class_moments(blocks, None), np.array([-1, 1]))
    error = 0.0
    for label in (0, 1):
        exact = np.cov(x[y == label].astype(np.float64).T, bias=True)
        spread = np.sqrt(np.diag(exact))
        error = max(error, float(np.abs((found.covariance[label] - exact) / np.outer(spread, spread)).max()))
    return error


def in_child(function: Any, *arguments: Any) -> Any:
    """Run in a fresh process, whose memory is its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def table_of(result: dict[str, Any]) -> str:
    """What was measured, in Markdown."""
    base = result["base"]["read_cpu_s"] + result["base"]["product_cpu_s"]
    rows = []
    for name, by_order in result["fits"].items():
        for order, told in by_order.items():
            ratio = told["cpu_s"] / base
            missed = " (bar 1.5 missed)" if name == "one pass" and ratio > BAR else ""
            numbers = f"{told['cpu_s']:.2f}", f"{ratio:.2f}{missed}", f"{told['passes']:.2f}"
            chosen = f"{told['k']}", f"{told['alpha']:g}", f"{told['objective']:.4f}", f"{told['auc']:.4f}"
            rows.append([f"{name}, {order}", *numbers, f"{told['peak_memory_gb']:.2f}", *chosen])
    head = ["fit", "CPU s", "over read + X'X", "passes", "GB", "k", "alpha", "F", "held-out AUC"]
    lines = [
        f"read {result['base']['read_cpu_s']:.2f} s, X'X {result['base']['product_cpu_s']:.2f} s of CPU",
        f"one pass, both orders: coefficients differ by {result['difference']:.1e} (at most {SAME:g})",
        f"moments at {OFFSET:g} standard deviations: error {result['far_error']:.1e} (at most {MOMENTS:g})",
    ]
    return markdown(head, rows) + "\n\n" + "\n".join(f"- {line}" for line in lines)


def main() -> None:
    """Make the stores, and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=200)
    parser.add_argument("--folder", type=Path, help="where to write the stores")
    parser.add_argument("--json", type=Path, help="file to write the numbers to")
    arguments = parser.parse_args()
    result: dict[str, Any] = {"machine": machine(), "rows": arguments.rows, "columns": arguments.columns}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        make_stores(Path(folder), arguments.rows, arguments.columns)
        result["base"] = in_child(read_and_product, Path(folder) / "shuffled")
        result["fits"] = {
            name: {order: in_child(fit, Path(folder) / order, parameters) for order in ORDERS}
            for name, parameters in FITS.items()
        }
    coef = [np.array(result["fits"]["one pass"][order]["coef"]) for order in ORDERS]
    result["difference"] = float(np.abs(coef[0] - coef[1]).max() / np.abs(coef[0]).max())
    result["far_error"] = far_moments(arguments.columns, min(arguments.rows, OFFSET_ROWS))
    print(table_of(result))
    if arguments.json:
        for by_order in result["fits"].values():
            for told in by_order.values():
                del told["coef"]
        write_json(arguments.json, result)


if __name__ == "__main__":
    main()
