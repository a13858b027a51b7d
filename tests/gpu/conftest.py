"""The kernels' code on whatever there is: compiled as C++ everywhere, and for real where there is a GPU."""

import pytest
from host_gpu import COMPILER, HostLane

from scaleshift.kernels.cuda import device


@pytest.fixture
def host_device(monkeypatch):
    """A device on the CPU in place of every GPU."""
    if COMPILER is None:
        pytest.skip("needs g++")
    made = device.Device(HostLane, 1 << 34)
    monkeypatch.setattr(device, "device_of", lambda x: made)
    return made
