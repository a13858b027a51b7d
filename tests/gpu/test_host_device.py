"""What holds for all kernels: order of threads, memory, concurrency; and that the CPU stand-in is strict."""

import functools
import re
from concurrent.futures import ThreadPoolExecutor

import dask.array as da
import numpy as np
import pytest
from host_gpu import COMPILER, HostLane, library_of
from resident import Resident
from studies import errors, fourier_study, landmark_study

import scaleshift as ss
from scaleshift.kernels.cuda import choice, device, grouped
from scaleshift.kernels.cuda.device import Device, Kernels
from scaleshift.kernels.cuda.fourier import fourier_sums
from scaleshift.kernels.cuda.landmarks import landmark_sums

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")

KERNELS = [
    pytest.param(fourier_sums, fourier_study, id="fourier"),
    pytest.param(landmark_sums, landmark_study, id="landmarks"),
]


@pytest.mark.parametrize(("sums", "study"), KERNELS)
@pytest.mark.parametrize("d", [5, 49])
def test_the_order_of_threads_changes_no_bit(sums, study, d, monkeypatch):
    found = []
    for backwards in (False, True):
        made = Device(functools.partial(HostLane, backwards), 1 << 34)
        monkeypatch.setattr(device, "device_of", lambda x, made=made: made)
        found.append(sums(*study(2000, d, 3, 140)))
    np.testing.assert_array_equal(*found)


def test_a_missing_barrier_is_seen():
    text = Kernels.of("fourier", INPUT="float32", CODE="int32", COLUMNS=5).text
    assert len(re.findall(r"__syncthreads\(\);", text)) == 2

    class Without(Kernels):
        @property
        def text(self):
            return text.replace("__syncthreads();", "")

    kernels = Without("without", (("INPUT", "float32"), ("CODE", "int32"), ("COLUMNS", "5")))
    x, rows = np.ones((300, 5), np.float32), np.arange(300, dtype=np.int64)
    found = []
    for backwards in (False, True):
        sums = np.zeros((1, 2, 9))
        turns = np.full((2, 256, 4), 0.3, np.float32)
        HostLane(backwards).launch(
            kernels,
            "fourier_sums",
            (1, 1),
            (
                *(x, np.int64(5), np.int64(1), rows, np.array([0, 300], np.int32), np.zeros(5, np.float32)),
                *(turns, np.int32(9), sums),
            ),
        )
        found.append(sums)
    assert not np.array_equal(*found)


def test_arguments_of_another_type_than_the_text_has_are_refused():
    kernels = Kernels.of("fourier", INPUT="float32", CODE="int32", COLUMNS=5)
    arguments = (np.zeros((1, 3)), np.array([0, 1], np.int32), np.int64(3), np.zeros((1, 3)))
    with pytest.raises(AssertionError, match="add_ranges"):
        HostLane().launch(kernels, "add_ranges", (1, 1), arguments)


def test_two_kernels_of_one_text_are_compiled_once():
    kernels = Kernels.of("fourier", INPUT="float32", CODE="int32", COLUMNS=5)
    assert library_of(kernels) is library_of(Kernels.of("fourier", **dict(kernels.constants)))


@pytest.mark.parametrize(("sums", "study"), KERNELS)
@pytest.mark.parametrize("n_groups", [3, 500])
def test_a_call_keeps_to_its_share_of_memory(sums, study, n_groups, monkeypatch):
    lanes = []

    def make():
        lanes.append(HostLane())
        return lanes[-1]

    made = Device(make, 1 << 34)
    monkeypatch.setattr(device, "device_of", lambda x: made)
    job = study(40_000, 5, n_groups, 5)
    sums(*job)
    free = max(lane.peak for lane in lanes)
    monkeypatch.setattr(grouped, "_LANE_BYTES", 1 << 20)
    lanes.clear()
    made._idle.clear()
    sums(*job)
    assert len(lanes) == 3
    assert 1 << 18 < max(lane.peak for lane in lanes) <= 1 << 20 < free
    assert all(lane.bytes == 0 for lane in lanes)  # nothing stays on the device


@pytest.mark.parametrize(("sums", "study"), KERNELS)
def test_a_piece_of_the_least_size_is_tried_where_nothing_fits(sums, study, monkeypatch):
    made = Device(HostLane, 1)
    monkeypatch.setattr(device, "device_of", lambda x: made)
    job = study(9000, 5, 3, 5)
    expected = sums(*job)
    monkeypatch.setattr(grouped, "_LANE_BYTES", 1)
    assert errors(sums(*job), expected).max() < 3e-7


@pytest.mark.parametrize(("sums", "study"), KERNELS)
def test_four_threads_take_turns_and_get_the_same_bits(sums, study, monkeypatch):
    made = Device(HostLane, 2 * 2 * device.CALL_BYTES)  # room for two
    monkeypatch.setattr(device, "device_of", lambda x: made)
    jobs = [study(2000, 5, 3, 20, seed) for seed in range(4)]
    expected = [sums(*job) for job in jobs]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            found = list(pool.map(lambda job: sums(*job), jobs))
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other)
    assert 1 <= len(made._idle) <= 2  # one for each of two callers at once


def test_a_call_that_fails_gives_its_lanes_back(monkeypatch):
    made = Device(HostLane, 1)
    monkeypatch.setattr(device, "device_of", lambda x: made)
    monkeypatch.setattr(HostLane, "sort", lambda lane, keys: 1 / 0)
    for _ in range(3):  # with a turn lost, the second call would wait for ever
        with pytest.raises(ZeroDivisionError):
            fourier_sums(*fourier_study(100, 5, 3, 5))
    assert len(made._idle) == 1


def test_a_call_that_runs_out_of_memory_says_what_needs_less(host_device, monkeypatch):
    def full(lane, keys):
        raise MemoryError("Out of memory allocating 512 bytes")

    monkeypatch.setattr(HostLane, "sort", full)
    with pytest.raises(MemoryError) as caught:
        fourier_sums(*fourier_study(100, 5, 3, 5))
    assert "SCALESHIFT_DEVICE=cpu" in caught.value.__notes__[0]


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_codes_of_any_type_are_read_in_place(host_device, dtype):
    x, groups, n_groups, frequencies = fourier_study(1000, 5, 3, 5)
    groups = np.abs(groups) if dtype.startswith("u") else groups
    expected = fourier_sums(x, groups, n_groups, frequencies)
    groups = Resident(groups.astype(dtype))
    np.testing.assert_array_equal(fourier_sums(Resident(x), groups, n_groups, frequencies), expected)


@pytest.mark.parametrize("features", ["fourier", "landmarks"])
def test_a_whole_fit_by_the_texts_is_that_of_the_cpu(host_device, features, monkeypatch):
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b", "c"], 6000, p=[0.5, 0.3, 0.2])
    x = (rng.normal(size=(6000, 5)) + 2 * (y == "b")[:, None] - 2 * (y == "c")[:, None]).astype("f4")
    target = da.from_array(x[rng.choice(6000, 2000)], chunks=(700, -1))
    data = da.from_array(x, chunks=(900, -1)), da.from_array(y, chunks=900)

    def proportions():
        features_map = {"fourier": ss.FourierFeatures(60), "landmarks": ss.LandmarkFeatures(30)}[features]
        model = ss.DFM(features=features_map, n_bootstrap=0, random_state=0).fit(*data)
        return model.predict(target)["proportion"].to_numpy()

    monkeypatch.setenv("SCALESHIFT_DEVICE", "cpu")
    expected = proportions()
    assert not host_device._idle
    monkeypatch.setenv("SCALESHIFT_DEVICE", "cuda")
    monkeypatch.setattr(choice, "gpu_obstacle", lambda: "")
    np.testing.assert_allclose(proportions(), expected, atol=1e-6)
    assert host_device._idle  # lanes were lent: it was the texts
