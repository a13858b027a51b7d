"""Is the sliced energy distance the exact one?  Proportions of both, and a pass over ten million cells.

python benchmarks/energy.py [--cells 10_000_000] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path

import dask.array as da
import numpy as np
from synthetic import make
from timing import machine, write_json

import scaleshift as ss

SETTINGS = {"none": 0.0, "background": 0.3, "far": 0.3, "near": 0.3}


def differences() -> dict[str, float]:
    """Largest difference of any proportion, hard and soft, over seeds 0-4."""
    largest: dict[str, float] = {}
    for noise, eps in SETTINGS.items():
        for seed in range(5):
            problem = make(seed, noise, eps)
            for soft in (False, True):
                found = [
                    ss.DFM(name, soft=soft, n_bootstrap=0, random_state=seed)
                    .fit(problem.x, problem.y)
                    .predict(problem.target)["proportion"]
                    .values
                    for name in ("energy", "sliced-energy")
                ]
                largest[noise] = max(largest.get(noise, 0.0), float(np.abs(found[0] - found[1]).max()))
    return largest


def one_pass(n: int) -> dict[str, float]:
    """CPU seconds and growth of the process, predicting `n` cells of 10 markers in 10 samples."""
    problem = make(0, d=10)
    model = ss.DFM("sliced-energy", random_state=0).fit(problem.x, problem.y)
    repeats = -(-n // len(problem.target))
    blocks = [da.from_array(problem.target.astype("f4"), chunks=-1, name=False)] * repeats
    x = da.concatenate(blocks).rechunk((100_000, -1))[:n]
    sample = da.arange(n, chunks=x.chunks[0]) // -(-n // 10)
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    found = model.predict(x, sample)
    return {
        "cells": int(found["n_cells"].sum()),
        "cpu_seconds": time.process_time() - start,
        "growth_mb": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024,
        "largest_error": float(np.abs(found["proportion"].values - problem.proportions).max()),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=10_000_000)
    parser.add_argument("--json", type=Path, help="file to write the numbers to")
    given = parser.parse_args()
    results = {"differences": differences(), "pass": one_pass(given.cells)}
    print(json.dumps(results, indent=2))
    if given.json:
        write_json(given.json, {"machine": machine(), **results})


if __name__ == "__main__":
    main()
