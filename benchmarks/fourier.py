"""How fast are Fourier class sums next to chunked numpy and scikit-learn's RBFSampler, on one core?

    python benchmarks/fourier.py [--prototype DIRECTORY_OF_gk.py] [--json FILE]

One "element" is one (row, frequency) pair that gives a cosine and a sine. The kernel is timed as a whole
call: checks, centring, packing and rotation included.
"""

import argparse
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.kernel_approximation import RBFSampler
from timing import interleave, machine, ratios, write_json

from scaleshift.kernels.dispatch import fourier_sums

N_ROWS = 131_072  # the default chunk of a store
N_FREQUENCIES = 500  # D = 1000 features
N_CLASSES = 10
N_COLUMNS = (5, 20)


def numpy_sums(
    x: np.ndarray, labels: np.ndarray, n_groups: int, frequencies: np.ndarray, chunk: int = 256
) -> np.ndarray:
    """Class sums in float32 by one-hot products, with work arrays that stay in cache.

    The fastest of four honest variants: cos and sin in one array .92 of its speed, rows sorted by class and
    `add.reduceat` .75, chunks transposed .72.
    """
    weights = np.ascontiguousarray(frequencies.T, dtype=np.float32)
    width = weights.shape[1]
    angle, cos = np.empty((2, chunk, width), np.float32)
    sums = np.zeros((n_groups, 2 * width))
    groups = np.arange(n_groups)[:, None]
    for start in range(0, len(x), chunk):
        rows = x[start : start + chunk]
        one_hot = (groups == labels[start : start + chunk]).astype(np.float32)
        np.matmul(rows, weights, out=angle[: len(rows)])
        np.cos(angle, out=cos)
        sums[:, :width] += one_hot @ cos[: len(rows)]
        np.sin(angle, out=angle)
        sums[:, width:] += one_hot @ angle[: len(rows)]
    return sums


def sklearn_means(sampler: RBFSampler, x: np.ndarray, labels: np.ndarray, n_groups: int) -> np.ndarray:
    """Class means of the features that RBFSampler writes out."""
    one_hot = (np.arange(n_groups)[:, None] == labels).astype(np.float32)
    return one_hot @ sampler.transform(x) / one_hot.sum(axis=1, keepdims=True)


def prototype_sums(directory: str) -> Callable[..., np.ndarray]:
    """Return the prototype's kernel as a function, with aligned frequencies and its own flush interval."""
    sys.path.insert(0, directory)
    from align import az
    from gk import make, padWt

    kernel = make(P=4, KB=5, NA=5)

    def run(x: np.ndarray, labels: np.ndarray, n_groups: int, frequencies: np.ndarray) -> np.ndarray:
        padded = padWt(frequencies)
        turns = az(padded.size).reshape(padded.shape)
        turns[:] = padded
        sums = np.zeros((n_groups, 2, padded.shape[1]))
        kernel(x, labels, turns, sums, np.zeros(n_groups, np.int64), max(8192, 32 * n_groups))
        return sums[:, :, : len(frequencies)].reshape(n_groups, -1)

    return run


def compare(n_columns: int, rounds: int, prototype: Callable[..., np.ndarray] | None) -> dict[str, Any]:
    """Time all contenders on the same rows, and check that they agree."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N_ROWS, n_columns)).astype(np.float32)
    labels = rng.integers(0, N_CLASSES, N_ROWS).astype(np.int32)
    bandwidth = n_columns**0.5
    frequencies = rng.normal(size=(N_FREQUENCIES, n_columns)) / bandwidth
    sampler = RBFSampler(gamma=0.5 / bandwidth**2, n_components=2 * N_FREQUENCIES, random_state=0).fit(x)

    job = (x, labels, N_CLASSES, frequencies)
    contenders: dict[str, Callable[[], Any]] = {
        "kernel": lambda: fourier_sums(*job),
        "numpy": lambda: numpy_sums(*job),
        "RBFSampler": lambda: sklearn_means(sampler, x, labels, N_CLASSES),
        "RBFSampler, chunks of 1024": lambda: [
            sklearn_means(sampler, x[i : i + 1024], labels[i : i + 1024], N_CLASSES)
            for i in range(0, N_ROWS, 1024)
        ],
    }
    if prototype is not None:
        contenders["prototype"] = lambda: prototype(*job)
    truth = numpy_sums(*job)
    for name in contenders.keys() & {"kernel", "prototype"}:
        error = np.linalg.norm(contenders[name]() - truth) / np.linalg.norm(truth)
        assert error < 1e-5, f"{name} is off by {error:.1e}"

    seconds = interleave(contenders, rounds)
    return {
        "n_columns": n_columns,
        "seconds_median": {name: float(np.median(s)) for name, s in seconds.items()},
        "elements_per_ns": {
            name: float(N_ROWS * N_FREQUENCIES / np.median(s) / 1e9) for name, s in seconds.items()
        },
        "time_over_kernel": ratios(seconds, "kernel"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--prototype", metavar="DIRECTORY", help="where gk.py lies: compare with the prototype"
    )
    parser.add_argument("--json", metavar="FILE", help="write the results here")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()

    facts = machine()
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    print(
        f"{N_ROWS} rows, {N_FREQUENCIES} frequencies, {N_CLASSES} classes, float32, {options.rounds} rounds"
    )
    prototype = prototype_sums(options.prototype) if options.prototype else None
    results = [compare(d, options.rounds, prototype) for d in N_COLUMNS]
    print(f"{'columns':>7}  {'contender':26} {'elements/ns':>11} {'time/kernel':>11}")
    for result in results:
        for name, speed in result["elements_per_ns"].items():
            ratio = result["time_over_kernel"].get(name, 1.0)
            print(f"{result['n_columns']:7}  {name:26} {speed:11.3f} {ratio:11.2f}")
    if options.json:
        settings = {"n_rows": N_ROWS, "n_frequencies": N_FREQUENCIES, "n_classes": N_CLASSES}
        write_json(options.json, {"machine": facts, **settings, "rounds": options.rounds, "results": results})


if __name__ == "__main__":
    main()
