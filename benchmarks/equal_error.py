"""How few landmarks are as accurate as 1000 Fourier features where unknown cells lie far, and at what cost?

    python benchmarks/equal_error.py [--draws 20] [--landmarks 16 32 ...] [--rounds 9] [--json FILE]

Error: L2 distance of the proportions of soft matching to the realised shares, on draws of a label shift with
a share of far noise (`scaleshift.datasets.make_label_shift`, n = 10 000), each method choosing its bandwidth.
The smallest number of landmarks counts that is not worse: whose mean difference to Fourier on the same draws,
plus two standard errors of it, is not above 0. Cost: CPU time of the kernel on one chunk of target rows, with
the frequencies, landmarks and bandwidths that the last draw's models use, interleaved.
"""

import argparse
from typing import Any

import numpy as np
from synthetic import make
from timing import interleave, machine, ratios, write_json

import scaleshift as ss
from scaleshift.kernels.dispatch import fourier_sums, landmark_sums

N_FEATURES = 1000
N_ROWS = 131_072  # the default chunk of a store
SETTINGS = ((5, 0.1), (5, 0.3), (20, 0.3))  # columns, share of far noise
FOURIER = "Fourier"


def models_of(numbers: list[int], seed: int) -> dict[str, ss.DFM]:
    """Soft matching with Fourier features, and with so many landmarks."""
    features = {FOURIER: ss.FourierFeatures(N_FEATURES)}
    features |= {str(m): ss.LandmarkFeatures(m) for m in numbers}
    return {name: ss.DFM(of, n_bootstrap=0, random_state=seed) for name, of in features.items()}


def errors_of(
    d: int, eps: float, numbers: list[int], draws: int
) -> tuple[dict[str, np.ndarray], dict[str, ss.DFM]]:
    """The error of each model in each draw, and the models of the last one."""
    errors: dict[str, list[float]] = {name: [] for name in models_of(numbers, 0)}
    for seed in range(draws):
        problem, models = make(seed, "far", eps, d=d), models_of(numbers, seed)
        for name, model in models.items():
            found = model.fit(problem.x, problem.y).predict(problem.target)["proportion"].values[0]
            errors[name].append(float(np.linalg.norm(found - problem.proportions)))
    return {name: np.array(of) for name, of in errors.items()}, models


def costs_of(d: int, eps: float, models: dict[str, ss.DFM], rounds: int) -> dict[str, np.ndarray]:
    """CPU seconds of the kernels on the target's rows, repeated to one chunk."""
    target = make(0, "far", eps, d=d).target
    x = np.resize(target, (N_ROWS, d)).astype(np.float32)
    sample = np.zeros(N_ROWS, np.int32)

    def run(name: str) -> Any:
        embedding = models[name].embedding_
        if name == FOURIER:
            return lambda: fourier_sums(x, sample, 1, embedding.frequencies)
        return lambda: landmark_sums(x, sample, 1, embedding.landmarks, embedding.bandwidth)

    return interleave({name: run(name) for name in models}, rounds)


def compare(d: int, eps: float, options: argparse.Namespace) -> dict[str, Any]:
    """Errors and costs of one setting."""
    errors, models = errors_of(d, eps, options.landmarks, options.draws)
    seconds = costs_of(d, eps, models, options.rounds)
    landmarks: dict[str, dict[str, float]] = {}
    for m in map(str, options.landmarks):
        difference = errors[m] - errors[FOURIER]
        landmarks[m] = {
            "error": float(errors[m].mean()),
            "difference": float(difference.mean()),
            "standard_error": float(difference.std(ddof=1) / len(difference) ** 0.5),
            "fourier_over_landmarks": ratios({FOURIER: seconds[FOURIER], m: seconds[m]}, m)[FOURIER],
        }
    as_good = [m for m, of in landmarks.items() if of["difference"] + 2 * of["standard_error"] <= 0]
    return {
        "n_columns": d,
        "eps": eps,
        "draws": options.draws,
        "fourier_error": float(errors[FOURIER].mean()),
        "landmarks": landmarks,
        "smallest": int(min(as_good, key=int)) if as_good else None,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--landmarks", type=int, nargs="+", default=[16, 32, 64, 96, 128])
    parser.add_argument("--json", metavar="FILE", help="write the results here")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    facts = machine()
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    results = []
    for d, eps in SETTINGS:
        one = compare(d, eps, options)
        results.append(one)
        print(f"{d} columns, far noise {eps:g}: Fourier's error {one['fourier_error']:.4f}")
        for m, of in one["landmarks"].items():
            print(
                f"{m:>5} landmarks: error {of['error']:.4f}, difference {of['difference']:+.4f} +- "
                f"{of['standard_error']:.4f}, Fourier takes {of['fourier_over_landmarks']:.2f} times as long"
                f"{'  <- smallest as accurate' if int(m) == one['smallest'] else ''}"
            )
    if options.json:
        settings = {"n_features": N_FEATURES, "n_rows": N_ROWS, "rounds": options.rounds}
        write_json(options.json, {"machine": facts, **settings, "results": results})


if __name__ == "__main__":
    main()
