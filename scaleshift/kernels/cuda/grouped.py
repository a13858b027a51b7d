"""How are blocks of rows summed by group on a GPU? Piece by piece, in an order that never changes.

Host blocks are cut into pieces of 16 MB: while one is staged, the one before it is sorted, and the one before
that summed. Rows are not moved: their keys are sorted by group, cut into items, and every item is summed by
one block of threads. Sums of items are added in the order of the rows, in float64.
"""

import itertools
from collections import deque
from typing import Any, NamedTuple, Protocol

import numpy as np

from scaleshift.kernels.cuda import device
from scaleshift.kernels.cuda.device import CALL_BYTES, THREADS, Kernels, Lane
from scaleshift.kernels.reference import Array, host_codes, library, namespace, to_numpy

ITEM_ROWS = 1024  # with more, too few blocks of threads would be left at the end of a call
_LANES = 3
_LANE_BYTES = CALL_BYTES // _LANES
_PIECE_BYTES = 1 << 24  # of a host block
_PIECE_ROWS = 1 << 22
_LEAST_ROWS = 1 << 12
_ADDED_AT_ONCE = 64  # terms of a sum in a row, so that threads enough add
_ROW_BYTES = 40  # of a row: its code, its key, workspace of the sort
_CODES_AT_ONCE = 1 << 16


class Rows(NamedTuple):
    """Rows on the device, as they lie; strides count numbers, not bytes."""

    values: Array
    n: int
    strides: tuple[np.int64, np.int64]

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What describes them to a kernel."""
        return self.values, *self.strides


class Job(Protocol):
    """What is summed: the part that differs between kernels."""

    @property
    def kernels(self) -> Kernels:
        """The text, compiled for this job."""

    @property
    def width(self) -> int:
        """How many numbers are summed."""

    @property
    def row_bytes(self) -> int:
        """Device memory that it needs for a row, besides the row and its key."""

    def send(self, lane: Lane) -> Any:
        """Parameters, on the device."""

    def screen(self, lane: Lane, given: Any, rows: Rows, codes: Array, n_groups: int, keys: Array) -> Any:
        """Set the key of every row; what is returned is handed to `add`."""

    def add(self, lane: Lane, given: Any, screened: Any, rows: Rows, keys: Array, edges: np.ndarray) -> Array:
        """Return the sums (items, width) of the stretches of `keys` between edges."""


def class_sums(x: Array, groups: Array, n_groups: int, job: Job) -> tuple[np.ndarray, np.ndarray]:
    """Sum what a job tells, by group.

    Parameters
    ----------
    x : (n, d) numpy or CuPy array
        Rows of float32 or float64.
    groups : (n,) integer array, numpy or CuPy
        Code of each row's group; negative codes are skipped.
    n_groups : int
        Number of groups.
    job : Job

    Returns
    -------
    sums : (n_groups, width) numpy.ndarray of float64
        Groups without rows give 0.
    left : (m,) numpy.ndarray of int64
        Numbers of the rows that were left to the reference.
    """
    sums = np.zeros((n_groups, job.width))
    left: list[np.ndarray | None] = []
    spans = _spans(x, n_groups, job)
    with device.device_of(x).lanes(min(_LANES, len(spans))) as lanes:
        turns = itertools.cycle([(lane, job.send(lane)) for lane in lanes])
        under_way: deque[_Piece] = deque()
        for start, stop in spans:
            under_way.append(_Piece(*next(turns), job, x[start:stop], groups[start:stop], n_groups, start))
            # what is waited for had the time in which the host staged another piece
            if len(under_way) > 1:
                under_way[-2].sum()
            if len(under_way) == _LANES:
                left.append(under_way.popleft().collect(sums))
        if under_way:
            under_way[-1].sum()
        left += [piece.collect(sums) for piece in under_way]
    if any(found is None for found in left):
        host_codes(groups, n_groups, len(x))  # raises
    return sums, np.concatenate([np.zeros(0, dtype=np.int64), *left])


def _spans(x: Array, n_groups: int, job: Job) -> list[tuple[int, int]]:
    """Cut a block into pieces whose work fits into a lane's share of memory, by their shape alone."""
    row_bytes = x.shape[1] * x.dtype.itemsize
    on_host = isinstance(x, np.ndarray)
    size = _PIECE_ROWS
    while size > _LEAST_ROWS:
        # sums of items, then of 64 of them each, then of groups
        items = size // ITEM_ROWS + size // (ITEM_ROWS * _ADDED_AT_ONCE) + 3 * min(n_groups, size)
        needed = size * (_ROW_BYTES + job.row_bytes + on_host * row_bytes) + items * job.width * 8
        if needed <= _LANE_BYTES and (not on_host or size * row_bytes <= _PIECE_BYTES):
            break
        size //= 2
    return [(start, min(start + size, len(x))) for start in range(0, len(x), size)]


class _Piece:
    """Some rows on their way: sent and sorted, then summed, then collected."""

    def __init__(
        self, lane: Lane, given: Any, job: Job, x: Array, groups: Array, n_groups: int, start: int
    ) -> None:
        self._lane, self._given, self._job, self._start = lane, given, job, start
        self._rows = rows_of(lane, x)
        n, n_starts = self._rows.n, n_groups + 3
        self._codes = lane.upload(groups) if isinstance(groups, np.ndarray) else groups
        self._keys = lane.empty(n, np.int64)
        self._screened = job.screen(lane, given, self._rows, self._codes, n_groups, self._keys)
        lane.sort(self._keys)
        # of rows left, of rows skipped, of every group, of codes that are too large
        self._starts = lane.empty(n_starts, np.int32)
        arguments = self._keys, np.int32(n), np.int32(n_starts), self._starts
        lane.launch(job.kernels, "group_starts", blocks(n_starts), arguments)

    def sum(self) -> None:
        """Order the sums of those groups that are present."""
        starts = self._lane.download(self._starts)
        self._n_left, self._n_fitting = int(starts[1]), int(starts[-1])
        self._present = np.flatnonzero(np.diff(starts[2:]))
        if self._present.size:
            edges, first = cut(np.append(starts[2:][self._present], starts[-1]), ITEM_ROWS)
            terms = self._job.add(self._lane, self._given, self._screened, self._rows, self._keys, edges)
            self._sums = _add(self._lane, self._job, terms, first)

    def collect(self, sums: np.ndarray) -> np.ndarray | None:
        """Add the sums of the piece; return the rows that were left, or None if a code is too large."""
        if self._n_fitting < self._rows.n:
            return None
        if self._present.size:
            sums[self._present] += self._lane.download(self._sums)
        if self._n_left == 0:
            return np.zeros(0, dtype=np.int64)
        return self._start + (self._lane.download(self._keys[: self._n_left]) & 0xFFFFFFFF)


def _add(lane: Lane, job: Job, terms: Array, edges: np.ndarray) -> Array:
    """Add rows of `terms` (terms, width) between edges, each sum in the order of its terms."""
    while True:
        cuts, first = cut(edges, _ADDED_AT_ONCE)
        sums = lane.empty((cuts.size - 1, job.width), np.float64)
        lane.launch(
            job.kernels,
            "add_ranges",
            (cuts.size - 1, blocks(job.width)[0]),
            (terms, lane.upload(cuts), np.int32(job.width), sums),
        )
        if cuts.size == edges.size:
            return sums
        terms, edges = sums, first


def cut(edges: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Cut adjacent ranges, none of them empty, into pieces of at most `size`.

    Parameters
    ----------
    edges : (ranges + 1,) integer array
        Range i is edges[i] ... edges[i + 1] - 1.
    size : int

    Returns
    -------
    cuts : (pieces + 1,) numpy.ndarray of int32
        Edges of the pieces.
    first : (ranges + 1,) numpy.ndarray of int32
        The first piece of every range, and how many pieces there are.

    Examples
    --------
    >>> cut(np.array([0, 5, 6]), 2)
    (array([0, 2, 4, 5, 6], dtype=int32), array([0, 3, 4], dtype=int32))
    """
    counts = -(-np.diff(edges) // size)
    first = np.append(0, np.cumsum(counts))
    within = np.arange(first[-1]) - np.repeat(first[:-1], counts)
    cuts = np.append(np.repeat(edges[:-1], counts) + size * within, edges[-1])
    return cuts.astype(np.int32), first.astype(np.int32)


def blocks(n: int) -> tuple[int]:
    """Return the grid with a thread for each of n.

    Examples
    --------
    >>> blocks(129)
    (2,)
    """
    return (-(-n // THREADS),)


def rows_of(lane: Lane, x: Array) -> Rows:
    """Rows on the device: those of a host block are copied, those of a resident one stay as they lie."""
    if isinstance(x, np.ndarray):
        x = lane.upload(x)
    row, column = (np.int64(stride // x.dtype.itemsize) for stride in x.strides)
    return Rows(x, x.shape[0], (row, column))


def checked_groups(x: Array, groups: Array, n_groups: int) -> Array:
    """Check group codes: those on the host at once; of codes beside their rows on a GPU only what is free.

    Codes on a GPU that are too large are found when they have been sorted.

    Examples
    --------
    >>> checked_groups(np.zeros((2, 1)), np.array([0, -1]), 1)
    array([ 0, -1], dtype=int32)
    """
    if (
        library(x) == library(groups) == "cupy"
        and (x.device, x.shape[:1]) == (groups.device, groups.shape)
        and groups.dtype.kind in "iu"
        and groups.flags.c_contiguous
    ):
        return groups
    return host_codes(groups, n_groups, x.shape[0])


def first_rows(x: Array, groups: Array, count: int) -> np.ndarray:
    """Return the first rows that count, at most `count` of them, on the host and in float64.

    Examples
    --------
    >>> first_rows(np.array([[1.0], [2.0], [3.0]]), np.array([-1, 0, 0]), 1)
    array([[2.]])
    """
    found = np.zeros(0, dtype=np.int64)
    for start in range(0, x.shape[0], _CODES_AT_ONCE):
        codes = to_numpy(groups[start : start + _CODES_AT_ONCE])
        found = np.append(found, start + np.flatnonzero(codes >= 0))[:count]
        if found.size == count:
            break
    return to_numpy(x[namespace(x).asarray(found)]).astype(np.float64)
