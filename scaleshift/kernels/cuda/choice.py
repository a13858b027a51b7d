"""Should blocks on the host go to a GPU? Answered without importing a GPU package in vain."""

import functools
import importlib.util
import os

_VARIABLE = "SCALESHIFT_DEVICE"
_SMALLEST = 'extern "C" __global__ void nothing() {}'
_ANSWERS = ("auto", "cpu", "cuda")


def takes_host_blocks() -> bool:
    """Whether numpy blocks go to a GPU in this process.

    The environment variable SCALESHIFT_DEVICE decides: "auto", the default, takes a GPU where one is usable,
    "cpu" takes none, "cuda" insists. CuPy's own blocks always stay on their GPU.

    Returns
    -------
    bool

    Raises
    ------
    ValueError
        If the variable is set to anything else.
    RuntimeError
        If it insists on a GPU and none is usable.

    Examples
    --------
    >>> isinstance(takes_host_blocks(), bool)
    True
    """
    wanted = os.environ.get(_VARIABLE) or "auto"
    if wanted not in _ANSWERS:
        raise ValueError(f"{_VARIABLE} is {wanted!r}: set it to one of {', '.join(_ANSWERS)}")
    if wanted == "cpu":
        return False
    obstacle = gpu_obstacle()
    if obstacle and wanted == "cuda":
        raise RuntimeError(
            f"{_VARIABLE} is cuda, but {obstacle}: `scaleshift doctor` tells what is there, "
            f"{_VARIABLE}=auto computes on the CPU where there is no GPU"
        )
    return not obstacle


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
    if not cupy.is_available():
        return "CuPy sees no GPU"
    try:  # without the extra cu12 or cu13, CuPy may come without a compiler
        cupy.RawModule(code=_SMALLEST).get_function("nothing")
    except Exception as error:
        return f"CuPy cannot compile for this GPU ({type(error).__name__}: {error})"
    return ""
