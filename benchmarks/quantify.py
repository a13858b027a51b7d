"""Which method is how far from the truth, and at what cost?  Every quantifier, on made-up and real studies.

python benchmarks/quantify.py [--data FOLDER] [--coverage 40] [--methods NAME ...] [--json FILE]

Mean L1 over the source's classes and CPU seconds of all fits and predictions of a setting. FOLDER holds the
files of open_set.py, whose protocol this is: "kn" known cells only, "all" with ungated ones, one labelled
sample. The plain methods leave ungated source cells out. QuaPy's methods stand beside where it is installed
(the extra "bench"), with the same classifier.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from open_set import FILES, OTHERWISE, Sample, samples, sources
from rich.console import Console
from rich.table import Table
from synthetic import make
from timing import machine, write_json

from scaleshift.quantify import methods
from scaleshift.quantify.classifier.logistic import default_classifier

SYNTHETIC = {"none": 0.0, "background": 0.3, "far": 0.3, "near": 0.3}
REAL = ("multicentre-16", "GvHD", "Bodenmiller")
SEEDS = range(3)


class Problem(NamedTuple):
    """A labelled source, None for ungated cells, and targets by name."""

    source: Sample
    targets: dict[str, Sample]
    truths: dict[str, dict[Any, float]]  # target -> share of each class


def synthetic(noise: str, eps: float) -> Iterator[Problem]:
    """Some seeds."""
    for seed in SEEDS:
        made = make(seed, noise, eps)
        truth = dict(enumerate(made.proportions))
        yield Problem(
            Sample(made.x, made.y), {"t": Sample(made.target, np.zeros(len(made.target)))}, {"t": truth}
        )


def real(folder: Path, data: str, ungated: bool) -> Iterator[Problem]:
    """Each source sample of the protocol, with all other samples as targets."""
    study = {name: of for name, of in samples(folder / FILES[data]).items() if name not in OTHERWISE}
    if not ungated:
        known = {name: np.array([label is not None for label in of.y]) for name, of in study.items()}
        study = {name: Sample(of.x[known[name]], of.y[known[name]]) for name, of in study.items()}
    for (source,) in sources(data, study, "1"):
        targets = {name: of for name, of in study.items() if name != source}
        labels = sorted({label for label in study[source].y if label is not None})
        truths = {name: {label: np.mean(of.y == label) for label in labels} for name, of in targets.items()}
        yield Problem(study[source], targets, truths)


Answer = dict[str, dict[Any, float]]  # target -> share of each class


def ours(name: str, problem: Problem) -> Answer:
    """All targets in one pass."""
    given = {"n_bootstrap": 0, "random_state": 0}
    accepted = methods.accepted(name)
    model = methods.make(name, **{k: v for k, v in given.items() if k in accepted})
    model.fit(problem.source.x, problem.source.y)
    x = np.concatenate([of.x for of in problem.targets.values()])
    sample = np.repeat(list(problem.targets), [len(of.y) for of in problem.targets.values()])
    found = model.predict(x, sample)["proportion"].to_series().unstack("label")
    return {name: found.loc[name].to_dict() for name in problem.targets}


def peers() -> dict[str, Callable[[Problem], Answer]]:
    """QuaPy's methods of the same kinds, where it is installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from quapy.method import aggregative
    except ImportError:
        return {}
    of = {
        "QuaPy CC": aggregative.CC,
        "QuaPy ACC": aggregative.ACC,
        "QuaPy PACC": aggregative.PACC,
        "QuaPy EMQ": aggregative.EMQ,
        "QuaPy DMy": aggregative.DMy,
    }
    return {name: _peer(cls) for name, cls in of.items()}


def _peer(cls: Any) -> Callable[[Problem], Answer]:
    def answer(problem: Problem) -> Answer:
        kept = np.array([label is not None for label in problem.source.y])
        x, y = problem.source.x[kept], problem.source.y[kept]
        classes, code = np.unique(y.astype(str) if y.dtype == object else y, return_inverse=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = cls(default_classifier(x.shape[1])).fit(x, code)
            return {
                name: dict(zip(classes.tolist(), model.predict(of.x), strict=True))
                for name, of in problem.targets.items()
            }

    return answer


def measured(answer: Callable[[Problem], Answer], problems: list[Problem]) -> tuple[float, float]:
    """Mean L1 error and CPU seconds."""
    errors, start = [], time.process_time()
    for problem in problems:
        found = answer(problem)
        for name, truth in problem.truths.items():
            errors.append(sum(abs(found[name][label] - share) for label, share in truth.items()))
    return float(np.mean(errors)), time.process_time() - start


def coverage(name: str, draws: int) -> float:
    """Share of 95 % intervals that hold the proportion the cells were drawn with, under label shift."""
    held = []
    for seed in range(100, 100 + draws):
        problem = make(seed, n=4_000)
        accepted = methods.accepted(name)
        given = {k: v for k, v in {"random_state": seed}.items() if k in accepted}
        found = methods.make(name, **given).fit(problem.x, problem.y).predict(problem.target).isel(sample=0)
        low, high = found["proportion_low"].values, found["proportion_high"].values
        held.append((low <= problem.alpha) & (problem.alpha <= high))
    return float(np.mean(held))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with the three files")
    parser.add_argument("--methods", nargs="*", help="some of them")
    parser.add_argument("--coverage", type=int, default=0, help="label shifts for the intervals' coverage")
    parser.add_argument("--json", type=Path, help="file to write the numbers to")
    given = parser.parse_args()
    settings: dict[str, list[Problem]] = {
        f"{noise} {eps or ''}".strip(): list(synthetic(noise, eps)) for noise, eps in SYNTHETIC.items()
    }
    if given.data is not None:
        for data in REAL:
            for ungated in [False] if data == "Bodenmiller" else [False, True]:
                kind = "all" if ungated else "kn"
                settings[f"{data} {kind}/1"] = list(real(given.data, data, ungated))
    every = {name: (lambda problem, name=name: ours(name, problem)) for name in methods.available()} | peers()
    chosen = given.methods or list(every)
    if given.coverage:
        covered = {name: coverage(name, given.coverage) for name in chosen if name in methods.METHODS}
        Console().print("95 % intervals that hold the drawn proportion", covered)
        if given.json:
            write_json(given.json, {"machine": machine(), **covered})
        return
    table = Table("method", *settings, "CPU s")
    results: dict[str, dict[str, tuple[float, float]]] = {}
    for name in chosen:
        results[name] = {setting: measured(every[name], of) for setting, of in settings.items()}
        errors = [f"{error:.4f}" for error, _ in results[name].values()]
        table.add_row(name, *errors, f"{sum(seconds for _, seconds in results[name].values()):.0f}")
    Console(width=200).print("Mean L1 over the source's classes", table, sep="\n")
    if given.json:
        write_json(given.json, {"machine": machine(), **results})


if __name__ == "__main__":
    main()
