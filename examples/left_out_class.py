"""Which methods withstand a class that nobody labelled?  Each class of a real study left out in turn.

    python examples/left_out_class.py [--data FILE] [--cells 5000] [--output FOLDER]

The setting of Figure 2 of Dussap, Blanchard and Cherief-Abdellatif (2023): every sample is the source for
each other one of its laboratory, with all classes known, then with each class removed from the source.
Without --data three samples of the package's demo study are used, a minute. The figure's data are the T
cell panel of the Human Immunology Project Consortium; FILE is a .npz file with X (cells, markers), y
(codes), classes, sample (codes) and sample_names, in which a sample's laboratory is its name up to the last
"_". Prints the error of the proportions (0 is perfect) by class left out, and writes left_out_class.csv and
.png. A method that withstands has bars as low on the right, where much is unknown, as on the left.
"""

from __future__ import annotations

import argparse
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import scaleshift as ss
from scaleshift.report.proportion_bars import PALETTE

ALL = "none: all classes known"
METHODS = {
    "RFFM": lambda: ss.DFM(soft=False, n_bootstrap=0, random_state=0),
    "soft RFFM": lambda: ss.DFM(n_bootstrap=0, random_state=0),
    "soft landmarks": lambda: ss.DFM("landmarks", n_bootstrap=0, random_state=0),
    "soft energy": lambda: ss.DFM("sliced-energy", n_bootstrap=0, random_state=0),
    "soft BBSE+": lambda: ss.BBSE(soft=True, n_bootstrap=0, random_state=0),
    "open set": lambda: ss.OpenSetQuantifier(n_bootstrap=0, random_state=0),
}
ORANGE, SKY, GREEN, _, BLUE, RED, PINK = PALETTE
COLOURS = dict(zip(METHODS, (RED, ORANGE, GREEN, PINK, SKY, BLUE), strict=True))


def load(path: Path | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cells (n, markers), labels (n,) and samples (n,), labelled cells only."""
    if path is None:
        demo = ss.datasets.load_demo()
        code = demo["label_code"].values
        sample = demo["sample"].values[demo["sample_code"].values]
        kept = (code >= 0) & np.isin(sample, ["S01", "S02", "S05"])  # of one half of the study
        return demo["X"].values[kept], demo["label"].values[code[kept]], sample[kept]
    with np.load(path, allow_pickle=False) as stored:
        x = np.clip(stored["X"] * stored["scale"], 0, 4096)
        return x, stored["classes"][stored["y"]], stored["sample_names"][stored["sample"]]


def laboratory(sample: str) -> str:
    """Samples of one laboratory are near enough to each other for label shift."""
    return sample.rpartition("_")[0]


def experiment(x: np.ndarray, y: np.ndarray, sample: np.ndarray, n: int = 10_000) -> pd.DataFrame:
    """One row a pair of samples, class left out and method."""
    rows = []
    rng = np.random.default_rng(0)
    taken = {name: np.flatnonzero(sample == name) for name in np.unique(sample)}
    taken = {name: rng.permutation(rows)[:n] for name, rows in taken.items()}
    for source, target in permutations(taken, 2):
        if laboratory(source) != laboratory(target):
            continue
        print(f"learned from {source}, asked about {target}", flush=True)
        xs, ys, xt, yt = x[taken[source]], y[taken[source]], x[taken[target]], y[taken[target]]
        mean, sd = xs.mean(axis=0), xs.std(axis=0)
        xs, xt = (xs - mean) / sd, (xt - mean) / sd
        for left_out in [None, *np.unique(ys)]:
            kept = ys != left_out
            share = 0.0 if left_out is None else float(np.mean(yt == left_out))
            for method, make in METHODS.items():
                model = make().fit(xs[kept], ys[kept])
                truth = [np.mean(yt == label) for label in model.labels_]
                error = np.linalg.norm(model.predict(xt)["proportion"].values[0] - truth)
                rows.append((source, target, left_out or ALL, share, method, float(error)))
    return pd.DataFrame(rows, columns=["source", "target", "left_out", "unknown", "method", "error"])


def table(results: pd.DataFrame) -> pd.DataFrame:
    """Mean error by class left out and method, by the class's share in the targets."""
    means = results.pivot_table(index="left_out", columns="method", values="error", aggfunc="mean")
    share = results.groupby("left_out")["unknown"].mean()
    return means[list(METHODS)].assign(unknown=share).sort_values("unknown")


def plot(results: pd.DataFrame, path: Path) -> None:
    """Mean error of each method by class left out."""
    means = table(results)
    figure = Figure(figsize=(10, 4.5), layout="constrained")
    axis = figure.subplots()
    width = 0.8 / len(METHODS)
    for column, (method, colour) in enumerate(COLOURS.items()):
        places = np.arange(len(means)) + (column - (len(METHODS) - 1) / 2) * width
        axis.bar(places, means[method], 0.92 * width, color=colour, label=method)
    names = [f"{name.replace('_', ' ')}\n{100 * share:.1f} %" for name, share in means["unknown"].items()]
    axis.set_xticks(range(len(names)), names, fontsize=9)
    axis.set(xlabel="class left out of the source, and its share in the targets")
    axis.set_ylabel("error of the proportions (L2)")
    axis.spines[["right", "top"]].set_visible(False)
    figure.legend(frameon=False, loc="outside right upper")
    figure.savefig(path, dpi=150)


def main() -> None:
    """Run, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--cells", type=int, default=5_000, help="of a sample, at most")
    parser.add_argument("--output", type=Path, default=Path("left_out_class"))
    given = parser.parse_args()
    results = experiment(*load(given.data), given.cells)
    given.output.mkdir(parents=True, exist_ok=True)
    results.to_csv(given.output / "left_out_class.csv", index=False)
    plot(results, given.output / "left_out_class.png")
    print("Mean L2 error by class left out, and its share in the targets")
    print(table(results).round(4).to_string())
    most = table(results).iloc[-1]
    print(
        f"without {most.name}, {most['unknown']:.0%} of the targets: "
        + ", ".join(f"{m} {most[m]:.3f}" for m in METHODS)
    )
    print(f"wrote {given.output}/left_out_class.csv and .png")


if __name__ == "__main__":
    main()
