"""How fast is an iteration of expectation-maximisation next to scikit-learn's GaussianMixture?

    python benchmarks/mixture.py [--json FILE]

One core, diagonal covariances. Ours has the terms of labels and predictions, from rows in float32 to new
parameters; scikit-learn's E-step and M-step have neither. Components overlap, so that no responsibilities are
subnormal numbers, which cost some CPUs a multiple. Where the shared reference data are (SCALESHIFT_SHARED),
the prototype of the kernel is timed as well.
"""

import argparse
import importlib
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from timing import interleave, machine, ratios, write_json

from scaleshift.kernels import mixture
from scaleshift.kernels.dispatch import mixture_sums
from scaleshift.kernels.mixture import Components, Outcomes

N_ROWS = 100_000
N_COMPONENTS = 25
N_LABELS = 2
N_RESTARTS = 4
N_COLUMNS = (32, 64, 128)
POWER = 10.0  # of both terms: Domino's default
KERNEL = "kernel"


def study(n_columns: int, n_models: int = 1) -> tuple[np.ndarray, Outcomes, Components]:
    """Rows of overlapping components, labels, predictions, and models near the true one."""
    rng = np.random.default_rng(0)
    truth = 0.3 * rng.normal(size=(N_COMPONENTS, n_columns))
    x = (truth[rng.integers(0, N_COMPONENTS, N_ROWS)] + rng.normal(size=(N_ROWS, n_columns))).astype("f4")
    outcomes = Outcomes(
        rng.integers(0, N_LABELS, N_ROWS),
        N_LABELS,
        rng.dirichlet(np.ones(N_LABELS), N_ROWS).astype(np.float32),
    )
    k = N_COMPONENTS * n_models
    components = Components(
        "diag",
        (N_COMPONENTS,) * n_models,
        np.full(k, 1 / N_COMPONENTS),
        np.tile(truth, (n_models, 1)) + 0.05 * rng.normal(size=(k, n_columns)),
        rng.uniform(0.8, 1.2, (k, n_columns)),
        rng.dirichlet(np.full(N_LABELS, 5.0), k),
        rng.dirichlet(np.full(N_LABELS, 5.0), k),
        POWER,
        POWER,
    )
    return x, outcomes, components


def iterate(x: np.ndarray, outcomes: Outcomes, components: Components) -> Components:
    """One iteration: the sums, and the parameters that they give."""
    sums = mixture_sums(x, outcomes, components)
    n = sums["n"][:, None]
    means = sums["x"] / n
    return components._replace(
        weights=sums["n"] / sums["mass"],
        means=means,
        covariances=np.maximum(sums["xx"] / n - means**2, 1e-6),
        label_probs=sums["label"] / n,
        prediction_probs=sums["prediction"] / n,
    )


def sklearn_iteration(x: np.ndarray, components: Components) -> Callable[[], None]:
    """One E-step and M-step of scikit-learn from the same parameters."""
    model = GaussianMixture(N_COMPONENTS, covariance_type="diag", max_iter=1, init_params="random")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(x[:1000])
    parameters = components.weights, components.means, components.covariances**-0.5

    def run() -> None:
        names = "weights_", "means_", "precisions_cholesky_"
        for name, value in zip(names, parameters, strict=True):
            setattr(model, name, value.astype(x.dtype))
        _, log_responsibilities = model._e_step(x)
        model._m_step(x, log_responsibilities)

    return run


def prototype(x: np.ndarray, outcomes: Outcomes, components: Components) -> dict[str, Callable[[], Any]]:
    """The measured prototype of the same pass, where there is one."""
    folder = Path(os.environ.get("SCALESHIFT_SHARED", "")) / "prototypes" / "cpu"
    if not (folder / "gmm.py").exists():
        return {}
    sys.path.insert(0, str(folder))
    sketch = importlib.import_module("gmm")
    d, centre = x.shape[1], x.mean(axis=0)
    kernel = sketch.make(d)
    model = (*components[2:5], components.label_probs, components.prediction_probs)
    job = (kernel, x, centre, outcomes.label.astype(np.int32), outcomes.prediction, model, POWER, POWER, d)
    return {"prototype": lambda: sketch.run(*job)}


def compare(n_columns: int, rounds: int) -> dict[str, Any]:
    """Time all contenders on the same rows, and check the kernel's sums."""
    x, _, components = job = study(n_columns)
    restarts = study(n_columns, N_RESTARTS)
    double = x.astype(np.float64)
    found, truth = mixture_sums(*job), mixture.mixture_sums(*job)
    errors = {
        name: float(np.linalg.norm(found[name] - value) / np.linalg.norm(value))
        for name, value in truth.items()
    }
    assert max(errors.values()) < 1e-6, f"the kernel is off: {errors}"
    seconds = interleave(
        {
            KERNEL: lambda: iterate(*job),
            f"kernel, {N_RESTARTS} restarts": lambda: iterate(*restarts),
            "scikit-learn float32": sklearn_iteration(x, components),
            "scikit-learn float64": sklearn_iteration(double, components),
            **prototype(*job),
        },
        rounds,
    )
    single = np.median(seconds[KERNEL]) * N_RESTARTS
    return {
        "n_columns": n_columns,
        "seconds_median": {name: float(np.median(s)) for name, s in seconds.items()},
        "ns_per_row": {name: float(np.median(s) / N_ROWS * 1e9) for name, s in seconds.items()},
        "time_over_kernel": ratios(seconds, KERNEL),
        "saved_by_restarts": float(1 - np.median(seconds[f"kernel, {N_RESTARTS} restarts"]) / single),
        "errors": errors,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", metavar="FILE", help="write the results here")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()

    facts = machine()
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    print(f"{N_ROWS} rows, {N_COMPONENTS} components, {N_LABELS} labels, {options.rounds} rounds")
    start = time.thread_time()
    mixture_sums(*study(N_COLUMNS[0]))
    first = time.thread_time() - start
    print(f"first call, with compilation: {first:.1f} s of CPU time")
    results = [compare(d, options.rounds) for d in N_COLUMNS]
    print(f"{'columns':>7}  {'contender':22} {'ns/row':>9} {'time/kernel':>11}")
    for result in results:
        for name, speed in result["ns_per_row"].items():
            ratio = result["time_over_kernel"].get(name, 1.0)
            print(f"{result['n_columns']:7}  {name:22} {speed:9.1f} {ratio:11.2f}")
        print(f"{result['n_columns']:7}  each restart saves {result['saved_by_restarts']:.0%}")
    if options.json:
        settings = {"n_rows": N_ROWS, "n_components": N_COMPONENTS, "n_labels": N_LABELS}
        content = {**settings, "first_call_seconds": first, "rounds": options.rounds, "results": results}
        write_json(options.json, {"machine": facts, **content})


if __name__ == "__main__":
    main()
