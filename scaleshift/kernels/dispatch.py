"""Which implementation serves this block? numpy: numba on the CPU; anything without a kernel: the reference.

Where a GPU is usable, large numpy blocks go to it if the kernel has a text for GPUs: see `cuda.choice`. CuPy
blocks are served on the GPU that they are on. Blocks of scipy.sparse are served where a kernel for them is
named, and refused elsewhere. Nothing is imported before a block needs it: neither numba nor a GPU package.
"""

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from scaleshift.kernels import reference
from scaleshift.kernels.cuda.choice import takes_host_block
from scaleshift.kernels.reference import Array, library

_REFERENCE = "scaleshift.kernels.reference"
_CUDA = "scaleshift.kernels.cuda."
_ENERGY = "scaleshift.kernels.energy"
_REGRESSION = "scaleshift.kernels.regression"
_SCATTER = "scaleshift.kernels.scatter"
_SPARSE = "scaleshift.kernels.sparse"
_SPOTLIGHT = "scaleshift.kernels.spotlight"

# kernel -> library of the block -> the module whose function of that name serves it.
# A new implementation is one entry here; libraries without one get the reference. What serves CuPy by a
# module in cuda/ serves numpy too, where blocks on the host go to a GPU.
KERNELS: dict[str, dict[str, str]] = {
    "energy_sums": {"numpy": _ENERGY, "cupy": _ENERGY},
    "fourier_sums": {"numpy": "scaleshift.kernels.cpu.fourier", "cupy": f"{_CUDA}fourier"},
    "exact_sums": {},
    "landmark_sums": {"numpy": "scaleshift.kernels.cpu.landmarks", "cupy": f"{_CUDA}landmarks"},
    "mixture_sums": {"numpy": "scaleshift.kernels.cpu.mixture", "cupy": f"{_CUDA}mixture"},
    "responsibilities": {"numpy": "scaleshift.kernels.cpu.mixture", "cupy": f"{_CUDA}mixture"},
    "moment_sums": {"numpy": "scaleshift.kernels.cpu.moments", "scipy": _SPARSE},
    "regression_sums": {"numpy": _REGRESSION, "cupy": _REGRESSION},
    "scatter_sums": {"numpy": "scaleshift.kernels.cpu.scatter", "cupy": _SCATTER, "scipy": _SPARSE},
    "sliced_sums": {"numpy": "scaleshift.kernels.cpu.sliced", "cupy": _ENERGY},
    "spotlight_sums": {"numpy": _SPOTLIGHT, "cupy": _SPOTLIGHT},
}


def implementation(kernel: str, x: Array) -> Callable[..., Any]:
    """Return the function that serves a block.

    Parameters
    ----------
    kernel : str
        A name in `KERNELS`.
    x : array
        The block: numpy or CuPy, or scipy.sparse where the kernel has an implementation for it.

    Returns
    -------
    callable

    Raises
    ------
    TypeError
        If the block is neither numpy nor CuPy, or sparse where there is no kernel for it.
    DeviceError
        If SCALESHIFT_DEVICE insists on a GPU and none is usable.

    Examples
    --------
    >>> implementation("exact_sums", np.zeros((2, 1))).__module__
    'scaleshift.kernels.reference'
    """
    name = library(x)
    if name not in ("numpy", "cupy", *KERNELS[kernel]):
        raise TypeError(
            f"{kernel} works on numpy and CuPy blocks, found {type(x).__module__}.{type(x).__qualname__}: "
            f"convert it with {'its toarray()' if name == 'scipy' else 'numpy.asarray'} first"
        )
    modules = KERNELS[kernel]
    if name == "numpy" and modules.get("cupy", "").startswith(_CUDA) and takes_host_block(x.size):
        name = "cupy"
    return getattr(importlib.import_module(modules.get(name, _REFERENCE)), kernel)


def _served(name: str, x: Array, /, *arguments: Any, **named: Any) -> Any:
    """Call what serves a block."""
    with _beside(x):
        return implementation(name, x)(x, *arguments, **named)


def _beside(x: Array) -> AbstractContextManager[Any]:
    """Make a block's GPU the current one, so that what is made on the way lies there too."""
    return x.device if library(x) == "cupy" else nullcontext()


def fourier_sums(x: Array, *arguments: Any, **named: Any) -> np.ndarray:
    """Sum cosines and sines of the projected rows, by group: see `reference.fourier_sums`.

    By the kernels in float32, with the frequencies rounded by `reference.single_precision`.

    Examples
    --------
    >>> fourier_sums(np.zeros((3, 2)), np.array([0, 1, 1]), 2, np.ones((1, 2))).round(6)
    array([[1., 0.],
           [2., 0.]])
    """
    return _served("fourier_sums", x, *arguments, **named)


def exact_sums(x: Array, *arguments: Any, **named: Any) -> np.ndarray:
    """Sum the mean kernel between rows and classes of points: see `reference.exact_sums`.

    Examples
    --------
    >>> x, group = np.zeros((3, 1)), np.zeros(3, dtype=int)
    >>> exact_sums(x, group, 1, points=x[:1], point_groups=group[:1], n_point_groups=1, bandwidth=2.0)
    array([[3.]])
    """
    return _served("exact_sums", x, *arguments, **named)


def landmark_sums(
    x: Array, groups: Array, n_groups: int, landmarks: Array, bandwidth: float, kernel: str = "gaussian"
) -> np.ndarray:
    """Sum the kernel with landmarks, and a residual, by group: see `reference.landmark_sums`.

    The Gaussian one by the kernels in float32, about the mean of the landmarks; others by the reference.

    Examples
    --------
    >>> landmark_sums(np.zeros((3, 1)), np.array([0, 0, 0]), 1, np.zeros((2, 1)), bandwidth=2.0).round(4)
    array([[3.   , 3.   , 0.406]])
    """
    if kernel == "gaussian":
        return _served("landmark_sums", x, groups, n_groups, landmarks, bandwidth)
    implementation("landmark_sums", x)  # refuses blocks of other libraries
    with _beside(x):
        return reference.landmark_sums(x, groups, n_groups, landmarks, bandwidth, kernel)


def energy_sums(x: Array, *arguments: Any, **named: Any) -> np.ndarray:
    """Sum the mean energy kernel between rows and classes of points: see `energy.energy_sums`.

    Examples
    --------
    >>> x, group = np.ones((2, 1)), np.zeros(2, dtype=int)
    >>> energy_sums(x, group, 1, points=x, point_groups=group, n_point_groups=1, origin=np.zeros(1))
    array([[4., 4.]])
    """
    return _served("energy_sums", x, *arguments, **named)


def sliced_sums(x: Array, *arguments: Any, **named: Any) -> np.ndarray:
    """Sum masses of projected rows on grids, by group: see `energy.sliced_sums`.

    On the CPU positions are found in float32.

    Examples
    --------
    >>> ends = np.array([[-2.0, 0.0, 1.0, 3.0]])
    >>> sliced_sums(np.zeros((3, 1)), np.array([0, 0, 0]), 1, np.ones((1, 1)), np.array([-0.5]), ends, 1)
    array([[0. , 1.5, 1.5, 0. ]])
    """
    return _served("sliced_sums", x, *arguments, **named)


def moment_sums(x: Array, *arguments: Any, **named: Any) -> np.ndarray:
    """Sum the columns and their squares, by group: see `reference.moment_sums`.

    Examples
    --------
    >>> moment_sums(np.array([[1.0], [2.0]]), np.array([0, 0]), 1).tolist()
    [[[3.0], [5.0]]]
    """
    return _served("moment_sums", x, *arguments, **named)


def scatter_sums(x: Array, *arguments: Any, **named: Any) -> dict[str, np.ndarray]:
    """Sum the rows about a centre, and their products, by group: see `scatter.scatter_sums`.

    On the CPU products of float32 rows are float32, all else is float64.

    Examples
    --------
    >>> scatter_sums(np.array([[1.0], [3.0]]), np.array([0, 0]), 1, np.array([1.0]))["scatter"].tolist()
    [[[4.0]]]
    """
    return _served("scatter_sums", x, *arguments, **named)


def regression_sums(x: Array, *arguments: Any, **named: Any) -> dict[str, np.ndarray]:
    """Sum products of (1, x - centre) with itself and with outcomes, by group: see `regression`.

    Examples
    --------
    >>> found = regression_sums(np.array([[3.0]]), np.array([[2.0]]), np.array([0]), 1, np.array([1.0]))
    >>> found["gram"].tolist(), found["cross"].tolist()
    ([[[1.0, 2.0], [2.0, 4.0]]], [[[2.0], [4.0]]])
    """
    return _served("regression_sums", x, *arguments, **named)


def mixture_sums(x: Array, *arguments: Any) -> dict[str, np.ndarray]:
    """Sum what the next parameters of a mixture are made of: see `mixture.mixture_sums`.

    By the kernels in float32, where `x` is and covariances are diagonal or spherical.

    Examples
    --------
    >>> from scaleshift.kernels.mixture import Components, Outcomes
    >>> one = Components("diag", (1,), np.ones(1), np.zeros((1, 2)), np.ones((1, 2)))
    >>> mixture_sums(np.ones((3, 2)), Outcomes(), one)["x"].tolist()
    [[3.0, 3.0]]
    """
    return _served("mixture_sums", x, *arguments)


def spotlight_sums(x: Array, *arguments: Any, **named: Any) -> dict[str, np.ndarray]:
    """Sum what a step of spotlights is made of: see `spotlight.spotlight_sums`.

    Examples
    --------
    >>> from scaleshift.kernels.spotlight import Spotlights
    >>> one = Spotlights("gaussian", np.zeros((1, 2)), np.ones(1))
    >>> spotlight_sums(np.zeros((3, 2)), np.ones(3), None, one)["weight"].tolist()
    [3.0]
    """
    return _served("spotlight_sums", x, *arguments, **named)


def responsibilities(x: Array, *arguments: Any) -> np.ndarray:
    """Return the shares that the components of a mixture have in each row: see `mixture.responsibilities`.

    By the kernels in float32, where `x` is and covariances are diagonal or spherical.

    Examples
    --------
    >>> from scaleshift.kernels.mixture import Components, Outcomes
    >>> two = Components("diag", (2,), np.array([0.5, 0.5]), np.array([[-5.0], [5.0]]), np.ones((2, 1)))
    >>> responsibilities(np.array([[-5.0], [0.0]]), Outcomes(), two).round(6).tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    return _served("responsibilities", x, *arguments)
