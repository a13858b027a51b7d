"""What do second moments by group cost next to those of all rows, which are one symmetric product?

    python benchmarks/scatter.py [--json FILE]

One core, float32 rows, scatter matrices in float64. The base is numpy's X'X in float32, one call of BLAS's
syrk that splits nothing, subtracts nothing and sums no columns. "boolean masks" are what one would write:
rows of a group by x[groups == g], less the centre, and their product. Where the shared reference data are
(SCALESHIFT_SHARED), the prototype of the kernel is timed as well.
"""

import argparse
import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from timing import interleave, machine, ratios, write_json

from scaleshift.kernels import scatter
from scaleshift.kernels.dispatch import scatter_sums

N_ROWS = 65_536
N_COLUMNS = (50, 200, 1000)
N_GROUPS = (2, 10, 20)
BASE, KERNEL = "unsplit product", "kernel"


def study(n_columns: int, n_groups: int) -> tuple[np.ndarray, np.ndarray, int, np.ndarray]:
    """Rows away from zero, groups in no order, and the mean of some rows as the centre."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((N_ROWS, n_columns), dtype=np.float32) + np.float32(3)
    groups = rng.integers(0, n_groups, N_ROWS).astype(np.int32)
    return x, groups, n_groups, x[:1000].mean(axis=0, dtype=np.float64)


def masks(x: np.ndarray, groups: np.ndarray, n_groups: int, centre: np.ndarray) -> np.ndarray:
    """The same scatter matrices, group by group, in numpy."""
    found, near = np.zeros((n_groups, x.shape[1], x.shape[1])), centre.astype(np.float32)
    for group in range(n_groups):
        rows = x[groups == group] - near
        rows.sum(axis=0, dtype=np.float64)
        found[group] += rows.T @ rows
    return found


def prototype(
    x: np.ndarray, groups: np.ndarray, n_groups: int, centre: np.ndarray
) -> dict[str, Callable[[], np.ndarray]]:
    """The measured prototype of the same sums, where there is one."""
    folder = Path(os.environ.get("SCALESHIFT_SHARED", "")) / "prototypes" / "cpu"
    if not (folder / "mom.py").exists():
        return {}
    sys.path.insert(0, str(folder))
    sketch = importlib.import_module("mom")
    near = centre.astype(np.float32)

    def run() -> np.ndarray:
        state = sketch.new(n_groups, x.shape[1])
        sketch.simple(x, groups, n_groups, near, state)
        return state["M2"]

    return {"prototype": run}


def errors(n_columns: int, n_groups: int) -> dict[str, dict[str, float]]:
    """How far matrices are from the reference's, the worst of the groups, on a quarter of the rows.

    In units of a matrix's norm, and the worst entry in units of the largest. Groups of few rows are the
    worst: fewer roundings average out.
    """
    x, groups, _, centre = study(n_columns, n_groups)
    rows, columns = slice(N_ROWS // 4), slice(200)
    near = centre[columns].astype(np.float32).astype(np.float64)  # the prototype's centre
    job = np.ascontiguousarray(x[rows, columns]), groups[rows], n_groups, near
    truth = scatter.scatter_sums(*job)["scatter"]
    matrices = {KERNEL: lambda: scatter_sums(*job)["scatter"], **prototype(*job)}
    found = {}
    for name, run in matrices.items():
        off = run() - truth
        norms = np.linalg.norm(off, axis=(1, 2)) / np.linalg.norm(truth, axis=(1, 2))
        entries = np.abs(off).max(axis=(1, 2)) / np.abs(truth).max(axis=(1, 2))
        found[name] = {"norm": float(norms.max()), "entry": float(entries.max())}
    return found


def compare(n_columns: int, n_groups: int, rounds: int) -> dict[str, Any]:
    """Time all contenders on the same rows, and check the kernel's matrices."""
    job = study(n_columns, n_groups)
    x, off = job[0], errors(n_columns, n_groups)
    assert off[KERNEL]["norm"] < 1e-6, f"the kernel is off: {off}"
    seconds = interleave(
        {
            BASE: lambda: x.T @ x,
            KERNEL: lambda: scatter_sums(*job),
            "boolean masks": lambda: masks(*job),
            **prototype(*job),
        },
        rounds,
    )
    return {
        "n_columns": n_columns,
        "n_groups": n_groups,
        "seconds_median": {name: float(np.median(s)) for name, s in seconds.items()},
        "time_over_unsplit": ratios(seconds, BASE),
        "time_over_kernel": ratios(seconds, KERNEL),
        "errors": off,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", metavar="FILE", help="write the results here")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()

    facts = machine()
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    print(f"{N_ROWS} rows, {options.rounds} rounds")
    print(
        f"{'columns':>7} {'groups':>6}  {'contender':16} {'ms':>8} {'time/unsplit':>12} {'time/kernel':>11}"
    )
    results = []
    for n_columns in N_COLUMNS:
        for n_groups in N_GROUPS:
            result = compare(n_columns, n_groups, options.rounds)
            results.append(result)
            for name, seconds in result["seconds_median"].items():
                unsplit = result["time_over_unsplit"].get(name, 1.0)
                ours = result["time_over_kernel"].get(name, 1.0)
                print(
                    f"{n_columns:7} {n_groups:6}  {name:16} {1e3 * seconds:8.1f} {unsplit:12.2f} {ours:11.2f}"
                )
    if options.json:
        settings = {"n_rows": N_ROWS, "rounds": options.rounds}
        write_json(options.json, {"machine": facts, **settings, "results": results})


if __name__ == "__main__":
    main()
