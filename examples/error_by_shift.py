"""What does a lasso's error become as the rows it meets move away from those it has learned from?

    python examples/error_by_shift.py [--draws 20] [--bootstrap 100] [--output FOLDER]

Figure 1 of "Estimation of prediction error with known covariate shift", drawn anew: 100 rows of 50 features
teach a lasso; 1 000 rows of 1 to 4 times their spread wait without outcomes. Left the mean squared error
that their covariates alone announce (direct, decomposed), what cross-validation says, and what it turns out
to be. Right how far each is off in a draw, as a share of the realised error: 0 is perfect, -0.8 promises a
fifth of the error. Ten seconds. Prints both as tables, and writes error_by_shift.csv and .png.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import scaleshift as ss
from scaleshift.report.proportion_bars import PALETTE

ROWS, FEATURES, TARGET_ROWS, PLANTED, SIGNAL = 100, 50, 1_000, 12, 3.0
SCALES = (1.0, 1.5, 2.0, 3.0, 4.0)
METHODS = {"direct": "direct", "decomposed": "decomposed", "cv": "cross-validation"}
STYLES = {
    "direct": (PALETTE[4], "o-"),
    "decomposed": (PALETTE[2], "s--"),
    "cross-validation": (PALETTE[5], "^:"),
}


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


def off(table: pd.DataFrame) -> pd.DataFrame:
    """Estimates less the realised error, as shares of it: by scale and draw."""
    estimates = table.set_index(["scale", "draw"])
    return estimates[list(METHODS.values())].div(estimates["realised"], axis=0) - 1


def draw(table: pd.DataFrame, path: Path) -> None:
    """Means over the draws, and how far each draw's estimates are off."""
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    means = table.drop(columns="draw").groupby("scale").mean()
    left.plot(means["realised"], "-", color="black", label="realised")
    for place, (name, (colour, style)) in enumerate(STYLES.items()):
        left.plot(means[name], style, color=colour, label=name, markersize=5)
        drawn = [off(table).loc[scale, name].to_numpy() for scale in SCALES]
        places = np.arange(len(SCALES)) + 0.26 * (place - 1)
        boxes = {"color": colour, "facecolor": f"{colour}40"}
        lines = {"color": colour}
        right.boxplot(
            drawn,
            positions=places,
            widths=0.2,
            patch_artist=True,
            boxprops=boxes,
            medianprops=lines,
            whiskerprops=lines,
            capprops=lines,
            flierprops={"markeredgecolor": colour, "markersize": 4},
        )
    right.axhline(0, color="black", linewidth=0.8)
    right.set_xticks(range(len(SCALES)), [f"{scale:g}" for scale in SCALES])
    right.set_ylabel("(estimate - realised) / realised")
    left.set(ylabel="mean squared error", ylim=(0, None), xticks=SCALES)
    for axes in (left, right):
        axes.set_xlabel("spread of the target's rows, by the source's")
        axes.spines[["right", "top"]].set_visible(False)
    left.legend(frameon=False)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Draw, estimate, compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--bootstrap", type=int, default=100)
    parser.add_argument(
        "--output", type=Path, default=Path("error_by_shift"), help="folder for the table and the figure"
    )
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    table = pd.concat([one_draw(seed, arguments.bootstrap) for seed in range(arguments.draws)])
    table.to_csv(arguments.output / "error_by_shift.csv", index_label="target")
    draw(table, arguments.output / "error_by_shift.png")
    print("mean squared error, by spread of the target's rows")
    print(table.drop(columns="draw").groupby("scale").mean().round(2).to_string())
    print("mean of (estimate - realised) / realised")
    print(off(table).groupby("scale").mean().round(2).to_string())


if __name__ == "__main__":
    main()
