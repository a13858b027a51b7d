"""Is there a GPU, and can this environment use it?"""

from __future__ import annotations

import importlib.util
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from scaleshift.doctor.finding import Finding, without_user
from scaleshift.doctor.packages import installed
from scaleshift.kernels.cuda.choice import DeviceError, host_obstacle

FIRST_OF_CUDA_13 = 580  # the driver's first number; older ones run CUDA 12
KERNEL_MODULE = Path("/proc/driver/nvidia/version")
SECONDS = 10  # nvidia-smi waits for a driver that is not loaded yet


class Driver(NamedTuple):
    """An NVIDIA driver."""

    version: str
    devices: list[str]

    @property
    def extra(self) -> str:
        """The extra of scaleshift that fits the driver."""
        return "cu13" if int(self.version.partition(".")[0]) >= FIRST_OF_CUDA_13 else "cu12"


def gpu() -> Iterator[Finding]:
    """The driver, CuPy, what they are used for, and dask-cuda; none of them is needed."""
    driver = find_driver()
    if driver is None:
        yield Finding("NVIDIA driver", "missing", "none: scaleshift computes on the CPU")
    else:
        value = ", ".join([driver.version, *driver.devices])
        yield Finding("NVIDIA driver", "ok", value, facts=driver._asdict())
    command = f'pip install "scaleshift[{driver.extra}]"' if driver else ""
    if importlib.util.find_spec("cupy") is None:
        yield Finding("cupy", "missing", "not installed", command)
    else:
        yield _cupy()
    yield _host_blocks()
    version = installed("dask-cuda")
    if version is None:
        yield Finding("dask-cuda", "missing", "not installed", command)
    else:
        yield Finding("dask-cuda", "ok", version, facts={"installed": version})


def find_driver() -> Driver | None:
    """The NVIDIA driver of this machine, told by nvidia-smi or else by the kernel's module."""
    query = ["nvidia-smi", "--query-gpu=driver_version,name", "--format=csv,noheader"]
    try:
        told = subprocess.run(query, capture_output=True, text=True, timeout=SECONDS, check=True).stdout
    except (OSError, subprocess.SubprocessError):  # not there, or without a driver
        told = KERNEL_MODULE.read_text(errors="replace") if KERNEL_MODULE.exists() else ""
    return read_driver(told)


def read_driver(told: str) -> Driver | None:
    """Driver and devices from what nvidia-smi or the kernel's module tells.

    Examples
    --------
    >>> read_driver("580.65.06, NVIDIA H200")
    Driver(version='580.65.06', devices=['NVIDIA H200'])
    >>> read_driver("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12").extra
    'cu12'
    """
    version = re.search(r"\b\d+\.\d+(\.\d+)?\b", told)
    devices = re.findall(r"^\d[\d.]*, (.+)$", told, re.MULTILINE)
    return Driver(version.group(), devices) if version else None


def _cupy() -> Finding:
    """CuPy, and the devices that it sees."""
    try:
        import cupy
    except Exception as error:  # a CUDA library that is not there is no ImportError everywhere
        advice = "install it again, by one of scaleshift's extras cu12 and cu13"
        said = without_user(f"cannot be imported: {type(error).__name__}: {error}")
        return Finding("cupy", "problem", said, advice)
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        value = f"{cupy.__version__}, sees no device: {error}"
        return Finding("cupy", "missing", value, facts={"installed": cupy.__version__, "devices": 0})
    facts = {"installed": cupy.__version__, "devices": count}
    return Finding("cupy", "ok", f"{cupy.__version__}, {count} device(s)", facts=facts)


def _host_blocks() -> Finding:
    """Where chunks that lie in the host's memory are computed on."""
    name = "chunks on the host"
    try:
        obstacle = host_obstacle()
    except DeviceError as error:
        return Finding(name, "problem", without_user(str(error)), "set SCALESHIFT_DEVICE to auto or cpu")
    value = f"stay on the CPU: {without_user(obstacle)}" if obstacle else "go to the GPU where they are large"
    return Finding(name, "ok", value, facts={"gpu": not obstacle})
