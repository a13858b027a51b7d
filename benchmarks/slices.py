"""Which slicer finds planted slices?  Precision at 10 of the best of 5 slices, on rows it has not seen.

python benchmarks/slices.py [--seeds 100 130] [--json FILE]

Problems of `scaleshift.slices.synthetic`, three kinds, easy and hard. A slicer is fitted on one part with 25
components and 5 slices; on the other, with its labels and predictions, rows are ordered by membership. Means
over kinds and seeds; the standard error is that of draws within kinds. The bar is for the default.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from timing import machine, write_json

import scaleshift as ss
from scaleshift.slices import metrics, synthetic

KINDS = ("rare", "correlation", "noisy")
BAR = 0.91
N_SLICES, N_COMPONENTS, K = 5, 25, 10
Part = dict[str, np.ndarray]
Method = Callable[[Part, Part, int], np.ndarray]  # fit part, test part, seed -> memberships (n, n_slices)


def domino(**parameters) -> Method:
    """A mixture, ranked as the parameters say."""

    def memberships(fit: Part, test: Part, seed: int) -> np.ndarray:
        slicer = ss.DominoSlicer(random_state=seed, **parameters).fit(fit, "X", "y")
        return slicer.predict_proba(test, "X", "y")

    return memberships


def spotlight(fit: Part, test: Part, seed: int) -> np.ndarray:
    """Gaussian weights of high mean loss."""
    slicer = ss.SpotlightSlicer(n_slices=N_SLICES, random_state=seed).fit(fit, "X", "y")
    return slicer.predict_proba(test, "X", "y")


def top_loss(fit: Part, test: Part, seed: int) -> np.ndarray:
    """No slicer: the rows of the highest loss."""
    true = test["pred_probs"][np.arange(len(test["y"])), test["y"]]
    return -np.log(true)[:, None]


def clusters(fit: Part, test: Part, seed: int) -> np.ndarray:
    """Clusters of embeddings with the most errors; the nearest rows belong most."""
    model = KMeans(N_COMPONENTS, n_init=4, random_state=seed).fit(fit["X"])
    wrong = fit["pred_probs"].argmax(axis=1) != fit["y"]
    n = np.bincount(model.labels_, minlength=N_COMPONENTS)
    rate = np.bincount(model.labels_, wrong, minlength=N_COMPONENTS) / np.maximum(n, 1)
    return -model.transform(test["X"])[:, np.argsort(-rate)[:N_SLICES]]


METHODS: dict[str, Method] = {
    "default (excess errors)": domino(),
    "ranking error_rate": domino(ranking="error_rate"),
    "ranking wilson": domino(ranking="wilson"),
    "ranking loss": domino(ranking="loss"),
    "ranking mismatch": domino(ranking="mismatch"),
    "faithful (domino-0.1.5)": domino(compat="domino-0.1.5"),
    "k-means, error rate": clusters,
    "rows of highest loss": top_loss,
}
if hasattr(ss, "SpotlightSlicer"):
    METHODS["spotlight"] = spotlight


def measure(seeds: range, hard: bool, console: Console) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """Precision at 10 of the best slice by method, (n_kinds, n_seeds), and mean seconds of a fit."""
    precision = {name: np.empty((len(KINDS), len(seeds))) for name in METHODS}
    seconds = dict.fromkeys(METHODS, 0.0)
    for row, kind in enumerate(KINDS):
        for column, seed in enumerate(seeds):
            fit, test = synthetic.make(kind, seed, hard)
            for name, method in METHODS.items():
                start = time.perf_counter()
                memberships = method(fit, test, seed)
                seconds[name] += (time.perf_counter() - start) / (len(KINDS) * len(seeds))
                found = metrics.precision_at_k(memberships, test["in_slice"], K)
                precision[name][row, column] = found.max()
            if column % 10 == 9 or seed == seeds[-1]:
                console.print(f"{'hard' if hard else 'easy'} {kind}: {column + 1} of {len(seeds)}")
    return precision, seconds


def summary(precision: np.ndarray) -> dict:
    """Mean, its standard error from draws within kinds, and the means of the kinds."""
    n_kinds, n = precision.shape
    within = precision.var(axis=1, ddof=1) if n > 1 else np.full(n_kinds, np.nan)
    return {
        "mean": float(precision.mean()),
        "standard_error": float(np.sqrt(within.sum() / n) / n_kinds),
        **{kind: float(value) for kind, value in zip(KINDS, precision.mean(axis=1), strict=True)},
        "share_found": float((precision >= metrics.FOUND).mean()),
    }


def table_of(found: dict[str, dict]) -> Table:
    """One row a method."""
    table = Table("method", "mean", "error", *KINDS, "found", "s a fit")
    for name, numbers in found.items():
        missed = " missed" if name.startswith("default") and numbers["mean"] < BAR else ""
        table.add_row(
            name,
            f"{numbers['mean']:.3f}{missed}",
            f"{numbers['standard_error']:.3f}",
            *(f"{numbers[kind]:.2f}" for kind in KINDS),
            f"{numbers['share_found']:.2f}",
            f"{numbers['seconds']:.2f}",
        )
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--seeds", type=int, nargs=2, default=(100, 130), help="first, and the one after the last"
    )
    parser.add_argument("--json", type=Path, help="file to write the numbers to")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    console, seeds = Console(), range(*arguments.seeds)
    results: dict = {"machine": machine(), "seeds": list(arguments.seeds), "bar": BAR}
    for part in ("easy", "hard"):
        precision, seconds = measure(seeds, part == "hard", console)
        found = {name: summary(values) for name, values in precision.items()}
        results[part] = {name: {**found[name], "seconds": seconds[name]} for name in METHODS}
        title = f"{part}: precision at {K} of the best of {N_SLICES} slices; the default's bar is {BAR}"
        console.print(title, table_of(results[part]), sep="\n")
    if arguments.json:
        write_json(arguments.json, results)


if __name__ == "__main__":
    main()
