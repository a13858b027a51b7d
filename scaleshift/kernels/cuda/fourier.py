"""Fourier class sums on a GPU: see fourier.cu for how, `cpu.fourier` for the same on a CPU."""

from typing import Any, NamedTuple

import numpy as np

from scaleshift.kernels import reference
from scaleshift.kernels.cuda.device import Kernels, Lane
from scaleshift.kernels.cuda.grouped import Rows, blocks, checked_groups, class_sums, first_rows
from scaleshift.kernels.reference import Array

MOST_COLUMNS = 1536  # a tile of four rows fills the shared memory that a block of threads has
_WIDTH = 256  # frequencies of a block of threads
_CENTRE_ROWS = 100
_FAR = 1024.0  # turns: beyond, float32 angles lose digits, and from 2^22 on they are no angles any more
_STEEP = 32.0  # medians of the frequencies: those of laws with heavy tails are far beyond the others
_ROTATED_AT_ONCE = 1 << 20


def fourier_sums(x: Array, groups: Array, n_groups: int, frequencies: Array) -> np.ndarray:
    """Sum cosines and sines of the projected rows, by group.

    The same as `reference.fourier_sums` at the frequencies `reference.single_precision(frequencies)`, in
    float32, with a relative error of 1e-7 or so: the arithmetic is that of the CPU's kernel. Rows are centred
    on the median of the first 100 that count before they are rounded to float32, and the sums are rotated
    back in float64: an offset of the data costs no accuracy. Rows so far away that their angles could exceed
    1024 turns (outliers) are left to the reference, and so are the few frequencies that are over 32 times as
    large as most (of kernels that are not smooth). Rows of more than 1536 columns are left to the CPU's
    kernel if they are on the host, else to the reference.

    Parameters
    ----------
    x : (n, d) array
        Rows, numpy or CuPy, in any memory order. float32 and float64 are read in place, other dtypes are
        converted.
    groups : (n,) integer array
        Code of each row's group, in 0 ... n_groups - 1; rows with negative codes are skipped and may be NaN.
    n_groups : int
        Number of groups.
    frequencies : (F, d) array
        In radians a unit of `x`.

    Returns
    -------
    (n_groups, 2 F) numpy.ndarray of float64
        For every group the sum over its rows of cos(W x), then of sin(W x). Groups without rows give 0.

    Raises
    ------
    ValueError
        If a code is not below `n_groups`, there is not one code a row, or the columns do not match.
    """
    frequencies = reference.to_numpy(frequencies).astype(np.float64)
    n_frequencies, n_columns = frequencies.shape
    if x.ndim != 2 or x.shape[1] != n_columns:
        raise ValueError(f"frequencies have {n_columns} columns, but x has the shape {x.shape}")
    if n_columns > MOST_COLUMNS and isinstance(x, np.ndarray):
        from scaleshift.kernels.cpu import fourier  # imports numba

        return fourier.fourier_sums(x, groups, n_groups, frequencies)
    groups = checked_groups(x, groups, n_groups)
    steep = _steep(frequencies) | (n_columns > MOST_COLUMNS)
    sums = np.zeros((n_groups, 2, n_frequencies))
    if steep.any():
        exact = reference.single_precision(frequencies[steep])
        sums[:, :, steep] = reference.fourier_sums(x, groups, n_groups, exact).reshape(n_groups, 2, -1)
    if not steep.all():
        sums[:, :, ~steep] = _smooth_sums(x, groups, n_groups, frequencies[~steep])
    return sums.reshape(n_groups, 2 * n_frequencies)


def _steep(frequencies: np.ndarray) -> np.ndarray:
    """Whether each frequency is far beyond the others, once those that are have been set aside."""
    size = np.abs(frequencies).sum(axis=1)
    steep = np.zeros(len(size), dtype=bool)
    while not steep.all():
        beyond = ~steep & (size > _STEEP * np.median(size[~steep]))
        if not beyond.any():
            break
        steep |= beyond
    return steep


def _smooth_sums(x: Array, groups: Array, n_groups: int, frequencies: np.ndarray) -> np.ndarray:
    """Sums (n_groups, 2, F) where no frequency is far beyond the others."""
    if x.dtype not in (np.float32, np.float64):
        x = x.astype(np.float64)
    first = first_rows(x, groups, _CENTRE_ROWS)
    if not len(first):
        return np.zeros((n_groups, 2, len(frequencies)))
    centre = np.median(first, axis=0).astype(x.dtype)
    turns = (frequencies.T / (2 * np.pi)).astype(np.float32)
    found, far = class_sums(x, groups, n_groups, _Job.of(centre, turns, groups.dtype))
    sums = found.reshape(n_groups, 2, len(frequencies))
    phase = centre.astype(np.float64) @ turns.astype(np.float64)
    _rotate(sums, 2 * np.pi * (phase - np.rint(phase)))
    if far.size:
        chosen = reference.namespace(x).asarray(far)
        codes = reference.host_codes(groups, n_groups, x.shape[0])[far]
        exact = reference.single_precision(frequencies)
        sums += reference.fourier_sums(x[chosen], codes, n_groups, exact).reshape(sums.shape)
    return sums


def _rotate(sums: np.ndarray, angle: np.ndarray) -> None:
    """Turn every group's (sum cos, sum sin) by the angle (F,) of the centre."""
    cos, sin = np.cos(angle), np.sin(angle)
    size = max(1, _ROTATED_AT_ONCE // max(1, angle.size))
    for start in range(0, len(sums), size):
        part = sums[start : start + size]
        about_centre = part[:, 0] * sin
        part[:, 0] *= cos
        part[:, 0] -= part[:, 1] * sin
        part[:, 1] *= cos
        part[:, 1] += about_centre


class _Given(NamedTuple):
    centre: Array
    turns: Array
    reach: Array


class _Job(NamedTuple):
    """What the kernels of fourier.cu sum: cos, then sin, about the centre."""

    kernels: Kernels
    width: int
    centre: np.ndarray
    turns: np.ndarray  # (fours, F padded, 4): columns by fours
    reach: np.ndarray  # (columns,): the largest turns of each
    largest: np.float32  # turns of a frequency in all columns

    @classmethod
    def of(cls, centre: np.ndarray, turns: np.ndarray, code: np.dtype) -> "_Job":
        sizes = np.abs(turns)
        kernels = Kernels.of("fourier", INPUT=centre.dtype.name, CODE=code.name, COLUMNS=len(turns))
        return cls(
            kernels,
            2 * turns.shape[1],
            centre,
            by_fours(turns, _WIDTH),
            sizes.max(axis=1),
            np.float32(sizes.sum(axis=0).max()),
        )

    @property
    def row_bytes(self) -> int:
        return 0

    def send(self, lane: Lane) -> _Given:
        return _Given(lane.upload(self.centre), lane.upload(self.turns), lane.upload(self.reach))

    def screen(self, lane: Lane, given: _Given, rows: Rows, codes: Array, n_groups: int, keys: Array) -> None:
        sizes = codes, np.int32(rows.n), np.int32(n_groups)
        limits = given.centre, given.reach, self.largest, np.float32(_FAR)
        lane.launch(
            self.kernels,
            "screen_rows",
            blocks(rows.n),
            (*rows.arguments, *sizes, *limits, keys),
        )

    def add(
        self, lane: Lane, given: _Given, screened: Any, rows: Rows, keys: Array, edges: np.ndarray
    ) -> Array:
        n = self.width // 2
        sums = lane.empty((edges.size - 1, self.width), np.float64)
        work = keys, lane.upload(edges), given.centre, given.turns, np.int32(n), sums
        grid = edges.size - 1, -(-n // _WIDTH)
        lane.launch(self.kernels, "fourier_sums", grid, (*rows.arguments, *work))
        return sums


def by_fours(columns: np.ndarray, size: int) -> np.ndarray:
    """Lay out (columns, points) such that four columns of a point are adjacent.

    Zeros fill up columns to whole fours, and points to a multiple of `size`.

    Examples
    --------
    >>> by_fours(np.ones((5, 1), dtype=np.float32), 2).tolist()
    [[[1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0]], [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]]
    """
    d, n = columns.shape
    padded = np.zeros((-(-d // 4) * 4, -(-n // size) * size), dtype=np.float32)
    padded[:d, :n] = columns
    return np.ascontiguousarray(padded.reshape(-1, 4, padded.shape[1]).transpose(0, 2, 1))
