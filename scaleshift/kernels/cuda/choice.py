"""Should blocks on the host go to a GPU? Answered without importing a GPU package in vain."""

import functools
import importlib.util
import os

_VARIABLE = "SCALESHIFT_DEVICE"
_SMALLEST = 'extern "C" __global__ void nothing() {}'
_ANSWERS = ("auto", "cpu", "cuda")
# numbers in a block: with fewer, a core takes a few ms with a thousand features, about what a GPU's call
# takes, and its first call compiles for seconds
LEAST_SIZE = 1 << 17


class DeviceError(RuntimeError):
    """What SCALESHIFT_DEVICE asks for is not to be had."""


def takes_host_block(size: int) -> bool:
    """Whether a numpy block goes to a GPU.

    The environment variable SCALESHIFT_DEVICE decides: "auto", the default, takes a GPU where one is usable
    and the block is so large that it is worth the way, "cpu" takes none, "cuda" insists, whatever the size.
    CuPy's own blocks always stay on their GPU.

    Parameters
    ----------
    size : int
        How many numbers the block has: nothing else decides, so that a block goes the same way at every run.

    Returns
    -------
    bool

    Raises
    ------
    DeviceError
        If the variable is set to anything else, or insists on a GPU and none is usable.

    Examples
    --------
    >>> isinstance(takes_host_block(1_000_000), bool)
    True
    """
    if _wanted() == "auto" and size < LEAST_SIZE:
        return False
    return not host_obstacle()


def host_obstacle() -> str:
    """Say why no numpy block goes to a GPU in this process; empty if large ones do.

    Raises
    ------
    DeviceError
        If SCALESHIFT_DEVICE is set to what it cannot be, or insists on a GPU and none is usable.

    Examples
    --------
    >>> isinstance(host_obstacle(), str)
    True
    """
    wanted = _wanted()
    if wanted == "cpu":
        return f"{_VARIABLE} is cpu"
    obstacle = gpu_obstacle()
    if obstacle and wanted == "cuda":
        raise DeviceError(
            f"{_VARIABLE} is cuda, but {obstacle}: `scaleshift doctor` tells what is there, "
            f"{_VARIABLE}=auto computes on the CPU where there is no GPU"
        )
    return obstacle


def _wanted() -> str:
    wanted = os.environ.get(_VARIABLE) or "auto"
    if wanted not in _ANSWERS:
        raise DeviceError(f"{_VARIABLE} is {wanted!r}: set it to one of {', '.join(_ANSWERS)}")
    return wanted


@functools.cache
def gpu_obstacle() -> str:
    """Say why no GPU is usable in this process: asked once; empty if one is.

    Examples
    --------
    >>> isinstance(gpu_obstacle(), str)
    True
    """
    if importlib.util.find_spec("cupy") is None:
        return "CuPy is not installed"
    try:
        import cupy
    except Exception as error:  # a CUDA library that is not there is no ImportError everywhere
        return f"CuPy cannot be imported ({type(error).__name__}: {error})"
    try:
        if not cupy.is_available():
            return "CuPy sees no GPU"
    except Exception as error:  # where there is no driver or an old one, CuPy before 14 raises
        return f"CuPy sees no GPU ({type(error).__name__}: {error})"
    try:  # without the extra cu12 or cu13, CuPy may come without a compiler
        cupy.RawModule(code=_SMALLEST).get_function("nothing")
    except Exception as error:
        return f"CuPy cannot compile for this GPU ({type(error).__name__}: {error})"
    return ""
