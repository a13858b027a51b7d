"""Which point minimises a quadratic under an l1 penalty?  Coordinate descent, for many problems in turn.

min over v of 1/2 v'Hv + c'v + sum_j penalty_j |v_j|, coordinates without a penalty or held fixed among them.
"""

from __future__ import annotations

import numpy as np

from scaleshift.kernels.cpu.jit import strict_jit

MOST_SWEEPS = 20_000


def penalised_quadratic(
    curvature: np.ndarray,
    which: np.ndarray,
    slope: np.ndarray,
    penalty: np.ndarray,
    start: np.ndarray,
    free: np.ndarray,
    n_classes: int = 1,
    tolerance: float = 1e-13,
) -> np.ndarray:
    """Minimise penalised quadratics.

    Parameters
    ----------
    curvature : numpy.ndarray, shape (n_curvatures, d, d)
        Positive semi-definite.
    which : numpy.ndarray of int, shape (n_problems,)
        Curvature of each problem.
    slope, penalty, start : numpy.ndarray, shape (n_problems, d)
        c, the weights of |v_j|, and where descent starts.
    free : numpy.ndarray of bool, shape (n_problems, d)
        False: the coordinate stays where it starts.
    n_classes : int, default 1
        Above 1: v is n_classes runs of d / n_classes coordinates, and the quadratic does not change where
        one penalised coordinate moves alike in all runs, as of softmax: descent moves along that, too.
    tolerance : float, default 1e-13
        Largest last move, in units of 1 / sqrt(H_jj), by the size of the solution or 1.

    Returns
    -------
    numpy.ndarray, shape (n_problems, d)

    Examples
    --------
    >>> one = np.ones((1, 1), bool)
    >>> h, zero = np.array([[[2.0]]]), np.zeros((1, 1))
    >>> penalised_quadratic(h, np.array([0]), np.array([[-3.0]]), np.array([[1.0]]), zero, one).tolist()
    [[1.0]]
    """
    arrays = [np.ascontiguousarray(a, np.float64) for a in (curvature, slope, penalty, start)]
    h, c, lam, v = arrays
    v = v.copy()
    _descend(h, which.astype(np.int64), c, lam, v, np.ascontiguousarray(free), n_classes, tolerance)
    return v


@strict_jit
def _descend(h, which, c, lam, v, free, n_classes, tolerance):  # type: ignore[no-untyped-def]
    d = v.shape[1]
    q = d // n_classes
    r = np.empty(d)
    column = np.empty(n_classes)
    for b in range(v.shape[0]):
        matrix = h[which[b]]
        for i in range(d):
            r[i] = c[b, i]
        for j in range(d):
            if v[b, j] != 0.0:
                for i in range(d):
                    r[i] += matrix[j, i] * v[b, j]
        whole = True  # sweeps over all coordinates alternate with sweeps over those that are not zero
        for _sweep in range(MOST_SWEEPS):
            moved, largest = 0.0, 1.0
            for j in range(d):
                curve = matrix[j, j]
                old = v[b, j]
                if curve <= 0.0 or not free[b, j] or (old == 0.0 and lam[b, j] > 0.0 and not whole):
                    continue
                towards = curve * old - r[j]
                if towards > lam[b, j]:
                    new = (towards - lam[b, j]) / curve
                elif towards < -lam[b, j]:
                    new = (towards + lam[b, j]) / curve
                else:
                    new = 0.0
                if new != old:
                    v[b, j] = new
                    step = new - old
                    for i in range(d):
                        r[i] += matrix[j, i] * step
                    moved = max(moved, abs(step) * np.sqrt(curve))
                largest = max(largest, abs(new) * np.sqrt(curve))
            if n_classes > 1 and whole:
                for j in range(q):
                    moved = max(moved, _towards_median(v[b], lam[b], free[b], column, j, q))
            done = moved <= tolerance * largest
            if done and whole:
                break
            whole = done


@strict_jit
def _towards_median(v, lam, free, column, j, q):  # type: ignore[no-untyped-def]
    """Move coordinate j of all runs alike to where its penalty is smallest; how far."""
    k = len(column)
    for i in range(k):
        if not free[i * q + j] or lam[i * q + j] <= 0.0:
            return 0.0
        place = i  # in order: numba takes seconds to compile a sort
        while place > 0 and column[place - 1] > v[i * q + j]:
            column[place] = column[place - 1]
            place -= 1
        column[place] = v[i * q + j]
    low, high = column[(k - 1) // 2], column[k // 2]
    shift = low if low > 0.0 else (high if high < 0.0 else 0.0)
    if shift != 0.0:
        for i in range(k):
            v[i * q + j] -= shift
    return abs(shift)
