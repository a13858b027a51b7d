"""The kernels' code on whatever there is: compiled as C++ everywhere, and for real where there is a GPU."""

import functools

import pytest
from host_gpu import COMPILER, HostLane

from scaleshift.kernels.cuda import device


@pytest.fixture(params=["forwards", "backwards"])
def host_device(request, monkeypatch):
    """A device on the CPU in place of every GPU; threads and blocks run in either order."""
    if COMPILER is None:
        pytest.skip("needs g++")
    made = device.Device(functools.partial(HostLane, request.param == "backwards"), 1 << 34)
    monkeypatch.setattr(device, "device_of", lambda x: made)
    return made
