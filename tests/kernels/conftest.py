"""What tests of compiled kernels share."""

import re

import llvmlite.binding
import pytest

from scaleshift.kernels.cpu.lanes import WIDTH


@pytest.fixture
def packed_fma():
    """How many FMAs of the widest registers a kernel holds, of the CPU that numba compiles for."""
    if WIDTH == 4 or not llvmlite.binding.get_host_cpu_features().get("fma", False):
        pytest.skip("compiled for registers of 128 bits, or for a CPU without FMA")
    register = {8: "ymm", 16: "zmm"}[WIDTH]

    def count(kernel):
        (assembly,) = kernel.inspect_asm().values()
        return len(re.findall(rf"vfn?m(?:add|sub)\d+ps\s.*%{register}", assembly))

    return count
