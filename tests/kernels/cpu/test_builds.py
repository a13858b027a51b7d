"""Kernels keep their digits whatever vectors the CPU has: their tests once more, compiled for older ones."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import llvmlite.binding
import pytest

KERNELS = Path(__file__).parents[1]
# of each kernel those that compare with float64, those of digits where rows are many, and of FMAs
TESTS = [
    "cpu/test_jit.py",
    "cpu/test_exp2.py",
    "cpu/test_transpose.py",
    "cpu/test_lanes.py",
    "cpu/test_packing.py",
    "cpu/test_moment_sums.py",
    "cpu/test_categorical_loops.py",
    "cpu/test_fourier_sums.py::test_sums_agree_with_the_reference_for_any_number_of_columns",
    "cpu/test_fourier_sums.py::test_sums_agree_with_the_reference_for_any_number_of_frequencies",
    "cpu/test_fourier_sums.py::test_many_alike_rows_of_one_group_lose_no_digits",
    "cpu/test_fourier_sums.py::test_an_offset_costs_no_accuracy",
    "cpu/test_fourier_sums.py::test_the_machine_code_holds_packed_fma",
    "cpu/test_landmark_sums.py::test_sums_agree_with_the_reference_for_any_number_of_columns",
    "cpu/test_landmark_sums.py::test_sums_agree_with_the_reference_for_any_number_of_landmarks",
    "cpu/test_landmark_sums.py::test_a_hundred_thousand_equal_rows_lose_no_digits",
    "cpu/test_landmark_sums.py::test_landmarks_many_bandwidths_apart_cost_few_digits",
    "cpu/test_landmark_sums.py::test_the_machine_code_holds_packed_fma",
    "cpu/test_scatter_cpu.py::test_sums_are_those_of_the_reference",
    "cpu/test_scatter_cpu.py::test_many_rows_cost_float32_no_digits",
    "test_energy_sums.py",
    "test_mixture.py::test_sums_agree_for_any_number_of_columns",
    "test_mixture.py::test_sums_agree_for_any_number_of_components",
    "test_mixture.py::test_sums_agree_for_any_number_of_labels",
    "test_mixture.py::test_digits_are_those_of_float32_sums_where_rows_are_many",
    "test_mixture.py::test_sums_of_a_tile_are_of_few_terms_a_lane",
    "test_mixture.py::test_responsibilities_are_those_of_the_reference",
]
BUILDS = [
    ("haswell", "avx2", 8),  # AVX2 and FMA
    ("nehalem", "sse4.2", 4),  # SSE, no FMA
]


def run(build, feature, *arguments):
    """Python in a new process, in which numba compiles for another CPU."""
    if platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip(f"builds are those of x86, not of {platform.machine()}")
    if not llvmlite.binding.get_host_cpu_features().get(feature, False):
        pytest.skip(f"this CPU has no {feature}")
    environment = os.environ | {"NUMBA_CPU_NAME": build, "NUMBA_CPU_FEATURES": ""}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, cwd=KERNELS, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("build", "feature", "width"), BUILDS)
def test_vectors_are_those_of_the_cpu_that_is_named(build, feature, width):
    code = "from scaleshift.kernels.cpu import lanes; print(lanes.WIDTH)"
    done = run(build, feature, "-c", code)
    assert done.stdout.strip() == str(width), done.stderr


@pytest.mark.parametrize(("build", "feature"), [build[:2] for build in BUILDS])
def test_digits_do_not_depend_on_the_width_of_vectors(build, feature):
    done = run(build, feature, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS)
    assert done.returncode == 0, done.stdout + done.stderr
