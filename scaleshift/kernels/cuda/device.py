"""How do kernels reach a GPU? The one place that talks to CuPy; nothing is imported before a block needs it.

A call borrows some *lanes* of a `Device`. A lane is a stream with what it needs: `upload` (through pinned
memory, without waiting), `empty`, `sort`, `launch`, and `download`, which waits. Lanes used in turn let one
copy while another computes. Tests have a lane whose kernels are the same texts compiled as C++, so that
all code around them runs without a GPU.

How to add a kernel:

- `name.cu` beside this file. `common.cu` comes before it, with the types and macros that it may use; no
  #include. Functions are declared `KERNEL name(...)`, or `KERNEL_OF(BLOCKS) name(...)` where ptxas would
  rather spill than let a multiprocessor hold few blocks, and run by blocks of THREADS = 128 threads. Barriers
  are __syncthreads() in uniform control flow, shared memory is of fixed size. Sizes that are known at the
  first call come as constants (`-DCOLUMNS=5`): they unroll loops and keep arrays in registers. Products and
  sums that must be fused are written fmaf, rounding tricks __fadd_rn: the C++ build then gives the same bits.
- a module `name.py` beside it that describes a `Kernels(name, constants)` and launches its functions by
  `lane.launch(kernels, function, grid, arguments)`: arrays of the lane, and numpy scalars of the very types
  of the parameters (np.int32, np.int64, np.float32); the C++ build checks both.
- one entry in `dispatch.KERNELS`, and tests as in tests/gpu.

Results are added in a fixed order and never by atomics: the same bits at every run. What a call does depends
on the shape of its block and not on how much memory is free, for the same reason.
"""

import functools
import importlib.resources
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import numpy as np

from scaleshift.kernels.reference import Array, library

THREADS = 128  # of a block, in every kernel
# of device memory: the most that a call takes, besides its parameters and what its caller holds
CALL_BYTES = 1 << 29

_SHORT_OF_MEMORY = (
    "on the way to a GPU: fewer threads of Dask take less of its memory, and with SCALESHIFT_DEVICE=cpu rows "
    "on the host take none"
)

_compiling = threading.Lock()
_finding = threading.Lock()


class Kernels(NamedTuple):
    """Which text, compiled with which constants: one module on a GPU."""

    name: str  # of the .cu file
    constants: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, name: str, **constants: Any) -> "Kernels":
        """Name a text and its constants.

        Examples
        --------
        >>> Kernels.of("fourier", COLUMNS=5).options
        ('-DCOLUMNS=5',)
        """
        return cls(name, tuple((key, str(value)) for key, value in constants.items()))

    @property
    def options(self) -> tuple[str, ...]:
        """The constants as a compiler wants them."""
        return tuple(f"-D{key}={value}" for key, value in self.constants)

    @property
    def text(self) -> str:
        """The CUDA text, common.cu included."""
        folder = importlib.resources.files("scaleshift.kernels.cuda")
        return "".join((folder / f"{name}.cu").read_text("utf-8") for name in ("common", self.name))


class Lane(Protocol):
    """A stream of work on a device: all happens in the order of the calls, and later than they return."""

    def follow(self) -> None:
        """Start after the work on a resident block that its owner has ordered."""

    def upload(self, values: np.ndarray, dtype: Any = None) -> Array:
        """Copy an array, of any memory order, to C-contiguous device memory; it may change afterwards."""

    def empty(self, shape: Any, dtype: Any) -> Array:
        """Device memory."""

    def sort(self, keys: Array) -> None:
        """Sort int64 numbers in place."""

    def launch(
        self, kernels: Kernels, function: str, grid: tuple[int, ...], arguments: Sequence[Any]
    ) -> None:
        """Run a function by a grid of blocks; nothing happens if the grid is empty."""

    def download(self, values: Array) -> np.ndarray:
        """Wait for all work so far, and bring an array to the host."""

    def wait(self) -> None:
        """Wait for all work so far."""


class Device:
    """One GPU, which lends lanes to as many calls at once as fit into half of its memory.

    Parameters
    ----------
    make_lane : callable
        Makes a lane.
    free_bytes : int
        How much of the device's memory is free.
    """

    def __init__(self, make_lane: Callable[[], Lane], free_bytes: int) -> None:
        self._make_lane = make_lane
        self._turns = threading.Semaphore(max(1, free_bytes // 2 // CALL_BYTES))
        self._idle: list[Lane] = []  # kept: their streams have memory of their own

    @contextmanager
    def lanes(self, count: int = 2) -> Iterator[list[Lane]]:
        """Lend lanes, when it is the caller's turn; at the end their work is done."""
        with self._turns:
            lent = [self._lane() for _ in range(count)]
            try:
                yield lent
            except MemoryError as error:
                error.add_note(_SHORT_OF_MEMORY)
                raise
            finally:
                for lane in lent:
                    lane.wait()
                self._idle += lent

    def _lane(self) -> Lane:
        try:
            lane = self._idle.pop()
        except IndexError:
            lane = self._make_lane()
        lane.follow()
        return lane


def device_of(x: Array) -> Device:
    """Return the device of a CuPy block; for a block on the host, the current device of this thread."""
    import cupy

    number = x.device.id if library(x) == "cupy" else cupy.cuda.runtime.getDevice()
    with _finding:
        return _device(number)


@functools.cache
def _device(number: int) -> Device:
    import cupy

    with cupy.cuda.Device(number):
        free = cupy.cuda.runtime.memGetInfo()[0] + cupy.get_default_memory_pool().free_bytes()
    return Device(lambda: _CupyLane(number), free)


class _CupyLane:
    """A lane on a GPU: see `Lane`."""

    def __init__(self, number: int) -> None:
        import cupy

        self._cupy = cupy
        self._number = number
        with cupy.cuda.Device(number):
            self._stream = cupy.cuda.Stream(non_blocking=True)
        self._pinned: list[Any] = []  # memory that copies in flight read

    @contextmanager
    def _current(self) -> Iterator[None]:
        with self._cupy.cuda.Device(self._number), self._stream:
            yield

    def follow(self) -> None:
        with self._cupy.cuda.Device(self._number):
            self._stream.wait_event(self._cupy.cuda.get_current_stream().record())

    def upload(self, values: np.ndarray, dtype: Any = None) -> Array:
        dtype = np.dtype(dtype or values.dtype)
        memory = self._cupy.cuda.alloc_pinned_memory(max(1, values.size * dtype.itemsize))
        self._pinned.append(memory)
        staged = np.frombuffer(memory, dtype, values.size).reshape(values.shape)
        staged[...] = values
        result = self.empty(values.shape, dtype)
        with self._current():
            result.set(staged, stream=self._stream)
        return result

    def empty(self, shape: Any, dtype: Any) -> Array:
        with self._current():  # memory belongs to the stream: the next to get it is behind its last user
            return self._cupy.empty(shape, dtype)

    def sort(self, keys: Array) -> None:
        with self._current():
            keys.sort()

    def launch(
        self, kernels: Kernels, function: str, grid: tuple[int, ...], arguments: Sequence[Any]
    ) -> None:
        if 0 in grid:
            return
        with self._current():
            _compiled(kernels, function, self._number)(grid, (THREADS,), tuple(arguments))

    def download(self, values: Array) -> np.ndarray:
        with self._current():
            result = values.get(stream=self._stream)
        self.wait()
        return result

    def wait(self) -> None:
        self._stream.synchronize()
        self._pinned.clear()


def _compiled(kernels: Kernels, function: str, number: int) -> Callable[..., None]:
    """Return a function of a module, compiled at its first use in this process and on this device."""
    with _compiling:
        return _function(kernels, function, number)


@functools.cache
def _function(kernels: Kernels, function: str, number: int) -> Callable[..., None]:
    return _module(kernels, number).get_function(function)


@functools.cache
def _module(kernels: Kernels, number: int) -> Any:
    import cupy

    return cupy.RawModule(code=kernels.text, options=kernels.options)
