"""How fast are landmark class sums next to chunked numpy, scikit-learn's Nystroem and our Fourier sums?

    python benchmarks/landmarks.py [--json FILE]

One core, float32. One "element" is a (row, landmark) pair. The kernel is timed as a whole call, with checks,
packing and the residual feature; the others sum the kernel alone. Fourier sums are those of 1000 features.
"""

import argparse
from typing import Any

import numpy as np
from sklearn.kernel_approximation import Nystroem
from timing import interleave, machine, ratios, write_json

from scaleshift.kernels.dispatch import fourier_sums, landmark_sums

N_ROWS = 131_072  # the default chunk of a store
N_LANDMARKS = 128
N_FREQUENCIES = 500
N_CLASSES = 10
N_COLUMNS = (5, 10, 20)


def numpy_sums(
    x: np.ndarray,
    labels: np.ndarray,
    n_groups: int,
    landmarks: np.ndarray,
    bandwidth: float,
    chunk: int = 256,
) -> np.ndarray:
    """Class sums in float32 by one-hot products, with work arrays that stay in cache."""
    centre = landmarks.mean(axis=0)
    scale = np.float32(1 / bandwidth)
    points = ((landmarks - centre) / bandwidth).astype(np.float32)
    weights = np.ascontiguousarray(points.T)
    half_squares = (points * points).sum(axis=1) / 2
    offset = centre.astype(np.float32)
    kernel = np.empty((chunk, len(points)), np.float32)
    sums = np.zeros((n_groups, len(points)))
    groups = np.arange(n_groups)[:, None]
    for start in range(0, len(x), chunk):
        rows = (x[start : start + chunk] - offset) * scale
        one_hot = (groups == labels[start : start + chunk]).astype(np.float32)
        values = kernel[: len(rows)]
        np.matmul(rows, weights, out=values)
        values -= half_squares
        values -= np.einsum("ij,ij->i", rows, rows)[:, None] / 2
        np.exp(values, out=values)
        sums += one_hot @ values
    return sums


def sklearn_means(features: Nystroem, x: np.ndarray, labels: np.ndarray, n_groups: int) -> np.ndarray:
    """Class means of the features that Nystroem writes out."""
    one_hot = (np.arange(n_groups)[:, None] == labels).astype(np.float32)
    return one_hot @ features.transform(x) / one_hot.sum(axis=1, keepdims=True)


def compare(n_columns: int, rounds: int) -> dict[str, Any]:
    """Time all contenders on the same rows, and check that they agree."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N_ROWS, n_columns)).astype(np.float32)
    labels = rng.integers(0, N_CLASSES, N_ROWS).astype(np.int32)
    bandwidth = n_columns**0.5
    landmarks = rng.normal(size=(N_LANDMARKS, n_columns))
    frequencies = rng.normal(size=(N_FREQUENCIES, n_columns)) / bandwidth
    nystroem = Nystroem(gamma=0.5 / bandwidth**2, n_components=N_LANDMARKS, random_state=0).fit(x[:10_000])

    job = (x, labels, N_CLASSES, landmarks, bandwidth)
    contenders = {
        "kernel": lambda: landmark_sums(*job),
        "numpy": lambda: numpy_sums(*job),
        "Nystroem": lambda: sklearn_means(nystroem, x, labels, N_CLASSES),
        "Nystroem, chunks of 1024": lambda: [
            sklearn_means(nystroem, x[i : i + 1024], labels[i : i + 1024], N_CLASSES)
            for i in range(0, N_ROWS, 1024)
        ],
        "Fourier, D = 1000": lambda: fourier_sums(x, labels, N_CLASSES, frequencies),
    }
    truth = numpy_sums(*job)
    error = np.linalg.norm(landmark_sums(*job)[:, :-1] - truth) / np.linalg.norm(truth)
    assert error < 1e-5, f"the kernel is off by {error:.1e}"

    seconds = interleave(contenders, rounds)
    return {
        "n_columns": n_columns,
        "seconds_median": {name: float(np.median(s)) for name, s in seconds.items()},
        "rows_per_us": {name: float(N_ROWS / np.median(s) / 1e6) for name, s in seconds.items()},
        "elements_per_ns": float(N_ROWS * N_LANDMARKS / np.median(seconds["kernel"]) / 1e9),
        "time_over_kernel": ratios(seconds, "kernel"),
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
    print(f"{N_ROWS} rows, {N_LANDMARKS} landmarks, {N_CLASSES} classes, {options.rounds} rounds")
    results = [compare(d, options.rounds) for d in N_COLUMNS]
    print(f"{'columns':>7}  {'contender':26} {'rows/us':>9} {'time/kernel':>11}")
    for result in results:
        for name, speed in result["rows_per_us"].items():
            ratio = result["time_over_kernel"].get(name, 1.0)
            print(f"{result['n_columns']:7}  {name:26} {speed:9.2f} {ratio:11.2f}")
        print(f"{result['n_columns']:7}  the kernel: {result['elements_per_ns']:.2f} elements/ns")
    if options.json:
        settings = {"n_rows": N_ROWS, "n_landmarks": N_LANDMARKS, "n_classes": N_CLASSES}
        write_json(options.json, {"machine": facts, **settings, "rounds": options.rounds, "results": results})


if __name__ == "__main__":
    main()
