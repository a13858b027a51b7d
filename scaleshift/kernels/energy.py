"""What is right for the energy kernel k(x, y) = |x - o| + |y - o| - |x - y|?  Its class sums in float64.

Exactly, against the points of every class, or by the distribution of rows along many directions: the distance
|x - y| is, up to a factor, the mean over directions w of |w.x - w.y|, and a distance in one dimension is an
integral of squared differences of distribution functions. Plain code for numpy and CuPy, as in `reference`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scaleshift.kernels.families import euclidean_distances
from scaleshift.kernels.reference import class_means, host_codes, namespace, tile_rows, tiles, to_numpy

Array = Any  # numpy.ndarray or cupy.ndarray
_HUGE = 1e100  # its square is finite


def energy_sums(
    x: Array,
    groups: Array,
    n_groups: int,
    points: Array,
    point_groups: Array,
    n_point_groups: int,
    origin: Array,
) -> np.ndarray:
    """Sum the mean energy kernel between rows and classes of points, by group of rows.

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
    origin : (d,) array
        The point o.

    Returns
    -------
    (n_groups, n_point_groups + 1) numpy.ndarray of float64
        Entry (g, j): sum over rows x of group g of the mean over points z of class j of k(x, z). Last, the
        sum over these rows of k(x, x) = 2 |x - o|. Groups without rows and classes without points give 0.

    Raises
    ------
    ValueError
        If a code is not below its number of groups, or there is not one code a row.

    Examples
    --------
    >>> x, z = np.array([[3.0], [-1.0]]), np.array([[2.0]])
    >>> energy_sums(x, np.array([0, 1]), 2, z, np.array([0]), 1, origin=np.array([0.0]))
    array([[4., 6.],
           [0., 2.]])
    """
    xp = namespace(x)
    codes = host_codes(groups, n_groups, x.shape[0])
    kept, means = class_means(host_codes(point_groups, n_point_groups, points.shape[0]), n_point_groups)
    sums = np.zeros((n_groups, n_point_groups + 1))
    z = xp.asarray(points)[xp.asarray(kept)].astype(xp.float64)
    centre = z.mean(axis=0) if kept.size else xp.zeros(x.shape[1])
    z = z - centre
    o = xp.asarray(origin, dtype=xp.float64) - centre
    means = xp.asarray(means)
    z_norms = xp.linalg.norm(z - o, axis=1)
    for rows, present, members in tiles(codes, tile_rows(x, kept.size)):
        tile = xp.clip(x[xp.asarray(rows)].astype(xp.float64) - centre, -_HUGE, _HUGE)
        norms = xp.linalg.norm(tile - o, axis=1)[:, None]
        kernel = norms + z_norms - euclidean_distances(tile, z)
        found = xp.concatenate([kernel @ means, 2 * norms], axis=1)
        sums[present] += to_numpy(xp.asarray(members) @ found)
    return sums


def sliced_sums(
    x: Array,
    groups: Array,
    n_groups: int,
    directions: Array,
    centre: Array,
    ends: Array,
    n_bins: int,
) -> np.ndarray:
    """Sum masses of projected rows on grids, by group of rows.

    Along every direction stands a grid of nodes e_0 < e_1 < ... < e_{B+2}: B equal bins between e_1 and
    e_{B+1}, and an outer bin on each side. A row between two nodes leaves there the masses that keep its
    position: 1 - f and f at the share f of its way from one to the next. What lies beyond the grid counts as
    if at its end.

    Parameters
    ----------
    x : (n, d) array
        Rows; numpy or CuPy, any real dtype.
    groups : (n,) integer array
        Code of each row's group, in 0 ... n_groups - 1; rows with negative codes are skipped.
    n_groups : int
        Number of groups.
    directions : (T, d) array
        Unit vectors w.
    centre : (d,) array
        Projections are w.(x - centre).
    ends : (T, 4) array
        e_0, e_1, e_{B+1} and e_{B+2} along each direction, ascending.
    n_bins : int
        B.

    Returns
    -------
    (n_groups, T (B + 3)) numpy.ndarray of float64
        Masses by group, direction and node; those of a direction add up to the rows of the group.

    Raises
    ------
    ValueError
        If a code is not below `n_groups`, or there is not one code a row.

    Examples
    --------
    >>> x, ends = np.array([[0.25], [7.0]]), np.array([[-2.0, 0.0, 1.0, 3.0]])
    >>> sliced_sums(x, np.array([0, 0]), 1, np.array([[1.0]]), np.array([0.0]), ends, n_bins=1)
    array([[0.  , 0.75, 0.25, 1.  ]])
    """
    xp = namespace(x)
    codes = host_codes(groups, n_groups, x.shape[0])
    w, middle = xp.asarray(directions, dtype=xp.float64), xp.asarray(centre, dtype=xp.float64)
    e0, e1, e2, e3 = xp.asarray(ends, dtype=xp.float64).T
    n_nodes = n_bins + 3
    sums = np.zeros((n_groups, len(w) * n_nodes))
    along = xp.arange(len(w)) * n_nodes
    for rows, present, members in tiles(codes, tile_rows(x, len(w))):
        p = xp.clip(x[xp.asarray(rows)].astype(xp.float64) - middle, -_HUGE, _HUGE) @ w.T
        place = 1 + n_bins * (p - e1) / (e2 - e1)
        place = xp.where(p < e1, (p - e0) / (e1 - e0), place)
        place = xp.where(p >= e2, 1 + n_bins + (p - e2) / (e3 - e2), place)
        place = xp.clip(place, 0, n_bins + 2)
        node = xp.minimum(xp.floor(place), n_bins + 1)
        share = place - node
        group = xp.asarray(members.argmax(axis=0))[:, None] * sums.shape[1]
        cell = (group + along + node.astype(xp.int64)).ravel()
        size = len(present) * sums.shape[1]
        found = xp.bincount(cell, weights=(1 - share).ravel(), minlength=size)
        found += xp.bincount(cell + 1, weights=share.ravel(), minlength=size)
        sums[present] += to_numpy(found.reshape(len(present), sums.shape[1]))
    return sums
