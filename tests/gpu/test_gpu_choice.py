"""Who computes what, and what is imported for it, on machines without a GPU."""

import importlib.resources
import importlib.util
import os
import subprocess
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import numpy as np
import pytest
from click.testing import CliRunner

import scaleshift as ss
from scaleshift.cli import main
from scaleshift.kernels import dispatch
from scaleshift.kernels.cuda import choice
from scaleshift.kernels.cuda.device import Kernels

# refuses GPU packages to whoever asks, and notes those of ours who do; Dask tries CuPy by itself
BLOCKER = """
import sys

class Blocker:
    ours = []

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("cupy", "cupyx", "cupy_backends", "cuda", "dask_cuda", "rmm"):
            frame = sys._getframe(1)
            while frame.f_globals["__name__"].startswith("importlib"):
                frame = frame.f_back
            if frame.f_globals["__name__"].startswith("scaleshift"):
                self.ours.append((frame.f_globals["__name__"], name))
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Blocker())
"""


LARGE = np.zeros((choice.LEAST_SIZE, 1))


def run_python(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(choice, "gpu_obstacle", lambda: "CuPy sees no GPU")


@pytest.fixture
def a_gpu(monkeypatch):
    monkeypatch.setattr(choice, "gpu_obstacle", lambda: "")


def test_importing_everything_imports_no_gpu_package():
    code = f"""{BLOCKER}
import scaleshift, scaleshift.cli, scaleshift.kernels.dispatch
import scaleshift.kernels.cuda.device, scaleshift.kernels.cuda.fourier, scaleshift.kernels.cuda.landmarks
for name in scaleshift.__all__:
    getattr(scaleshift, name)
print(Blocker.ours)
"""
    assert run_python(code) == "[]\n"


def test_work_that_is_kept_on_the_cpu_imports_no_gpu_package():
    code = f"""{BLOCKER}
import numpy as np, scaleshift as ss
x = np.random.default_rng(0).normal(size=(200, 2))
y = (x[:, 0] > 0).astype(int)
for features in ("fourier", "landmarks"):
    ss.DFM(features=features, n_bootstrap=0).fit(x, y).predict(x)
print(Blocker.ours)
"""
    assert run_python(code, SCALESHIFT_DEVICE="cpu") == "[]\n"


def test_the_blocker_of_these_tests_notes_who_imports_a_gpu_package():
    code = f"""{BLOCKER}
from scaleshift.kernels.cuda import device
try:
    device.device_of(None)
except ModuleNotFoundError:
    print(Blocker.ours)
"""
    assert run_python(code) == "[('scaleshift.kernels.cuda.device', 'cupy')]\n"


def test_where_cupy_is_not_installed_nothing_of_it_is_looked_for_twice():
    if importlib.util.find_spec("cupy"):
        pytest.skip("CuPy is installed here")
    code = """
import numpy as np
from scaleshift.kernels import dispatch
from scaleshift.kernels.cuda import choice
for _ in range(3):
    dispatch.implementation("fourier_sums", np.zeros((choice.LEAST_SIZE, 1)))
print(choice.gpu_obstacle.cache_info().misses, choice.gpu_obstacle())
"""
    assert run_python(code, SCALESHIFT_DEVICE="auto") == "1 CuPy is not installed\n"


def test_without_a_gpu_numpy_blocks_stay_on_the_cpu(no_gpu, monkeypatch):
    for value in ("", "auto", "cpu"):
        monkeypatch.setenv("SCALESHIFT_DEVICE", value)
        for kernel in dispatch.KERNELS:
            assert ".cuda." not in dispatch.implementation(kernel, LARGE).__module__


def test_with_a_gpu_numpy_blocks_go_there_unless_told_otherwise(a_gpu, monkeypatch):
    monkeypatch.delenv("SCALESHIFT_DEVICE", raising=False)
    x = LARGE
    for kernel, module in (("fourier_sums", "fourier"), ("landmark_sums", "landmarks")):
        assert dispatch.implementation(kernel, x).__module__ == f"scaleshift.kernels.cuda.{module}"
    assert dispatch.implementation("exact_sums", x).__module__ == "scaleshift.kernels.reference"
    assert dispatch.implementation("moment_sums", x).__module__ == "scaleshift.kernels.cpu.moments"
    monkeypatch.setenv("SCALESHIFT_DEVICE", "cpu")
    assert dispatch.implementation("fourier_sums", x).__module__ == "scaleshift.kernels.cpu.fourier"


def test_small_numpy_blocks_stay_on_the_cpu_unless_a_gpu_is_insisted_on(a_gpu, monkeypatch):
    monkeypatch.delenv("SCALESHIFT_DEVICE", raising=False)
    small = LARGE[1:]
    assert dispatch.implementation("fourier_sums", small).__module__ == "scaleshift.kernels.cpu.fourier"
    monkeypatch.setenv("SCALESHIFT_DEVICE", "cuda")
    assert dispatch.implementation("fourier_sums", small).__module__ == "scaleshift.kernels.cuda.fourier"


def test_work_on_little_data_looks_for_no_gpu():
    code = f"""{BLOCKER}
import numpy as np, scaleshift as ss
from scaleshift.kernels.cuda import choice
x = np.random.default_rng(0).normal(size=(200, 2))
ss.DFM(n_bootstrap=0).fit(x, (x[:, 0] > 0).astype(int)).predict(x)
print(Blocker.ours, choice.gpu_obstacle.cache_info().misses)
"""
    assert run_python(code, SCALESHIFT_DEVICE="auto") == "[] 0\n"


@pytest.mark.parametrize("version", ["before 14", "14"])
def test_a_driver_that_is_missing_or_old_is_no_gpu_whatever_cupy_does_about_it(version, monkeypatch):
    cupy = ModuleType("cupy")
    cupy.__spec__ = ModuleSpec("cupy", None)

    def is_available():
        if version == "14":
            return False
        raise RuntimeError("cudaErrorInsufficientDriver")

    cupy.is_available = is_available
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    assert choice.gpu_obstacle.__wrapped__().startswith("CuPy sees no GPU")


def test_insisting_on_a_gpu_where_there_is_none_is_refused_with_the_reason(no_gpu, monkeypatch):
    monkeypatch.setenv("SCALESHIFT_DEVICE", "cuda")
    with pytest.raises(
        choice.DeviceError, match=r"SCALESHIFT_DEVICE is cuda, but CuPy sees no GPU: .* doctor"
    ):
        dispatch.fourier_sums(np.zeros((3, 1)), np.zeros(3, int), 1, np.ones((1, 1)))


def test_another_device_than_there_is_is_refused(monkeypatch):
    monkeypatch.setenv("SCALESHIFT_DEVICE", "tpu")
    with pytest.raises(
        choice.DeviceError, match="SCALESHIFT_DEVICE is 'tpu': set it to one of auto, cpu, cuda"
    ):
        dispatch.fourier_sums(np.zeros((3, 1)), np.zeros(3, int), 1, np.ones((1, 1)))


def test_the_command_line_says_so_in_one_line(tmp_path, monkeypatch):
    x = np.random.default_rng(0).normal(size=(200, 2)).astype("f4")
    cells = ss.as_cells(x, sample=np.repeat(["a", "b"], 100), label=np.tile(["p", "q"], 100))
    ss.write_cells(cells, tmp_path / "s.zarr")
    monkeypatch.setenv("SCALESHIFT_DEVICE", "tpu")
    job = ["quantify", str(tmp_path / "s.zarr"), "--source", "sample == a", "--method", "soft-landmarks"]
    told = CliRunner().invoke(main, [*job, "--output", str(tmp_path / "out")])
    assert told.exit_code == 1
    assert "Error: SCALESHIFT_DEVICE is 'tpu'" in told.output
    assert "Traceback" not in told.output


@pytest.mark.parametrize("name", ["fourier", "landmarks"])
def test_texts_are_package_data_without_includes(name):
    folder = importlib.resources.files("scaleshift.kernels.cuda")
    assert (folder / f"{name}.cu").is_file()
    text = Kernels.of(name).text
    assert "#include" not in text
    assert f"KERNEL_OF(BLOCKS) {name.removesuffix('s')}" in text
    assert text.isascii()  # as NVRTC wants it


def test_what_cupy_must_offer_is_there():
    """Names that `device` uses and no machine without a GPU can try."""
    cupy = pytest.importorskip("cupy")
    for name in ("Device", "Stream", "get_current_stream", "alloc_pinned_memory"):
        assert hasattr(cupy.cuda, name)
    for name in ("record", "wait_event", "synchronize"):
        assert hasattr(cupy.cuda.Stream, name)
    for name in ("get", "set", "sort", "device", "strides", "flags", "__array_ufunc__", "__array_function__"):
        assert hasattr(cupy.ndarray, name)
    for name in ("asarray", "empty", "concatenate", "clip", "exp", "cos", "sin", "float64"):
        assert hasattr(cupy, name)
    assert hasattr(cupy.cuda.runtime, "getDevice")
    assert hasattr(cupy.cuda.runtime, "memGetInfo")
    assert hasattr(cupy.get_default_memory_pool(), "free_bytes")
    kernels = Kernels.of("fourier", INPUT="float32", CODE="int32", COLUMNS=5)
    assert cupy.RawModule(code=kernels.text, options=kernels.options)  # compiles at its first use
