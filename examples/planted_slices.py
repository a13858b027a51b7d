"""Does a slicer find the slice that was planted?  Precision by kind of slice, beside two baselines.

    python examples/planted_slices.py [--seeds 3] [--rows 4000] [--easy] [--output FOLDER]

What Domino is for (Eyuboglu et al. 2022): a model is wrong in a tenth of its rows, and in more than half of
those of one slice that nobody told it of. The slice is a rare cluster ("rare"), the rows of a class that
lack an attribute that goes with it elsewhere ("correlation"), or a cluster whose labels are noisy
("noisy"). A slicer learns from one half of the rows; in the other it orders the rows by how surely they
belong to its slices. Drawn and printed is the share of planted rows among the ten first, of the best of its
five slices: 1 means that who looks at ten rows sees the problem. Chance is the slice's share of all rows.

Beside the two slicers stand Domino as it was published (with its own ranking of slices), clusters of
k-means ranked by their error rate, and the rows of highest loss, most of which are errors of no kind. A
minute; writes planted_slices.csv and .png. The same for 30 problems of each kind: benchmarks/slices.py.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

import scaleshift as ss
from scaleshift.report.proportion_bars import PALETTE
from scaleshift.slices import metrics, synthetic

KINDS = {"rare": "rare cluster", "correlation": "correlation", "noisy": "noisy labels"}
N_SLICES, LOOKED_AT = 5, 10
Part = dict[str, np.ndarray]


def by_slicer(slicer: ss.DominoSlicer | ss.SpotlightSlicer, fit: Part, test: Part) -> np.ndarray:
    """Memberships of the other half's rows (n, n_slices)."""
    return slicer.fit(fit, "X", "y").predict_proba(test, "X", "y")


def by_clusters(fit: Part, test: Part, seed: int) -> np.ndarray:
    """Clusters with the highest error rate; the nearest rows belong most."""
    model = KMeans(25, n_init=4, random_state=seed).fit(fit["X"])
    wrong = fit["pred_probs"].argmax(axis=1) != fit["y"]
    rate = np.bincount(model.labels_, wrong) / np.bincount(model.labels_)
    return -model.transform(test["X"])[:, np.argsort(-rate)[:N_SLICES]]


def by_loss(test: Part) -> np.ndarray:
    """One slice: the rows of the highest loss first."""
    return -np.log(test["pred_probs"][np.arange(len(test["y"])), test["y"]])[:, None]


METHODS: dict[str, Callable[[Part, Part, int], np.ndarray]] = {
    "DominoSlicer": lambda fit, test, seed: by_slicer(ss.DominoSlicer(random_state=seed), fit, test),
    "SpotlightSlicer": lambda fit, test, seed: by_slicer(
        ss.SpotlightSlicer(n_slices=N_SLICES, random_state=seed), fit, test
    ),
    "Domino as published": lambda fit, test, seed: by_slicer(
        ss.DominoSlicer(compat="domino-0.1.5", random_state=seed), fit, test
    ),
    "k-means, error rate": by_clusters,
    "rows of highest loss": lambda fit, test, seed: by_loss(test),
}
COLOURS = dict(zip(METHODS, (PALETTE[4], PALETTE[1], PALETTE[0], PALETTE[2], "#BBBBBB"), strict=True))


def experiment(seeds: range, n: int, hard: bool) -> pd.DataFrame:
    """One row a problem and method."""
    rows = []
    for kind in KINDS:
        for seed in seeds:
            fit, test = synthetic.make(kind, seed, hard, n)
            for name, method in METHODS.items():
                found = metrics.precision_at_k(method(fit, test, seed), test["in_slice"], LOOKED_AT)
                rows.append((kind, seed, name, float(found.max()), float(test["in_slice"].mean())))
    return pd.DataFrame(rows, columns=["kind", "seed", "method", "precision", "share"])


def table(results: pd.DataFrame) -> pd.DataFrame:
    """Mean precision by method and kind, and over all."""
    means = results.pivot_table(index="method", columns="kind", values="precision")
    return means.loc[list(METHODS), list(KINDS)].assign(mean=lambda of: of.mean(axis=1))


def draw(results: pd.DataFrame, path: Path) -> None:
    """A group of bars a kind, a dot a draw."""
    figure = Figure(figsize=(8.5, 4.2), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(METHODS)
    for column, (name, colour) in enumerate(COLOURS.items()):
        of_method = results[results["method"] == name]
        places = np.arange(len(KINDS)) + (column - (len(METHODS) - 1) / 2) * width
        axes.bar(places, table(results).loc[name, list(KINDS)], 0.92 * width, color=colour, label=name)
        for place, kind in zip(places, KINDS, strict=True):
            values = of_method.loc[of_method["kind"] == kind, "precision"]
            spread = np.linspace(-0.3, 0.3, len(values)) * width
            axes.plot(place + spread, values, "o", color="0.15", markersize=2.5, clip_on=False)
    for place, kind in enumerate(KINDS):
        chance = results.loc[results["kind"] == kind, "share"].mean()
        label = "chance" if place == 0 else None
        axes.hlines(chance, place - 0.45, place + 0.45, color="0.15", linestyle=":", label=label)
    axes.set_xticks(range(len(KINDS)), list(KINDS.values()))
    axes.set(ylabel=f"planted rows among the first {LOOKED_AT}", ylim=(0, 1.02))
    axes.spines[["right", "top"]].set_visible(False)
    figure.legend(frameon=False, loc="outside right upper")
    figure.savefig(path, dpi=150)


def main() -> None:
    """Plant, look for, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="problems of each kind")
    parser.add_argument("--rows", type=int, default=4_000, help="of each half")
    parser.add_argument("--easy", action="store_true", help="clusters that lie further apart")
    parser.add_argument("--output", type=Path, default=Path("planted_slices"))
    given = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    results = experiment(range(100, 100 + given.seeds), given.rows, not given.easy)
    given.output.mkdir(parents=True, exist_ok=True)
    results.to_csv(given.output / "planted_slices.csv", index=False)
    draw(results, given.output / "planted_slices.png")
    print(
        f"planted rows among the first {LOOKED_AT}, best of {N_SLICES} slices, mean of {given.seeds} problems"
    )
    found = table(results)
    print(found.round(2).to_string())
    best = found["mean"].sort_values(ascending=False)
    print("over all kinds:", ", ".join(f"{name} {value:.2f}" for name, value in best.items()))
    print(f"wrote {given.output}/planted_slices.csv and .png")


if __name__ == "__main__":
    main()
