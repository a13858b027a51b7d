"""How are class moments summed? One read of the rows, each value added to its class in float64."""

import numpy as np

from scaleshift.kernels.cpu.jit import jit, wide_frame
from scaleshift.kernels.cpu.work import zeros
from scaleshift.kernels.reference import host_codes

_LINE = 8  # float64 numbers of a cache line: sums that straddle two lines take up to 1.5 times as long


def moment_sums(
    x: np.ndarray, groups: np.ndarray, n_groups: int, weight: np.ndarray | None = None
) -> np.ndarray:
    """Sum the columns and their squares, by group: the same as `reference.moment_sums`.

    Parameters
    ----------
    x : (n, d) numpy.ndarray
        Rows. float32 and float64 are read in place, other dtypes are converted.
    groups : (n,) integer array
        Code of each row's group; negative codes are skipped.
    n_groups : int
    weight : (n,) numpy.ndarray, optional
        What each row counts; 1 where left out.

    Returns
    -------
    (n_groups, 2, d) numpy.ndarray of float64

    Examples
    --------
    >>> moment_sums(np.array([[1.0], [2.0], [9.0]]), np.array([0, 0, -1]), 1).tolist()
    [[[3.0], [5.0]]]
    """
    codes = host_codes(groups, n_groups, x.shape[0])
    if x.dtype not in (np.float32, np.float64):
        x = x.astype(np.float64)
    d = x.shape[1]
    sums = zeros((n_groups, 2, -(-d // _LINE) * _LINE), np.float64)
    if weight is None:
        _add_rows(x, codes, sums)
    else:
        _add_weighted(x, codes, np.asarray(weight, np.float64), sums)
    return np.ascontiguousarray(sums[:, :, :d])


@jit
def _add_rows(x: np.ndarray, codes: np.ndarray, sums: np.ndarray) -> None:
    """Add every row and its square to its group."""
    wide_frame()
    for i in range(x.shape[0]):
        group = codes[i]
        if group < 0:
            continue
        for k in range(x.shape[1]):
            value = np.float64(x[i, k])
            sums[group, 0, k] += value
            sums[group, 1, k] += value * value


@jit
def _add_weighted(x: np.ndarray, codes: np.ndarray, weight: np.ndarray, sums: np.ndarray) -> None:
    """The same, every row times its weight."""
    wide_frame()
    for i in range(x.shape[0]):
        group = codes[i]
        if group < 0:
            continue
        for k in range(x.shape[1]):
            value = np.float64(x[i, k])
            sums[group, 0, k] += weight[i] * value
            sums[group, 1, k] += weight[i] * value * value
