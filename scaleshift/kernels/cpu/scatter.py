"""How are second moments of groups made fast? Rows of a group are brought together, BLAS multiplies them.

The rows of a group are copied about the centre into a tile, some thousands at a time, so that the product is
one of BLAS's symmetric ones. Products of float32 rows are float32 and those of a tile are added up by BLAS;
everything else is float64. Wide rows are multiplied by panels of columns: what BLAS writes stays in cache.
"""

import numpy as np

from scaleshift.kernels.cpu.jit import jit
from scaleshift.kernels.cpu.prefetch import prefetch
from scaleshift.kernels.reference import host_codes

_TILE_ROWS = 8192  # all 65536 at once: 4e-7 off instead of 1e-7; 4096 take 1.06 times as long at d = 1000
_PANEL = 512  # columns
_AHEAD = 8  # rows
_LINE = 64  # bytes


def scatter_sums(
    x: np.ndarray, groups: np.ndarray, n_groups: int, centre: np.ndarray, weight: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Sum the rows about a centre, and their products, by group: the same as `scatter.scatter_sums`.

    Sums are float64. Products are float32 for float32 rows: off by 1-3e-7 of their norm, single ones by up to
    7e-7 of the largest in groups of some hundreds of rows, and by some 1e-6 where the rows of a group are all
    alike and round alike. Where some sqrt(w) |x - centre| is beyond 1e19, a block is done in float64; one
    below 1e-19 counts as none in products.

    Parameters
    ----------
    x : (n, d) numpy.ndarray
        Rows of any real dtype and memory order; those that count must be finite.
    groups : (n,) integer array
        Code of each row's group; rows with negative codes are skipped and may be NaN.
    n_groups : int
    centre : (d,) numpy.ndarray
        A point near the rows.
    weight : (n,) numpy.ndarray, optional
        What each row counts, not negative; 1 where left out.

    Returns
    -------
    dict of numpy.ndarray of float64
        count, weight, sum, scatter, as in `scatter.scatter_sums`. Besides them, a tile of 8192 rows and 512
        columns of a scatter matrix are held at a time. Scatter matrices are exactly symmetric.

    Raises
    ------
    ValueError
        If a code is not below `n_groups`, or there is not one code and weight a row, and one number of
        the centre a column.

    Examples
    --------
    >>> x, groups = np.array([[1.0], [3.0], [9.0]], dtype=np.float32), np.array([0, 0, -1])
    >>> found = scatter_sums(x, groups, 1, centre=np.array([1.0]))
    >>> found["sum"].tolist(), found["scatter"].tolist()
    ([[2.0]], [[[4.0]]])
    """
    x = np.asarray(x)
    codes = host_codes(groups, n_groups, x.shape[0])
    w = None if weight is None else np.ascontiguousarray(weight, dtype=np.float64)
    if w is not None and w.shape != codes.shape:
        raise ValueError(f"weight must hold one number for each of the {len(x)} rows, found shape {w.shape}")
    starts, order = np.zeros(n_groups + 1, np.int64), np.empty(len(codes), np.int64)
    _order_rows(codes, starts, order)
    origin = np.ascontiguousarray(centre, dtype=np.float64)
    if origin.shape != x.shape[1:]:
        raise ValueError(
            f"centre must hold one number for each of the {x.shape[1]} columns, found shape {origin.shape}"
        )
    if x.dtype == np.float32:
        with np.errstate(over="ignore", invalid="ignore"):
            found = _sums(x, starts, order, origin, w, x.dtype)
        # the largest product of a group stands on the diagonal
        if np.isfinite(np.einsum("gjj->gj", found["scatter"])).all():
            return found
        del found  # large
    return _sums(x, starts, order, origin, w, np.dtype(np.float64))


def _sums(
    x: np.ndarray,
    starts: np.ndarray,
    order: np.ndarray,
    centre: np.ndarray,
    weight: np.ndarray | None,
    dtype: np.dtype,
) -> dict[str, np.ndarray]:
    """Sum up, with products of this dtype."""
    count, d = np.diff(starts), x.shape[1]
    found = {
        "count": count.astype(np.float64),
        "weight": np.zeros(len(count)),
        "sum": np.zeros((len(count), d)),
        "scatter": np.zeros((len(count), d, d)),
    }
    n_rows = min(_TILE_ROWS, count.max(initial=0))
    width = -(-d // max(1, -(-d // _PANEL)))  # panels of equal width
    tile, work = np.empty((n_rows, d), dtype), np.empty(d * width, dtype)
    near = centre.astype(dtype)
    rest = (centre - near).astype(dtype)
    # rows as the compiled loop reads them; others are brought into that shape tile by tile
    ready = x.dtype == dtype and x.flags.c_contiguous and x.flags.aligned
    for group in np.flatnonzero(count):
        for start in range(starts[group], starts[group + 1], _TILE_ROWS):
            rows = order[start : min(start + _TILE_ROWS, starts[group + 1])]
            w = None if weight is None else weight[rows]
            found["weight"][group] += len(rows) if w is None else w.sum()
            source = x if ready else np.ascontiguousarray(x[rows], dtype=dtype)
            lines = rows if ready else np.arange(len(rows))
            roots = None if w is None else np.sqrt(w).astype(dtype)
            _gather_rows(source, lines, w, roots, centre, near, rest, tile, found["sum"][group])
            _add_products(tile[: len(rows)], width, work, found["scatter"][group])
        _mirror(found["scatter"][group], width)
    return found


def _add_products(tile: np.ndarray, width: int, work: np.ndarray, scatter: np.ndarray) -> None:
    """Add tile' tile to a scatter matrix, but for the panels below its diagonal."""
    for first in range(0, tile.shape[1], width):
        panel = tile[:, first : first + width]
        last = first + panel.shape[1]
        product = work[: last * (last - first)].reshape(last, last - first)
        if first:
            np.matmul(tile[:, :first].T, panel, out=product[:first])
        np.matmul(panel.T, panel, out=product[first:])  # of an array and its own transpose: half the work
        _add(product, scatter[:last, first:last])


def _mirror(scatter: np.ndarray, width: int) -> None:
    """Copy the panels above the diagonal below it."""
    for first in range(width, len(scatter), width):
        rows = slice(first, first + width)
        scatter[rows, :first] = scatter[:first, rows].T


@jit
def _add(product: np.ndarray, total: np.ndarray) -> None:
    """Add in float64: numpy would convert float32 in a buffer first."""
    for i in range(product.shape[0]):
        line, target = product[i], total[i]
        for k in range(line.size):
            target[k] += np.float64(line[k])


@jit
def _order_rows(codes: np.ndarray, starts: np.ndarray, order: np.ndarray) -> None:
    """List the rows of each group, ascending: group g gets order[starts[g] : starts[g + 1]]."""
    for code in codes:
        if code >= 0:
            starts[code + 1] += 1
    for group in range(starts.size - 1):
        starts[group + 1] += starts[group]
    free = starts.copy()
    for i in range(codes.size):
        if codes[i] >= 0:
            order[free[codes[i]]] = i
            free[codes[i]] += 1


@jit
def _gather_rows(
    x: np.ndarray,
    rows: np.ndarray,
    weight: np.ndarray | None,
    roots: np.ndarray | None,
    centre: np.ndarray,
    near: np.ndarray,
    rest: np.ndarray,
    tile: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Write sqrt(w) (x - c) of some rows to the tile, and add w (x - c) to the sums in float64.

    What is written is x less two numbers that add up to c: near c the first difference loses no digits. Two
    loops, for two widths of numbers: one loop of both took 1.3 times as long.
    """
    step = _LINE // x.itemsize
    for i in range(rows.size):
        if i + _AHEAD < rows.size:
            for k in range(0, sums.size, step):
                prefetch(x, rows[i + _AHEAD], k)
        row, line = x[rows[i]], tile[i]
        if weight is None or roots is None:
            for k in range(sums.size):
                line[k] = (row[k] - near[k]) - rest[k]
            for k in range(sums.size):
                sums[k] += np.float64(row[k]) - centre[k]
        else:
            w, root = weight[i], roots[i]
            for k in range(sums.size):
                line[k] = ((row[k] - near[k]) - rest[k]) * root
            for k in range(sums.size):
                sums[k] += (np.float64(row[k]) - centre[k]) * w
