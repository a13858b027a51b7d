"""How fast are landmark class sums next to their limit, to what others do, and to our Fourier sums?

    python benchmarks/landmarks.py [--prototype FOLDER_OF_lk6.py] [--json FILE]

One core, float32. One "element" is a (row, landmark) pair. The kernel is timed as a whole call, with checks,
packing and the residual feature; the others sum the kernel alone. Fourier sums are those of 1000 features.
"FMA limit" is a loop of nothing but the FMAs of an element, columns + 5, in registers (`fma_limit.py`); "with
additions" has its 6 additions and its maximum as well, which some CPUs do elsewhere meanwhile, and others
instead; a shift and an addition of integers come on top of both. Of the chunks of a peer the fastest counts.
"""

import argparse
import functools
from collections.abc import Callable
from typing import Any

import fma_limit
import landmark_peers
import numpy as np
import peers
from sklearn.kernel_approximation import Nystroem
from timing import fastest, interleave, machine, print_speeds, ratios, write_json

from scaleshift.kernels.dispatch import fourier_sums, landmark_sums

N_ROWS = 131_072  # the default chunk of a store
N_LANDMARKS = 128
N_FREQUENCIES = 500
N_CLASSES = 10
N_COLUMNS = (5, 10, 20)
KERNEL, FOURIER = "kernel", "Fourier D = 1000"
LIMIT, MIXED = "FMA limit", "FMA limit, with additions"
PRODUCTS = 5  # of an element beyond those with its landmark: the polynomial of the power
ADDITIONS = 7  # the shifts' sum, three that round, a maximum (as dear), the landmark's sum, the row's total


def contenders_of(
    job: tuple[np.ndarray, np.ndarray, int, np.ndarray, float], options: argparse.Namespace
) -> tuple[dict[str, Callable[[], Any]], dict[str, str]]:
    """What is timed, and why some of it is not here."""
    x, labels, n_groups, landmarks, bandwidth = job
    builders: dict[str, Callable[[], Any]] = {
        KERNEL: lambda: landmark_sums,
        "numpy": lambda: landmark_peers.numpy_sums,
        "torch, chunks of 256": lambda: landmark_peers.torch_sums(256),
        "torch, chunks of 2048": lambda: landmark_peers.torch_sums(2048),
        "PyKeOps": lambda: landmark_peers.keops_sums(x.shape[1], options.keops_flags),
        "prototype": lambda: landmark_peers.prototype_sums(options.prototype),
    }
    found, missing = peers.gather(builders, job, landmark_peers.numpy_sums(*job), KERNEL)
    nystroem = Nystroem(gamma=0.5 / bandwidth**2, n_components=len(landmarks), random_state=0)
    means = functools.partial(landmark_peers.sklearn_means, nystroem.fit(x[:10_000]), n_groups=n_groups)
    found["Nystroem"] = lambda: means(x, labels)
    found["Nystroem, chunks of 1024"] = peers.in_chunks(means, x, labels, 1024)
    frequencies = np.random.default_rng(1).normal(size=(N_FREQUENCIES, x.shape[1])) / bandwidth
    found[FOURIER] = lambda: fourier_sums(x, labels, n_groups, frequencies)
    lanes, elements = fma_limit.best_width(), len(x) * len(landmarks)
    found[LIMIT] = fma_limit.work(x.shape[1] + PRODUCTS, 0, elements, lanes)
    found[MIXED] = fma_limit.work(x.shape[1] + PRODUCTS, ADDITIONS, elements, lanes)
    return found, missing


def compare(n_columns: int, options: argparse.Namespace) -> dict[str, Any]:
    """Time all contenders on the same rows, and check that they agree."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N_ROWS, n_columns)).astype(np.float32)
    labels = rng.integers(0, N_CLASSES, N_ROWS).astype(np.int32)
    landmarks = rng.normal(size=(N_LANDMARKS, n_columns))
    contenders, missing = contenders_of((x, labels, N_CLASSES, landmarks, n_columns**0.5), options)
    seconds = interleave(contenders, options.rounds)
    times = ratios(seconds, KERNEL)
    return {
        "n_columns": n_columns,
        "seconds_median": {name: float(np.median(s)) for name, s in seconds.items()},
        "rows_per_us": {name: float(N_ROWS / np.median(s) / 1e6) for name, s in seconds.items()},
        "elements_per_ns": float(N_ROWS * N_LANDMARKS / np.median(seconds[KERNEL]) / 1e9),
        "time_over_kernel": times,
        "peers": fastest(times, (LIMIT, MIXED, FOURIER)),
        "share_of_limit": times[LIMIT],
        "share_of_limit_with_additions": times[MIXED],
        "missing": missing,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--prototype", metavar="FOLDER", help="where lk6.py lies: compare with the prototype")
    parser.add_argument("--keops-flags", default=peers.KEOPS_FLAGS, help="with which PyKeOps is compiled")
    parser.add_argument("--json", metavar="FILE", help="write the results here")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()

    facts = machine()
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    print(f"{N_ROWS} rows, {N_LANDMARKS} landmarks, {N_CLASSES} classes, {options.rounds} rounds")
    results = [compare(d, options) for d in N_COLUMNS]
    print_speeds(results, KERNEL, "rows_per_us")
    for result in results:
        print(f"{result['n_columns']:7}  the kernel: {result['elements_per_ns']:.2f} elements/ns")
    if options.json:
        settings = {"n_rows": N_ROWS, "n_landmarks": N_LANDMARKS, "n_classes": N_CLASSES}
        settings |= {"rounds": options.rounds, "keops_flags": options.keops_flags}
        write_json(options.json, {"machine": facts, **settings, "results": results})


if __name__ == "__main__":
    main()
