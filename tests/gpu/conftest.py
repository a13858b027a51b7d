"""The kernels' code on whatever there is: compiled as C++ everywhere, and for real where there is a GPU."""

import sys

import pytest
from host_gpu import COMPILER, HostLane
from resident import Library

from scaleshift.kernels.cuda import device


@pytest.fixture
def host_device(monkeypatch):
    """A device on the CPU in place of every GPU; CuPy's functions are numpy's."""
    if COMPILER is None:
        pytest.skip("needs g++")
    monkeypatch.setitem(sys.modules, "cupy", Library("cupy"))
    made = device.Device(HostLane, 1 << 34)
    monkeypatch.setattr(device, "device_of", lambda x: made)
    return made
