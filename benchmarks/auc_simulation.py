"""Which method ranks rare positives best by few features, and finds them?  The source's simulation.

python benchmarks/auc_simulation.py [--rates .05 .1 .25 .5] [--seeds 0 3] [--processes 2] [--json FILE]

1000 rows, 1000 features; positives are shifted by .3 in k* of them ("Stochastic Hard Thresholding Algorithms
for AUC Maximization", section on simulation). AUC is that of new rows, exact: Phi(w'mu / (sqrt(2) |w|)). All
methods are tuned alike, by held-out AUC within the rows (`auc_methods`). Means over seeds.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from auc_methods import L0, METHODS, Method, Ranking, markdown, population_auc, tuned
from rich.console import Console
from threadpoolctl import threadpool_limits
from timing import machine, write_json

import scaleshift as ss

N, D, SHIFT = 1000, 1000, 0.3
PLANTED = (20, 40, 60, 80)
WITHIN = 0.02  # of the best method with an l0 bound: the default's bar
EPOCHS, EPOCH_RATES, EPOCH_ROWS = (1, 2, 5, 10, 25, 50, 100, 150, 200, 300), (0.05, 0.25, 0.5), 50
BY_SIZE, SHOWN_SIZES = ("default", "t-screening", "SHT"), (10, 20, 40, 60, 80, 100)
MEASURES = ("auc", "f1", "jaccard", "k")
Numbers = dict[str, dict[str, float]]


class Problem(NamedTuple):
    """Rows, and what is planted in them."""

    x: np.ndarray  # (n, d)
    y: np.ndarray  # (n,) of 0 and 1
    shift: np.ndarray  # (d,) of the mean of the positives


def make(seed: int, rate: float, planted: int) -> Problem:
    """Exactly rate n positives, rows in random order."""
    rng = np.random.default_rng([seed, round(1000 * rate), planted])
    shift = np.zeros(D)
    shift[rng.choice(D, planted, replace=False)] = SHIFT
    y = (rng.permutation(N) < round(rate * N)).astype(np.int8)
    return Problem(rng.standard_normal((N, D)) + y[:, None] * shift, y, shift)


def judged(ranking: Ranking, shift: np.ndarray) -> dict[str, float]:
    """AUC, and how well the chosen features are the planted ones."""
    both, n = int((ranking.chosen & (shift > 0)).sum()), int(ranking.chosen.sum())
    planted = int((shift > 0).sum())
    return {
        "auc": float(population_auc(ranking.weights, shift)),
        "f1": 2 * both / (n + planted),
        "jaccard": both / (n + planted - both),
        "k": n,
    }


def solve(problem: tuple[int, float, int]) -> dict[str, Any]:
    """All methods on one problem; at k = k* too, where they have a k; by k and by epoch."""
    seed, rate, planted = problem
    x, y, shift = make(seed, rate, planted)
    found: dict[str, Any] = {"tuned": {}, "known": {}, "by_k": {}, "seconds": {}}
    for name, method in METHODS.items():
        start = time.perf_counter()
        ranking, parameters = tuned(method, x, y, seed)
        found["seconds"][name] = time.perf_counter() - start
        found["tuned"][name] = judged(ranking, shift)
        if method.sized:
            found["known"][name] = judged(at_k(method, x, y, seed, planted, parameters), shift)
        if name in BY_SIZE:
            found["by_k"][name] = by_size(method, ranking, parameters, x, y, shift, seed)
    if rate in EPOCH_RATES:
        found["by_epoch"] = by_epoch(x, y, shift, seed, planted)
    return found


def at_k(
    method: Method, x: np.ndarray, y: np.ndarray, seed: int, k: int, parameters: dict[str, Any]
) -> Ranking:
    """With k features, and the parameters that were best with any k."""
    if not method.stages:  # of SparseAUC: shrinkage by its own cross-validation
        return method.rank(x, y, seed, k=[k])
    return method.rank(x, y, seed, **{**parameters, "k": k})


def by_size(
    method: Method,
    ranking: Ranking,
    parameters: dict[str, Any],
    x: np.ndarray,
    y: np.ndarray,
    shift: np.ndarray,
    seed: int,
) -> dict[str, float]:
    """AUC by number of features, all else as it was chosen."""
    path = ranking.path
    if method.stages:
        path = {k: method.rank(x, y, seed, **{**parameters, "k": k}).weights for k in SHOWN_SIZES}
    assert path is not None
    return {str(k): float(population_auc(path[k], shift)) for k in SHOWN_SIZES}


def by_epoch(x: np.ndarray, y: np.ndarray, shift: np.ndarray, seed: int, k: int) -> dict[str, float]:
    """AUC of SHT after so many epochs, k = k* and blocks of 50 rows; the last one stands once settled."""
    steps = max(EPOCHS) * (N // EPOCH_ROWS)
    model = ss.SparseAUC(
        k, solver="sht", cv=None, block_size=EPOCH_ROWS, max_iter=steps, random_state=seed
    ).fit(x, y)
    after = model.coef_history_steps_ / (N // EPOCH_ROWS)
    rows = [int(np.searchsorted(after, epoch, "right")) - 1 for epoch in EPOCHS]
    auc = population_auc(model.coef_history_[rows], shift)
    return {str(epoch): float(value) for epoch, value in zip(EPOCHS, auc, strict=True)}


# Tables ------------------------------------------------------------------------------------------------


def summary(found: list[Numbers]) -> dict[str, dict[str, list[float]]]:
    """Mean and standard error over seeds: name -> measure -> [mean, error]."""
    told: dict[str, dict[str, list[float]]] = {}
    for name, first in found[0].items():
        told[name] = {}
        for measure in first:
            values = np.array([one[name][measure] for one in found])
            error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
            told[name][measure] = [float(values.mean()), float(error)]
    return told


def cell(found: list[dict[str, Any]]) -> dict[str, Any]:
    """One cell of the simulation, and how far the default is below the best l0 method."""
    told = {part: summary([one[part] for one in found]) for part in ("tuned", "known", "by_k")}
    best = max(L0, key=lambda name: told["tuned"][name]["auc"][0])
    pairs = [one["tuned"][best]["auc"] - one["tuned"]["default"]["auc"] for one in found]
    below = float(np.mean(pairs))
    error = float(np.std(pairs, ddof=1) / np.sqrt(len(pairs))) if len(pairs) > 1 else float("nan")
    told["bar"] = {"best_l0": best, "below": below, "error": error, "missed": below > WITHIN}
    if "by_epoch" in found[0]:
        told["by_epoch"] = summary([{"SHT": one["by_epoch"]} for one in found])["SHT"]
    told["seconds"] = {name: float(np.mean([one["seconds"][name] for one in found])) for name in METHODS}
    return told


def tables(cells: dict[str, Any]) -> str:
    """All of them, in Markdown."""
    keys = list(cells)
    parts = []
    for part, title in {"tuned": "k tuned", "known": "k = k*"}.items():
        for measure in MEASURES[: None if part == "tuned" else 3]:
            rows = []
            for name in cells[keys[0]][part]:
                numbers = [cells[key][part][name][measure] for key in keys]
                shape = "{:.0f}" if measure == "k" else "{:.3f} ± {:.3f}" if measure == "auc" else "{:.2f}"
                rows.append([name, *(shape.format(*pair) for pair in numbers)])
            parts.append(f"### {measure}, {title}\n\n" + markdown(["r / k*", *keys], rows))
    bars = [
        [
            key,
            c["bar"]["best_l0"],
            f"{c['bar']['below']:+.3f} ± {c['bar']['error']:.3f}",
            "missed" if c["bar"]["missed"] else "kept",
        ]
        for key, c in cells.items()
    ]
    parts.append(
        f"### The default below the best l0 method: at most {WITHIN}\n\n"
        + markdown(["r / k*", "best", "below", "bar"], bars)
    )
    rows = [
        [key, name, *(f"{cells[key]['by_k'][name][k][0]:.3f}" for k in map(str, SHOWN_SIZES))]
        for key in keys
        for name in cells[key]["by_k"]
    ]
    parts.append("### AUC by k\n\n" + markdown(["r / k*", "method", *map(str, SHOWN_SIZES)], rows))
    rows = [
        [key, *(f"{c['by_epoch'][str(epoch)][0]:.3f}" for epoch in EPOCHS)]
        for key, c in cells.items()
        if "by_epoch" in c
    ]
    parts.append("### AUC of SHT by epoch, k = k*\n\n" + markdown(["r / k*", *map(str, EPOCHS)], rows))
    return "\n\n".join(parts)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rates", type=float, nargs="+", default=(0.05, 0.1, 0.25, 0.5))
    parser.add_argument("--planted", type=int, nargs="+", default=PLANTED)
    parser.add_argument(
        "--seeds", type=int, nargs=2, default=(0, 3), help="first, and the one after the last"
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", type=Path, help="file to write the numbers to")
    arguments = parser.parse_args()
    console, seeds = Console(width=200), range(*arguments.seeds)
    keys = [(rate, planted) for rate in arguments.rates for planted in arguments.planted]
    problems = [(seed, rate, planted) for rate, planted in keys for seed in seeds]
    start, found = time.perf_counter(), []
    with multiprocessing.get_context("spawn").Pool(arguments.processes, threadpool_limits, (1,)) as pool:
        for one in pool.imap(solve, problems):
            found.append(one)
            if len(found) % len(seeds) == 0:
                console.print(f"{len(found)} of {len(problems)}, {time.perf_counter() - start:.0f} s")
    by_cell = [found[i : i + len(seeds)] for i in range(0, len(found), len(seeds))]
    cells = {f"{rate:g} / {planted}": cell(some) for (rate, planted), some in zip(keys, by_cell, strict=True)}
    print(tables(cells))
    if arguments.json:
        told = {"machine": machine(), "seeds": list(arguments.seeds), "bar": WITHIN, "cells": cells}
        write_json(arguments.json, {**told, "elapsed_s": time.perf_counter() - start})


if __name__ == "__main__":
    main()
