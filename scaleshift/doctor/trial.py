"""Does it work here?  A tiny problem whose answer is known, twice: the first run compiles."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from scaleshift.doctor.finding import Finding

N = 1_000  # labelled rows, and as many unlabelled ones
SHARES = np.array([0.9, 0.1])
TOLERANCE = 0.02  # of a share: far more than float32 sums or other random features make


def self_test() -> Iterator[Finding]:
    """Proportions of two Gaussian classes in an array, and how long they took."""
    seconds = []
    for name in ("first run, compiling", "second run"):
        start = time.perf_counter()
        error = trial()
        seconds.append(time.perf_counter() - start)
        facts = {"seconds": round(seconds[-1], 3), "error": error}
        if not error <= TOLERANCE:  # NaN is wrong too
            value = f"a share is wrong by {error:.3g}, more than {TOLERANCE}"
            advice = "reinstall numba and llvmlite, then report this with the output of --json"
            yield Finding(name, "problem", value, advice, facts)
        else:
            yield Finding(name, "ok", f"{seconds[-1]:.2f} s, largest error {error:.4f}", facts=facts)


def trial() -> float:
    """Largest error of the proportions of a known mixture.

    Examples
    --------
    >>> trial() < TOLERANCE
    True
    """
    from scaleshift.quantify.dfm import DFM
    from scaleshift.quantify.features import FourierFeatures

    rng = np.random.default_rng(0)
    classes = np.arange(2)
    source, target = np.repeat(classes, N // 2), np.repeat(classes, (N * SHARES).round().astype(int))
    noise = rng.standard_normal((2 * N, 2))
    x = noise + np.concatenate([source, target])[:, None] * [6.0, 0.0]
    model = DFM(FourierFeatures(100), random_state=0).fit(x[:N], source)
    return float(np.abs(model.predict(x[N:])["proportion"].values[0] - SHARES).max())
