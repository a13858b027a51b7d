"""Is the counting error of a sparse logistic model foreseen, with and without covariate shift?

python benchmarks/error_logistic.py [--draws 20] [--bootstrap 100] [--json FILE]

The source's simulation: 200 rows, 10 or 50 standard normal features. Without shift the target is as the
source. With it, target features are N(3, 1), and the rows are subsampled so that one label is three times
as frequent as the other: labels then shift too, which the source passes over. "as they come": the same
target without subsampling, a shift of covariates alone. The source says that the ratio of signal to noise
is about 3, which here is the variance of the logit by that of the logistic distribution; weights are equal
with alternating signs, 4 of 10 and 10 of 50, so that both labels are frequent in the target too. l1 penalty
by cross-validation, relaxed generator. Numbers are signed proportional differences to the realised error:
that of the fitted model, the labels' noise integrated out. Shown, no bar.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from error_tables import by_target, estimates, mean_and_error, signed, table
from rich.console import Console
from scipy.special import expit
from threadpoolctl import threadpool_limits
from timing import machine, write_json

N, M, SNR, FOLDS, RATIO = 200, 1000, 3.0, 5, 3
PLANTED = {10: 4, 50: 10}  # weights by number of features
CASES = {"no shift": (0.0, False), "shift": (3.0, True), "shift, as they come": (3.0, False)}
METHODS = ("cv", "direct", "decomposed")


def weights(p: int) -> np.ndarray:
    """Alternating signs; the logit's variance is SNR times that of the logistic distribution."""
    found = np.zeros(p)
    found[: PLANTED[p]] = np.sqrt(SNR * np.pi**2 / 3 / PLANTED[p])
    found[1 : PLANTED[p] : 2] *= -1
    return found


def make(
    p: int, mean: float, subsampled: bool, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, labels, target rows."""
    w, n = weights(p), N * (4 if subsampled else 1)
    x = rng.standard_normal((n, p))
    y = (rng.random(n) < expit(x @ w)).astype(np.int64)
    if subsampled:
        few = N // (RATIO + 1)
        rows = np.sort(np.concatenate([np.flatnonzero(y == 0)[:few], np.flatnonzero(y == 1)[: N - few]]))
        x, y = x[rows], y[rows]
    return x, y, mean + rng.standard_normal((M, p))


def one_draw(p: int, case: str, seed: int, n_bootstrap: int) -> dict[str, float]:
    """Signed differences by method, and the realised error."""
    mean, subsampled = CASES[case]
    x, y, target = make(p, mean, subsampled, np.random.default_rng([8, seed, p]))
    model, told = estimates(
        "logistic",
        x,
        y,
        {"target": target},
        loss="counting",
        penalty="l1",
        generator="relaxed",
        method=METHODS,
        cv=FOLDS,
        n_bootstrap=n_bootstrap,
        random_state=seed,
    )
    one = expit(target @ weights(p))
    predicted = model.family_.predict(target).argmax(axis=1)
    realised = float(np.where(predicted == 1, 1 - one, one).mean())
    differences = {method: float(signed(by_target(told, method), realised)[0]) for method in METHODS}
    return {"realised": realised, **differences}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--bootstrap", type=int, default=100)
    parser.add_argument("--features", type=int, nargs="+", choices=PLANTED, default=tuple(PLANTED))
    parser.add_argument("--json", type=Path, help="file to write the numbers to")
    arguments = parser.parse_args()
    console, start = Console(stderr=True), time.perf_counter()
    results: dict[str, Any] = {}
    with threadpool_limits(1):
        for p in arguments.features:
            for case in CASES:
                draws = [one_draw(p, case, seed, arguments.bootstrap) for seed in range(arguments.draws)]
                values = np.array([list(draw.values()) for draw in draws])
                mean, error = mean_and_error(values)
                results[f"p = {p}, {case}"] = {"mean": mean.tolist(), "error": error.tolist()}
                console.print(f"p = {p}, {case}: {time.perf_counter() - start:.0f} s")
    print(table(["", "realised", *METHODS], {name: told["mean"] for name, told in results.items()}))
    print("\nStandard errors\n")
    print(table(["", "realised", *METHODS], {name: told["error"] for name, told in results.items()}))
    if arguments.json:
        facts = {"machine": machine(), "draws": arguments.draws, "n_bootstrap": arguments.bootstrap}
        facts |= {"columns": ["realised", *METHODS], "cases": results}
        write_json(arguments.json, {**facts, "elapsed_s": time.perf_counter() - start})


if __name__ == "__main__":
    main()
