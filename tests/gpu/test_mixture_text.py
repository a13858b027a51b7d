"""The text of the mixture kernels, compiled as C++ and run by its own wrapper, against the reference."""

import functools
import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from host_gpu import HostLane
from mixtures import SUMS, assert_close, assert_same_bits, distances, mixture_study, of_one_row, part_of

import scaleshift as ss
from scaleshift.kernels import dispatch
from scaleshift.kernels import mixture as reference
from scaleshift.kernels.cpu import mixture as cpu
from scaleshift.kernels.cuda import device, mixture_plan
from scaleshift.kernels.cuda import mixture as cuda

pytestmark = pytest.mark.usefixtures("host_device")


@pytest.mark.parametrize("d", [1, 3, 4, 31, 32, 33, 57, 64, 130])
@pytest.mark.parametrize("covariance_type", ["diag", "spherical"])
def test_sums_agree_for_any_number_of_columns(d, covariance_type):
    job = mixture_study(1500, d, covariance_type=covariance_type)
    assert_close(cuda.mixture_sums(*job), reference.mixture_sums(*job))


@pytest.mark.parametrize("k", [1, 2, 7, 8, 9, 25, 32, 33, 70])
@pytest.mark.parametrize("n_models", [1, 3])
def test_sums_agree_for_any_number_of_components(k, n_models):
    job = mixture_study(1500, 6, k=k, n_models=n_models)
    assert_close(cuda.mixture_sums(*job), reference.mixture_sums(*job))


@pytest.mark.parametrize("n_labels", [1, 2, 8, 9, 31, 127, 128, 129, 300])
def test_sums_agree_for_any_number_of_labels(n_labels):
    job = mixture_study(1500, 3, n_labels=n_labels, n_models=2)
    assert_close(cuda.mixture_sums(*job), reference.mixture_sums(*job))


@pytest.mark.parametrize("n", [0, 1, 2, 31, 32, 63, 64, 65, 127, 128, 129, 1023, 1024, 1025, 3000])
@pytest.mark.parametrize("n_labels", [2, 40])
def test_rows_at_the_edge_of_a_tile_count_once(n, n_labels):
    job = mixture_study(n, 3, n_labels=n_labels)
    assert_close(cuda.mixture_sums(*job), reference.mixture_sums(*job))


@pytest.mark.parametrize("n_labels", [2, 40])
@pytest.mark.parametrize("unknown", [(), ("label_probs",), ("prediction_probs",)])
def test_sums_agree_whatever_is_known(n_labels, unknown):
    x, outcomes, components = mixture_study(700, 5, n_labels=n_labels, n_models=2)
    components = components._replace(**dict.fromkeys(unknown))
    names = ("label", "prediction", "weight", "extra")
    for absent in itertools.chain.from_iterable(itertools.combinations(names, m) for m in range(5)):
        known = outcomes._replace(**dict.fromkeys(absent))
        expected = reference.mixture_sums(x, known, components)
        assert set(SUMS[3:]) - set(absent) == set(SUMS[3:]) & expected.keys()
        assert_close(cuda.mixture_sums(x, known, components), expected)


@pytest.mark.parametrize("n_extra", [1, 32, 33])
def test_sums_of_anything_else_agree(n_extra):
    x, outcomes, components = mixture_study(2000, 3, n_models=2)
    outcomes = outcomes._replace(extra=np.random.default_rng(0).uniform(size=(2000, n_extra)))
    expected = reference.mixture_sums(x, outcomes, components)
    assert_close(cuda.mixture_sums(x, outcomes, components), expected)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
@pytest.mark.parametrize("n_labels", [2, 40])
def test_predictions_may_be_of_any_float_type(dtype, n_labels):
    x, outcomes, components = mixture_study(2000, 3, n_labels=n_labels)
    outcomes = outcomes._replace(prediction=outcomes.prediction.astype(dtype))
    expected = reference.mixture_sums(x, outcomes, components)
    assert_close(cuda.mixture_sums(x, outcomes, components), expected)


@pytest.mark.parametrize(
    ("d", "tolerances"),
    [
        # components as far apart as those of embeddings
        (64, {"n": 2e-8, "x": 4e-8, "xx": 8e-8}),
        (20, {"n": 1e-7, "x": 1.2e-7, "xx": 1.6e-7}),  # a third of the rows is in doubt
    ],
)
def test_digits_are_those_of_float32_sums_where_rows_are_many(d, tolerances):
    x, outcomes, components = mixture_study(40_000, d, k=25)
    outcomes = outcomes._replace(weight=None)
    expected = reference.mixture_sums(x, outcomes, components)
    found = distances(cuda.mixture_sums(x, outcomes, components), expected)
    for name, tolerance in tolerances.items():
        assert found[name] < tolerance, f"{name} is off by {found[name]:.1e}"
    assert found["mass"] == 0
    assert found["log_likelihood"] < 1e-8


# What sums must be like


@pytest.mark.parametrize("n_labels", [2, 40])
def test_weights_are_repeated_rows(n_labels):
    x, outcomes, components = mixture_study(2000, 4, n_labels=n_labels)
    times = np.random.default_rng(0).integers(0, 4, 2000)
    found = cuda.mixture_sums(x, outcomes._replace(weight=times), components)
    again = np.repeat(np.arange(2000), times)
    repeated = outcomes._replace(weight=None).rows(again)
    assert_close(found, cuda.mixture_sums(x[again], repeated, components))
    assert found["mass"] == times.sum()


def test_rows_of_weight_zero_add_nothing():
    x, outcomes, components = mixture_study(1500, 4)
    found = cuda.mixture_sums(x, outcomes._replace(weight=np.zeros(1500)), components)
    assert not any(value.any() for value in found.values())


@pytest.mark.parametrize("n_labels", [2, 40, 128])
def test_a_missing_label_has_no_term_and_no_sum(n_labels):
    x, outcomes, components = mixture_study(2000, 3, n_labels=n_labels)
    outcomes = outcomes._replace(prediction=None, extra=None)
    found = cuda.mixture_sums(x, outcomes._replace(label=np.full(2000, -1)), components)
    assert not found.pop("label").any()
    assert_close(found, cuda.mixture_sums(x, outcomes._replace(label=None, n_labels=0), components), 1e-7)


@pytest.mark.parametrize("n_labels", [2, 40])
@pytest.mark.parametrize("sizes", [(5,), (1, 30), (3, 40, 2), (1, 1, 1)])
def test_a_model_in_a_batch_has_the_bits_it_has_alone(n_labels, sizes, monkeypatch):
    monkeypatch.setattr(mixture_plan, "_SCRATCH_BYTES", 1 << 20)  # the more components, the fewer rows
    x, outcomes, components = mixture_study(5000, 6, k=sum(sizes), n_labels=n_labels)
    components = components._replace(sizes=sizes)
    batch = cuda.mixture_sums(x, outcomes, components)
    for number, model in components.models:
        alone = cuda.mixture_sums(x, outcomes, part_of(components, number))
        for name in SUMS:
            np.testing.assert_array_equal(batch[name][model], alone[name], err_msg=name)
        assert batch["log_likelihood"][number] == alone["log_likelihood"][0]


@pytest.mark.parametrize("scratch", [1, 1 << 18, 1 << 20])
def test_rows_that_are_worked_on_at_a_time_do_not_change_a_bit(scratch, monkeypatch):
    job = mixture_study(5000, 6, n_labels=40)
    expected = cuda.mixture_sums(*job)
    monkeypatch.setattr(mixture_plan, "_SCRATCH_BYTES", scratch)
    assert_same_bits(cuda.mixture_sums(*job), expected)


@pytest.mark.parametrize("piece", [1, 1 << 17])
def test_sums_of_pieces_add_up_to_those_of_the_whole(piece, monkeypatch):
    job = mixture_study(7000, 6, n_labels=40)
    whole, shares = cuda.mixture_sums(*job), cuda.responsibilities(*job)
    monkeypatch.setattr(mixture_plan, "_PIECE_BYTES", piece)
    assert_close(cuda.mixture_sums(*job), whole, tolerance=1e-12)
    np.testing.assert_array_equal(cuda.responsibilities(*job), shares)


def test_the_order_of_threads_and_blocks_does_not_change_a_bit(monkeypatch):
    job = mixture_study(3000, 40, k=40, n_labels=40, n_models=2)
    found = []
    for backwards in (False, True):
        made = device.Device(functools.partial(HostLane, backwards), 1 << 34)
        monkeypatch.setattr(device, "device_of", lambda x, made=made: made)
        found.append(cuda.mixture_sums(*job))
    assert_same_bits(*found)


def test_layout_does_not_change_a_bit():
    x, outcomes, components = mixture_study(2000, 6)
    expected = cuda.mixture_sums(x, outcomes, components)
    wide = np.zeros((4000, 12), dtype=np.float32)
    wide[::2, ::2] = x
    for same in (np.asfortranarray(x), wide[::2, ::2], x[::-1].copy()[::-1]):
        assert_same_bits(cuda.mixture_sums(same, outcomes, components), expected)
    same = outcomes._replace(
        label=np.repeat(outcomes.label.astype(np.int8), 2)[::2],
        prediction=np.asfortranarray(outcomes.prediction),
        weight=np.repeat(outcomes.weight, 2)[::2],
    )
    assert_same_bits(cuda.mixture_sums(x, same, components), expected)


# Strange models and rows


@pytest.mark.parametrize("weight", [0.0, 1e-300, 1e-12])
def test_components_of_hardly_any_weight_take_no_part(weight):
    x, outcomes, components = mixture_study(2000, 4, k=5)
    weights = components.weights.copy()
    weights[[0, 3]] = weight
    components = components._replace(weights=weights)
    found = cuda.mixture_sums(x, outcomes, components)
    assert_close(found, reference.mixture_sums(x, outcomes, components))
    if weight == 0:
        assert not found["n"][[0, 3]].any()


def test_a_model_without_weights_is_left_to_the_reference():
    x, outcomes, components = mixture_study(10, 2)
    components = components._replace(weights=np.zeros(3))
    with np.errstate(invalid="ignore"):
        found = cuda.mixture_sums(x, outcomes, components)
        assert_same_bits(found, reference.mixture_sums(x, outcomes, components))


@pytest.mark.parametrize("distance", [1e2, 1e6, 1e12])
def test_rows_far_from_every_component_count_once(distance):
    x, outcomes, components = mixture_study(3000, 4)
    outcomes = outcomes._replace(weight=None)
    x[7], x[2500] = distance, -distance
    found, expected = (serve.mixture_sums(x, outcomes, components) for serve in (cuda, reference))
    assert found["n"].sum() == pytest.approx(3000, rel=1e-7)
    np.testing.assert_allclose(found["log_likelihood"], expected["log_likelihood"], rtol=1e-6)
    np.testing.assert_allclose(found["n"], expected["n"], rtol=1e-6)


@pytest.mark.parametrize("n_labels", [2, 40])
@pytest.mark.parametrize("lost", [[7], [1024, 5999], [2999]])
@pytest.mark.parametrize("far", [2e15, 1e25, np.inf])
def test_rows_beyond_float32_are_left_to_the_reference_and_leave_no_trace(n_labels, lost, far, monkeypatch):
    monkeypatch.setattr(mixture_plan, "_PIECE_BYTES", 1 << 16)
    monkeypatch.setattr(mixture_plan, "_SCRATCH_BYTES", 1 << 18)
    x, outcomes, components = mixture_study(6000, 4, n_labels=n_labels, n_models=2)
    # float32 would not tell which component is nearest
    components = components._replace(covariances=np.ones_like(components.covariances))
    clean = x.copy()
    x[lost] = far
    if far == np.inf:
        outcomes.weight[lost] = 0  # would be infinite otherwise, and is NaN in the reference
        with np.errstate(invalid="ignore"):
            assert np.isnan(cuda.mixture_sums(x, outcomes, components)["n"]).all()
    else:
        found = cuda.mixture_sums(x, outcomes, components)
        assert_close(found, reference.mixture_sums(x, outcomes, components))
    expected = reference.mixture_sums(clean, outcomes, components)
    assert_close(cuda.mixture_sums(clean, outcomes, components), expected)


def test_predictions_that_a_component_excludes_have_the_term_of_epsilon():
    x, outcomes, components = mixture_study(2000, 2, k=2)
    certain = np.eye(2)[np.random.default_rng(0).integers(0, 2, 2000)]
    outcomes = outcomes._replace(prediction=certain, label=(certain[:, 1]).astype(int))
    components = components._replace(prediction_probs=np.eye(2), label_probs=np.eye(2))
    expected = reference.mixture_sums(x, outcomes, components)
    assert_close(cuda.mixture_sums(x, outcomes, components), expected)


def test_double_precision_and_other_covariances_are_the_reference():
    x, outcomes, components = mixture_study(500, 2)
    double = x.astype(np.float64)
    expected = reference.mixture_sums(double, outcomes, components)
    assert_same_bits(cuda.mixture_sums(double, outcomes, components), expected)
    full = components._replace(covariance_type="full", covariances=np.tile(np.eye(2), (3, 1, 1)))
    assert_same_bits(cuda.mixture_sums(x, outcomes, full), reference.mixture_sums(x, outcomes, full))
    assert cuda.responsibilities(x, outcomes, full).dtype == np.float64


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": np.array([0, 2, 1])}, "holds the code 2 in row 1, but n_groups is 2"),
        ({"prediction": np.ones((2, 2))}, "prediction has 2 rows, but x has 3"),
        ({"weight": np.ones(4)}, "weight has 4 rows, but x has 3"),
    ],
)
def test_outcomes_that_do_not_fit_are_refused_before_they_touch_memory(change, message):
    x, outcomes, components = mixture_study(3, 2)
    with pytest.raises(ValueError, match=message):
        cuda.mixture_sums(x, outcomes._replace(**change), components)


def test_columns_must_match_the_components():
    _, outcomes, components = mixture_study(3, 2)
    with pytest.raises(ValueError, match=r"components have 2 columns, but x has the shape \(3, 3\)"):
        cuda.mixture_sums(np.zeros((3, 3), dtype=np.float32), outcomes, components)


def test_classes_must_be_those_of_the_components():
    x, outcomes, components = mixture_study(3, 2)
    with pytest.raises(ValueError, match="label_probs has 2 columns, but outcomes have 3 classes"):
        cuda.mixture_sums(x, outcomes._replace(n_labels=3), components)
    with pytest.raises(ValueError, match="prediction_probs has 2 columns, but outcomes have 4 classes"):
        cuda.mixture_sums(x, outcomes._replace(prediction=np.ones((3, 4))), components)


def test_arrays_of_a_gpu_are_made_float32_there(monkeypatch):
    x, outcomes, components = mixture_study(300, 3)
    expected = cuda.mixture_sums(x, outcomes, components)
    monkeypatch.setattr(cuda, "library", lambda part: "cupy")
    assert_same_bits(cuda.mixture_sums(np.asfortranarray(x), outcomes, components), expected)


# Responsibilities, memory, a whole fit


@pytest.mark.parametrize("n_labels", [2, 40])
@pytest.mark.parametrize(("n", "k"), [(0, 6), (1, 6), (1500, 6), (3000, 33)])
def test_responsibilities_are_those_of_the_reference(n, k, n_labels):
    job = mixture_study(n, 5, k=k, n_labels=n_labels)
    found = cuda.responsibilities(*job)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, reference.responsibilities(*job), atol=of_one_row(*job))
    np.testing.assert_allclose(found.sum(axis=1), np.ones(n), rtol=1e-6)


def test_responsibilities_of_rows_beyond_float32_are_those_of_the_reference(monkeypatch):
    monkeypatch.setattr(mixture_plan, "_SCRATCH_BYTES", 1 << 18)
    x, outcomes, components = mixture_study(4000, 2)
    x[[3, 3999]] = 1e25
    found = cuda.responsibilities(x, outcomes, components)
    np.testing.assert_allclose(found, reference.responsibilities(x, outcomes, components), atol=1e-6)


def test_memory_on_the_device_does_not_grow_with_the_rows(host_device, monkeypatch):
    monkeypatch.setattr(mixture_plan, "_PIECE_BYTES", 1 << 18)
    monkeypatch.setattr(mixture_plan, "_SCRATCH_BYTES", 1 << 20)
    x, outcomes, components = mixture_study(60_000, 8, n_labels=40)
    for serve in (cuda.mixture_sums, cuda.responsibilities):
        peaks = []
        for n in (20_000, 60_000):
            serve(x[:n], outcomes.rows(slice(n)), components)
            with host_device.lanes() as lanes:
                assert all(lane.bytes == 0 for lane in lanes)  # nothing stays on the device
                peaks.append([lane.peak for lane in lanes])
        assert peaks[0] == peaks[1]
        assert 1 << 19 < max(peaks[0]) < (1 << 18) + (1 << 20) + (1 << 17)


def test_threads_take_turns_and_get_the_same_bits(monkeypatch):
    made = device.Device(HostLane, 2 * 2 * device.CALL_BYTES)  # room for two
    monkeypatch.setattr(device, "device_of", lambda x: made)
    jobs = [mixture_study(2000, 5, n_labels=40, seed=seed) for seed in range(4)]
    expected = [cuda.mixture_sums(*job) for job in jobs]
    with ThreadPoolExecutor(4) as pool:
        for found, alone in zip(pool.map(lambda job: cuda.mixture_sums(*job), jobs), expected, strict=True):
            assert_same_bits(found, alone)


def test_blocks_are_served_by_the_gpu_where_there_is_one(monkeypatch):
    x, outcomes, components = mixture_study(300, 3)
    for takes, module in ((False, cpu), (True, cuda)):
        monkeypatch.setattr(dispatch, "takes_host_block", lambda size, takes=takes: takes)
        for kernel in ("mixture_sums", "responsibilities"):
            assert dispatch.implementation(kernel, x) is getattr(module, kernel)
    assert_same_bits(
        dispatch.mixture_sums(x, outcomes, components), cuda.mixture_sums(x, outcomes, components)
    )


def test_a_fit_of_slices_is_that_of_the_cpu(host_device, monkeypatch):
    rng = np.random.default_rng(0)
    n = 3000
    group = rng.integers(0, 4, n)
    x = (3 * rng.normal(size=(4, 8))[group] + rng.normal(size=(n, 8))).astype(np.float32)
    y = rng.integers(0, 2, n)
    wrong = (group == 2) & (rng.uniform(size=n) < 0.7)
    score = np.clip(np.where(wrong, 1 - y, y) * 0.8 + 0.1 + 0.05 * rng.normal(size=n), 0.01, 0.99)
    fits = []
    with monkeypatch.context() as patch:
        for takes in (False, True):
            patch.setattr(dispatch, "takes_host_block", lambda size, takes=takes: takes)
            slicer = ss.DominoSlicer(n_slices=3, n_mixture_components=8, random_state=0)
            fits.append(slicer.fit(None, x, y, score))
            with host_device.lanes() as lanes:
                assert any(lane.peak for lane in lanes) == takes
    on_cpu, on_gpu = fits
    np.testing.assert_array_equal(on_gpu.slice_components_, on_cpu.slice_components_)
    assert on_gpu.n_iter_ == on_cpu.n_iter_
    for name in ("weights_", "means_", "covariances_", "y_probs_", "y_hat_probs_"):
        found, expected = getattr(on_gpu, name), getattr(on_cpu, name)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4, err_msg=name)
    found, expected = (fit.predict_proba(None, x, y, score) for fit in (on_gpu, on_cpu))
    np.testing.assert_allclose(found, expected, atol=1e-4)
