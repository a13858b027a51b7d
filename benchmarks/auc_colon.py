"""How well do a few genes tell tumours from normal colon tissue?  Held-out AUC, 5 folds, 20 times.

python benchmarks/auc_colon.py [--repeats 20] [--log] [--processes 2] [--data FOLDER] [--json FILE]

62 tissues, 2000 genes (Alon et al. 1999; the colon tumour set of ramhiser/datamicroarray, MIT licence). The
file, colon_62x2000.npz, is not redistributed here: FOLDER is the folder "data" of $SCALESHIFT_SHARED where it
is not given. Intensities are as published, or with --log their logarithms. Everything is chosen within the
training folds, as in `auc_methods`. AUC of a repeat is the mean over its folds; mean and standard deviation
over repeats. The bar is for the default.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
from auc_methods import BLOCKS, L0, METHODS, SPARSE_AUC, STEPS, markdown, tuned
from rich.console import Console
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits
from timing import machine, write_json

BAR = 0.89
SIZES = (2, 5, 10, 15, 20, 30, 50, 80, 100)  # fewer rows ask for fewer genes
COLON = {
    **SPARSE_AUC,
    "SHT": replace(L0["SHT"], stages=[{"k": SIZES, "n_blocks": (4,)}, {"n_blocks": BLOCKS}]),
    "StoIHT": replace(
        L0["StoIHT"],
        stages=[{"k": SIZES, "step_size": STEPS, "n_blocks": (10,)}, {"n_blocks": BLOCKS}],
    ),
    "logistic l1": METHODS["logistic l1"],
}


def read(path: Path, log: bool) -> tuple[np.ndarray, np.ndarray]:
    """Intensities of the genes, and 1 for tumours."""
    with np.load(path, allow_pickle=False) as z:
        x, y = z["X"].astype(np.float64), (z["y"] > 0).astype(np.int8)
    return (np.log(x) if log else x), y


def solve(job: tuple[Path, bool, int, list[str]]) -> dict[str, tuple[float, float, float]]:
    """AUC and number of genes, means over the folds of one repeat, and seconds."""
    path, log, repeat, names = job
    x, y = read(path, log)
    found = {}
    for name in names:
        start, auc, n_genes = time.perf_counter(), [], []
        for inside, outside in StratifiedKFold(5, shuffle=True, random_state=repeat).split(x, y):
            ranking, _ = tuned(COLON[name], x[inside], y[inside], repeat)
            auc.append(roc_auc_score(y[outside], x[outside] @ ranking.weights))
            n_genes.append(ranking.chosen.sum())
        found[name] = float(np.mean(auc)), float(np.mean(n_genes)), time.perf_counter() - start
    return found


def table_of(found: dict[str, dict[str, float]]) -> str:
    """One row a method, in Markdown."""
    rows = []
    for name, told in found.items():
        missed = f" (the bar {BAR} is missed)" if name == "default" and told["auc"] < BAR else ""
        numbers = f"{told['sd']:.3f}", f"{told['genes']:.0f}", f"{told['s']:.1f}"
        rows.append([name, f"{told['auc']:.3f}{missed}", *numbers])
    return markdown(["method", "mean AUC", "sd of repeats", "genes", "s a fit"], rows)


def summary(found: Iterable[dict[str, tuple[float, float, float]]]) -> dict[str, dict[str, float]]:
    """Means over repeats, and their spread."""
    every = list(found)
    told = {}
    for name in every[0]:
        auc, genes, seconds = (np.array(values) for values in zip(*(one[name] for one in every), strict=True))
        sd = float(auc.std(ddof=1)) if len(auc) > 1 else float("nan")
        told[name] = {
            "auc": float(auc.mean()),
            "sd": sd,
            "genes": float(genes.mean()),
            "s": float(seconds.mean() / 5),
        }
    return told


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--log", action="store_true", help="logarithms of the intensities")
    parser.add_argument("--methods", nargs="+", choices=list(COLON), default=list(COLON))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--data", type=Path, help="folder with colon_62x2000.npz")
    parser.add_argument("--json", type=Path, help="file to write the numbers to")
    arguments = parser.parse_args()
    folder = arguments.data or Path(os.environ.get("SCALESHIFT_SHARED", ".")) / "data"
    path = folder / "colon_62x2000.npz"
    if not path.exists():
        parser.error(f"{path} is not there: give its folder, --data, or set SCALESHIFT_SHARED")
    jobs = [(path, arguments.log, repeat, arguments.methods) for repeat in range(arguments.repeats)]
    console, found = Console(), []
    with multiprocessing.get_context("spawn").Pool(arguments.processes, threadpool_limits, (1,)) as pool:
        for one in pool.imap(solve, jobs):
            found.append(one)
            console.print(f"repeat {len(found)} of {len(jobs)}")
    told = summary(found)
    print(table_of(told))
    if arguments.json:
        facts = {"machine": machine(), "repeats": arguments.repeats, "log": arguments.log, "bar": BAR}
        write_json(arguments.json, {**facts, "methods": told})


if __name__ == "__main__":
    main()
