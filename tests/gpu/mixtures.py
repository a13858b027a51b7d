"""Jobs for the mixture kernels, and the distance of what they give from what is right."""

import numpy as np

from scaleshift.kernels import mixture as reference
from scaleshift.kernels.mixture import Components, Outcomes

SUMS = ("n", "x", "xx", "label", "prediction", "extra")


def mixture_study(n, d, k=3, n_labels=2, n_models=1, seed=0, covariance_type="diag"):
    """Rows around the means of the first model, labels of which some are missing, weights, two losses."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(k * n_models, d))
    x = means[rng.integers(0, k, n)] + rng.normal(size=(n, d))
    components = Components(
        covariance_type,
        (k,) * n_models,
        rng.dirichlet(np.full(k, 5.0), n_models).ravel(),
        means + 0.3 * rng.normal(size=means.shape),
        rng.uniform(0.5, 2, means.shape if covariance_type == "diag" else len(means)),
        rng.dirichlet(np.ones(n_labels), len(means)),
        rng.dirichlet(np.ones(n_labels), len(means)),
        label_power=2.0,
        prediction_power=3.0,
    )
    outcomes = Outcomes(
        rng.integers(-1, n_labels, n),
        n_labels,
        rng.dirichlet(np.ones(n_labels), n).astype(np.float32),
        rng.uniform(0, 2, n),
        rng.uniform(size=(n, 2)),
    )
    return x.astype(np.float32), outcomes, components


def part_of(components, number):
    """One model of a batch, alone."""
    model = dict(components.models)[number]
    parts = {name: part[model] for name, part in components._asdict().items() if hasattr(part, "shape")}
    return components._replace(sizes=(components.sizes[number],), **parts)


def distances(found, expected):
    """Distance of each sum relative to its norm."""
    assert found.keys() == expected.keys()
    for name, value in found.items():
        assert isinstance(value, np.ndarray), name
        assert value.shape == expected[name].shape, name
        assert value.dtype == np.float64, name
    norms = {name: np.linalg.norm(value) or 1.0 for name, value in expected.items()}
    return {name: np.linalg.norm(found[name] - expected[name]) / norms[name] for name in expected}


def assert_close(found, expected, tolerance=1e-6):
    """Few rows: a log density of 10 has an error of a rounding, 6e-7, and so have responsibilities."""
    for name, distance in distances(found, expected).items():
        assert distance < tolerance, f"{name} is off by {distance:.1e}"


def of_one_row(x, outcomes, components):
    """1e-6; where log densities are large, what rounding them does to a row halfway between components."""
    if not len(x):
        return 1e-6
    largest = np.abs(reference.log_joint(x, outcomes, components).max(axis=1)).max() / np.log(2)
    # r (1 - r) ln 2 times the error of a difference of two log densities, of one rounding each
    return max(1e-6, 0.25 * np.log(2) * 2 * float(np.spacing(np.float32(largest))))


def assert_same_bits(found, expected):
    assert found.keys() == expected.keys()
    for name, value in found.items():
        np.testing.assert_array_equal(value, expected[name], err_msg=name)
