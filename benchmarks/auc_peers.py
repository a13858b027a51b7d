"""How fast is a whole path of sparse rankings against one solution of abess, skglm and celer?

python benchmarks/auc_peers.py [--rows 100000] [--columns 1000] [--rounds 5] [--json FILE]

Needs the extra `bench`. 5 % positives, shifted in 40 features, unevenly, so that the best ranking of all has
the AUC .785. All begin with the same float32 rows in memory; peers are timed with their conversion to the
float64 columns that they are fastest with, and once more with these prepared beforehand. CPU seconds of the
process, one thread, interleaved rounds, medians of ratios. `SparseAUC` solves k = 1..50; abess the logistic
model with 40 features; skglm and celer an l1 penalised logistic model at a penalty that leaves about 40
(searched for beforehand, not timed). celer has no intercept: it gets centred columns. AUC is that of new
rows, exact: Phi(w'mu / (sqrt(2) |w|)), at equal k.
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
from abess import LogisticRegression as Abess
from auc_methods import markdown, population_auc
from celer import LogisticRegression as Celer
from scipy.special import ndtri
from skglm import SparseLogisticRegression as Skglm
from timing import interleave, machine, ratios, write_json

import scaleshift as ss

RATE, PLANTED, BEST = 0.05, 40, 0.785
SIZES = range(1, 51)
ALPHAS = (0.0, 1.0)
STEPS = 12  # of the search for a penalty


class Problem(NamedTuple):
    """Rows, and the shift of the positives."""

    x: np.ndarray  # (n, d) float32, by rows
    y: np.ndarray  # (n,) of 0 and 1
    shift: np.ndarray  # (d,)


def make(n: int, d: int, seed: int) -> Problem:
    """Rows in random order, shifts from half to one and a half times their mean."""
    rng = np.random.default_rng(seed)
    shift = np.zeros(d)
    shift[rng.choice(d, PLANTED, replace=False)] = np.linspace(0.5, 1.5, PLANTED)
    shift *= ndtri(BEST) * np.sqrt(2) / np.linalg.norm(shift)
    y = (rng.permutation(n) < round(RATE * n)).astype(np.int64)
    x = rng.standard_normal((n, d), np.float32) + y[:, None] * shift.astype(np.float32)
    return Problem(x, y, shift)


def wide(x: np.ndarray) -> np.ndarray:
    """Float64, by columns."""
    return np.asfortranarray(x, np.float64)


def centred(x: np.ndarray) -> np.ndarray:
    """The same about the mean of each column."""
    found = wide(x)
    found -= found.mean(axis=0)
    return found


def path(problem: Problem, alpha: float) -> np.ndarray:
    """Weights of all sizes, (n_sizes, d)."""
    model = ss.SparseAUC(SIZES, alpha=alpha, cv=None, random_state=0).fit(problem.x, problem.y)
    return np.stack([one.path for one in model.learned_])[0]


def abess(x: np.ndarray, y: np.ndarray, k: int) -> np.ndarray:
    """Weights of the one size."""
    return np.ravel(Abess(support_size=[k], thread=1).fit(x, y).coef_)


def skglm(x: np.ndarray, y: np.ndarray, penalty: float) -> np.ndarray:
    """Weights with an l1 penalty."""
    return np.ravel(Skglm(alpha=penalty).fit(x, y).coef_)


def celer(x: np.ndarray, y: np.ndarray, penalty: float) -> np.ndarray:
    """The same, without an intercept."""
    return np.ravel(Celer(C=1 / (penalty * len(y))).fit(x, y).coef_)


class Peer(NamedTuple):
    """How it is run."""

    prepare: Callable[[np.ndarray], np.ndarray]
    solve: Callable[[np.ndarray, np.ndarray, Any], np.ndarray]
    bar: float  # times as long as the whole path, at least


PEERS = {"abess": Peer(wide, abess, 3.0), "skglm": Peer(wide, skglm, 1.5), "celer": Peer(centred, celer, 1.5)}


def penalty_of(peer: Peer, x: np.ndarray, y: np.ndarray) -> float:
    """The penalty that leaves about 40 features, by bisection."""
    most = float(np.abs(x.T @ (y - y.mean())).max()) / len(y)
    low, high = 0.02, 1.0
    for _ in range(STEPS):
        share = float(np.sqrt(low * high))
        n = np.count_nonzero(peer.solve(x, y, share * most))
        if abs(n - PLANTED) <= 1:
            break
        low, high = (low, share) if n < PLANTED else (share, high)
    return share * most


def measure(problem: Problem, rounds: int) -> dict[str, Any]:
    """Seconds, ratios and AUCs."""
    x, y = problem.x, problem.y
    found: dict[str, np.ndarray] = {}
    runs: dict[str, Callable[[], np.ndarray]] = {
        f"path, alpha {alpha:g}": functools.partial(path, problem, alpha) for alpha in ALPHAS
    }
    for name, peer in PEERS.items():
        prepared = peer.prepare(x)
        setting = PLANTED if name == "abess" else penalty_of(peer, prepared, y)
        runs[name] = functools.partial(lambda p, s: p.solve(p.prepare(x), y, s), peer, setting)
        runs[f"{name}, prepared"] = functools.partial(peer.solve, prepared, y, setting)

    def keeping(name: str) -> Callable[[], None]:
        return lambda: found.update({name: runs[name]()})

    seconds = interleave({name: keeping(name) for name in runs}, rounds, time.process_time)
    told: dict[str, Any] = {
        "seconds": {name: float(np.median(s)) for name, s in seconds.items()},
        "peers": {},
    }
    paths = [name for name in runs if name.startswith("path")]
    times = {name: ratios(seconds, name) for name in paths}
    for name in runs:
        if name not in paths:
            k = int(np.count_nonzero(found[name]))
            own = {p: float(population_auc(found[p][min(k, len(SIZES)) - 1], problem.shift)) for p in paths}
            told["peers"][name] = {
                "bar": PEERS[name.split(",")[0]].bar,
                "k": k,
                "auc": float(population_auc(found[name], problem.shift)),
                "times": {p: times[p][name] for p in paths},
                "own_auc": own,
            }
    return told


def table_of(told: dict[str, Any]) -> str:
    """One row a peer, in Markdown."""
    names = [f"path, alpha {alpha:g}" for alpha in ALPHAS]
    head = [
        "peer",
        "CPU s",
        "k",
        "AUC",
        *(f"{n}: {what}" for n in names for what in ("times as fast", "AUC")),
    ]
    rows = []
    for name, peer in told["peers"].items():
        row = [name, f"{told['seconds'][name]:.2f}", str(peer["k"]), f"{peer['auc']:.4f}"]
        for n in names:
            slow, worse = peer["times"][n] < peer["bar"], peer["own_auc"][n] < peer["auc"]
            row.append(f"{peer['times'][n]:.1f}" + (f" (bar {peer['bar']:g} missed)" if slow else ""))
            row.append(f"{peer['own_auc'][n]:.4f}" + (" (worse)" if worse else ""))
        rows.append(row)
    own = ", ".join(f"{n}: {told['seconds'][n]:.2f} s" for n in names)
    return f"SparseAUC, k = 1..{SIZES[-1]}, {own}\n\n" + markdown(head, rows)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="file to write the numbers to")
    arguments = parser.parse_args()
    with dask.config.set(num_workers=1):
        told = measure(make(arguments.rows, arguments.columns, arguments.seed), arguments.rounds)
    print(table_of(told))
    if arguments.json:
        facts = {"machine": machine(), "rows": arguments.rows, "columns": arguments.columns}
        write_json(arguments.json, {**facts, "rounds": arguments.rounds, **told})


if __name__ == "__main__":
    main()
