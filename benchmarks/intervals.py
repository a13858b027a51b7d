"""Do intervals cover, and does the label-shift test reject when it should and only then?  Synthetic problems.

python benchmarks/intervals.py [--draws 200] [--null 300] [--power 300] [--data FOLDER] [--json FILE]

FOLDER holds hipc_other_labs.npz (four samples of one laboratory; not redistributed here): coverage there when
each sample is left out in turn.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from synthetic import make
from timing import machine, write_json

import scaleshift as ss

FEATURES = ("fourier", "landmarks")
N = 4_000  # cells of the source, and of the target
CONTAMINATION = 0.02
LEVEL = 0.05


def coverage(features: str, draws: int) -> dict[str, float]:
    """Share of intervals that hold the drawn proportion, over `draws` problems of their own."""
    drawn, realised, widths = [], [], []
    for seed in range(100, 100 + draws):
        problem = make(seed, n=N)
        result = ss.DFM(features, random_state=seed).fit(problem.x, problem.y).predict(problem.target)
        low, high = result["proportion_low"].values[0], result["proportion_high"].values[0]
        drawn.append((low <= problem.alpha) & (problem.alpha <= high))
        realised.append((low <= problem.proportions) & (problem.proportions <= high))
        widths.append(high - low)
    return {
        "drawn": float(np.mean(drawn)),
        "realised": float(np.mean(realised)),
        "mean_width": float(np.mean(widths)),
    }


def rejections(features: str, eps: float, draws: int) -> float:
    """Share of problems with p < .05; `eps` of the target's cells lie far from every class."""
    noise = "far" if eps else "none"
    p_values = []
    for seed in range(1_000, 1_000 + draws):
        problem = make(seed, noise, eps, n=N)
        target = problem.target[np.random.default_rng(seed).permutation(len(problem.target))[:N]]
        model = ss.DFM(features, n_bootstrap=2, random_state=seed).fit(problem.x, problem.y)
        p_values.append(float(model.predict(target)["p_value"][0]))
    return float(np.mean(np.array(p_values) < LEVEL))


def real_coverage(folder: Path, features: str) -> dict[str, float]:
    """HIPC, one laboratory: each sample left out in turn, its gated shares against the intervals."""
    with np.load(folder / "hipc_other_labs.npz", allow_pickle=False) as z:
        x = np.clip(z["X"] * z["scale"], 0, 4096)
        y, sample = z["classes"][z["y"]], z["sample_names"][z["sample"]]
    covered: dict[str, list] = {"cells": [], "samples": []}
    for name in np.unique(sample):
        source = sample != name
        mean, sd = x[source].mean(axis=0), x[source].std(axis=0)
        for resample, found in covered.items():
            model = ss.DFM(features, resample=resample, random_state=0)
            model.fit((x[source] - mean) / sd, y[source], sample[source])
            result = model.predict((x[~source] - mean) / sd)
            truth = np.array([(y[~source] == label).mean() for label in model.labels_])
            low, high = result["proportion_low"].values[0], result["proportion_high"].values[0]
            found.append((low <= truth) & (truth <= high))
    return {resample: float(np.mean(found)) for resample, found in covered.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=200, help="label shifts for the coverage")
    parser.add_argument("--null", type=int, default=300, help="draws for the size of the test")
    parser.add_argument("--power", type=int, default=300, help="draws for its power")
    parser.add_argument("--data", type=Path, help="folder with hipc_other_labs.npz")
    parser.add_argument("--json", type=Path, help="file to write the numbers to")
    arguments = parser.parse_args()
    results: dict = {}
    table = Table("", *FEATURES)
    for features in FEATURES:
        found = {}
        if arguments.draws:
            found["95 % intervals cover"] = coverage(features, arguments.draws)
        if arguments.null:
            found["test rejects at 5 %, label shift only"] = rejections(features, 0, arguments.null)
        if arguments.power:
            found["test rejects at 5 %, 2 % far cells"] = rejections(features, CONTAMINATION, arguments.power)
        if arguments.data:
            found["intervals cover, samples left out"] = real_coverage(arguments.data, features)
        results[features] = found
    for name in results[FEATURES[0]]:
        table.add_row(name, *(_text(results[features][name]) for features in FEATURES))
    Console().print(table)
    if arguments.json:
        write_json(arguments.json, {"machine": machine(), **results})


def _text(value: float | dict[str, float]) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {number:.3f}" for name, number in value.items())
    return f"{value:.3f}"


if __name__ == "__main__":
    main()
