"""Landmark class sums on a GPU: see landmarks.cu for how, `cpu.landmarks` for the same on a CPU."""

import math
from typing import NamedTuple

import numpy as np

from scaleshift.kernels import reference
from scaleshift.kernels.cuda.device import Kernels, Lane
from scaleshift.kernels.cuda.fourier import MOST_COLUMNS, by_fours
from scaleshift.kernels.cuda.grouped import Rows, blocks, checked_groups, class_sums
from scaleshift.kernels.reference import Array, check_columns

_WIDTH = 128  # landmarks of a block of threads

# in units of sqrt(-t), that is, of 1.2 bandwidths
_SIGHT = 11.25  # of a landmark: beyond, kernel values are below 2^-126, the smallest that float32 holds
_FAR = 16.0  # from the centre: beyond, t has an error of 1e-7 |x|^2, which is 3e-5, and more

_UNSEEN = np.float32(-1e6)  # in place of -|z|^2: kernel values are 0


def landmark_sums(x: Array, groups: Array, n_groups: int, landmarks: Array, bandwidth: float) -> np.ndarray:
    """Sum the Gaussian kernel between rows and landmarks, and a residual feature, by group of rows.

    The same as `reference.landmark_sums` in float32, about the mean of the landmarks: an offset of the data
    costs no accuracy, and the sums of parts add up to those of the whole. The relative error of the sums is
    about 2e-7 where landmarks lie within a few bandwidths of their mean, and grows with the square of that
    distance, to 3e-5 at 19 bandwidths. Farther out, rows that a landmark may see are left to the reference.
    Rows that no landmark sees, at any distance, have kernel values of 0 and a residual of 1. Rows of more
    than 1536 columns are left to the CPU's kernel if they are on the host, else to the reference.

    Parameters
    ----------
    x : (n, d) array
        Rows, numpy or CuPy, in any memory order. float32 and float64 are read in place, other dtypes are
        converted. Those that count must be free of NaN.
    groups : (n,) integer array
        Code of each row's group, in 0 ... n_groups - 1; rows with negative codes are skipped and may be NaN.
    n_groups : int
        Number of groups.
    landmarks : (m, d) array
        The points z_k to compare with, one at least.
    bandwidth : float
        Standard deviation of the kernel, in units of `x`.

    Returns
    -------
    (n_groups, m + 1) numpy.ndarray of float64
        Entry (g, k): sum over the rows x of group g of k(x, z_k) = exp(-|x - z_k|^2 / (2 bandwidth^2)).
        Entry (g, m): sum over those rows of exp(-sum_k k(x, z_k)). Groups without rows give 0.

    Raises
    ------
    ValueError
        If a code is not below `n_groups`, there is not one code a row, or the columns do not match.
    """
    check_columns(x, landmarks)
    if x.shape[1] > MOST_COLUMNS:
        if isinstance(x, np.ndarray):
            from scaleshift.kernels.cpu import landmarks as cpu  # imports numba

            return cpu.landmark_sums(x, groups, n_groups, landmarks, bandwidth)
        return reference.landmark_sums(x, groups, n_groups, landmarks, bandwidth)
    groups = checked_groups(x, groups, n_groups)
    if x.dtype not in (np.float32, np.float64):
        x = x.astype(np.float64)
    z = reference.to_numpy(landmarks).astype(np.float64)
    job, corrections = _prepare(z, bandwidth, x.dtype, groups.dtype)
    sums, left = class_sums(x, groups, n_groups, job)
    sums[:, :-1] *= corrections
    if left.size:
        chosen = reference.namespace(x).asarray(left)
        codes = reference.host_codes(groups, n_groups, x.shape[0])[left]
        sums += reference.landmark_sums(x[chosen], codes, n_groups, landmarks, bandwidth)
    return sums


class _Given(NamedTuple):
    centre: Array
    weights: Array
    biases: Array


class _Job(NamedTuple):
    """What the kernels of landmarks.cu sum: landmarks about their mean, such that t = -rate |x - z|^2."""

    kernels: Kernels
    width: int
    centre: np.ndarray  # (d,) of the dtype of x
    scale: np.floating  # a power of 2, which costs no digits and keeps squares in float32's range
    rate: float  # in [1/2, 2]
    reach: float  # distance of the farthest landmark from the centre in units of sqrt(-t)
    weights: np.ndarray  # (fours, landmarks, 4) float32: 2 rate z, columns by fours
    biases: np.ndarray  # (landmarks,) float32: -rate |z|^2

    @property
    def row_bytes(self) -> int:
        return 4 + 4 * self.biases.size // _WIDTH

    def send(self, lane: Lane) -> _Given:
        return _Given(lane.upload(self.centre), lane.upload(self.weights), lane.upload(self.biases))

    def screen(
        self, lane: Lane, given: _Given, rows: Rows, codes: Array, n_groups: int, keys: Array
    ) -> Array:
        shifts = lane.empty(rows.n, np.float32)
        left_to = (self.reach + _SIGHT) ** 2 if self.reach > _FAR else 0.0
        bounds = self.rate, _FAR**2, left_to, (min(self.reach, _FAR) + _SIGHT) ** 2
        lane.launch(
            self.kernels,
            "screen_rows",
            blocks(rows.n),
            (
                *(*rows.arguments, codes, np.int32(rows.n), np.int32(n_groups), given.centre, self.scale),
                *(np.float64(bound) for bound in bounds),
                *(keys, shifts),
            ),
        )
        return shifts

    def add(
        self, lane: Lane, given: _Given, shifts: Array, rows: Rows, keys: Array, edges: np.ndarray
    ) -> Array:
        m, n, parts = np.int32(self.width - 1), np.int32(rows.n), self.biases.size // _WIDTH
        sums = lane.empty((edges.size - 1, self.width), np.float64)
        totals = lane.empty((parts, rows.n), np.float32)
        cuts = lane.upload(edges)
        lane.launch(
            self.kernels,
            "landmark_sums",
            (edges.size - 1, parts),
            (
                *(*rows.arguments, keys, shifts, n, cuts, given.centre, self.scale),
                *(given.weights, given.biases, m, sums, totals),
            ),
        )
        residuals = totals, np.int32(parts), n, cuts, m, sums
        lane.launch(self.kernels, "add_residuals", (edges.size - 1,), residuals)
        return sums


def _prepare(
    landmarks: np.ndarray, bandwidth: float, dtype: np.dtype, code: np.dtype
) -> tuple[_Job, np.ndarray]:
    """Centre and scale landmarks, pad them with some that see nothing; and the factors of their sums.

    The factors (m,) undo the rounding of the biases.
    """
    m, d = landmarks.shape
    rate = math.log2(math.e) / (2 * bandwidth**2)
    scale = 2.0 ** np.rint(np.log2(rate) / 2)
    rate /= scale**2
    centre = landmarks.mean(axis=0).astype(dtype)
    z = np.clip((landmarks - centre) * scale, -1e100, 1e100)  # so that squares are finite
    squares = rate * (z * z).sum(axis=1)
    seeing = np.flatnonzero(squares <= (_FAR + _SIGHT) ** 2)
    padded = -(-m // _WIDTH) * _WIDTH
    weights = np.zeros((padded, d), dtype=np.float32)
    weights[seeing] = 2 * rate * z[seeing]
    # |z|^2 is that of the rounded weights: a landmark displaced by 1e-7 |z| does less harm than an error of
    # 1e-7 |z|^2 in every t
    exact = np.full(padded, np.float64(_UNSEEN))
    exact[seeing] = -(weights[seeing].astype(np.float64) ** 2).sum(axis=1) / (4 * rate)
    biases = exact.astype(np.float32)
    job = _Job(
        Kernels.of("landmarks", INPUT=dtype.name, CODE=code.name, COLUMNS=d),
        m + 1,
        centre,
        dtype.type(scale),
        rate,
        float(squares.max() ** 0.5),
        by_fours(weights.T, _WIDTH),
        biases,
    )
    return job, np.exp2(exact - biases)[:m]
