"""Which weights minimise squared error and a penalty on their sizes, told from moments alone?

For many outcomes of the same rows, each along a path of penalties: minimise w'Gw/2 - c'w + penalty |w|_1.
Coordinate descent finds which weights are not zero and their signs. Given these the minimiser solves linear
equations, so that it is met to rounding: where a sign would change on the way there, the weight stops at zero
(Lee, Battle, Raina, Ng 2007). Where columns are collinear, coordinate descent goes on alone.
"""

from __future__ import annotations

import numpy as np

from scaleshift.kernels.cpu.jit import strict_jit

TOLERANCE = 1e-13  # of the conditions of a minimum, relative to the largest product
MOST_ROUNDS = 1_000  # of sweeps and solved equations, for one penalty
MOST_SWEEPS = 100  # over the weights that are not zero, in one round
SETTLED = 1  # sweeps without a change of sign, after which equations are solved
MOST_STOPS = 10  # weights that go to zero on the way to a solution, in one round
COLLINEAR = 1e-11  # share of a column that others do not explain, below which there is none


def gram_lasso(
    gram: np.ndarray, cross: np.ndarray, penalty: np.ndarray, start: np.ndarray | None = None
) -> np.ndarray:
    """Weights of every outcome at every penalty.

    Parameters
    ----------
    gram : numpy.ndarray, shape (p, p)
        Mean products of the centred columns, X'X/n. A column with the variance 0 gets the weight 0.
    cross : numpy.ndarray, shape (m, p)
        Mean products with each of m centred outcomes, X'y/n.
    penalty : numpy.ndarray, shape (m, L)
        Not negative; each is solved from the weights of the one before: give the largest first.
    start : numpy.ndarray, shape (p,) or (m, p), optional
        Weights near those of the first penalty; 0 where left out.

    Returns
    -------
    numpy.ndarray, shape (m, L, p)
        The weights that are 0 are exactly 0.

    References
    ----------
    Friedman, Hastie, Tibshirani (2010). Regularization paths for generalized linear models via coordinate
    descent.

    Examples
    --------
    >>> gram_lasso(np.eye(2), np.array([[3.0, -0.5]]), np.array([[1.0, 0.25]])).tolist()
    [[[2.0, 0.0], [2.75, -0.25]]]
    """
    first = np.broadcast_to(0.0 if start is None else start, cross.shape)
    found = np.empty((*penalty.shape, len(gram)))
    _paths(*(_writable(values) for values in (gram, cross, penalty, first)), found)
    return found


def support_least_squares(gram: np.ndarray, cross: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Least squares on the columns whose weight is not zero, for every outcome.

    Parameters
    ----------
    gram : numpy.ndarray, shape (p, p)
    cross : numpy.ndarray, shape (m, p)
    weights : numpy.ndarray, shape (m, p)

    Returns
    -------
    numpy.ndarray, shape (m, p)
        Of the smallest norm, where chosen columns are collinear.

    Examples
    --------
    >>> support_least_squares(np.eye(2), np.array([[3.0, -0.5]]), np.array([[2.0, 0.0]])).tolist()
    [[3.0, 0.0]]
    """
    found = np.zeros(weights.shape)
    solved = _refit(*(_writable(values) for values in (gram, cross, weights)), found)
    for i in np.flatnonzero(~solved):
        on = np.flatnonzero(weights[i])
        found[i] = 0
        found[i, on] = np.linalg.lstsq(gram[np.ix_(on, on)], cross[i, on], rcond=1e-12)[0]
    return found


def _writable(values: np.ndarray) -> np.ndarray:
    """A copy of one kind for all callers: each other kind would be compiled anew."""
    return np.array(values, np.float64, order="C")


@strict_jit
def _paths(
    gram: np.ndarray, cross: np.ndarray, penalty: np.ndarray, start: np.ndarray, found: np.ndarray
) -> None:
    # Arrays are copied number by number: `a[:] = b` takes 4 seconds to compile, for the words of its error.
    p = gram.shape[0]
    slope, active = np.empty(p), np.empty(p, np.int64)
    for i in range(cross.shape[0]):
        largest = 0.0
        for j in range(p):
            largest = max(largest, abs(cross[i, j]))
        near = start[i]
        for k in range(penalty.shape[1]):
            w = found[i, k]
            for j in range(p):
                w[j] = near[j]
            _slopes(gram, cross[i], w, slope)
            _minimise(gram, cross[i], penalty[i, k], TOLERANCE * largest, w, slope, active)
            near = w


@strict_jit
def _minimise(
    gram: np.ndarray,
    cross: np.ndarray,
    penalty: float,
    tolerance: float,
    w: np.ndarray,
    slope: np.ndarray,
    active: np.ndarray,
) -> None:
    """Bring w and its slope, cross - gram w, to the minimum."""
    p = w.size
    for _ in range(MOST_ROUNDS):
        for j in range(p):
            active[j] = j
        moved, _ = _sweep(gram, penalty, w, slope, active[:p])
        if moved <= tolerance and _is_minimum(gram, penalty, 10 * tolerance, w, slope):
            return
        n = _nonzero(w, active)
        settled = 0
        for _ in range(MOST_SWEEPS):
            moved, turned = _sweep(gram, penalty, w, slope, active[:n])
            settled = 0 if turned else settled + 1
            if settled >= SETTLED or moved <= tolerance:
                break
        solved = False
        for _ in range(MOST_STOPS):
            n = _nonzero(w, active)
            step = _solve_signs(gram, cross, penalty, w, slope, active[:n])
            if step < 0:  # collinear
                break
            _slopes(gram, cross, w, slope)
            if step == 1:
                solved = True
                break
        if solved and _is_minimum(gram, penalty, 10 * tolerance, w, slope):
            return


@strict_jit
def _sweep(
    gram: np.ndarray, penalty: float, w: np.ndarray, slope: np.ndarray, chosen: np.ndarray
) -> tuple[float, bool]:
    """Minimise over each of the chosen weights in turn: the largest change of a slope; whether signs did."""
    moved, turned = 0.0, False
    for j in chosen:
        curvature = gram[j, j]
        if curvature <= 0:
            w[j] = 0.0
            continue
        pull = slope[j] + curvature * w[j]
        if pull > penalty:
            new = (pull - penalty) / curvature
        elif pull < -penalty:
            new = (pull + penalty) / curvature
        else:
            new = 0.0
        change = new - w[j]
        if change != 0:
            turned = turned or new * w[j] <= 0
            w[j] = new
            row = gram[j]
            for k in range(slope.size):
                slope[k] -= change * row[k]
            moved = max(moved, abs(change) * curvature)
    return moved, turned


@strict_jit
def _nonzero(w: np.ndarray, active: np.ndarray) -> int:
    """List the weights that are not zero; how many."""
    n = 0
    for j in range(w.size):
        if w[j] != 0:
            active[n] = j
            n += 1
    return n


@strict_jit
def _slopes(gram: np.ndarray, cross: np.ndarray, w: np.ndarray, slope: np.ndarray) -> None:
    for k in range(slope.size):
        slope[k] = cross[k]
    for j in range(w.size):
        if w[j] != 0:
            row, by = gram[j], w[j]
            for k in range(slope.size):
                slope[k] -= by * row[k]


@strict_jit
def _is_minimum(gram: np.ndarray, penalty: float, tolerance: float, w: np.ndarray, slope: np.ndarray) -> bool:
    for j in range(w.size):
        if gram[j, j] <= 0:
            continue
        if w[j] == 0:
            if abs(slope[j]) > penalty + tolerance:
                return False
        elif abs(slope[j] - (penalty if w[j] > 0 else -penalty)) > tolerance:
            return False
    return True


@strict_jit
def _solve_signs(
    gram: np.ndarray, cross: np.ndarray, penalty: float, w: np.ndarray, slope: np.ndarray, on: np.ndarray
) -> float:
    """Go to the minimum at these signs, as far as they hold: the share of the way; -1: it is not unique."""
    n = on.size
    upper, b = np.empty((n, n)), np.empty(n)
    if not _factor(gram, on, upper):
        return -1.0
    for i in range(n):
        b[i] = cross[on[i]] - (penalty if w[on[i]] > 0 else -penalty)
    _back(upper, b)
    step, first = 1.0, -1
    for i in range(n):
        old = w[on[i]]
        if old * b[i] <= 0:
            share = old / (old - b[i])
            if share < step:
                step, first = share, i
    for i in range(n):
        j = on[i]
        w[j] = b[i] if first < 0 else w[j] + step * (b[i] - w[j])
    if first >= 0:
        w[on[first]] = 0.0
        return min(step, 0.999)
    _slopes(gram, cross, w, slope)  # once more, with what rounding left
    for i in range(n):
        b[i] = slope[on[i]] - (penalty if w[on[i]] > 0 else -penalty)
    _back(upper, b)
    for i in range(n):
        if w[on[i]] * (w[on[i]] + b[i]) > 0:
            w[on[i]] += b[i]
    return 1.0


@strict_jit
def _factor(gram: np.ndarray, on: np.ndarray, upper: np.ndarray) -> bool:
    """Cholesky factor U, U'U = gram of the chosen columns; whether there is one."""
    n = on.size
    for i in range(n):
        row = gram[on[i]]
        for k in range(i, n):
            upper[i, k] = row[on[k]]
    for i in range(n):
        pivot = upper[i, i]
        if not pivot > COLLINEAR * gram[on[i], on[i]]:
            return False
        root = np.sqrt(pivot)
        for k in range(i, n):
            upper[i, k] /= root
        for j in range(i + 1, n):
            by = upper[i, j]
            for k in range(j, n):
                upper[j, k] -= by * upper[i, k]
    return True


@strict_jit
def _back(upper: np.ndarray, b: np.ndarray) -> None:
    """Solve U'U x = b in place."""
    n = b.size
    for i in range(n):
        b[i] /= upper[i, i]
        for k in range(i + 1, n):
            b[k] -= upper[i, k] * b[i]
    for i in range(n - 1, -1, -1):
        rest = b[i]
        for k in range(i + 1, n):
            rest -= upper[i, k] * b[k]
        b[i] = rest / upper[i, i]


@strict_jit
def _refit(gram: np.ndarray, cross: np.ndarray, weights: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Least squares on each support; whether its columns are independent."""
    solved = np.ones(len(weights), np.bool_)
    active = np.empty(gram.shape[0], np.int64)
    for i in range(len(weights)):
        n = _nonzero(weights[i], active)
        on = active[:n]
        upper, b = np.empty((n, n)), np.empty(n)
        if not _factor(gram, on, upper):
            solved[i] = False
            continue
        for k in range(n):
            b[k] = cross[i, on[k]]
        _back(upper, b)
        for k in range(n):
            found[i, on[k]] = b[k]
    return solved
