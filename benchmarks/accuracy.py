"""How far are the proportions from the truth?  Synthetic problems, and real data where a folder is given.

python benchmarks/accuracy.py [--data FOLDER] [--json FILE]

FOLDER holds hipc_other_labs.npz (four samples of one laboratory; not redistributed here).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.base import BaseEstimator, clone
from synthetic import make
from timing import machine, write_json

import scaleshift as ss

SETTINGS = [("none", 0.0), ("background", 0.3), ("far", 0.3), ("near", 0.3)]
METHODS = {
    "hard Fourier": ss.DFM(soft=False, n_bootstrap=0),
    "soft Fourier": ss.DFM(n_bootstrap=0),
    "soft landmarks": ss.DFM("landmarks", n_bootstrap=0),
    "soft exact kernel": ss.DFM("gaussian", n_bootstrap=0),
    "soft energy": ss.DFM("energy", n_bootstrap=0),
    "soft sliced energy": ss.DFM("sliced-energy", n_bootstrap=0),
    "BBSE+": ss.BBSE(n_bootstrap=0),
    "soft BBSE+": ss.BBSE(soft=True, n_bootstrap=0),
}
EXPECTED = {  # a plain reference implementation on the same draws
    "hard Fourier": (0.0045, 0.1375, 0.1387, 0.1745),
    "soft Fourier": (0.0046, 0.0354, 0.0252, 0.1285),
    "soft exact kernel": (0.0048, 0.0336, 0.0027, 0.1246),
    "soft energy": (0.0081, 0.1450, 0.2818, 0.2006),
    "BBSE+": (0.0037, 0.1369, 0.3022, 0.2489),
}
EXPECTED["soft landmarks"] = EXPECTED["soft exact kernel"]  # which they stand for
EXPECTED["soft sliced energy"], EXPECTED["soft BBSE+"] = EXPECTED["soft energy"], EXPECTED["BBSE+"]
PAIRS = [("W2_1", "W2_4"), ("W2_4", "W2_1"), ("W2_1", "W2_7"), ("W2_7", "W2_1")]


def synthetic_errors(method: BaseEstimator, seeds: range = range(5)) -> list[float]:
    """Mean L2 distance to the realised shares, one number a setting."""
    errors = np.empty((len(seeds), len(SETTINGS)))
    for i, seed in enumerate(seeds):
        for j, (noise, eps) in enumerate(SETTINGS):
            problem = make(seed, noise, eps)
            model = clone(method).set_params(random_state=seed).fit(problem.x, problem.y)
            found = model.predict(problem.target)["proportion"].values[0]
            errors[i, j] = np.linalg.norm(found - problem.proportions)
    return errors.mean(axis=0).tolist()


def shares(y: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Share of each label among all cells."""
    return np.array([(y == label).mean() for label in labels])


def real_errors(folder: Path) -> dict[str, float]:
    """HIPC, one laboratory: all classes known, and each of the four largest left out of the source."""
    with np.load(folder / "hipc_other_labs.npz", allow_pickle=False) as z:
        x = np.clip(z["X"] * z["scale"], 0, 4096)
        y, sample = z["classes"][z["y"]], z["sample_names"][z["sample"]]
    known, left_out = [], {"soft": [], "hard": []}
    for source, target in PAIRS:
        xs, ys, xt, yt = x[sample == source], y[sample == source], x[sample == target], y[sample == target]
        mean, sd = xs.mean(axis=0), xs.std(axis=0)
        xs, xt = (xs - mean) / sd, (xt - mean) / sd
        model = ss.DFM(n_bootstrap=0, random_state=0).fit(xs, ys)
        known.append(_error(model, xt, yt))
        for largest in model.labels_[np.argsort(-model.class_counts_)[:4]]:
            rest = ys != largest
            for name, errors in left_out.items():
                model = ss.DFM(soft=name == "soft", n_bootstrap=0, random_state=0)
                model.fit(xs[rest], ys[rest])
                errors.append(_error(model, xt, yt))
    return {
        "soft, all classes known": float(np.mean(known)),
        "soft, one large class left out": float(np.mean(left_out["soft"])),
        "hard, one large class left out": float(np.mean(left_out["hard"])),
    }


def _error(model: ss.DFM, x: np.ndarray, y: np.ndarray) -> float:
    return float(np.linalg.norm(model.predict(x)["proportion"].values[0] - shares(y, model.labels_)))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with hipc_other_labs.npz")
    parser.add_argument("--json", type=Path, help="file to write the numbers to")
    arguments = parser.parse_args()
    table = Table("method", *(f"{noise} {eps or ''}".strip() for noise, eps in SETTINGS))
    results: dict = {"synthetic": {}}
    for name, method in METHODS.items():
        errors = synthetic_errors(method)
        results["synthetic"][name] = errors
        known = [f" ({x:.4f})" for x in EXPECTED.get(name, [])] or [""] * len(errors)
        cells = [f"{e:.4f}{x}" for e, x in zip(errors, known, strict=True)]
        table.add_row(name, *cells)
    console = Console()
    console.print("Mean L2 error over seeds 0-4; in brackets a plain reference", table, sep="\n")
    if arguments.data:
        results["hipc"] = real_errors(arguments.data)
        for name, error in results["hipc"].items():
            console.print(f"HIPC, {name}: {error:.4f}")
    if arguments.json:
        write_json(arguments.json, {"machine": machine(), **results})


if __name__ == "__main__":
    main()
