"""Do slices that are none pass for real?  Errors, or losses, that have nothing to do with the embeddings.

python benchmarks/slices_null.py [--draws 400] [--json FILE]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import stats
from timing import machine, write_json

import scaleshift as ss

COLUMNS = 8
LEVEL = 0.05
ROWS = (2_000, 3_000, 4_000)  # in turn
ERROR_RATES = (0.05, 0.15, 0.3)
LOSSES = {
    "exponential": lambda rng, n: rng.exponential(size=n),
    "lognormal": lambda rng, n: rng.lognormal(0, 1.5, n),
    "normal": lambda rng, n: rng.normal(5, 1, n),
    "right or wrong": lambda rng, n: (rng.random(n) < 0.15).astype(float),
    "skewed to the left": lambda rng, n: 10 - rng.exponential(size=n),
}


def draw(seed: int) -> tuple[np.random.Generator, np.ndarray, np.ndarray]:
    """Embeddings in clumps, and labels that depend on them."""
    rng = np.random.default_rng(seed)
    n = ROWS[seed % len(ROWS)]
    x = rng.normal(size=(n, COLUMNS)) + 3 * rng.integers(0, 2, (n, COLUMNS))
    return rng, x, (x[:, 0] + rng.normal(size=n) > 1.5).astype(int)


def describe_errors(seed: int, **parameters: Any) -> Any:
    """Slices of a classifier whose errors are thrown in at random."""
    rng, x, y = draw(seed)
    rate = ERROR_RATES[(seed // len(ROWS)) % len(ERROR_RATES)]
    predicted = np.where(rng.random(len(y)) < rate, 1 - y, y)
    probability = np.clip(0.1 + 0.8 * predicted + rng.normal(0, 0.03, len(y)), 0, 1)
    return ss.DominoSlicer(random_state=seed, **parameters).fit(None, x, y, probability).describe()


def describe_losses(seed: int, kind: str) -> Any:
    """Slices of losses thrown in at random."""
    rng, x, _ = draw(seed)
    return ss.DominoSlicer(random_state=seed).fit(None, x, losses=LOSSES[kind](rng, len(x))).describe()


def summary(described: list[Any]) -> dict[str, float]:
    """Share of data sets with a false discovery, and how the p-values lie."""
    p = np.concatenate([found["p_value"].values for found in described])
    p = p[np.isfinite(p)]
    false = np.array([bool((found["q_value"] <= LEVEL).any()) for found in described])
    below = stats.kstest(p, "uniform", alternative="greater")  # are they below the uniform ones anywhere?
    return {
        "data_sets": len(described),
        "false_discovery": float(false.mean()),
        "false_discovery_high": float(stats.binomtest(int(false.sum()), len(false)).proportion_ci().high),
        "p_values": len(p),
        **{f"p<={level:g}": float((p <= level).mean()) for level in (0.001, 0.01, 0.05, 0.1, 0.25, 0.5)},
        "largest_excess_over_uniform": float(below.statistic),
        "mean_p": float(p.mean()),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=400, help="data sets of each kind")
    parser.add_argument("--json", type=Path, help="file to write the numbers to")
    arguments = parser.parse_args()
    results = {"errors": summary([describe_errors(seed) for seed in range(arguments.draws)])}
    for kind in LOSSES:
        results[f"losses, {kind}"] = summary([describe_losses(s, kind) for s in range(arguments.draws)])
    names = list(results["errors"])
    table = Table("", *names)
    for name, found in results.items():
        table.add_row(name, *(f"{found[column]:.4g}" for column in names))
    Console().print(table)
    if arguments.json:
        write_json(arguments.json, {"machine": machine(), **results})


if __name__ == "__main__":
    main()
