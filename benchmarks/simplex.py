"""How fast are batches of simplex programs next to quadprog and scipy's nnls, called in a loop, on one core?

    python benchmarks/simplex.py [--json FILE]

The problems are replicates: one problem whose embeddings get a little noise, and a gram of its own for each.
nnls takes the gram's Cholesky factor and one heavy row for the total, so its total is one only roughly.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import quadprog
from scipy.linalg import solve_triangular
from scipy.optimize import nnls
from timing import interleave, machine, ratios, write_json

from scaleshift.solve.simplex import simplex_least_squares

N_PROBLEMS = {2: 2000, 5: 2000, 10: 1000, 30: 200, 100: 20}  # by the number of classes
TOTAL_WEIGHT = 1e4


def replicates(n_classes: int, n: int, n_features: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Grams and products of `n` noisy copies of a mixture of all classes and something unknown."""
    rng = np.random.default_rng(0)
    centres = 0.3 * rng.normal(size=n_features) + rng.normal(size=(n_classes, n_features))
    goal = 0.8 * rng.dirichlet(np.ones(n_classes)) @ centres + 0.1 * rng.normal(size=n_features)
    embeddings = centres + 0.05 * rng.normal(size=(n, *centres.shape))
    goals = goal + 0.05 * rng.normal(size=(n, n_features))
    return embeddings @ embeddings.transpose(0, 2, 1), np.einsum("ncd,nd->nc", embeddings, goals)


def by_quadprog(gram: np.ndarray, product: np.ndarray, soft: bool) -> np.ndarray:
    c = len(product)
    total = -np.ones((c, 1)) if soft else np.ones((c, 1))
    bound = np.append(total[0, 0], np.zeros(c))
    return quadprog.solve_qp(gram, product, np.hstack([total, np.eye(c)]), bound, 0 if soft else 1)[0]


def by_nnls(gram: np.ndarray, product: np.ndarray) -> np.ndarray:
    root = np.linalg.cholesky(gram)
    right = solve_triangular(root, product, lower=True, check_finite=False)
    weight = TOTAL_WEIGHT * np.sqrt(np.trace(gram) / len(gram))
    return nnls(np.vstack([root.T, np.full(len(gram), weight)]), np.append(right, weight))[0]


def compare(n_classes: int, soft: bool, rounds: int) -> dict[str, Any]:
    """Time all contenders on the same problems, and check that they agree."""
    n = N_PROBLEMS[n_classes]
    grams, products = replicates(n_classes, n)
    problems = list(zip(grams, products, strict=True))
    contenders: dict[str, Callable[[], Any]] = {
        "batch": lambda: simplex_least_squares(grams, products, soft=soft),
        "quadprog": lambda: np.array([by_quadprog(g, q, soft) for g, q in problems]),
    }
    if not soft:
        contenders["nnls"] = lambda: np.array([by_nnls(g, q) for g, q in problems])
    truth = contenders["batch"]()
    for name, tolerance in {"quadprog": 1e-10, "nnls": 1e-5}.items():
        error = np.abs(contenders[name]() - truth).max() if name in contenders else 0.0
        assert error < tolerance, f"{name} is off by {error:.1e}"

    seconds = interleave(contenders, rounds)
    return {
        "n_classes": n_classes,
        "soft": soft,
        "mean_support": float((truth > 0).sum(axis=1).mean()),
        "microseconds_per_problem": {k: float(np.median(s) / n * 1e6) for k, s in seconds.items()},
        "time_over_batch": ratios(seconds, "batch"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", metavar="FILE", help="write the results here")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()

    facts = machine()
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    start = time.thread_time()
    simplex_least_squares([[1.0]], [1.0])
    first_call = time.thread_time() - start
    print(f"first call, with compilation: {first_call:.2f} s of CPU; {options.rounds} rounds")
    results = [compare(c, soft, options.rounds) for c in N_PROBLEMS for soft in (False, True)]
    print(f"{'classes':>7} {'':4}  {'contender':9} {'us/problem':>10} {'time/batch':>10}")
    for result in results:
        for name, speed in result["microseconds_per_problem"].items():
            kind = "soft" if result["soft"] else "hard"
            ratio = result["time_over_batch"].get(name, 1.0)
            print(f"{result['n_classes']:7} {kind}  {name:9} {speed:10.2f} {ratio:10.2f}")
    if options.json:
        content = {"machine": facts, "first_call_seconds": first_call, "rounds": options.rounds}
        write_json(options.json, {**content, "results": results})


if __name__ == "__main__":
    main()
