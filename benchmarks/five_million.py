"""How many core-seconds does a fit on five million rows take, and how many would exact kernels take?

    python benchmarks/five_million.py [--rows 5000000] [--exact-rows 20000] [--rounds 5] [--json FILE]

`DFM.fit` with Fourier features at a given bandwidth: class sums of 5 columns, D = 1000, 10 classes, float32
rows in memory. CPU seconds of the process, all threads: checks, labels, graph and merging are in it. Beside
it the kernel alone on one chunk. Exact kernel matching compares every row with every row: its fit is timed at
a size that ends, and extrapolated by its law, n^2.
"""

import argparse
import time
from typing import Any

import numpy as np
from timing import interleave, machine, write_json

import scaleshift as ss
from scaleshift.kernels.dispatch import fourier_sums

N_COLUMNS, N_FREQUENCIES, N_CLASSES, CHUNK = 5, 500, 10, 131_072
BANDWIDTH = N_COLUMNS**0.5


def measure(n: int, n_exact: int, rounds: int) -> dict[str, Any]:
    """Medians of interleaved rounds."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, N_COLUMNS), dtype=np.float32)
    y = rng.integers(0, N_CLASSES, n, dtype=np.int32)
    features = {"fit": ss.FourierFeatures(2 * N_FREQUENCIES), "exact": ss.ExactKernel()}
    models = {
        name: ss.DFM(of, bandwidth=BANDWIDTH, n_bootstrap=0, random_state=0) for name, of in features.items()
    }
    head = slice(0, min(n, CHUNK))
    frequencies = models["fit"].fit(x[head], y[head]).embedding_.frequencies
    seconds = interleave(
        {
            "fit": lambda: models["fit"].fit(x, y),
            "kernel": lambda: fourier_sums(x[head], y[head], N_CLASSES, frequencies),
            "exact": lambda: models["exact"].fit(x[:n_exact], y[:n_exact]),
        },
        rounds,
        time.process_time,
    )
    exact = seconds["exact"] * (n / n_exact) ** 2
    return {
        "n_rows": n,
        "exact_rows": n_exact,
        "core_seconds": float(np.median(seconds["fit"])),
        "kernel_seconds": float(np.median(seconds["kernel"])) * n / (head.stop - head.start),
        "exact_seconds": float(np.median(seconds["exact"])),
        "exact_over_ours": float(np.median(exact / seconds["fit"])),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--exact-rows", type=int, default=20_000)
    parser.add_argument("--json", metavar="FILE", help="write the results here")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    facts = machine()
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    found = measure(options.rows, options.exact_rows, options.rounds)
    print(
        f"{found['n_rows']:,} rows: {found['core_seconds']:.2f} core-seconds, of which the kernel "
        f"{found['kernel_seconds']:.2f}; exact kernels {found['exact_seconds']:.2f} s at "
        f"{found['exact_rows']:,} rows, so {found['exact_over_ours']:,.0f} times as long"
    )
    if options.json:
        settings = {"n_columns": N_COLUMNS, "n_frequencies": N_FREQUENCIES, "n_classes": N_CLASSES}
        write_json(options.json, {"machine": facts, **settings, "rounds": options.rounds, **found})


if __name__ == "__main__":
    main()
