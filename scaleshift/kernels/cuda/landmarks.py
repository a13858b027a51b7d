"""Landmark class sums on a GPU: see landmarks.cu for how, `cpu.landmarks` for the same on a CPU."""

from typing import NamedTuple

import numpy as np

from scaleshift.kernels import reference
from scaleshift.kernels.cuda.device import Kernels, Lane
from scaleshift.kernels.cuda.fourier import MOST_COLUMNS, by_fours
from scaleshift.kernels.cuda.grouped import Rows, blocks, checked_groups, class_sums
from scaleshift.kernels.reference import Array, check_columns
from scaleshift.kernels.scaled import FAR, SIGHT, Scaled, scaled

_WIDTH = 128  # landmarks of a block of threads


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
    plan = scaled(z, bandwidth, x.dtype, -(-len(z) // _WIDTH) * _WIDTH)
    kernels = Kernels.of("landmarks", INPUT=x.dtype.name, CODE=groups.dtype.name, COLUMNS=x.shape[1])
    job = _Job(kernels, len(z) + 1, plan)
    sums, left = class_sums(x, groups, n_groups, job)
    sums[:, :-1] *= plan.corrections
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
    """What the kernels of landmarks.cu sum."""

    kernels: Kernels
    width: int
    plan: Scaled

    @property
    def row_bytes(self) -> int:
        return 4 + 4 * self.plan.biases.size // _WIDTH

    def send(self, lane: Lane) -> _Given:
        weights = by_fours(self.plan.weights.T, _WIDTH)
        return _Given(lane.upload(self.plan.centre), lane.upload(weights), lane.upload(self.plan.biases))

    def screen(
        self, lane: Lane, given: _Given, rows: Rows, codes: Array, n_groups: int, keys: Array
    ) -> Array:
        shifts, plan = lane.empty(rows.n, np.float32), self.plan
        left_to = (plan.reach + SIGHT) ** 2 if plan.reach > FAR else 0.0
        bounds = plan.rate, FAR**2, left_to, (min(plan.reach, FAR) + SIGHT) ** 2
        sizes = np.int32(rows.n), np.int32(n_groups)
        work = *rows.arguments, codes, *sizes, given.centre, plan.scale
        limits = (np.float64(bound) for bound in bounds)
        lane.launch(self.kernels, "screen_rows", blocks(rows.n), (*work, *limits, keys, shifts))
        return shifts

    def add(
        self, lane: Lane, given: _Given, shifts: Array, rows: Rows, keys: Array, edges: np.ndarray
    ) -> Array:
        m, n, parts = np.int32(self.width - 1), np.int32(rows.n), self.plan.biases.size // _WIDTH
        sums = lane.empty((edges.size - 1, self.width), np.float64)
        totals = lane.empty((parts, rows.n), np.float32)
        cuts = lane.upload(edges)
        lane.launch(
            self.kernels,
            "landmark_sums",
            (edges.size - 1, parts),
            (
                *(*rows.arguments, keys, shifts, n, cuts, given.centre, self.plan.scale),
                *(given.weights, given.biases, m, sums, totals),
            ),
        )
        residuals = totals, np.int32(parts), n, cuts, m, sums
        lane.launch(self.kernels, "add_residuals", (edges.size - 1,), residuals)
        return sums
