"""How fast are Fourier class sums next to their limit, and to what others do, on one core?

    python benchmarks/fourier.py [--prototype FOLDER_OF_gk.py] [--only NAME ...] [--json FILE]

One "element" is one (row, frequency) pair that gives a cosine and a sine. The kernel is timed as a whole
call: checks, centring, packing and rotation included. "FMA limit" is a loop of nothing but the products of
an element, columns + 12, in registers (`fma_limit.py`); "with additions" has what rounds its angle as well,
three additions or one instruction of AVX-512, which some CPUs do elsewhere meanwhile, and others instead.
numpy, torch and scikit-learn work in chunks; of the chunks of a peer the fastest counts. The prototype is
looked for in SCALESHIFT_SHARED too.
"""

import argparse
import functools
from collections.abc import Callable
from typing import Any

import fma_limit
import fourier_peers
import numpy as np
import peers
from sklearn.kernel_approximation import RBFSampler
from timing import fastest, interleave, machine, print_speeds, ratios, write_json

from scaleshift.kernels.cpu import lanes
from scaleshift.kernels.dispatch import fourier_sums

N_ROWS = 131_072  # the default chunk of a store
N_FREQUENCIES = 500  # D = 1000 features
N_CLASSES = 10
N_COLUMNS = (5, 20)
KERNEL, LIMIT, MIXED = "kernel", "FMA limit", "FMA limit, with additions"
PRODUCTS, ADDITIONS = 12, 1 if lanes._HAS_DQ else 3  # of an element beyond those of its angle


def contenders_of(
    job: tuple[np.ndarray, np.ndarray, int, np.ndarray], bandwidth: float, options: argparse.Namespace
) -> tuple[dict[str, Callable[[], Any]], dict[str, str]]:
    """What is timed, and why some of it is not here. Names of sums begin with their library's."""
    x, labels, n_groups, frequencies = job
    builders: dict[str, Callable[[], Any]] = {
        KERNEL: lambda: fourier_sums,
        "numpy": lambda: fourier_peers.numpy_sums,
        "torch, chunks of 256": lambda: fourier_peers.torch_sums(256),
        "torch, chunks of 2048": lambda: fourier_peers.torch_sums(2048),
        "PyKeOps": lambda: fourier_peers.keops_sums(x.shape[1], options.keops_flags),
        "numba with np.cos": lambda: fourier_peers.numba_sums,
        "prototype": lambda: fourier_peers.prototype_sums(options.prototype),
    }
    chosen = {
        name: build for name, build in builders.items() if not options.only or name in (KERNEL, *options.only)
    }
    found, missing = peers.gather(chosen, job, fourier_peers.numpy_sums(*job), KERNEL)
    if not options.only:
        gamma = 0.5 / bandwidth**2
        sampler = RBFSampler(gamma=gamma, n_components=2 * len(frequencies), random_state=0).fit(x)
        means = functools.partial(fourier_peers.sklearn_means, sampler, n_groups=n_groups)
        found["RBFSampler"] = lambda: means(x, labels)
        found["RBFSampler, chunks of 1024"] = peers.in_chunks(means, x, labels, 1024)
    width, elements = fma_limit.best_width(), len(x) * len(frequencies)
    slots = x.shape[1] + PRODUCTS
    found[LIMIT] = fma_limit.work(slots, 0, elements, width)
    found[MIXED] = fma_limit.work(slots, ADDITIONS, elements, width)
    return found, missing


def compare(n_columns: int, options: argparse.Namespace) -> dict[str, Any]:
    """Time all contenders on the same rows, and check that they agree."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N_ROWS, n_columns)).astype(np.float32)
    labels = rng.integers(0, N_CLASSES, N_ROWS).astype(np.int32)
    bandwidth = n_columns**0.5
    frequencies = rng.normal(size=(N_FREQUENCIES, n_columns)) / bandwidth
    contenders, missing = contenders_of((x, labels, N_CLASSES, frequencies), bandwidth, options)
    seconds = interleave(contenders, options.rounds)
    times = ratios(seconds, KERNEL)
    return {
        "n_columns": n_columns,
        "seconds_median": {name: float(np.median(s)) for name, s in seconds.items()},
        "elements_per_ns": {
            name: float(N_ROWS * N_FREQUENCIES / np.median(s) / 1e9) for name, s in seconds.items()
        },
        "time_over_kernel": times,
        "peers": fastest(times, (LIMIT, MIXED)),
        "share_of_limit": times[LIMIT],
        "share_of_limit_with_additions": times[MIXED],
        "missing": missing,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--prototype", metavar="FOLDER", help="where gk.py lies: compare with the prototype")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="beside the kernel and the limits")
    parser.add_argument("--keops-flags", default=peers.KEOPS_FLAGS, help="with which PyKeOps is compiled")
    parser.add_argument("--json", metavar="FILE", help="write the results here")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()

    facts = machine()
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    print(
        f"{N_ROWS} rows, {N_FREQUENCIES} frequencies, {N_CLASSES} classes, float32, {options.rounds} rounds"
    )
    results = [compare(d, options) for d in N_COLUMNS]
    print_speeds(results, KERNEL, "elements_per_ns")
    if options.json:
        settings = {"n_rows": N_ROWS, "n_frequencies": N_FREQUENCIES, "n_classes": N_CLASSES}
        settings |= {"rounds": options.rounds, "keops_flags": options.keops_flags}
        write_json(options.json, {"machine": facts, **settings, "results": results})


if __name__ == "__main__":
    main()
