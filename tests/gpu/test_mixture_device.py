"""The mixture kernels on a real GPU."""

import numpy as np
import pytest
from mixtures import assert_close, assert_same_bits, distances, mixture_study, of_one_row

import scaleshift as ss
from scaleshift.kernels import mixture as reference
from scaleshift.kernels import reference as reference_arrays
from scaleshift.kernels.cuda import device
from scaleshift.kernels.cuda import mixture as cuda
from scaleshift.kernels.cuda.choice import gpu_obstacle

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(gpu_obstacle()), reason=gpu_obstacle())]


@pytest.fixture(scope="module")
def cupy():
    return pytest.importorskip("cupy")


def resident(cupy, outcomes):
    """The same outcomes on the GPU, of other types."""
    return outcomes._replace(
        label=cupy.asarray(outcomes.label, dtype=cupy.int16),
        prediction=cupy.asarray(outcomes.prediction, dtype=cupy.float64),
        weight=cupy.asarray(outcomes.weight),
        extra=cupy.asfortranarray(cupy.asarray(outcomes.extra)),
    )


@pytest.mark.parametrize(
    ("n", "d", "k", "n_labels", "n_models"),
    [(0, 3, 3, 2, 1), (1, 1, 1, 1, 1), (1025, 3, 9, 40, 2), (5000, 64, 25, 2, 4), (3000, 130, 70, 300, 1)],
)
def test_sums_and_responsibilities_agree_with_the_reference(cupy, n, d, k, n_labels, n_models):
    x, outcomes, components = mixture_study(n, d, k, n_labels, n_models)
    expected, tolerance = reference.mixture_sums(x, outcomes, components), of_one_row(x, outcomes, components)
    found = cuda.mixture_sums(x, outcomes, components)
    assert_close(found, expected, tolerance)
    on_gpu = resident(cupy, outcomes)
    assert_same_bits(cuda.mixture_sums(cupy.asarray(x), on_gpu, components), found)
    if n_models == 1:
        shares = cuda.responsibilities(x, outcomes, components)
        np.testing.assert_allclose(
            shares, reference.responsibilities(x, outcomes, components), atol=tolerance
        )
        np.testing.assert_array_equal(cuda.responsibilities(cupy.asarray(x), on_gpu, components), shares)


def test_every_run_has_the_same_bits_and_keeps_to_its_share_of_memory(cupy):
    x, outcomes, components = mixture_study(1_500_000, 40, k=25, n_models=4)
    found = cuda.mixture_sums(x, outcomes, components)
    pool = cupy.cuda.MemoryPool()
    with cupy.cuda.using_allocator(pool.malloc):
        assert_same_bits(cuda.mixture_sums(x, outcomes, components), found)
    assert device.CALL_BYTES // 16 < pool.total_bytes() <= device.CALL_BYTES
    assert pool.used_bytes() == 0
    strided = cupy.asfortranarray(cupy.asarray(x))
    assert_same_bits(cuda.mixture_sums(strided, resident(cupy, outcomes), components), found)
    expected = reference.mixture_sums(cupy.asarray(x), outcomes, components)
    assert max(distances(found, expected).values()) < 1e-6


def test_the_functions_for_an_array_are_those_of_cupy(cupy):
    assert reference_arrays.namespace(cupy.zeros(1)) is cupy


def test_rows_beyond_float32_are_left_to_the_reference(cupy):
    x, outcomes, components = mixture_study(5000, 4)
    x[[7, 4999]] = 1e25
    expected = reference.mixture_sums(x, outcomes, components)
    assert_close(cuda.mixture_sums(x, outcomes, components), expected)
    assert_close(cuda.mixture_sums(cupy.asarray(x), resident(cupy, outcomes), components), expected)


def test_other_covariances_run_the_reference_on_the_gpu(cupy):
    x, outcomes, components = mixture_study(2000, 3)
    full = components._replace(covariance_type="full", covariances=np.tile(np.eye(3), (3, 1, 1)))
    expected = reference.mixture_sums(x, outcomes, full)
    assert_close(cuda.mixture_sums(cupy.asarray(x), resident(cupy, outcomes), full), expected, 1e-10)


@pytest.mark.usefixtures("cupy")
def test_a_fit_of_slices_is_that_of_the_cpu(monkeypatch):
    x, outcomes, _ = mixture_study(20_000, 16, k=8, seed=3)
    y, score = np.maximum(outcomes.label, 0), outcomes.prediction[:, 1]
    fits = []
    for where in ("cpu", "cuda"):
        monkeypatch.setenv("SCALESHIFT_DEVICE", where)
        fits.append(ss.DominoSlicer(n_mixture_components=8, random_state=0).fit(None, x, y, score))
    on_cpu, on_gpu = fits
    np.testing.assert_allclose(on_gpu.lower_bound_, on_cpu.lower_bound_, atol=1e-3)
    np.testing.assert_allclose(on_gpu.weights_, on_cpu.weights_, atol=1e-2)
