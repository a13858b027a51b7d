"""Which methods withstand cells of no known class?  Five Gaussian classes, three kinds of unknown cells.

    python examples/contamination.py [--repetitions 2] [--markers 2 5 10] [--output FOLDER]

The setting of Figure 1 of Dussap, Blanchard and Cherief-Abdellatif (2023): 2 to 10 markers, 0 to 30 % of
unknown cells, which are background noise, a population far from all classes, or one amid them. Its methods
are RFFM, and soft RFFM, energy and BBSE+, which know of an unknown share; beside them soft matching on
landmarks (the exact kernel), and this package's default, "open set". Prints one table a kind, and writes
contamination.csv and contamination.png: the error of the proportions, 0 is perfect. Two minutes; the
figure's own `--repetitions 20 --markers 2 3 4 5 6 7 8 9 10` take an hour on a core.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import scaleshift as ss
from scaleshift.datasets import make_label_shift
from scaleshift.report.proportion_bars import PALETTE

ORANGE, SKY, GREEN, _, BLUE, RED, PINK = PALETTE
NOISES = {"background": "uniform", "far": "a far Gaussian", "near": "a near Gaussian"}
METHODS = {
    "RFFM": lambda seed: ss.DFM(soft=False, n_bootstrap=0, random_state=seed),
    "soft RFFM": lambda seed: ss.DFM(n_bootstrap=0, random_state=seed),
    "soft landmarks": lambda seed: ss.DFM("landmarks", n_bootstrap=0, random_state=seed),
    "soft energy": lambda seed: ss.DFM("sliced-energy", n_bootstrap=0, random_state=seed),
    "soft BBSE+": lambda seed: ss.BBSE(soft=True, n_bootstrap=0, random_state=seed),
    "open set": lambda seed: ss.OpenSetQuantifier(n_bootstrap=0, random_state=seed),
}
STYLES = {"RFFM": (RED, "v--"), "soft RFFM": (ORANGE, "^-"), "soft landmarks": (GREEN, "s-")}
STYLES |= {"soft energy": (PINK, "D--"), "soft BBSE+": (SKY, "P--"), "open set": (BLUE, "o-")}


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
    """Mean error against the share of unknown cells, one panel a kind; bars are quartiles, side by side."""
    figure = Figure(figsize=(12, 4.2), layout="constrained")
    panels = figure.subplots(1, len(NOISES), sharey=True)
    step = 0.004  # of the shares, from one method's bars to the next one's
    for axis, (noise, title) in zip(panels, NOISES.items(), strict=True):
        of_noise = results[results["noise"] == noise]
        for place, (method, (colour, style)) in enumerate(STYLES.items()):
            by_share = of_noise[of_noise["method"] == method].groupby("unknown")["error"]
            middle, low, high = by_share.mean(), by_share.quantile(0.25), by_share.quantile(0.75)
            at = middle.index + step * (place - (len(STYLES) - 1) / 2)
            axis.vlines(at, low, high, color=colour, alpha=0.5)
            axis.plot(at, middle, style, color=colour, label=method, markersize=5)
        axis.set(title=f"unknown cells: {title}", xlabel="share of unknown cells")
        axis.spines[["right", "top"]].set_visible(False)
    panels[0].set_ylabel("error of the proportions (L2)")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Run, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=2)
    parser.add_argument("--markers", type=int, nargs="+", default=[2, 5, 10])
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
    worst = results[results["unknown"] == max(given.unknown)].pivot_table(
        index="method", columns="noise", values="error"
    )
    for noise, title in NOISES.items():
        print(
            f"least error with most unknown cells, {title}: {worst[noise].idxmin()} {worst[noise].min():.3f}"
        )
    print(f"wrote {given.output}/contamination.csv and .png")


if __name__ == "__main__":
    main()
