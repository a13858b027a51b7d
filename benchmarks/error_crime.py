"""Is the error in other states foreseen, of a lasso for violent crime that has learned from some of them?

python benchmarks/error_crime.py --data guns_aer_1977_1999.csv [--splits 20] [--bootstrap 200] [--json FILE]

The data are `Guns` of the R package AER (GPL-2 or later): 51 states, 1977 to 1999, not part of this
project. Violent crimes per 1,000 people from the other columns but murder and robbery, the year among them;
features count in units of their spread. Halves of all rows, halves of the states, and two clusters of
states (two-means of their standardised means, the larger one teaches); then six western states as a source
and each other state as a target, all targets of one fit. Three ways each: "iid" takes rows as independent;
"grouped folds" keeps states whole in cross-validation, which chooses the penalty too; "groups" tells the
states, so that noise has a part that a state shares. Told as it comes out: outcomes may well depend on the
covariates otherwise in another state.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from error_tables import by_target, estimates, markdown, table
from rich.console import Console
from sklearn.cluster import KMeans
from sklearn.model_selection import GroupKFold
from threadpoolctl import threadpool_limits
from timing import machine, write_json

WEST = ("California", "Washington", "Nevada", "New Mexico", "Arizona", "Texas")
RESPONSE, LEFT_OUT = "violent", ("violent", "murder", "robbery", "state")
METHODS = ("cv", "direct", "decomposed")
WAYS = ("iid", "grouped folds", "groups")
FOLDS = 5


class Panel(NamedTuple):
    """Rows of states and years."""

    x: np.ndarray  # (n, p)
    y: np.ndarray  # (n,)
    state: np.ndarray  # (n,) names


def read(path: Path) -> Panel:
    """The file as it is in AER."""
    frame = pd.read_csv(path)
    features = frame.drop(columns=list(LEFT_OUT)).assign(law=frame["law"] == "yes").astype(np.float64)
    return Panel(features.to_numpy(), frame[RESPONSE].to_numpy() / 100, frame["state"].to_numpy(dtype=str))


# Halves: which rows teach, (n,) bool -------------------------------------------------------------------


def of_rows(panel: Panel, seed: int) -> np.ndarray:
    """A random half of the rows."""
    n = len(panel.y)
    return np.random.default_rng([8, seed]).permutation(n) < n // 2


def of_states(panel: Panel, seed: int) -> np.ndarray:
    """A random half of the states."""
    names = np.unique(panel.state)
    half = np.random.default_rng([8, seed]).permutation(names)[: len(names) // 2]
    return np.isin(panel.state, half)


def of_clusters(panel: Panel, seed: int) -> np.ndarray:
    """The larger of two clusters of states."""
    names, place = np.unique(panel.state, return_inverse=True)
    means = np.stack([panel.x[place == i].mean(axis=0) for i in range(len(names))])
    spread = means.std(axis=0)
    means = (means - means.mean(axis=0)) / np.where(
        spread > 0, spread, 1
    )  # the years are the same everywhere
    cluster = KMeans(2, n_init=1, random_state=seed).fit_predict(means)
    return (cluster == np.bincount(cluster).argmax())[place]


SPLITS = {"rows": of_rows, "states": of_states, "clusters of states": of_clusters}


# Estimates ---------------------------------------------------------------------------------------------


def judged(
    panel: Panel, source: np.ndarray, targets: dict[str, np.ndarray], way: str, seed: int, n_bootstrap: int
) -> dict[str, list[float]]:
    """The realised error and that of each method, by target."""
    x, y, state = panel.x[source], panel.y[source], panel.state[source]
    grouped = way == "grouped folds"
    model, told = estimates(
        "lasso",
        x,
        y,
        {name: panel.x[rows] for name, rows in targets.items()},
        groups=state if way == "groups" else None,
        cv=list(GroupKFold(FOLDS, shuffle=True, random_state=seed).split(x, y, state)) if grouped else FOLDS,
        method=METHODS,
        scale=True,
        n_bootstrap=n_bootstrap,
        random_state=seed,
    )
    realised = [
        float(np.mean((panel.y[rows] - model.family_.predict(panel.x[rows])) ** 2))
        for rows in targets.values()
    ]
    by_method = np.column_stack([realised, *(by_target(told, method) for method in METHODS)])
    return dict(zip(targets, by_method.tolist(), strict=True))


def split_study(panel: Panel, n_splits: int, n_bootstrap: int, console: Console) -> dict[str, Any]:
    """Mean squared difference to the realised error, by split and way."""
    told: dict[str, Any] = {}
    for kind, half in SPLITS.items():
        masks = [half(panel, seed) for seed in range(n_splits)]
        for way in WAYS:
            found = [
                judged(panel, mask, {"rest": ~mask}, way, seed, n_bootstrap)["rest"]
                for seed, mask in enumerate(masks)
            ]
            values = np.array(found)
            told[f"{kind}, {way}"] = {
                "mean": dict(zip(("realised", *METHODS), values.mean(axis=0).tolist(), strict=True)),
                "squared_difference": dict(
                    zip(METHODS, ((values[:, 1:] - values[:, :1]) ** 2).mean(axis=0).tolist(), strict=True)
                ),
                "different_splits": len({mask.tobytes() for mask in masks}),
            }
        console.print(f"halves of {kind} done")
    return told


def western_study(panel: Panel, n_bootstrap: int) -> dict[str, Any]:
    """One source, and each other state a target."""
    source = np.isin(panel.state, WEST)
    targets = {str(name): panel.state == name for name in np.unique(panel.state[~source])}
    told: dict[str, Any] = {}
    for way in WAYS:
        found = judged(panel, source, targets, way, 0, n_bootstrap)
        away = np.abs(np.array([[v - row[0] for v in row[1:]] for row in found.values()]))
        told[way] = {
            "targets": found,
            "nearer_than_cv": {m: int((away[:, i] < away[:, 0]).sum()) for i, m in enumerate(METHODS) if i},
            "median_difference": dict(zip(METHODS, np.median(away, axis=0).tolist(), strict=True)),
        }
    return told


def tables(splits: dict[str, Any], west: dict[str, Any]) -> str:
    """All of them, in Markdown."""
    parts = []
    if splits:
        rows = {
            name: [
                told["different_splits"],
                *told["mean"].values(),
                *told["squared_difference"].values(),
            ]
            for name, told in splits.items()
        }
        head = ["halves of, way", "different splits", "mean realised", *(f"mean {m}" for m in METHODS)]
        parts.append(table([*head, *(f"mean squared difference, {m}" for m in METHODS)], rows, "{:.4g}"))
    names = list(west["iid"]["targets"])
    # The model differs by way, as its penalty is chosen by other folds, and so does the realised error.
    by_state = {name: [v for way in WAYS for v in west[way]["targets"][name]] for name in names}
    head = [f"{way}: {column}" for way in WAYS for column in ("realised", *METHODS)]
    parts.append(table(["target", *head], by_state, "{:.1f}"))
    rows_of_counts = [
        [way, *(f"{n} of {len(names)}" for n in west[way]["nearer_than_cv"].values())]
        + [f"{v:.2f}" for v in west[way]["median_difference"].values()]
        for way in WAYS
    ]
    head = ["way", *(f"{m} nearer than cv" for m in METHODS[1:])]
    parts.append(markdown([*head, *(f"median difference, {m}" for m in METHODS)], rows_of_counts))
    return "\n\n".join(parts)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="guns_aer_1977_1999.csv")
    parser.add_argument("--splits", type=int, default=20, help="of each kind; 0: the western states alone")
    parser.add_argument("--bootstrap", type=int, default=200)
    parser.add_argument("--json", type=Path, help="file to write the numbers to")
    arguments = parser.parse_args()
    panel, console, start = read(arguments.data), Console(stderr=True), time.perf_counter()
    with threadpool_limits(1):
        splits = (
            split_study(panel, arguments.splits, arguments.bootstrap, console) if arguments.splits else {}
        )
        west = western_study(panel, arguments.bootstrap)
    print(tables(splits, west))
    if arguments.json:
        facts = {"machine": machine(), "splits": arguments.splits, "n_bootstrap": arguments.bootstrap}
        told = {"halves": splits, "west": west, "elapsed_s": time.perf_counter() - start}
        write_json(arguments.json, {**facts, **told})


if __name__ == "__main__":
    main()
