"""What does a lasso's error become as the rows it meets move away from those it has learned from?

python examples/error_by_shift.py [--draws 10] [--bootstrap 100] [--output FOLDER]

100 rows of 50 features teach a lasso; 1 000 rows of 1 to 4 times their spread wait without outcomes. The
error that their covariates alone announce, what cross-validation says, and what it turns out to be, as a
table (error_by_shift.csv) and a figure.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd

import scaleshift as ss

ROWS, FEATURES, TARGET_ROWS, PLANTED, SIGNAL = 100, 50, 1_000, 12, 3.0
SCALES = (1.0, 1.5, 2.0, 3.0, 4.0)
METHODS = {"direct": "direct", "decomposed": "decomposed", "cv": "cross-validation"}


def one_draw(seed: int, n_bootstrap: int) -> pd.DataFrame:
    """Estimates and the realised error at each scale."""
    rng = np.random.default_rng(seed)
    weights = np.where(np.arange(FEATURES) < PLANTED, np.sqrt(SIGNAL / PLANTED), 0.0)
    x = rng.normal(size=(ROWS, FEATURES))
    y = x @ weights + rng.normal(size=ROWS)
    targets = {f"{scale:g}": scale * rng.normal(size=(TARGET_ROWS, FEATURES)) for scale in SCALES}
    model = ss.PredictionError("lasso", method=tuple(METHODS), n_bootstrap=n_bootstrap, random_state=seed)
    found = model.fit(x, y).predict(targets)["error"].to_pandas().rename(columns=METHODS)
    outcomes = {name: t @ weights + rng.normal(size=TARGET_ROWS) for name, t in targets.items()}
    found["realised"] = [
        np.mean((model.family_.predict(t) - outcomes[name]) ** 2) for name, t in targets.items()
    ]
    return found.assign(scale=SCALES, draw=seed)


def draw(table: pd.DataFrame, path: Path) -> None:
    """Means over the draws."""
    matplotlib.use("Agg")
    from matplotlib import pyplot

    means = table.drop(columns="draw").groupby("scale").mean()
    figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    styles = {"realised": "k-", "direct": "C0o-", "decomposed": "C2s--", "cross-validation": "C1^:"}
    for name, style in styles.items():
        axes.plot(means.index, means[name], style, label=name)
    axes.set(
        xlabel="spread of the target's rows, by the source's", ylabel="mean squared error", ylim=(0, None)
    )
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def main() -> None:
    """Draw, estimate, compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--bootstrap", type=int, default=100)
    parser.add_argument("--output", type=Path, default=Path("."), help="folder for the table and the figure")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    table = pd.concat([one_draw(seed, arguments.bootstrap) for seed in range(arguments.draws)])
    table.to_csv(arguments.output / "error_by_shift.csv", index_label="target")
    draw(table, arguments.output / "error_by_shift.png")
    print(table.drop(columns="draw").groupby("scale").mean().round(2).to_string())


if __name__ == "__main__":
    main()
