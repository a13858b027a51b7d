"""What are the moments of every group of sparse rows?  Sums over CSR rows, of the stored values alone.

The same sums as of dense rows. No Dask here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from scaleshift.kernels.reference import Array, host_codes

_STORED = 1 << 18  # stored values of a tile: 2 MB of float64, and two times as many bytes of keys
_DENSE = 1 << 20  # values of a tile of rows that are made dense: 8 MB
_THIN = 0.05  # share of stored values below which products of sparse rows are faster than those of dense ones
_HALF = 0.5  # share of a column that may be stored where products are moved about a centre: see _is_thin


def canonical(x: Any) -> sparse.csr_array:
    """Rows as a CSR array with sorted columns and no value stored twice; what is given stays as it is.

    Parameters
    ----------
    x : scipy.sparse array or matrix, shape (n, d)
        Of any format; values that are stored twice are added up.

    Returns
    -------
    scipy.sparse.csr_array
        With the arrays of `x` where nothing has to change.

    Examples
    --------
    >>> twice = sparse.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(1, 2))
    >>> canonical(twice).data.tolist()
    [3.0]
    """
    rows = sparse.csr_array(x)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def moment_sums(x: Array, groups: Array, n_groups: int, weight: np.ndarray | None = None) -> np.ndarray:
    """Sum the columns and their squares, by group: the same as `reference.moment_sums`, also weighted.

    Parameters
    ----------
    x : (n, d) scipy.sparse array
        Rows, of any real dtype. The time goes with the stored values.
    groups : (n,) integer array
        Code of each row's group, in 0 ... n_groups - 1; rows with negative codes are skipped.
    n_groups : int
        Number of groups.
    weight : (n,) numpy.ndarray, optional
        What each row counts; 1 where left out.

    Returns
    -------
    (n_groups, 2, d) numpy.ndarray of float64
        For every group the sum over its rows of w x, then of w x^2. Groups without rows give 0.

    Raises
    ------
    ValueError
        If a code is not below `n_groups`, or there is not one code a row.

    Examples
    --------
    >>> x = sparse.csr_array([[1.0, 0.0], [2.0, 0.0], [0.0, 9.0]])
    >>> moment_sums(x, np.array([0, 0, -1]), 1).tolist()
    [[[3.0, 0.0], [5.0, 0.0]]]
    """
    codes = host_codes(groups, n_groups, x.shape[0])
    w = None if weight is None else np.asarray(weight, np.float64)
    x, d = canonical(x), x.shape[1]
    sums = np.zeros((2, n_groups * d))
    for first, last in _row_tiles(x.indptr, max(_STORED, n_groups * d)):
        lengths = np.diff(x.indptr[first : last + 1])
        stored = slice(x.indptr[first], x.indptr[last])
        group = np.repeat(codes[first:last], lengths)
        present = group >= 0
        key = group[present].astype(np.int64) * d + x.indices[stored][present]
        value = x.data[stored][present].astype(np.float64)
        weighted = value if w is None else value * np.repeat(w[first:last], lengths)[present]
        sums[0] += np.bincount(key, weighted, minlength=n_groups * d)
        sums[1] += np.bincount(key, weighted * value, minlength=n_groups * d)
    return sums.reshape(2, n_groups, d).transpose(1, 0, 2).copy()


def scatter_sums(
    x: Array, groups: Array, n_groups: int, centre: np.ndarray, weight: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Sum the rows about a centre, and their products, by group: the same as `scatter.scatter_sums`.

    Rows of few stored values are multiplied as they are, others made dense, tile by tile: in float64 both.

    Parameters
    ----------
    x : (n, d) scipy.sparse array
        Rows, of any real dtype and of moderate d: a group's products are a (d, d) array.
    groups : (n,) integer array
        Code of each row's group, in 0 ... n_groups - 1; rows with negative codes are skipped.
    n_groups : int
        Number of groups.
    centre : (d,) numpy.ndarray
        A point near the rows.
    weight : (n,) numpy.ndarray, optional
        What each row counts, not negative; 1 where left out.

    Returns
    -------
    dict of numpy.ndarray of float64
        "count" (n_groups,), "weight" (n_groups,), "sum" (n_groups, d), "scatter" (n_groups, d, d).

    Raises
    ------
    ValueError
        If a code is not below `n_groups`, or there is not one code a row.

    Examples
    --------
    >>> x = sparse.csr_array([[1.0], [3.0]])
    >>> found = scatter_sums(x, np.array([0, 0]), 1, centre=np.array([1.0]))
    >>> found["sum"].tolist(), found["scatter"].tolist()
    ([[2.0]], [[[4.0]]])
    """
    codes = host_codes(groups, n_groups, x.shape[0])
    w = np.ones(len(codes)) if weight is None else np.asarray(weight, np.float64)
    x, d = canonical(x), x.shape[1]
    found = {
        "count": np.bincount(codes[codes >= 0], minlength=n_groups).astype(np.float64),
        "weight": np.bincount(codes[codes >= 0], w[codes >= 0], minlength=n_groups),
        "sum": np.zeros((n_groups, d)),
        "scatter": np.zeros((n_groups, d, d)),
    }
    origin = np.asarray(centre, np.float64)
    for group in range(n_groups):
        members = np.flatnonzero(codes == group)
        rows, weights = x[members], w[members]
        products = _thin_products if _is_thin(rows, weights) else _dense_products
        found["sum"][group], found["scatter"][group] = products(rows, origin, weights)
    return found


def _is_thin(x: sparse.csr_array, w: np.ndarray) -> bool:
    """Whether products of rows about zero are faster, and can be moved about the centre without loss.

    Where at least half of a column's weight is in values that are not stored, its scatter about any centre c
    is at least W c^2 / 2: nothing that is subtracted is larger than what is left.
    """
    if x.nnz > _THIN * x.shape[0] * x.shape[1]:
        return False
    stored = np.bincount(x.indices, np.repeat(w, np.diff(x.indptr)), minlength=x.shape[1])
    return bool((stored <= _HALF * w.sum()).all())


def _thin_products(x: sparse.csr_array, origin: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sum and scatter about the origin, from products of the stored values."""
    root = np.repeat(np.sqrt(w), np.diff(x.indptr))
    rooted = sparse.csr_array((x.data * root, x.indices, x.indptr), shape=x.shape)
    about_zero = rooted.T @ np.sqrt(w)
    total = about_zero - w.sum() * origin
    scatter = (rooted.T @ rooted).toarray()
    # (x - c)(x - c)' = x x' - c x' - (x - c) c'
    scatter -= np.outer(origin, about_zero)
    scatter -= np.outer(total, origin)
    return total, scatter


def _dense_products(x: sparse.csr_array, origin: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same of rows that are made dense, tile by tile."""
    n, d = x.shape
    total, scatter = np.zeros(d), np.zeros((d, d))
    size = max(256, _DENSE // max(d, 1))
    for start in range(0, n, size):
        rows = slice(start, start + size)
        tile = x[rows].astype(np.float64).toarray()
        tile -= origin
        total += w[rows] @ tile
        tile *= np.sqrt(w[rows])[:, None]
        scatter += tile.T @ tile  # of one array with itself: half the work
    return total, scatter


def _row_tiles(indptr: np.ndarray, size: int) -> Iterator[tuple[int, int]]:
    """Runs of consecutive rows, first and last + 1, of about `size` stored values."""
    n = len(indptr) - 1
    first = 0
    while first < n:
        last = int(np.searchsorted(indptr, int(indptr[first]) + size, "right")) - 1
        last = min(max(last, first + 1), n)
        yield first, last
        first = last
