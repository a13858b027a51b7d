"""What is the right answer? Class sums in float64, in plain code that serves numpy and CuPy alike.

This is the truth that the fast kernels are tested against, and the fallback where there is none. Rows are
taken in tiles, so that no (rows, features) array is ever held for a whole block. Results are numpy.
"""

import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from scaleshift.kernels.families import KERNELS

Array = Any  # numpy.ndarray or cupy.ndarray: both answer to the same functions

_TILE_ELEMENTS = {"numpy": 1 << 17, "cupy": 1 << 24}  # float64: 1 MB fits a core's cache, 128 MB fills a GPU
_HUGE = 1e100  # bandwidths


def library(x: Array) -> str:
    """Name the array library that an array belongs to, without importing any.

    Parameters
    ----------
    x : array
        Any array; subclasses of `numpy.ndarray` count as numpy, wherever they are defined.

    Returns
    -------
    str
        The top-level module: "numpy", "cupy", ...

    Examples
    --------
    >>> library(np.zeros(3))
    'numpy'
    """
    return "numpy" if isinstance(x, np.ndarray) else type(x).__module__.partition(".")[0]


def namespace(x: Array) -> Any:
    """Return the functions that serve an array: its library's, since CuPy's have no `__array_namespace__`."""
    return np if isinstance(x, np.ndarray) else importlib.import_module(library(x))


def to_numpy(x: Array) -> np.ndarray:
    """Bring an array to the host.

    Parameters
    ----------
    x : array
        numpy, CuPy, scipy.sparse, which becomes dense, or anything that `numpy.asarray` takes.

    Returns
    -------
    numpy.ndarray
        The same values; no copy if they are on the host already.

    Examples
    --------
    >>> to_numpy([1, 2])
    array([1, 2])
    """
    name = library(x)
    if name == "scipy":
        return x.toarray()
    return x.get() if name == "cupy" else np.asarray(x)


def host_codes(groups: Array, n_groups: int, n_rows: int) -> np.ndarray:
    """Check group codes and bring them to the host as int32.

    Parameters
    ----------
    groups : (n_rows,) integer array
        Code of each row's group; negative codes mean "skip this row".
    n_groups : int
        Codes must lie below.
    n_rows : int
        How many codes there must be.

    Returns
    -------
    (n_rows,) numpy.ndarray of int32

    Raises
    ------
    ValueError
        If there is not one integer code a row, or one is not below `n_groups`.

    Examples
    --------
    >>> host_codes(np.array([0, 1, -1]), n_groups=2, n_rows=3)
    array([ 0,  1, -1], dtype=int32)
    """
    codes = to_numpy(groups)
    if codes.shape != (n_rows,) or not np.issubdtype(codes.dtype, np.integer):
        raise ValueError(
            f"groups must hold one integer code for each of the {n_rows} rows, "
            f"found shape {codes.shape} of {codes.dtype}"
        )
    if n_rows and codes.max() >= n_groups:
        raise ValueError(
            f"groups holds the code {codes.max()} in row {codes.argmax()}, but n_groups is {n_groups}: "
            f"codes run from 0 to n_groups - 1, negative ones are skipped"
        )
    if codes.dtype.kind == "i" and codes.dtype.itemsize > 4:
        codes = np.maximum(codes, -1)  # in int32, far smaller ones would be other codes
    return codes.astype(np.int32, copy=False)


def single_precision(frequencies: Array) -> np.ndarray:
    """Round frequencies as the float32 kernels do: in turns (1 turn = 2 pi).

    A float32 kernel sums cos and sin of exactly these frequencies, whatever the origin of the rows.

    Parameters
    ----------
    frequencies : (n_frequencies, n_columns) array
        In radians a unit.

    Returns
    -------
    (n_frequencies, n_columns) numpy.ndarray of float64
        In radians a unit; within 6e-8 of what came in, relative.

    Examples
    --------
    >>> single_precision(np.array([[2 * np.pi]])) == 2 * np.pi
    array([[ True]])
    """
    turns = to_numpy(frequencies).astype(np.float64) / (2 * np.pi)
    return turns.astype(np.float32).astype(np.float64) * (2 * np.pi)


def fourier_sums(x: Array, groups: Array, n_groups: int, frequencies: Array) -> np.ndarray:
    """Sum cosines and sines of the projected rows, by group.

    Parameters
    ----------
    x : (n, d) array
        Rows; numpy or CuPy, any real dtype.
    groups : (n,) integer array
        Code of each row's group, in 0 ... n_groups - 1; rows with negative codes are skipped.
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
        If a code is not below `n_groups`, or there is not one code a row.

    Examples
    --------
    >>> x = np.array([[0.0], [0.5], [1.0]])
    >>> fourier_sums(x, np.array([0, 0, -1]), 1, np.array([[np.pi]])).round(6)
    array([[1., 1.]])
    """
    xp = namespace(x)
    codes = host_codes(groups, n_groups, x.shape[0])
    weights = xp.asarray(frequencies, dtype=xp.float64).T  # (d, F)
    width = weights.shape[1]
    sums = np.zeros((n_groups, 2 * width))
    for rows, present, members in tiles(codes, tile_rows(x, 2 * width)):
        angle = x[xp.asarray(rows)].astype(xp.float64) @ weights
        features = xp.concatenate([xp.cos(angle), xp.sin(angle)], axis=1)
        sums[present] += to_numpy(xp.asarray(members) @ features)
    return sums


def exact_sums(
    x: Array,
    groups: Array,
    n_groups: int,
    points: Array,
    point_groups: Array,
    n_point_groups: int,
    bandwidth: float,
    kernel: str = "gaussian",
) -> np.ndarray:
    """Sum the mean kernel between rows and classes of points, by group of rows.

    The exact form of kernel matching, O(n m): each pair of a row and a point is visited once.

    Parameters
    ----------
    x : (n, d) array
        Rows; numpy or CuPy, any real dtype.
    groups : (n,) integer array
        Code of each row's group, in 0 ... n_groups - 1; rows with negative codes are skipped.
    n_groups : int
        Number of groups of rows.
    points : (m, d) array
        The points to compare with.
    point_groups : (m,) integer array
        Code of each point's class; points with negative codes are skipped.
    n_point_groups : int
        Number of classes of points.
    bandwidth : float
        Width of the kernel, in units of `x`.
    kernel : str, default "gaussian"
        A name in `families.KERNELS`.

    Returns
    -------
    (n_groups, n_point_groups) numpy.ndarray of float64
        Entry (g, j): sum over rows x of group g of the mean over points z of class j of k(x, z). Groups
        without rows and classes without points give 0.

    Raises
    ------
    ValueError
        If a code is not below its number of groups, or there is not one code a row.

    Examples
    --------
    >>> x = np.array([[0.0], [1.0]])
    >>> exact_sums(x, np.array([0, 0]), 1, np.array([[0.0]]), np.array([0]), 1, bandwidth=1.0).round(4)
    array([[1.6065]])
    """
    xp = namespace(x)
    family = KERNELS[kernel]
    codes = host_codes(groups, n_groups, x.shape[0])
    sums = np.zeros((n_groups, n_point_groups))
    kept, means = class_means(host_codes(point_groups, n_point_groups, points.shape[0]), n_point_groups)
    if not kept.size:
        return sums
    z = xp.asarray(points)[xp.asarray(kept)].astype(xp.float64)
    origin = z.mean(axis=0)
    z = _standardised(z, origin, family.unit * bandwidth)
    means = xp.asarray(means)
    for rows, present, members in tiles(codes, tile_rows(x, kept.size)):
        tile = _standardised(x[xp.asarray(rows)], origin, family.unit * bandwidth)
        sums[present] += to_numpy(xp.asarray(members) @ (family.between(tile, z) @ means))
    return sums


def landmark_sums(
    x: Array, groups: Array, n_groups: int, landmarks: Array, bandwidth: float, kernel: str = "gaussian"
) -> np.ndarray:
    """Sum the kernel between rows and landmarks, and a residual feature, by group of rows.

    The kernel values with landmarks are Nystrom features, short of a factor that depends on the landmarks
    alone. The residual feature r(x) = exp(-sum_k k(x, z_k)) tells of what no landmark sees: it is 1 for rows
    far from all of them and near 0 amid them.

    Parameters
    ----------
    x : (n, d) array
        Rows; numpy or CuPy, any real dtype.
    groups : (n,) integer array
        Code of each row's group, in 0 ... n_groups - 1; rows with negative codes are skipped.
    n_groups : int
        Number of groups.
    landmarks : (m, d) array
        The points z_k to compare with, one at least.
    bandwidth : float
        Width of the kernel, in units of `x`.
    kernel : str, default "gaussian"
        A name in `families.KERNELS`.

    Returns
    -------
    (n_groups, m + 1) numpy.ndarray of float64
        Entry (g, k): sum over the rows x of group g of k(x, z_k).
        Entry (g, m): sum over those rows of the residual feature. Groups without rows give 0.

    Raises
    ------
    ValueError
        If a code is not below `n_groups`, there is not one code a row, or the columns do not match.

    Examples
    --------
    >>> x, z = np.array([[0.0], [1.0], [9.0]]), np.array([[0.0]])
    >>> landmark_sums(x, np.array([0, 0, 1]), 2, z, bandwidth=1.0).round(4)
    array([[1.6065, 0.9131],
           [0.    , 1.    ]])
    """
    xp = namespace(x)
    check_columns(x, landmarks)
    codes = host_codes(groups, n_groups, x.shape[0])
    family = KERNELS[kernel]
    z = xp.asarray(landmarks, dtype=xp.float64)
    origin = z.mean(axis=0)
    z = _standardised(z, origin, family.unit * bandwidth)
    sums = np.zeros((n_groups, len(z) + 1))
    for rows, present, members in tiles(codes, tile_rows(x, len(z))):
        values = family.between(_standardised(x[xp.asarray(rows)], origin, family.unit * bandwidth), z)
        residual = xp.exp(-values.sum(axis=1, keepdims=True))
        sums[present] += to_numpy(xp.asarray(members) @ xp.concatenate([values, residual], axis=1))
    return sums


def moment_sums(x: Array, groups: Array, n_groups: int, weight: np.ndarray | None = None) -> np.ndarray:
    """Sum the columns and their squares, by group; of weighted rows w x, then w x^2.

    Parameters
    ----------
    x : (n, d) array
        Rows; numpy or CuPy, any real dtype.
    groups : (n,) integer array
        Code of each row's group, in 0 ... n_groups - 1; rows with negative codes are skipped.
    n_groups : int
        Number of groups.

    Returns
    -------
    (n_groups, 2, d) numpy.ndarray of float64
        For every group the sum over its rows of x, then of x^2. Groups without rows give 0.

    Raises
    ------
    ValueError
        If a code is not below `n_groups`, or there is not one code a row.

    Examples
    --------
    >>> moment_sums(np.array([[1.0], [2.0], [9.0]]), np.array([0, 0, -1]), 1).tolist()
    [[[3.0], [5.0]]]
    """
    xp = namespace(x)
    d = x.shape[1]
    sums = np.zeros((n_groups, 2 * d))
    for rows, present, members in tiles(host_codes(groups, n_groups, x.shape[0]), tile_rows(x, 2 * d)):
        tile = x[xp.asarray(rows)].astype(xp.float64)
        weighted = xp.asarray(members if weight is None else members * weight[rows])
        sums[present] += to_numpy(weighted @ xp.concatenate([tile, tile * tile], axis=1))
    return sums.reshape(n_groups, 2, d)


def check_columns(x: Array, landmarks: Array) -> None:
    """Refuse landmarks that cannot be compared with the rows.

    Parameters
    ----------
    x : (n, d) array
        Rows.
    landmarks : (m, d) array
        Points to compare with.

    Raises
    ------
    ValueError
        If there is no landmark, or the columns do not match.

    Examples
    --------
    >>> check_columns(np.zeros((3, 2)), np.zeros((1, 2)))
    """
    if landmarks.ndim != 2 or not len(landmarks):
        raise ValueError(f"landmarks must be a table of one row at least, found the shape {landmarks.shape}")
    if x.ndim != 2 or x.shape[1] != landmarks.shape[1]:
        raise ValueError(f"landmarks have {landmarks.shape[1]} columns, but x has the shape {x.shape}")


def _standardised(x: Array, origin: Array, unit: float) -> Array:
    """Return float64 rows about the origin, in units in which the kernel has its plain form.

    Where values are so large that their squares overflow, the kernel is 0 at any such value: they are cut.
    """
    xp = namespace(x)
    return xp.clip(x.astype(xp.float64) - origin, -_HUGE * unit, _HUGE * unit) / unit


def class_means(codes: np.ndarray, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the points that count, and the (points, classes) matrix that averages over each class."""
    kept = np.flatnonzero(codes >= 0)
    counts = np.bincount(codes[kept], minlength=n_classes)
    means = np.zeros((kept.size, n_classes))
    means[np.arange(kept.size), codes[kept]] = 1 / counts[codes[kept]]
    return kept, means


def tile_rows(x: Array, width: int) -> int:
    """Return how many rows of `width` float64 values a tile takes."""
    return max(16, _TILE_ELEMENTS[library(x)] // max(width, 1))


def tiles(codes: np.ndarray, size: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Cut the rows that count into tiles, sorted by group, so that a tile meets few groups.

    Yields the rows of a tile, the groups that occur in it, and the (groups, rows) 0/1 matrix that sums by
    group when it is multiplied with features of the rows.
    """
    order = np.argsort(codes, kind="stable")
    order = order[np.searchsorted(codes[order], 0) :]
    for start in range(0, order.size, size):
        rows = order[start : start + size]
        present, inverse = np.unique(codes[rows], return_inverse=True)
        yield rows, present, (np.arange(present.size)[:, None] == inverse).astype(np.float64)
