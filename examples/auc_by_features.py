"""How well do k features rank a rare class, and after how many passes?  Sparse AUC beside what others do.

    python examples/auc_by_features.py [--draws 2] [--rate .25] [--planted 20] [--data FILE] [--output FOLDER]

The pictures of "Stochastic Hard Thresholding Algorithms for AUC Maximization", drawn anew. Left, its Figure
3: held-out AUC by number of features. SHT, StoIHT and HSG-HT keep k features at each step; SOLAM, SPAM and
FSAUC keep all of theirs, and are level lines. Beside them what this package takes by default, `SparseAUC`,
which chooses features together from one pass of sums, and the screening of one feature at a time that each
choice has to beat (here, where features are independent of each other, none does). Right, its Figure 1: the
AUC of SHT by number of passes. The rarer the positives the lower it ends; with the steps that are taken
here it has settled after ten passes or so, not after hundreds as there.

1000 rows of 1000 features, of which --planted are higher by .3 in the positives, a share --rate of the
rows. FILE, with X (rows, features) and y (0 or less: negative), takes their place: in each draw three
quarters of its rows are learned from (the figure's own data, 62 colon tissues and 2000 genes, are not ours
to ship). Steps and penalties are chosen by cross-validation within the rows; AUC is that of new ones. A
minute or two; prints a table, and writes auc_by_features.csv and .png.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, train_test_split

import scaleshift as ss
from scaleshift.report.proportion_bars import PALETTE

ORANGE, SKY, GREEN, _, BLUE, RED, PINK = PALETTE
SIZES = (2, 5, 10, 15, 20, 30, 40, 60, 80, 100)
RATES, EPOCHS = (0.05, 0.25, 0.5), (1, 2, 5, 10, 25, 50, 100, 150, 200, 300)
N, D, SHIFT, N_NEW, N_BLOCKS = 1_000, 1_000, 0.3, 4_000, 20
SIZED = {"SHT": (RED, "v-"), "SparseAUC": (BLUE, "o-"), "screening": (SKY, "s--"), "StoIHT": (ORANGE, "^-")}
SIZED |= {"HSG-HT": (GREEN, "D-")}
LEVEL = {"FSAUC": (PINK, "-"), "SPAM l1": ("0.35", "--"), "SPAM l2": ("0.35", ":"), "SOLAM": ("0.35", "-.")}


class Problem(NamedTuple):
    """Rows to learn from, and new ones."""

    x: np.ndarray
    y: np.ndarray
    x_new: np.ndarray
    y_new: np.ndarray


def simulated(seed: int, rate: float, planted: int) -> Problem:
    """The source's simulation: exactly a share `rate` of positives."""
    rng = np.random.default_rng([seed, round(1000 * rate), planted])
    shift = SHIFT * (rng.permutation(D) < planted)
    y, y_new = (rng.permutation(n) < round(rate * n) for n in (N, N_NEW))
    return Problem(*(v for z in (y, y_new) for v in (rng.normal(size=(len(z), D)) + z[:, None] * shift, z)))


def parted(path: Path, seed: int) -> Problem:
    """Three quarters of the rows of a file to learn from."""
    with np.load(path, allow_pickle=False) as stored:
        x, y = stored["X"].astype(float), stored["y"] > 0
    x, x_new, y, y_new = train_test_split(x, y, stratify=y, random_state=seed)
    return Problem(x, y, x_new, y_new)


def auc(problem: Problem, weights: np.ndarray) -> float:
    """On the new rows."""
    return float(ss.roc_auc(problem.y_new, problem.x_new @ weights)["auc"])


def online(x: np.ndarray, y: np.ndarray, make: Callable, seed: int, **parameters: float) -> np.ndarray:
    """Weights of a method that goes row by row over standardised rows of unit length."""
    spread = x.std(axis=0)
    z = (x - x.mean(axis=0)) / spread
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    return make(random_state=seed, **parameters).fit(z, y).coef_ / spread


def tuned(problem: Problem, make: Callable, seed: int, **grid: tuple) -> float:
    """AUC with the parameters that rank the held-out rows of three folds best."""
    x, y = problem.x, problem.y
    tried = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    folds = list(StratifiedKFold(3, shuffle=True, random_state=seed).split(x, y))
    held_out = [
        np.mean([roc_auc_score(y[b], x[b] @ online(x[a], y[a], make, seed, **some)) for a, b in folds])
        for some in tried
    ]
    return auc(problem, online(x, y, make, seed, **tried[int(np.argmax(held_out))]))


def by_features(problem: Problem, seed: int, sizes: tuple[int, ...]) -> dict[tuple[str, int], float]:
    """AUC by method and number of features; 0 where that is not theirs to choose."""
    found = {}
    for name, options in {"SparseAUC": {}, "screening": {"solver": "screen"}}.items():
        path = (
            ss.SparseAUC(k=list(sizes), n_halves=0, random_state=seed, **options)
            .fit(problem.x, problem.y)
            .path_
        )
        found |= {(name, k): auc(problem, path["coef"].sel(k=k).values) for k in sizes}
    block = len(problem.y) // 4
    for k in sizes:
        sht = ss.SparseAUC(k, solver="sht", cv=None, n_halves=0, block_size=block, random_state=seed)
        found["SHT", k] = auc(problem, sht.fit(problem.x, problem.y).coef_)
        steps = {"k": (k,), "step_size": (1.0, 10.0)}
        blocks = {"n_passes": (20,), "block_size": (max(block // 2, 1),)}
        found["StoIHT", k] = tuned(problem, ss.auc.StoIHT, seed, **steps, **blocks)
        found["HSG-HT", k] = tuned(problem, ss.auc.HSGHT, seed, **steps, n_passes=(10,))
    radius, penalty, xi = (1.0, 10.0, 100.0, 1000.0), (1e-5, 1e-4, 1e-3, 1e-2), (1.0, 10.0, 100.0)
    found["SOLAM", 0] = tuned(problem, ss.auc.SOLAM, seed, radius=radius, xi=xi)
    found["SPAM l1", 0] = tuned(problem, ss.auc.SPAM, seed, penalty=("l1",), l1=penalty, xi=xi)
    found["SPAM l2", 0] = tuned(problem, ss.auc.SPAM, seed, penalty=("l2",), l2=penalty, xi=xi)
    found["FSAUC", 0] = tuned(problem, ss.auc.FSAUC, seed, radius=(10.0, 100.0), eta=(0.06, 1.0, 16.0))
    return found


def by_passes(rate: float, planted: int, seed: int) -> dict[tuple[str, int], float]:
    """AUC of SHT after so many passes, k as many features as are planted; it stands once it has settled."""
    problem, steps = simulated(seed, rate, planted), max(EPOCHS) * N_BLOCKS
    sht = {"solver": "sht", "cv": None, "n_halves": 0, "block_size": N // N_BLOCKS, "max_iter": steps}
    model = ss.SparseAUC(planted, random_state=seed, **sht).fit(problem.x, problem.y)
    rows = np.searchsorted(model.coef_history_steps_, np.array(EPOCHS) * N_BLOCKS, "right") - 1
    history = [auc(problem, model.coef_history_[row]) for row in rows]
    return {(passes_of(rate), epoch): value for epoch, value in zip(EPOCHS, history, strict=True)}


def passes_of(rate: float) -> str:
    """What a line of the right picture is called."""
    return f"SHT by passes, {100 * rate:g} % positives"


def draw(auc_of: pd.Series, title: str, path: Path) -> None:
    """AUC by number of features, and where rows are made up by number of passes."""
    has_passes = passes_of(RATES[0]) in auc_of.index
    figure = Figure(figsize=(11 if has_passes else 6, 4.4), layout="constrained")
    left, *right = np.atleast_1d(figure.subplots(1, 1 + has_passes))
    for name, (colour, style) in SIZED.items():
        left.plot(auc_of[name], style, color=colour, label=name, markersize=5, markerfacecolor="white")
    for name, (colour, style) in LEVEL.items():
        left.axhline(auc_of[name].item(), color=colour, linestyle=style, label=f"{name}, all features")
    left.set(xlabel="number of features k", ylabel="AUC of new rows", xscale="log", title=title)
    left.set_xticks(auc_of["SHT"].index, auc_of["SHT"].index)
    for axes in right:
        for rate, colour, marker in zip(RATES, (RED, GREEN, BLUE), "vos", strict=True):
            axes.plot(
                auc_of[passes_of(rate)], color=colour, marker=marker, label=f"{100 * rate:g} % positives"
            )
        axes.set(xlabel="passes over the rows", ylabel="AUC of new rows", xscale="log", title="SHT by passes")
        axes.set_xticks([1, 3, 10, 30, 100, 300], [1, 3, 10, 30, 100, 300])
    for axes in (left, *right):
        axes.minorticks_off()
        axes.spines[["right", "top"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Learn, judge, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--rate", type=float, default=0.25, help="share of positives, of the left picture")
    parser.add_argument("--planted", type=int, default=20)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--data", type=Path, help=".npz file in place of made-up rows")
    parser.add_argument("--output", type=Path, default=Path("auc_by_features"))
    given = parser.parse_args()
    found = []
    for seed in range(given.draws):
        if given.data is None:
            problem = simulated(seed, given.rate, given.planted)
            passes = [by_passes(rate, given.planted, seed) for rate in RATES]
        else:
            problem, passes = parted(given.data, seed), []
        of_draw = by_features(problem, seed, tuple(given.sizes))
        found += [(seed, *key, value) for part in (of_draw, *passes) for key, value in part.items()]
        print(f"draw {seed + 1} of {given.draws}", flush=True)
    results = pd.DataFrame(found, columns=["draw", "method", "number", "auc"])
    given.output.mkdir(parents=True, exist_ok=True)
    results.to_csv(given.output / "auc_by_features.csv", index=False)
    made_up = f"{100 * given.rate:g} % positives; {given.planted} of {D} features differ"
    title = made_up if given.data is None else given.data.stem
    draw(results.groupby(["method", "number"])["auc"].mean(), title, given.output / "auc_by_features.png")
    shown = results.pivot_table(index="method", columns="number", values="auc").loc[
        [*SIZED, *LEVEL], [0, *given.sizes]
    ]
    print(f"AUC of new rows by number of features (0: all), mean of {given.draws} draws; {title}")
    print(shown.round(3).fillna("").to_string())
    best = shown.max(axis=1).sort_values(ascending=False)
    print("at its best k:", ", ".join(f"{name} {value:.3f}" for name, value in best.items()))
    print(f"wrote {given.output}/auc_by_features.csv and .png")


if __name__ == "__main__":
    main()
