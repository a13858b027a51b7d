"""Which implementation serves a block, and what is imported for it."""

import subprocess
import sys

import numpy as np
import pytest

from scaleshift.kernels import dispatch, reference


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_importing_the_kernels_imports_neither_numba_nor_cupy():
    loaded = run_python("import sys, scaleshift.kernels.dispatch; print(*sys.modules)").split()
    assert "scaleshift.kernels.dispatch" in loaded
    assert not {"numba", "llvmlite", "cupy", "dask", "xarray"} & set(loaded)


def test_importing_the_cpu_kernels_compiles_nothing():
    code = (
        "import scaleshift.kernels.cpu.fourier as f, scaleshift.kernels.cpu.landmarks as l;"
        "import scaleshift.kernels.cpu.moments as m, scaleshift.kernels.cpu.mixture as g;"
        "import scaleshift.kernels.cpu.scatter as s;"
        "kernels = [f.pack, f._add_groups, f._add_rows, f.eight_products, f._rotate];"
        "kernels += [l._shift, l._between, l._add_groups, l._add_rows, m._add_rows];"
        "kernels += [s._order_rows, s._gather_rows, s._add];"
        "kernels += [g._add_rows, g.transpose_rows, g.steps.add_moments, g.steps.log2];"
        "print(sum(len(k.signatures) for k in kernels))"
    )
    assert run_python(code).strip() == "0"


def test_numpy_blocks_get_the_cpu_kernel_and_what_has_none_the_reference(monkeypatch):
    monkeypatch.setenv("SCALESHIFT_DEVICE", "cpu")
    x = np.zeros((2, 1), dtype=np.float32)
    assert dispatch.implementation("fourier_sums", x).__module__ == "scaleshift.kernels.cpu.fourier"
    assert dispatch.implementation("landmark_sums", x).__module__ == "scaleshift.kernels.cpu.landmarks"
    assert dispatch.implementation("mixture_sums", x).__module__ == "scaleshift.kernels.cpu.mixture"
    assert dispatch.implementation("moment_sums", x).__module__ == "scaleshift.kernels.cpu.moments"
    assert dispatch.implementation("scatter_sums", x).__module__ == "scaleshift.kernels.cpu.scatter"
    assert dispatch.implementation("exact_sums", x) is reference.exact_sums


def test_subclasses_of_numpy_arrays_count_as_numpy(tmp_path):
    class Tagged(np.ndarray):
        pass

    mapped = np.memmap(tmp_path / "x", dtype=np.float32, mode="w+", shape=(2, 1))
    for x in (np.zeros((2, 1)).view(Tagged), mapped):
        sums = dispatch.fourier_sums(x, np.array([0, 0]), 1, np.ones((3, 1)))
        np.testing.assert_allclose(sums, [[2, 2, 2, 0, 0, 0]], atol=1e-6)


def test_the_functions_for_an_array_are_those_of_its_library():
    assert reference.namespace(np.zeros(1)) is np
    # CuPy's arrays name their package and have no __array_namespace__
    foreign = type("ndarray", (), {"__module__": "fractions"})
    assert reference.namespace(foreign()).__name__ == "fractions"


def test_a_block_of_another_library_is_refused_by_name():
    with pytest.raises(TypeError, match=r"fourier_sums works on numpy and CuPy blocks, found builtins\.list"):
        dispatch.fourier_sums([[1.0]], np.array([0]), 1, np.ones((1, 1)))


def test_dispatched_sums_are_those_of_the_reference():
    rng = np.random.default_rng(0)
    x, groups = rng.normal(size=(300, 4)), rng.integers(-1, 3, 300)
    frequencies = rng.normal(size=(20, 4)) / 2
    expected = reference.fourier_sums(x, groups, 3, frequencies)
    assert np.linalg.norm(
        dispatch.fourier_sums(x, groups, 3, frequencies) - expected
    ) < 5e-7 * np.linalg.norm(expected)
    job = (x, groups, 3, x[:50], np.arange(50) % 2, 2, 1.5)
    np.testing.assert_array_equal(dispatch.exact_sums(*job), reference.exact_sums(*job))
    expected = reference.landmark_sums(x, groups, 3, x[:50], 1.5)
    assert np.linalg.norm(
        dispatch.landmark_sums(x, groups, 3, x[:50], 1.5) - expected
    ) < 5e-7 * np.linalg.norm(expected)
