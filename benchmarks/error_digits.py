"""Is the error of a network foreseen on corrupted images, where labels still depend on them as before?

python benchmarks/error_digits.py [--draws 3] [--bootstrap 30] [--corruptions ...] [--json FILE]

The source's adapted protocol, on scikit-learn's digits (8 x 8 pixels): of 1,797 images 700 teach network 1.
The labels of 700 others and of the 397 left are draws from its probabilities, those of each corrupted
version too, so that covariates shift and nothing else. Network 2 learns the 700; its error on each
corrupted version is predicted, and compared with how often it misses the drawn labels. Both networks: 32
hidden units, weight decay .1, which keeps probabilities near the frequencies. Mean absolute errors over the
corruptions, the plain images left out.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from error_tables import by_target, estimates, mean_and_error, table
from rich.console import Console
from scipy import ndimage
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits
from timing import machine, write_json

TEACHING, TRAINING, SIDE = 700, 700, 8
METHODS = (
    "direct",
    "decomposed",
    "average_confidence",
    "average_thresholded_confidence",
    "difference_of_confidence",
    "cv",
)
EXPECTED = {"direct": 0.036, "decomposed": 0.034, "average_confidence": 0.078}
EXPECTED |= {"average_thresholded_confidence": 0.077, "difference_of_confidence": 0.084}
BAR = 0.05  # mean absolute error of "direct", which must be below that of average confidence too
PLAIN = "plain"
Corruption = Callable[[np.ndarray, np.random.Generator], np.ndarray]  # of images (n, 8, 8) in [0, 1]


def noise(spread: float) -> Corruption:
    """Gaussian."""
    return lambda x, rng: x + spread * rng.standard_normal(x.shape)


def salt(share: float) -> Corruption:
    """Pixels that are black or white."""
    return lambda x, rng: np.where(rng.random(x.shape) < share, rng.integers(0, 2, x.shape), x)


def blur(spread: float) -> Corruption:
    """Gaussian, spread in pixels."""
    return lambda x, rng: ndimage.gaussian_filter(x, (0, spread, spread))


def contrast(factor: float) -> Corruption:
    """About middle grey."""
    return lambda x, rng: 0.5 + factor * (x - 0.5)


def brightness(more: float) -> Corruption:
    """Brighter, clipped."""
    return lambda x, rng: x + more


def shift(down: float, right: float) -> Corruption:
    """In pixels."""
    return lambda x, rng: ndimage.shift(x, (0, down, right), order=1)


def rotation(degrees: float) -> Corruption:
    """About the middle."""
    return lambda x, rng: ndimage.rotate(x, degrees, (2, 1), reshape=False, order=1)


def occlusion(side: int) -> Corruption:
    """A black square anywhere."""

    def square(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        top, left = rng.integers(0, SIDE + 1 - side, (2, len(x), 1))
        inside = np.arange(SIDE)
        rows = (top <= inside) & (inside < top + side)
        columns = (left <= inside) & (inside < left + side)
        return np.where(rows[:, :, None] & columns[:, None, :], 0.0, x)

    return square


CORRUPTIONS = {
    "noise .15": noise(0.15),
    "noise .3": noise(0.3),
    "salt and pepper .1": salt(0.1),
    "salt and pepper .2": salt(0.2),
    "blur .7": blur(0.7),
    "blur 1.2": blur(1.2),
    "contrast .5": contrast(0.5),
    "contrast .25": contrast(0.25),
    "brightness .2": brightness(0.2),
    "brightness .4": brightness(0.4),
    "shift 1 right": shift(0, 1),
    "shift 1 both": shift(1, 1),
    "rotation 15": rotation(15),
    "rotation 30": rotation(30),
    "occlusion 3": occlusion(3),
    "occlusion 4": occlusion(4),
}


def network(seed: int) -> MLPClassifier:
    """One that is fast to refit."""
    return MLPClassifier((32,), alpha=0.1, learning_rate_init=0.01, max_iter=60, random_state=seed)


def drawn(proba: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A label for each row of probabilities, (n,)."""
    codes: np.ndarray = (rng.random((len(proba), 1)) >= proba.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return codes


def one_draw(seed: int, corruptions: list[str], n_bootstrap: int, generator: str) -> dict[str, list[float]]:
    """The realised error and what methods say, by target."""
    rng = np.random.default_rng([8, seed])
    x, digit = load_digits(return_X_y=True)
    order, x = rng.permutation(len(x)), x / 16
    teaching, training, left = np.split(order, [TEACHING, TEACHING + TRAINING])
    teacher = network(seed).fit(x[teaching], digit[teaching])
    source = x[training]
    labels = drawn(teacher.predict_proba(source), rng)
    images = x[left].reshape(-1, SIDE, SIDE)
    targets = {PLAIN: x[left]}
    for name in corruptions:
        targets[name] = np.clip(CORRUPTIONS[name](images, rng), 0, 1).reshape(len(left), -1)
    student, told = estimates(
        network(seed + 1000),
        source,
        labels,
        targets,
        loss="counting",
        method=METHODS,
        generator=generator,
        n_bootstrap=n_bootstrap,
        random_state=seed,
    )
    realised = [
        float(np.mean(student.family_.predict(t).argmax(axis=1) != drawn(teacher.predict_proba(t), rng)))
        for t in targets.values()
    ]
    by_method = np.column_stack([realised, *(by_target(told, method) for method in METHODS)])
    return dict(zip(targets, by_method.tolist(), strict=True))


def summary(draws: list[dict[str, list[float]]]) -> dict[str, Any]:
    """Means by target, and mean absolute errors over the corruptions."""
    values = np.array([list(draw.values()) for draw in draws])  # (draws, targets, realised and methods)
    away = np.abs(values[:, 1:, 1:] - values[:, 1:, :1]).mean(axis=1)  # (draws, methods)
    mean, error = mean_and_error(away)
    return {
        "targets": dict(zip(draws[0], values.mean(axis=0).tolist(), strict=True)),
        "mae": dict(zip(METHODS, mean.tolist(), strict=True)),
        "mae_error": dict(zip(METHODS, error.tolist(), strict=True)),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--bootstrap", type=int, default=30)
    parser.add_argument("--corruptions", nargs="+", choices=CORRUPTIONS, default=list(CORRUPTIONS))
    parser.add_argument("--generator", nargs="+", choices=("auto", "plugin"), default=("auto", "plugin"))
    parser.add_argument("--json", type=Path, help="file to write the numbers to")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", category=ConvergenceWarning)  # 60 epochs are what is wanted
    console, start = Console(stderr=True), time.perf_counter()
    results = {}
    with threadpool_limits(1):
        for generator in arguments.generator:
            draws = []
            for seed in range(arguments.draws):
                draws.append(one_draw(seed, arguments.corruptions, arguments.bootstrap, generator))
                console.print(f"{generator}, draw {seed}: {time.perf_counter() - start:.0f} s")
            told = results[generator] = summary(draws)
            away = {"mean absolute error": [np.nan, *told["mae"].values()]}
            away["standard error"] = [np.nan, *told["mae_error"].values()]
            away["source"] = [np.nan, *(EXPECTED.get(method, np.nan) for method in METHODS)]
            print(table([generator, "realised", *METHODS], told["targets"] | away) + "\n")
            direct, confidence = told["mae"]["direct"], told["mae"]["average_confidence"]
            told["kept"] = direct < min(BAR, confidence)
            kept = "kept" if told["kept"] else "missed"
            print(
                f"direct below {BAR} and below average confidence: {direct:.3f}, {confidence:.3f}: {kept}\n"
            )
    if arguments.json:
        facts = {"machine": machine(), "draws": arguments.draws, "n_bootstrap": arguments.bootstrap}
        facts |= {"columns": ["realised", *METHODS], "expected": EXPECTED, "bar": BAR}
        write_json(arguments.json, {**facts, "generators": results, "elapsed_s": time.perf_counter() - start})


if __name__ == "__main__":
    main()
