"""What do linear models of some rows need to know?  Products of columns, and of columns with outcomes."""

from __future__ import annotations

import numpy as np

from scaleshift.kernels.reference import Array, host_codes, namespace, tile_rows, to_numpy


def regression_sums(
    x: Array, outcomes: np.ndarray, groups: Array, n_groups: int, centre: np.ndarray
) -> dict[str, np.ndarray]:
    """Sum products of z = (1, x - centre) with itself and with outcomes, by group.

    Parameters
    ----------
    x : (n, d) array
        Rows; numpy or CuPy, any real dtype, any memory order.
    outcomes : (n, m) numpy.ndarray
        What is regressed on the rows: m of them, 0 is allowed.
    groups : (n,) integer array
        Code of each row's group, in 0 ... n_groups - 1; rows with negative codes are skipped and may be NaN.
    n_groups : int
        Number of groups.
    centre : (d,) numpy.ndarray
        A point near the rows: the nearer, the less of the products cancels later.

    Returns
    -------
    dict of numpy.ndarray of float64
        "gram" (n_groups, 1 + d, 1 + d) of zz'; "cross" (n_groups, 1 + d, m) of z outcomes'; "square"
        (n_groups, m) of outcomes squared. Products are float64 for every dtype of X: float32 rows are cast
        tile by tile.

    Raises
    ------
    ValueError
        If a code is not below `n_groups`, or there is not one code a row.

    Examples
    --------
    >>> x, y = np.array([[1.0], [3.0]]), np.array([[2.0], [5.0]])
    >>> found = regression_sums(x, y, np.array([0, 0]), 1, centre=np.array([1.0]))
    >>> found["gram"].tolist(), found["cross"].tolist(), found["square"].tolist()
    ([[[2.0, 2.0], [2.0, 4.0]]], [[[7.0], [10.0]]], [[29.0]])
    """
    xp = namespace(x)
    codes = host_codes(groups, n_groups, x.shape[0])
    d, m = x.shape[1], outcomes.shape[1]
    found = {
        "gram": np.zeros((n_groups, 1 + d, 1 + d)),
        "cross": np.zeros((n_groups, 1 + d, m)),
        "square": np.zeros((n_groups, m)),
    }
    origin = xp.asarray(centre, dtype=xp.float64)
    size = tile_rows(x, 2 * (1 + d) + m)
    work = xp.ones((min(size, len(codes)), 1 + d), dtype=xp.float64)  # whose first column stays 1
    for group in range(n_groups):
        members = np.flatnonzero(codes == group)
        for start in range(0, members.size, size):
            rows = members[start : start + size]
            tile = work[: rows.size]
            xp.subtract(x[xp.asarray(rows)], origin, out=tile[:, 1:])
            found["gram"][group] += to_numpy(tile.T @ tile)
            if m:
                right = np.asarray(outcomes[rows], np.float64)
                found["cross"][group] += to_numpy(tile.T @ xp.asarray(right))
                found["square"][group] += np.einsum("ij,ij->j", right, right)
    return found
