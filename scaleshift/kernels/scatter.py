"""What are the second moments of every group of rows?  Array code for numpy and CuPy, also weighted."""

from __future__ import annotations

import numpy as np

from scaleshift.kernels.reference import Array, host_codes, namespace, tile_rows, to_numpy


def scatter_sums(
    x: Array, groups: Array, n_groups: int, centre: np.ndarray, weight: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Sum the rows about a centre, and their products, by group.

    Parameters
    ----------
    x : (n, d) array
        Rows; numpy or CuPy, any real dtype.
    groups : (n,) integer array
        Code of each row's group, in 0 ... n_groups - 1; rows with negative codes are skipped.
    n_groups : int
        Number of groups.
    centre : (d,) numpy.ndarray
        A point near the rows: the nearer, the less of the products cancels later.
    weight : (n,) numpy.ndarray, optional
        What each row counts, not negative; 1 where left out.

    Returns
    -------
    dict of numpy.ndarray of float64
        "count" (n_groups,) rows; "weight" (n_groups,) the sum of their weights w; "sum" (n_groups, d) of
        w (x - centre); "scatter" (n_groups, d, d) of w (x - centre)(x - centre)'. Groups without rows give 0.

    Raises
    ------
    ValueError
        If a code is not below `n_groups`, or there is not one code a row.

    Examples
    --------
    >>> found = scatter_sums(np.array([[1.0], [3.0]]), np.array([0, 0]), 1, centre=np.array([1.0]))
    >>> found["sum"].tolist(), found["scatter"].tolist()
    ([[2.0]], [[[4.0]]])
    """
    xp = namespace(x)
    codes = host_codes(groups, n_groups, x.shape[0])
    w = np.ones(len(codes)) if weight is None else np.asarray(weight, np.float64)
    d = x.shape[1]
    found = {
        "count": np.bincount(codes[codes >= 0], minlength=n_groups).astype(np.float64),
        "weight": np.bincount(codes[codes >= 0], w[codes >= 0], minlength=n_groups),
        "sum": np.zeros((n_groups, d)),
        "scatter": np.zeros((n_groups, d, d)),
    }
    origin = xp.asarray(centre, dtype=xp.float64)
    size = tile_rows(x, 2 * d)
    for group in range(n_groups):
        members = np.flatnonzero(codes == group)
        for start in range(0, members.size, size):
            rows = members[start : start + size]
            tile = x[xp.asarray(rows)].astype(xp.float64) - origin
            weighted = tile * xp.asarray(w[rows])[:, None]
            found["sum"][group] += to_numpy(weighted.sum(axis=0))
            found["scatter"][group] += to_numpy(weighted.T @ tile)
    return found
