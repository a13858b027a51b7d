"""Which methods withstand cells of no known class?  Five Gaussian classes, three kinds of unknown cells.

python examples/contamination.py [--repetitions 5] [--output FOLDER]

The setting of Figure 1 of Dussap, Blanchard and Cherief-Abdellatif (2023): 2 to 10 markers, 0 to 30 % of
unknown cells. Prints one table a kind and writes contamination.csv and contamination.png. The figure's 20
repetitions take an hour on a core, 5 about a quarter of it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import scaleshift as ss
from scaleshift.datasets import make_label_shift

NOISES = {"background": "uniform", "far": "a far Gaussian", "near": "a near Gaussian"}
METHODS = {
    "RFFM": lambda seed: ss.DFM(soft=False, n_bootstrap=0, random_state=seed),
    "soft RFFM": lambda seed: ss.DFM(n_bootstrap=0, random_state=seed),
    "soft landmarks": lambda seed: ss.DFM("landmarks", n_bootstrap=0, random_state=seed),
    "soft energy": lambda seed: ss.DFM("sliced-energy", n_bootstrap=0, random_state=seed),
    "soft BBSE+": lambda seed: ss.BBSE(soft=True, n_bootstrap=0, random_state=seed),
    "open set": lambda seed: ss.OpenSetQuantifier(n_bootstrap=0, random_state=seed),
}


def errors(noise: str, eps: float, d: int, seed: int, n: int) -> dict[str, float]:
    """L2 distance of each method's proportions to the realised ones, on one problem."""
    problem = make_label_shift(seed, noise, eps, d=d, n=n)
    found = {}
    for name, make in METHODS.items():
        answer = make(seed).fit(problem.x, problem.y).predict(problem.target)
        found[name] = float(np.linalg.norm(answer["proportion"].values[0] - problem.proportions))
    return found


def experiment(dimensions: list[int], shares: list[float], repetitions: int, n: int = 10_000) -> pd.DataFrame:
    """One row a problem and method."""
    rows = []
    for noise in NOISES:
        for eps in shares:
            for d in dimensions:
                for seed in range(repetitions):
                    for method, error in errors(noise, eps, d, seed, n).items():
                        rows.append((noise, eps, d, seed, method, error))
    return pd.DataFrame(rows, columns=["noise", "unknown", "markers", "repetition", "method", "error"])


def table(results: pd.DataFrame, noise: str) -> pd.DataFrame:
    """Mean error by method and share of unknown cells, over all numbers of markers."""
    of_noise = results[results["noise"] == noise]
    means = of_noise.pivot_table(index="method", columns="unknown", values="error", aggfunc="mean")
    return means.loc[list(METHODS)]


def plot(results: pd.DataFrame, path: Path) -> None:
    """Mean error against the share of unknown cells, one panel a kind; bands are quartiles."""
    figure, axes = plt.subplots(1, len(NOISES), figsize=(12, 3.6), sharey=True, layout="constrained")
    for axis, (noise, title) in zip(axes, NOISES.items(), strict=True):
        of_noise = results[results["noise"] == noise]
        for method in METHODS:
            by_share = of_noise[of_noise["method"] == method].groupby("unknown")["error"]
            middle, low, high = by_share.mean(), by_share.quantile(0.25), by_share.quantile(0.75)
            (line,) = axis.plot(middle.index, middle, label=method)
            axis.fill_between(middle.index, low, high, alpha=0.15, color=line.get_color(), linewidth=0)
        axis.set(title=f"unknown cells: {title}", xlabel="share of unknown cells")
    axes[0].set_ylabel("error of the proportions (L2)")
    axes[-1].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> None:
    """Run, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--markers", type=int, nargs="+", default=list(range(2, 11)))
    parser.add_argument("--unknown", type=float, nargs="+", default=[0.0, 0.1, 0.2, 0.3])
    parser.add_argument(
        "--cells", type=int, default=10_000, help="of known classes, in source and target each"
    )
    parser.add_argument("--output", type=Path, default=Path("contamination"))
    given = parser.parse_args()
    results = experiment(given.markers, given.unknown, given.repetitions, given.cells)
    given.output.mkdir(parents=True, exist_ok=True)
    results.to_csv(given.output / "contamination.csv", index=False)
    plot(results, given.output / "contamination.png")
    for noise, title in NOISES.items():
        print(f"\nunknown cells: {title}; mean L2 error by their share")
        print(table(results, noise).round(4).to_string())
    print(f"wrote {given.output}/contamination.csv and .png")


if __name__ == "__main__":
    main()
