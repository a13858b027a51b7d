"""Every CUDA text compiles for every GPU that we name, without one here, and spills no register."""

import platform

import pytest
from host_gpu import functions_of
from nvrtc import compile_cubin, nvrtc, resources

from scaleshift.kernels.cuda.device import Kernels

ARCHITECTURES = ["sm_80", "sm_90", "sm_100"]
FOURIER = [
    Kernels.of("fourier", INPUT=x, CODE=code, COLUMNS=columns)
    for x, code, columns in [
        ("float32", "int32", 5),
        ("float32", "int8", 20),
        ("float64", "int64", 48),
        ("float32", "uint64", 49),
        ("float64", "int32", 100),
        ("float32", "int32", 512),
        ("float64", "uint8", 1536),
    ]
]
LANDMARKS = [
    Kernels.of("landmarks", INPUT=x, CODE=code, COLUMNS=columns)
    for x, code, columns in [
        ("float32", "int32", 5),
        ("float64", "int64", 20),
        ("float32", "uint16", 24),
        ("float32", "int32", 25),
        ("float32", "int16", 100),
        ("float64", "int8", 512),
        ("float32", "uint64", 1536),
    ]
]
MIXTURE = [Kernels.of("mixture")]


def name_of(kernels):
    return "-".join([kernels.name, *dict(kernels.constants).values()])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("kernels", FOURIER + LANDMARKS + MIXTURE, ids=name_of)
def test_every_text_compiles_without_a_word_and_spills_nothing(kernels, architecture):
    if nvrtc() is None:
        pytest.skip(f"no wheel nvidia-cuda-nvrtc for {platform.system()} on {platform.machine()}")
    cubin, log = compile_cubin(kernels.text, kernels.options, architecture)
    assert log == ""
    found = resources(cubin)
    assert sorted(found) == sorted(functions_of(kernels.text))
    assert [name for name, taken in found.items() if taken.stack] == []
    assert all(0 < taken.registers <= 168 for taken in found.values())  # three blocks a multiprocessor
