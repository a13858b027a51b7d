"""What do B refits cost from sums and shared passes, against scikit-learn's one by one on the rows?

python benchmarks/error_cost.py [--models ols lasso logistic] [--rows-by 1] [--refits 20] [--rounds 3]
    [--json FILE]

CPU seconds of the process, one thread, interleaved rounds, medians of ratios. 50 features, 10,000 target
rows. Ours is the whole of it: checks, the fit, the errors in sample and on the target of 200 replicates
(logistic: 100). Theirs is 20 refits, extrapolated to as many: each draws outcomes, fits, and predicts the
target; not the first fit, and nothing in sample. Penalties are given. Least squares need no replicates
here: the closed form is what they tend to, and takes their place; the lasso's are all fitted.
scikit-learn's lasso is timed with and without `precompute`, and the faster one counts. Beside: how far the
errors that both tell are apart.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import dask
import numpy as np
from error_tables import by_target, estimates, markdown
from rich.console import Console
from scipy.special import expit
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression
from timing import interleave, machine, write_json

P, M, SPREAD = 50, 10_000, 2.0  # of the target's features


class Model(NamedTuple):
    """What is compared."""

    rows: int
    n_bootstrap: int
    alpha: float | None
    bar: float  # times as fast, at least
    parameters: dict[str, Any]
    peers: dict[str, Callable[[int], Any]]  # scikit-learn's, of so many rows


LASSO, LOGISTIC = 0.05, 1e-3
MODELS = {
    "ols": Model(1_000_000, 200, None, 50, {}, {"LinearRegression": lambda n: LinearRegression()}),
    "lasso": Model(
        200_000,
        200,
        LASSO,
        50,
        {},
        {
            "Lasso": lambda n: Lasso(LASSO),
            "Lasso, precompute": lambda n: Lasso(LASSO, precompute=True),
        },
    ),
    "logistic": Model(
        100_000,
        100,
        LOGISTIC,
        4,
        {"loss": "counting"},
        {"LogisticRegression": lambda n: LogisticRegression(C=1 / (LOGISTIC * n))},
    ),
}


class Problem(NamedTuple):
    """Rows, outcomes, target rows."""

    x: np.ndarray  # (n, P)
    y: np.ndarray  # (n,)
    target: np.ndarray  # (M, P)


def make(name: str, n: int) -> Problem:
    """Ten weights are not 0."""
    rng = np.random.default_rng(8)
    x = rng.standard_normal((n, P))
    mean = x[:, :10].sum(axis=1) / np.sqrt(10)
    noisy = rng.random(n) < expit(2 * mean) if name == "logistic" else mean + rng.standard_normal(n)
    return Problem(x, noisy.astype(np.int64 if name == "logistic" else np.float64), draw_target(rng))


def draw_target(rng: np.random.Generator) -> np.ndarray:
    """Rows wider than the source's."""
    return SPREAD * rng.standard_normal((M, P))


def ours(name: str, problem: Problem) -> float:
    """Direct error of the target."""
    model = MODELS[name]
    _, told = estimates(
        name,
        problem.x,
        problem.y,
        {"target": problem.target},
        alpha=model.alpha,
        generator="plugin",
        cv=None,
        n_bootstrap=model.n_bootstrap,
        random_state=0,
        **model.parameters,
    )
    return float(by_target(told, "direct")[0])


def theirs(estimator: Any, generator: Any, problem: Problem, refits: int) -> float:
    """The same of so many refits: outcomes are drawn from the generator, the model itself."""
    x, target = problem.x, problem.target
    rng, errors = np.random.default_rng(0), []
    if isinstance(generator, LogisticRegression):
        one, one_target = generator.predict_proba(x)[:, 1], generator.predict_proba(target)[:, 1]
        for _ in range(refits):
            estimator.fit(x, (rng.random(len(x)) < one).astype(np.int64))
            errors.append(np.where(estimator.predict(target) == 1, 1 - one_target, one_target).mean())
        return float(np.mean(errors))
    mean, mean_target = generator.predict(x), generator.predict(target)
    weights = np.count_nonzero(generator.coef_)
    variance = ((problem.y - mean) ** 2).sum() / (len(x) - weights - 1)
    for _ in range(refits):
        estimator.fit(x, mean + np.sqrt(variance) * rng.standard_normal(len(x)))
        errors.append(variance + ((mean_target - estimator.predict(target)) ** 2).mean())
    return float(np.mean(errors))


def measure(name: str, n: int, refits: int, rounds: int) -> dict[str, Any]:
    """Seconds of all replicates, ratios, and how far the errors are apart."""
    model, problem = MODELS[name], make(name, n)
    found: dict[str, float] = {}
    runs: dict[str, Callable[[], float]] = {"scaleshift": functools.partial(ours, name, problem)}
    for peer, built in model.peers.items():
        generator = built(n).fit(problem.x, problem.y)
        runs[peer] = functools.partial(theirs, built(n), generator, problem, refits)

    def keeping(contender: str) -> Callable[[], None]:
        return lambda: found.update({contender: runs[contender]()})

    seconds = interleave({contender: keeping(contender) for contender in runs}, rounds, time.process_time)
    own = seconds.pop("scaleshift")
    whole = {peer: s * model.n_bootstrap / refits for peer, s in seconds.items()}
    times = {peer: float(np.median(s / own)) for peer, s in whole.items()}
    return {
        "rows": n,
        "n_bootstrap": model.n_bootstrap,
        "seconds": float(np.median(own)),
        "peer_seconds": {peer: float(np.median(s)) for peer, s in whole.items()},
        "times": times,
        "error": found.pop("scaleshift"),
        "peer_error": found,
        "bar": model.bar,
        "kept": min(times.values()) >= model.bar,
    }


def table_of(told: dict[str, Any]) -> str:
    """One row a peer, in Markdown."""
    rows = []
    for name, one in told.items():
        for peer, times in one["times"].items():
            bar = f"{one['bar']:g}: {'kept' if times >= one['bar'] else 'missed'}"
            apart = one["peer_error"][peer] / one["error"] - 1
            rows.append(
                [
                    name,
                    f"{one['rows']:,}",
                    str(one["n_bootstrap"]),
                    f"{one['seconds']:.3f}",
                    peer,
                    f"{one['peer_seconds'][peer]:.1f}",
                    f"{times:.1f}",
                    bar,
                    f"{apart:+.1e}",
                ]
            )
    head = ["model", "rows", "B", "CPU s", "peer", "CPU s, extrapolated", "times as fast", "bar"]
    return markdown([*head, "errors apart"], rows)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--rows-by", type=int, default=1, help="divide the numbers of rows by this")
    parser.add_argument("--refits", type=int, default=20, help="of scikit-learn, timed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="file to write the numbers to")
    arguments = parser.parse_args()
    console, told = Console(stderr=True), {}
    with dask.config.set(num_workers=1):
        for name in arguments.models:
            n = MODELS[name].rows // arguments.rows_by
            told[name] = measure(name, n, arguments.refits, arguments.rounds)
            console.print(f"{name} done")
    print(table_of(told))
    if arguments.json:
        facts = {"machine": machine(), "columns": P, "refits": arguments.refits, "rounds": arguments.rounds}
        write_json(arguments.json, {**facts, "models": told})


if __name__ == "__main__":
    main()
