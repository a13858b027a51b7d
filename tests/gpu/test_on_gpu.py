"""The kernels on a GPU: `pytest -m gpu` where there is one."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from studies import errors, fourier_study, landmark_study

import scaleshift as ss
from scaleshift.kernels import dispatch, reference
from scaleshift.kernels.cuda import device
from scaleshift.kernels.cuda.choice import gpu_obstacle
from scaleshift.kernels.cuda.device import CALL_BYTES, Device
from scaleshift.kernels.cuda.fourier import fourier_sums
from scaleshift.kernels.cuda.landmarks import landmark_sums

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(gpu_obstacle()), reason=gpu_obstacle())]

KERNELS = [
    pytest.param(fourier_sums, fourier_study, reference.fourier_sums, id="fourier"),
    pytest.param(landmark_sums, landmark_study, reference.landmark_sums, id="landmarks"),
]


@pytest.fixture(scope="module")
def cupy():
    return pytest.importorskip("cupy")


@pytest.mark.parametrize(("sums", "study", "exact"), KERNELS)
@pytest.mark.parametrize("d", [1, 5, 20, 24, 25, 48, 49, 200, 600, 1536, 1537])
def test_sums_agree_with_the_reference(sums, study, exact, d):
    job = study(5000, d, 7, 300)
    assert errors(sums(*job), exact(*job)).max() < 1e-6


@pytest.mark.parametrize(("sums", "study", "exact"), KERNELS)
def test_many_pieces_of_a_host_block_agree_with_the_reference(sums, study, exact):
    job = study(1_500_000, 5, 10, 16)  # 30 MB
    assert errors(sums(*job), exact(*job)).max() < 1e-6


@pytest.mark.parametrize(("sums", "study", "exact"), KERNELS)
@pytest.mark.parametrize("n_groups", [1, 3000, 100_000])
def test_any_number_of_groups_agrees_with_the_reference(sums, study, exact, n_groups):
    job = study(50_000, 5, n_groups, 20)
    assert errors(sums(*job), exact(*job)).max() < 2e-6


@pytest.mark.parametrize(("sums", "study", "exact"), KERNELS)
def test_a_resident_block_gives_the_bits_of_a_host_block(sums, study, exact, cupy):
    x, groups, *rest = study(20_000, 5, 7, 300)
    expected = sums(x, groups, *rest)
    resident = cupy.asarray(x)
    wide = cupy.zeros((20_000, 10), dtype=np.float32)
    wide[:, ::2] = resident
    for same in (resident, cupy.asfortranarray(resident), wide[:, ::2]):
        for codes in (groups, cupy.asarray(groups), cupy.asarray(groups.astype(np.int8))):
            found = sums(same, codes, *rest)
            assert isinstance(found, np.ndarray)
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("sums", "study", "exact"), KERNELS)
def test_resident_float64_rows_with_an_offset_agree_with_the_reference(sums, study, exact, cupy):
    x, groups, n_groups, points, *bandwidth = study(5000, 5, 3, 50)
    points = points + 1e6 if bandwidth else reference.single_precision(points)
    far = x.astype(np.float64) + 1e6
    expected = exact(far, groups, n_groups, points, *bandwidth)
    assert errors(sums(cupy.asarray(far), groups, n_groups, points, *bandwidth), expected).max() < 1e-6


def test_resident_outliers_and_steep_frequencies_are_left_to_the_reference(cupy):
    x, groups, n_groups, frequencies = fourier_study(5000, 5, 3, 50)
    x[::500] = 1e6
    frequencies[3] *= 1e4
    expected = reference.fourier_sums(x, groups, n_groups, reference.single_precision(frequencies))
    assert errors(fourier_sums(cupy.asarray(x), groups, n_groups, frequencies), expected).max() < 1e-6


def test_a_resident_row_near_a_landmark_far_away_is_left_to_the_reference(cupy):
    x, groups, n_groups, landmarks, bandwidth = landmark_study(5000, 5, 3, 50)
    landmarks[0] += 1e3
    x[7], groups[7] = landmarks[0], 0
    expected = reference.landmark_sums(x, groups, n_groups, landmarks, bandwidth)
    found = landmark_sums(cupy.asarray(x), groups, n_groups, landmarks, bandwidth)
    assert found[0, 0] == pytest.approx(1, rel=1e-6)
    assert errors(found, expected).max() < 3e-6


@pytest.mark.parametrize(("sums", "study", "exact"), KERNELS)
def test_resident_codes_that_are_too_large_are_refused(sums, study, exact, cupy):
    x, groups, n_groups, *rest = study(3000, 5, 3, 5)
    groups[1234] = 3
    with pytest.raises(ValueError, match="holds the code 3 in row 1234, but n_groups is 3"):
        sums(cupy.asarray(x), cupy.asarray(groups), n_groups, *rest)


def test_the_arithmetic_is_that_of_the_text_compiled_as_cpp(monkeypatch):
    from host_gpu import COMPILER, HostLane

    if COMPILER is None:
        pytest.skip("needs g++")
    jobs = [fourier_study(5000, 5, 7, 300), fourier_study(2000, 100, 3, 40)]
    found = [fourier_sums(*job) for job in jobs]
    made = Device(HostLane, 1 << 34)
    monkeypatch.setattr(device, "device_of", lambda x: made)
    for job, sums in zip(jobs, found, strict=True):
        assert errors(sums, fourier_sums(*job)).max() < 1e-9  # other roundings would show as 1e-7


@pytest.mark.parametrize(("sums", "study", "exact"), KERNELS)
def test_the_same_call_gives_the_same_bits(sums, study, exact):
    job = study(1_200_000, 5, 10, 100)
    np.testing.assert_array_equal(sums(*job), sums(*job))


@pytest.mark.parametrize(("sums", "study", "exact"), KERNELS)
def test_four_threads_get_the_bits_of_one(sums, study, exact, cupy):
    jobs = [study(200_000, 5, 10, 100, seed) for seed in range(4)]
    jobs += [(cupy.asarray(x), *rest) for x, *rest in jobs]
    expected = [sums(*job) for job in jobs]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            for one, other in zip(pool.map(lambda job: sums(*job), jobs), expected, strict=True):
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("sums", "study", "exact"), KERNELS)
@pytest.mark.parametrize("resident", [False, True])
def test_a_call_keeps_to_its_share_of_memory(sums, study, exact, resident, cupy):
    x, *rest = study(3_000_000, 8, 500, 500)
    x = cupy.asarray(x) if resident else x
    pool = cupy.cuda.MemoryPool()
    with cupy.cuda.using_allocator(pool.malloc):
        sums(x, *rest)
    assert CALL_BYTES // 16 < pool.total_bytes() <= CALL_BYTES
    assert pool.used_bytes() == 0


@pytest.mark.parametrize(("sums", "study", "exact"), KERNELS)
def test_work_that_another_stream_has_been_given_is_waited_for(sums, study, exact, cupy):
    x, *rest = study(2_000_000, 5, 3, 20)
    expected = sums(x, *rest)
    resident, source, noise = cupy.zeros_like(x), cupy.asarray(x), cupy.zeros(1 << 28, dtype=np.float32)
    cupy.cuda.get_current_stream().synchronize()
    with cupy.cuda.Stream(non_blocking=True):
        for _ in range(30):
            noise += 1  # keeps the stream busy for 10 ms and more
        resident[...] = source
        found = sums(resident, *rest)
    assert errors(found, expected).max() < 1e-6


def test_numpy_blocks_go_to_the_gpu_and_results_are_those_of_the_cpu(monkeypatch):
    monkeypatch.setenv("SCALESHIFT_DEVICE", "auto")
    job = fourier_study(50_000, 5, 7, 100)
    assert dispatch.implementation("fourier_sums", job[0]) is fourier_sums
    found = dispatch.fourier_sums(*job)
    monkeypatch.setenv("SCALESHIFT_DEVICE", "cpu")
    assert dispatch.implementation("fourier_sums", job[0]) is not fourier_sums
    assert errors(found, dispatch.fourier_sums(*job)).max() < 1e-6


@pytest.mark.filterwarnings("default")  # of packages that start the cluster
@pytest.mark.parametrize("features", ["fourier", "landmarks"])
def test_a_fit_on_a_cuda_cluster_is_that_of_the_cpu(features, monkeypatch):
    dask_cuda, da = pytest.importorskip("dask_cuda"), pytest.importorskip("dask.array")
    from distributed import Client

    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b", "c"], 60_000, p=[0.5, 0.3, 0.2])
    x = (rng.normal(size=(60_000, 5)) + 2 * (y == "b")[:, None] - 2 * (y == "c")[:, None]).astype("f4")
    target = x[rng.choice(60_000, 20_000)]
    data = da.from_array(x, chunks=(7000, -1)), da.from_array(y, chunks=7000)

    def proportions():
        model = ss.DFM(features=features, n_bootstrap=0, random_state=0).fit(*data)
        return model.predict(da.from_array(target, chunks=(6000, -1)))["proportion"].to_numpy()

    monkeypatch.setenv("SCALESHIFT_DEVICE", "cpu")
    expected = proportions()
    monkeypatch.setenv("SCALESHIFT_DEVICE", "cuda")  # workers inherit it, and would fail without a GPU
    with dask_cuda.LocalCUDACluster(dashboard_address=":0") as cluster, Client(cluster):
        np.testing.assert_allclose(proportions(), expected, atol=1e-6)
