"""The mixture pass: the reference against scikit-learn, the compiled kernel against the reference."""

import time
import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from scaleshift.kernels import dispatch
from scaleshift.kernels import mixture as reference
from scaleshift.kernels.cpu import mixture as cpu
from scaleshift.kernels.cpu import mixture_steps as steps
from scaleshift.kernels.mixture import Components, Outcomes

SUMS = ("n", "x", "xx", "label", "prediction", "extra")


def study(n, d, k=3, n_labels=2, n_models=1, seed=0, covariance_type="diag"):
    """Rows around the means of the first model, labels of which some are missing, weights, two losses."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(k * n_models, d))
    x = means[rng.integers(0, k, n)] + rng.normal(size=(n, d))
    shape = means.shape if covariance_type == "diag" else len(means)
    components = Components(
        covariance_type,
        (k,) * n_models,
        rng.dirichlet(np.full(k, 5.0), n_models).ravel(),
        means + 0.3 * rng.normal(size=means.shape),
        rng.uniform(0.5, 2, shape),
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


def errors(found, expected):
    """Distance of each sum relative to its norm."""
    assert found.keys() == expected.keys()
    for name, value in found.items():
        assert value.shape == expected[name].shape, name
        assert value.dtype == np.float64, name
    norms = {name: np.linalg.norm(value) or 1.0 for name, value in expected.items()}
    return {name: np.linalg.norm(found[name] - expected[name]) / norms[name] for name in expected}


def assert_close(found, expected, tolerance=1e-6):
    """Few rows: a log density of 10 has an error of a rounding, 6e-7, and so have responsibilities."""
    for name, error in errors(found, expected).items():
        assert error < tolerance, f"{name} is off by {error:.1e}"


def assert_equal(found, expected):
    assert found.keys() == expected.keys()
    for name, value in found.items():
        np.testing.assert_array_equal(value, expected[name], err_msg=name)


# The reference


@pytest.mark.parametrize("covariance_type", reference.COVARIANCES)
@pytest.mark.parametrize("n", [50, 40_000])
def test_the_reference_is_one_step_of_scikit_learn(covariance_type, n):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(n, 3)) + 2 * rng.integers(0, 3, n)[:, None]
    model = GaussianMixture(4, covariance_type=covariance_type, max_iter=2, random_state=0, reg_covar=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(x)
    fitted = model.covariances_[None] if covariance_type == "tied" else model.covariances_
    components = Components(covariance_type, (4,), model.weights_, model.means_, fitted)
    sums = reference.mixture_sums(x, Outcomes(), components)
    shares = model.predict_proba(x)
    np.testing.assert_allclose(reference.responsibilities(x, Outcomes(), components), shares, atol=1e-10)
    np.testing.assert_allclose(sums["log_likelihood"], [model.score_samples(x).sum()], rtol=1e-12)
    np.testing.assert_allclose(sums["n"], shares.sum(axis=0), rtol=1e-10)
    np.testing.assert_allclose(sums["x"], shares.T @ x, atol=1e-8 * n)
    assert sums["mass"] == n
    model._m_step(x, np.log(shares))
    means = sums["x"] / sums["n"][:, None]
    np.testing.assert_allclose(means, model.means_, rtol=1e-8)
    np.testing.assert_allclose(covariances(sums, means, covariance_type), model.covariances_, rtol=1e-7)


def covariances(sums, means, covariance_type):
    """Maximum likelihood estimates from the sums."""
    if covariance_type == "full":
        moments = sums["xx"] / sums["n"][:, None, None]
        return moments - means[:, :, None] * means[:, None, :]
    if covariance_type == "tied":
        return (sums["xx"] - (sums["n"][:, None] * means).T @ means) / sums["mass"]
    variances = sums["xx"] / sums["n"][:, None] - means**2
    return variances if covariance_type == "diag" else variances.mean(axis=1)


def test_terms_of_the_reference_are_those_of_the_formula():
    x, outcomes, components = study(20, 2)
    silent = components._replace(label_probs=None, prediction_probs=None)
    found = reference.log_joint(x, outcomes, components) - reference.log_joint(x, outcomes, silent)
    for i in range(20):
        y, prediction = outcomes.label[i], outcomes.prediction[i]
        for k in range(3):
            term = 3 * np.log(components.prediction_probs[k] @ prediction)
            if y >= 0:
                term += 2 * np.log(components.label_probs[k, y])
            assert found[i, k] == pytest.approx(term, abs=1e-6)


# The compiled kernel against the reference


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 15, 16, 17, 32, 33, 130])
def test_sums_agree_for_any_number_of_columns(d):
    job = study(1500, d)
    assert_close(cpu.mixture_sums(*job), reference.mixture_sums(*job))


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 25, 70])
@pytest.mark.parametrize("n_models", [1, 3])
def test_sums_agree_for_any_number_of_components(k, n_models):
    job = study(1500, 6, k=k, n_models=n_models)
    assert_close(cpu.mixture_sums(*job), reference.mixture_sums(*job))


@pytest.mark.parametrize("n_labels", [1, 2, 8, 9, 32, 33, 1000])
def test_sums_agree_for_any_number_of_labels(n_labels):
    job = study(1500, 3, n_labels=n_labels, n_models=2)
    assert_close(cpu.mixture_sums(*job), reference.mixture_sums(*job))


@pytest.mark.parametrize("n", [0, 1, 2, 15, 16, 17, 1023, 1024, 1025, 8191, 8192, 8193, 20_000])
@pytest.mark.parametrize("n_labels", [2, 40])
def test_rows_at_the_edge_of_a_tile_count_once(n, n_labels):
    job = study(n, 3, n_labels=n_labels)
    assert_close(cpu.mixture_sums(*job), reference.mixture_sums(*job))


@pytest.mark.parametrize(
    ("d", "tolerances"),
    [
        # components as far apart as those of embeddings
        (64, {"n": 2e-8, "x": 4e-8, "xx": 8e-8}),
        (20, {"n": 1e-7, "x": 1.2e-7, "xx": 1.6e-7}),  # a third of the rows is in doubt
    ],
)
def test_digits_are_those_of_float32_sums_where_rows_are_many(d, tolerances):
    x, outcomes, components = study(40_000, d, k=25)
    outcomes = outcomes._replace(weight=None)
    expected = reference.mixture_sums(x, outcomes, components)
    found = errors(cpu.mixture_sums(x, outcomes, components), expected)
    for name, tolerance in tolerances.items():
        assert found[name] < tolerance, f"{name} is off by {found[name]:.1e}"
    assert found["mass"] == 0
    assert found["log_likelihood"] < 1e-8


def test_sums_of_a_tile_are_of_few_terms_a_lane():
    # 64; of 128 terms the error is 7.4e-8, of 256 it is 1.3e-7: variances are differences of such sums
    x = np.random.default_rng(0).uniform(1, 2, (steps.TILE, 500)).astype(np.float32)
    one = Components("diag", (1,), np.ones(1), np.zeros((1, 500)), np.ones((1, 500)))
    found = cpu.mixture_sums(x, Outcomes(), one)
    for name, power in (("x", 1), ("xx", 2)):
        expected = (x.astype(np.float64) ** power).sum(axis=0)
        error = np.sqrt(np.mean((found[name][0] / expected - 1) ** 2))
        assert error < 6e-8, f"{name} is off by {error:.1e}"


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(0, 2100),
    d=st.integers(1, 20),
    k=st.integers(1, 9),
    n_labels=st.sampled_from([1, 2, 3, 8, 9, 12, 40]),
    n_models=st.integers(1, 3),
    covariance_type=st.sampled_from(["diag", "spherical"]),
    absent=st.sets(st.sampled_from(["label", "prediction", "weight", "extra"])),
    unknown=st.sets(st.sampled_from(["label_probs", "prediction_probs"])),
)
def test_sums_agree_whatever_is_known(n, d, k, n_labels, n_models, covariance_type, absent, unknown):
    x, outcomes, components = study(n, d, k, n_labels, n_models, seed=n, covariance_type=covariance_type)
    outcomes = outcomes._replace(**dict.fromkeys(absent))
    components = components._replace(**dict.fromkeys(unknown))
    expected = reference.mixture_sums(x, outcomes, components)
    assert {"label", "prediction", "extra"} - absent == {"label", "prediction", "extra"} & expected.keys()
    assert_close(cpu.mixture_sums(x, outcomes, components), expected, of_one_row(x, outcomes, components))


def of_one_row(x, outcomes, components):
    """1e-6; where log densities are large, what rounding them does to a row halfway between components."""
    if not len(x):
        return 1e-6
    largest = np.abs(reference.log_joint(x, outcomes, components).max(axis=1)).max() / np.log(2)
    # r (1 - r) ln 2 times the error of a difference of two log densities, of one rounding each
    return max(1e-6, 0.25 * np.log(2) * 2 * float(np.spacing(np.float32(largest))))


@pytest.mark.parametrize("n_extra", [1, 32, 33])
def test_sums_of_anything_else_agree(n_extra):
    x, outcomes, components = study(3000, 3, n_models=2)
    outcomes = outcomes._replace(extra=np.random.default_rng(0).uniform(size=(3000, n_extra)))
    expected = reference.mixture_sums(x, outcomes, components)
    assert_close(cpu.mixture_sums(x, outcomes, components), expected)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("n_labels", [2, 12, 40])
def test_predictions_may_be_of_any_float_type(dtype, n_labels):
    x, outcomes, components = study(2000, 3, n_labels=n_labels)
    outcomes = outcomes._replace(prediction=outcomes.prediction.astype(dtype))
    expected = reference.mixture_sums(x, outcomes, components)
    assert_close(cpu.mixture_sums(x, outcomes, components), expected)


# What sums must be like


@pytest.mark.parametrize("n_labels", [2, 12, 40])
def test_weights_are_repeated_rows(n_labels):
    x, outcomes, components = study(3000, 4, n_labels=n_labels)
    times = np.random.default_rng(0).integers(0, 4, 3000)
    found = cpu.mixture_sums(x, outcomes._replace(weight=times), components)
    again = np.repeat(np.arange(3000), times)
    repeated = outcomes._replace(weight=None).rows(again)
    assert_close(found, cpu.mixture_sums(x[again], repeated, components))
    assert found["mass"] == times.sum()


def test_rows_of_weight_zero_add_nothing():
    x, outcomes, components = study(3000, 4)
    found = cpu.mixture_sums(x, outcomes._replace(weight=np.zeros(3000)), components)
    assert not any(value.any() for value in found.values())


@pytest.mark.parametrize("n_labels", [2, 12, 40])
def test_a_missing_label_has_no_term_and_no_sum(n_labels):
    x, outcomes, components = study(2000, 3, n_labels=n_labels)
    outcomes = outcomes._replace(prediction=None, extra=None)
    found = cpu.mixture_sums(x, outcomes._replace(label=np.full(2000, -1)), components)
    assert not found.pop("label").any()
    assert_equal(found, cpu.mixture_sums(x, outcomes._replace(label=None, n_labels=0), components))


@pytest.mark.parametrize("n_labels", [2, 12, 40])
@pytest.mark.parametrize("sizes", [(5,), (1, 3), (3, 4, 2), (1, 1, 1)])
def test_a_model_in_a_batch_has_the_bits_it_has_alone(n_labels, sizes):
    x, outcomes, components = study(2500, 6, k=sum(sizes), n_labels=n_labels)
    components = components._replace(sizes=sizes)
    batch = cpu.mixture_sums(x, outcomes, components)
    for number, model in components.models:
        parts = {name: part[model] for name, part in components._asdict().items() if hasattr(part, "shape")}
        alone = cpu.mixture_sums(x, outcomes, components._replace(sizes=(sizes[number],), **parts))
        for name in SUMS:
            np.testing.assert_array_equal(batch[name][model], alone[name], err_msg=name)
        assert batch["log_likelihood"][number] == alone["log_likelihood"][0]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 9000), max_size=4), st.sampled_from([2, 12, 40]))
def test_sums_of_blocks_add_up_to_those_of_the_whole(cuts, n_labels):
    x, outcomes, components = study(9000, 3, n_labels=n_labels, n_models=2)
    ends = [0, *sorted(cuts), 9000]
    blocks = [slice(*pair) for pair in pairwise(ends)]
    parts = [cpu.mixture_sums(x[block], outcomes.rows(block), components) for block in blocks]
    total = {name: sum(part[name] for part in parts) for name in parts[0]}
    assert_close(total, cpu.mixture_sums(x, outcomes, components), tolerance=4e-7)


def test_the_order_of_components_is_that_of_their_sums():
    x, outcomes, components = study(2000, 5, k=7)
    order = np.random.default_rng(0).permutation(7)
    parts = {name: part[order] for name, part in components._asdict().items() if hasattr(part, "shape")}
    found = cpu.mixture_sums(x, outcomes, components._replace(**parts))
    expected = cpu.mixture_sums(x, outcomes, components)
    for name in SUMS:
        np.testing.assert_allclose(found[name], expected[name][order], rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(found["log_likelihood"], expected["log_likelihood"], rtol=1e-7)


def test_an_offset_of_a_few_standard_deviations_costs_few_digits():
    x, outcomes, components = study(5000, 6)
    moved = (x + np.float32(4), outcomes, components._replace(means=components.means + 4))
    assert_close(cpu.mixture_sums(*moved), reference.mixture_sums(*moved), tolerance=2e-6)


def test_layout_does_not_change_a_bit():
    x, outcomes, components = study(2000, 6)
    expected = cpu.mixture_sums(x, outcomes, components)
    wide = np.zeros((4000, 12), dtype=np.float32)
    wide[::2, ::2] = x
    odd = np.zeros(1 + x.nbytes, dtype=np.uint8)[1:].view(np.float32).reshape(x.shape)
    odd[:] = x
    frozen = x.copy()
    frozen.flags.writeable = False
    for same in (np.asfortranarray(x), wide[::2, ::2], x[::-1].copy()[::-1], odd, frozen):
        assert_equal(cpu.mixture_sums(same, outcomes, components), expected)
    same = outcomes._replace(
        label=np.repeat(outcomes.label.astype(np.int8), 2)[::2],
        prediction=np.asfortranarray(outcomes.prediction),
        weight=np.repeat(outcomes.weight, 2)[::2],
    )
    assert_equal(cpu.mixture_sums(x, same, components), expected)


# Strange models and rows


@pytest.mark.parametrize("weight", [0.0, 1e-300, 1e-30, 1e-12])
def test_components_of_hardly_any_weight_take_no_part(weight):
    x, outcomes, components = study(2000, 4, k=5)
    weights = components.weights.copy()
    weights[[0, 3]] = weight
    components = components._replace(weights=weights)
    found = cpu.mixture_sums(x, outcomes, components)
    assert_close(found, reference.mixture_sums(x, outcomes, components))
    if weight == 0:
        assert not found["n"][[0, 3]].any()


def test_a_model_without_weights_is_left_to_the_reference():
    x, outcomes, components = study(10, 2)
    components = components._replace(weights=np.zeros(3))
    with np.errstate(invalid="ignore"):
        found = cpu.mixture_sums(x, outcomes, components)
        assert_equal(found, reference.mixture_sums(x, outcomes, components))


def test_tiny_variances_beside_large_ones():
    x, outcomes, components = study(3000, 4, k=2)
    variances = np.ones((2, 4))
    variances[1] = 1e-6
    components = components._replace(covariances=variances)
    x[::2] = components.means[1] + 1e-3 * np.random.default_rng(0).normal(size=(1500, 4))
    expected = reference.mixture_sums(x, outcomes, components)
    found = cpu.mixture_sums(x, outcomes, components)
    assert 1400 < found["n"][1] < 1600
    for name in SUMS:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("distance", [1e2, 1e6, 1e12])
def test_rows_far_from_every_component_count_once(distance):
    x, outcomes, components = study(3000, 4)
    outcomes = outcomes._replace(weight=None)
    x[7], x[2500] = distance, -distance
    found, expected = (serve.mixture_sums(x, outcomes, components) for serve in (cpu, reference))
    assert found["n"].sum() == pytest.approx(3000, rel=1e-7)
    np.testing.assert_allclose(found["log_likelihood"], expected["log_likelihood"], rtol=1e-6)
    np.testing.assert_allclose(found["n"], expected["n"], rtol=1e-6)


@pytest.mark.parametrize("n_labels", [2, 12, 40])
def test_rows_beyond_float32_are_left_to_the_reference_and_leave_no_trace(n_labels):
    x, outcomes, components = study(9000, 4, n_labels=n_labels)
    x[7] = 1e25
    found = cpu.mixture_sums(x, outcomes, components)
    expected = reference.mixture_sums(x, outcomes, components)
    assert_close(found, expected)
    x[7] = x[8]
    assert_close(cpu.mixture_sums(x, outcomes, components), reference.mixture_sums(x, outcomes, components))


def test_predictions_that_a_component_excludes_have_the_term_of_epsilon():
    x, outcomes, components = study(2000, 2, k=2)
    certain = np.eye(2)[np.random.default_rng(0).integers(0, 2, 2000)]
    outcomes = outcomes._replace(prediction=certain, label=(certain[:, 1]).astype(int))
    components = components._replace(prediction_probs=np.eye(2), label_probs=np.eye(2))
    expected = reference.mixture_sums(x, outcomes, components)
    assert_close(cpu.mixture_sums(x, outcomes, components), expected)
    same = components._replace(prediction_probs=np.tile([1.0, 0.0], (2, 1)), label_probs=None)
    expected = reference.mixture_sums(x, outcomes, same)
    assert_close(cpu.mixture_sums(x, outcomes, same), expected)


def test_double_precision_and_other_covariances_are_the_reference():
    x, outcomes, components = study(500, 2)
    double = x.astype(np.float64)
    expected = reference.mixture_sums(double, outcomes, components)
    assert_equal(cpu.mixture_sums(double, outcomes, components), expected)
    full = components._replace(covariance_type="full", covariances=np.tile(np.eye(2), (3, 1, 1)))
    assert_equal(cpu.mixture_sums(x, outcomes, full), reference.mixture_sums(x, outcomes, full))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": np.array([0, 2, 1])}, "holds the code 2 in row 1, but n_groups is 2"),
        ({"prediction": np.ones((2, 2))}, "prediction has 2 rows, but x has 3"),
        ({"weight": np.ones(4)}, "weight has 4 rows, but x has 3"),
    ],
)
def test_outcomes_that_do_not_fit_are_refused_before_they_touch_memory(change, message):
    x, outcomes, components = study(3, 2)
    with pytest.raises(ValueError, match=message):
        cpu.mixture_sums(x, outcomes._replace(**change), components)


def test_columns_must_match_the_components():
    _, outcomes, components = study(3, 2)
    with pytest.raises(ValueError, match=r"components have 2 columns, but x has the shape \(3, 3\)"):
        cpu.mixture_sums(np.zeros((3, 3), dtype=np.float32), outcomes, components)


# What makes it fast


def test_the_machine_code_holds_the_widest_packed_fma(packed_fma):
    cpu.mixture_sums(*study(10, 2))
    for step, n_products in ((steps.subtract_distances, 16), (steps.add_moments, 16)):
        assert packed_fma(step) >= n_products


@pytest.mark.parametrize("exponent", [100, 115, 125])
def test_components_that_are_hardly_there_cost_nothing(exponent):
    x = 0.001 * np.random.default_rng(0).normal(size=(20_000, 32)).astype(np.float32)
    near = Components("diag", (8,), np.full(8, 1 / 8), np.zeros((8, 32)), np.ones((8, 32)))
    away = np.sqrt(2 * exponent * np.log(2) / 32)  # of all columns: a density less by the factor 2^-exponent
    far = near._replace(means=np.outer(np.arange(8) > 0, np.full(32, away)))
    ratios = []
    for _ in range(7):
        times = [time.thread_time()]
        for model in (near, far):
            cpu.mixture_sums(x, Outcomes(), model)
            times.append(time.thread_time())
        ratios.append((times[2] - times[1]) / (times[1] - times[0]))
    assert np.median(ratios) < 1.5  # sums of subnormal numbers take many times as long


def test_an_iteration_is_faster_than_that_of_scikit_learn():
    x, outcomes, components = study(20_000, 64, k=25)
    model = GaussianMixture(25, covariance_type="diag")
    model.weights_, model.means_ = components.weights.astype("f4"), components.means.astype("f4")
    model.precisions_cholesky_ = (components.covariances**-0.5).astype("f4")
    ratios = []
    with threadpool_limits(1):
        for _ in range(5):
            times = [time.thread_time()]
            model._m_step(x, model._e_step(x)[1])
            times.append(time.thread_time())
            cpu.mixture_sums(x, outcomes, components)
            times.append(time.thread_time())
            ratios.append((times[1] - times[0]) / (times[2] - times[1]))
    assert np.median(ratios[1:]) > 1.7  # with label terms, which scikit-learn does not have


# Responsibilities, and who is served by what


@pytest.mark.parametrize("n_labels", [2, 12, 40])
@pytest.mark.parametrize("n", [0, 1, 1500])
def test_responsibilities_are_those_of_the_reference(n, n_labels):
    job = study(n, 5, k=6, n_labels=n_labels)
    found = cpu.responsibilities(*job)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, reference.responsibilities(*job), atol=1e-5)
    np.testing.assert_allclose(found.sum(axis=1), np.ones(n), rtol=1e-6)


def test_responsibilities_of_rows_beyond_float32_are_finite():
    x, outcomes, components = study(1500, 2)
    x[3] = 1e25
    found = cpu.responsibilities(x, outcomes, components)
    np.testing.assert_allclose(found, reference.responsibilities(x, outcomes, components), atol=1e-5)


def test_single_precision_is_served_by_the_compiled_kernel():
    x, outcomes, components = study(300, 3)
    assert dispatch.implementation("mixture_sums", x) is cpu.mixture_sums
    assert_equal(dispatch.mixture_sums(x, outcomes, components), cpu.mixture_sums(x, outcomes, components))
    np.testing.assert_array_equal(
        dispatch.responsibilities(x, outcomes, components), cpu.responsibilities(x, outcomes, components)
    )
