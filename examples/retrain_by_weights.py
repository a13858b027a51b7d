"""Retraining for a sample whose class shares are others: what do weights of label shift spare?

    python examples/retrain_by_weights.py [--markers m0 m1] [--draws 10] [--target S02] [--far S13]

A classifier of blood cells for a sorter with room for two markers is learned from one labelled sample of
the study that ships with scaleshift, in which eight were measured. Two leave the classes overlapping, and
what an unclear cell is taken for depends on the classes' shares. The target is another sample, whose cells
are drawn so that these are quite others, --draws times. Nobody labels it: its shares are estimated from all
eight markers, `ss.quantify.sample_weight` makes of them a weight for each labelled cell (the class's share
in the target over that in the source), and the same classifier is trained again with it. Half a minute.

Printed is the share of the target's cells that get a wrong label, as a mean over the draws:

    as trained    without weights
    estimated     with weights by the estimated shares
    true shares   with weights by the target's true shares: what a perfect estimate would give
    own labels    trained on half of the target's own labelled cells, judged on the others: out of reach
    better in     draws in which the estimated weights did better than none
    flagged       draws in which the estimate itself says "do not use" or "estimators disagree"

for a target near the source (--target) and one of another centre (--far), whose classes look otherwise:
there weights mend the shares, not the classes.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

import scaleshift as ss

Part = tuple[np.ndarray, np.ndarray]  # cells (n, 8), labels (n,)


def labelled(sample: str) -> tuple[np.ndarray, np.ndarray]:
    """Cells (n, 8) and labels (n,) of one sample, without the ungated ones."""
    cells = ss.datasets.load_demo()
    code = cells["label_code"].values
    kept = (cells["sample"].values[cells["sample_code"].values] == sample) & (code >= 0)
    return cells["X"].values[kept], cells["label"].values[code[kept]]


def redrawn(y: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Row numbers of n cells whose classes have shares drawn at random, from hardly any to nearly all."""
    labels = np.unique(y)
    wanted = rng.choice(labels, n, p=rng.dirichlet(np.ones(len(labels))))
    return np.array([rng.choice(np.flatnonzero(y == label)) for label in wanted])


def one_draw(source: Part, cells: Part, columns: list[int], n: int, seed: int) -> dict[str, float]:
    """Errors on one target, whose labels are looked at to judge, and by the last two."""
    rows = redrawn(cells[1], n, np.random.default_rng(seed))
    x, y = cells[0][rows], cells[1][rows]
    found = ss.OpenSetQuantifier(n_bootstrap=0, random_state=seed).fit(*source).predict(x)
    estimated = ss.quantify.sample_weight(found, source[1])
    labels, of_source = np.unique(source[1], return_inverse=True)
    true = np.array([np.mean(y == label) for label in labels]) / (np.bincount(of_source) / len(of_source))

    def wrong(train: Part, weight: np.ndarray | None, test: Part) -> float:
        model = LogisticRegression(max_iter=1_000).fit(train[0][:, columns], train[1], sample_weight=weight)
        return float(np.mean(model.predict(test[0][:, columns]) != test[1]))

    return {
        "as trained": wrong(source, None, (x, y)),
        "estimated": wrong(source, estimated, (x, y)),
        "true shares": wrong(source, true[of_source], (x, y)),
        "own labels": wrong((x[::2], y[::2]), None, (x[1::2], y[1::2])),
        "flagged": "estimators" in found["flag"].values[0],
    }


def experiment(columns: list[int], source: str, targets: list[str], draws: int, n: int) -> pd.DataFrame:
    """One row a target and draw."""
    learned = labelled(source)
    rows = []
    for target in targets:
        cells = labelled(target)
        rows += [{"target": target, **one_draw(learned, cells, columns, n, seed)} for seed in range(draws)]
    return pd.DataFrame(rows)


def table(results: pd.DataFrame) -> pd.DataFrame:
    """Means over draws; in how many of them the weights did better, and the estimate warned."""
    by_target = results.assign(better=results["estimated"] < results["as trained"]).groupby(
        "target", sort=False
    )
    means = by_target[["as trained", "estimated", "true shares", "own labels"]].mean().round(4)
    return means.assign(**{"better in": by_target["better"].sum(), "flagged": by_target["flagged"].sum()})


def main() -> None:
    """Draw, weigh, train again, compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--markers", nargs="+", default=["m0", "m1"])
    parser.add_argument("--source", default="S01")
    parser.add_argument("--target", default="S02", help="near the source")
    parser.add_argument("--far", default="S13", help="of another centre")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--cells", type=int, default=4_000, help="of a target")
    given = parser.parse_args()
    markers = ss.datasets.load_demo()["marker"].values.tolist()
    targets = [given.target, given.far]
    results = experiment(
        [markers.index(m) for m in given.markers], given.source, targets, given.draws, given.cells
    )
    found = table(results)
    print(f"share of wrong labels, mean of {given.draws} draws; learned from {given.source}")
    print(found.to_string())
    for target in targets:
        before, after, best = found.loc[target, ["as trained", "estimated", "true shares"]]
        print(
            f"{target}: weights take away {1 - after / before:.0%} of the errors, "
            f"the true shares would {1 - best / before:.0%}"
        )


if __name__ == "__main__":
    main()
