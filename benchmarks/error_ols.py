"""Does the exact interval of least squares hold the error of the target as often as it says?

python benchmarks/error_ols.py [--draws 2000] [--json FILE]

80 rows, 15 standard normal features, noise of variance 1.8; one target of 100 rows for each spread, 1, 2
and 4. Rows are drawn once, outcomes in every draw. What is estimated is then a number, sigma^2 (1 + tau).
The source has 2.233, 3.365 and 8.144 for its rows, which it does not tell. The interval's expected coverage
is its level.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from error_tables import by_target, estimates, table
from rich.console import Console
from threadpoolctl import threadpool_limits
from timing import machine, write_json

N, P, M, VARIANCE, LEVEL = 80, 15, 100, 1.8, 0.95
SCALES = (1.0, 2.0, 4.0)
BAR = (0.93, 0.97)
METHODS = ("direct", "decomposed", "closed_form")


def with_intercept(x: np.ndarray) -> np.ndarray:
    """Rows (1, x)."""
    return np.column_stack([np.ones(len(x)), x])


def expected_error(x: np.ndarray, target: np.ndarray) -> float:
    """Of least squares on the target's rows, over outcomes of both."""
    z, zt = with_intercept(x), with_intercept(target)
    tau = np.trace(np.linalg.solve(z.T @ z, zt.T @ zt)) / len(zt)
    return VARIANCE * (1 + float(tau))


def measure(draws: int, console: Console) -> dict[str, Any]:
    """Mean estimates, coverage and how far the two estimators are apart, by scale."""
    rng = np.random.default_rng(8)
    x = rng.standard_normal((N, P))
    targets = {f"{scale:g}": scale * rng.standard_normal((M, P)) for scale in SCALES}
    truth = np.array([expected_error(x, target) for target in targets.values()])
    mean = x @ np.ones(P)
    errors, inside, apart = [], [], 0.0
    for draw in range(draws):
        y = mean + np.sqrt(VARIANCE) * rng.standard_normal(N)
        _, told = estimates("ols", x, y, targets, method=METHODS, cv=None, level=LEVEL, random_state=0)
        errors.append(by_target(told, "direct"))
        low, high = (by_target(told, "direct", name) for name in ("error_low", "error_high"))
        inside.append((low <= truth) & (truth <= high))
        one = told["error"].values
        apart = max(apart, float(np.abs(one / errors[-1][:, None] - 1).max()))
        if (draw + 1) % 500 == 0:
            console.print(f"{draw + 1} of {draws}")
    return {
        "true": truth.tolist(),
        "estimate": np.mean(errors, axis=0).tolist(),
        "coverage": np.mean(inside, axis=0).tolist(),
        "methods_apart": apart,  # relative
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--json", type=Path, help="file to write the numbers to")
    arguments = parser.parse_args()
    start = time.perf_counter()
    with threadpool_limits(1):
        told = measure(arguments.draws, Console(stderr=True))
    names = ("true", "estimate", "coverage")
    print(table(["scale", *(f"{scale:g}" for scale in SCALES)], {name: told[name] for name in names}))
    kept = all(BAR[0] <= share <= BAR[1] for share in told["coverage"])
    print(f"coverage from {BAR[0]} to {BAR[1]}: {'kept' if kept else 'missed'}")
    print(f"{', '.join(METHODS)} differ by {told['methods_apart']:.1e}")
    if arguments.json:
        facts = {"machine": machine(), "draws": arguments.draws, "scales": SCALES, "bar": BAR, "kept": kept}
        write_json(arguments.json, {**facts, **told, "elapsed_s": time.perf_counter() - start})


if __name__ == "__main__":
    main()
