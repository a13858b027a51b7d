"""Class proportions that bring the mixture of class embeddings closest to the target's embedding.

The quadratic program of distribution feature matching: minimise a'Ga - 2 q'a over the simplex, with G the
Gram matrix of the class embeddings and q their products with the target's. Solved exactly by an active-set
method: Lawson and Hanson's scheme for nonnegative least squares, with the rule of Wolfe ("Finding the nearest
point in a polytope", 1976) that the members, the classes with a > 0, stay affinely independent. Coincident
classes thus never meet in one linear system, and no ridge is needed.

Linear systems. Seen from the first member, the others are linearly independent, and the Gram matrix of their
differences to it is positive definite. Its factors U'DU grow by a column as a class enters; the new pivot is
the squared distance of the class from the affine hull of the members before it.

Termination. In exact arithmetic each set of members is left for a lower objective, so none returns. In
floating point an entry is *proven* if the objective falls by more than the rounding bound of the computed
difference, and each class gets one unproven entry in all; later ones are refused, and so are those that end
off the simplex because a system was singular to rounding. Unproven entries are thus at most c, and between
two of them the exact objective falls with every entry, so no point returns. Of the points visited the one
with the least violated optimality conditions is the answer.

The core (`_solve_rows` and below) is compiled at its first call and holds no GIL. Its loops keep their order,
so a problem's answer has the same bits in any batch. Few and short functions: numba optimises each one again
in all its callers, and the first call of every process waits for that.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

EPS = float(np.finfo(np.float64).eps)
BLOCK = 2**20  # entries of the Gram matrices that are scaled and solved at a time: bounds the work memory

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

_SETTINGS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "cache": False}
_compiled = numba.njit(**_SETTINGS)
# Called by compiled code alone: less to compile.
_inner = numba.njit(**_SETTINGS | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True})


def simplex_least_squares(gram: ArrayLike, products: ArrayLike, *, soft: bool = False) -> Floats:
    """Minimise a'Ga - 2 q'a over a >= 0 with sum a = 1 (hard) or sum a <= 1 (soft).

    Parameters
    ----------
    gram : array-like, shape (c, c) or (n_samples, c, c)
        Inner products of the class embeddings, positive semidefinite; coincident classes are allowed. One
        matrix for all problems, or one for each.
    products : array-like, shape (c,) or (n_samples, c)
        Inner products of the class embeddings with each target embedding, one problem a row.
    soft : bool, default False
        Let the total fall below one: one more class whose embedding is the zero vector takes the rest. Where
        a class embedding is the zero vector too, this one goes first.

    Returns
    -------
    numpy.ndarray of float64, shape of `products`
        A minimiser; the only one where the class embeddings are affinely independent (with the zero vector
        among them if `soft`). Never negative; the total is 1 up to rounding, or at most 1 if `soft`. A
        problem's minimiser does not depend on those solved with it, to the bit.

    Raises
    ------
    ValueError
        If the shapes do not fit together or a value is not finite.

    Notes
    -----
    The first call in a process compiles for a second or two. Later ones run without the GIL.

    Examples
    --------
    >>> gram = [[1.0, 0.2], [0.2, 1.0]]
    >>> simplex_least_squares(gram, [0.4, 0.8]).round(3).tolist()
    [0.25, 0.75]
    >>> simplex_least_squares(gram, [[0.2, 0.4], [-0.1, 0.3]], soft=True).round(3).tolist()
    [[0.125, 0.375], [0.0, 0.3]]
    """
    gram, products = _checked(gram, products)
    shared, rows = gram.ndim == 2, np.atleast_2d(products)
    size = rows.shape[1] + soft
    alpha, work = np.empty((len(rows), size)), _workspace(size)
    step = max(BLOCK // size**2, 1)
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        scaled = _scaled(gram[None] if shared else gram[block], rows[block], int(soft))
        _solve_rows(*scaled, alpha[block], *work)
    if soft:
        alpha = _at_most_one(alpha[:, 1:].copy())
    return alpha.reshape(products.shape)


def _checked(gram: ArrayLike, products: ArrayLike) -> tuple[Floats, Floats]:
    """Both as float64, finite and of shapes that fit."""
    gram, products = np.asarray(gram, np.float64), np.asarray(products, np.float64)
    if gram.ndim not in (2, 3) or gram.shape[-2] != gram.shape[-1] or not gram.shape[-1]:
        expected = "(c, c) or (n_samples, c, c) with at least one class"
        raise ValueError(f"gram has shape {gram.shape}: expected {expected}")
    c = gram.shape[-1]
    fits = [(c,), (len(products), c)] if gram.ndim == 2 and products.ndim else [gram.shape[:2]]
    if products.shape not in fits:
        expected = f"({c},) or (n_samples, {c})" if gram.ndim == 2 else f"{gram.shape[:2]}"
        raise ValueError(f"products have shape {products.shape}: with this gram expected {expected}")
    for name, values in (("gram", gram), ("products", products)):
        invalid = values.size - int(np.isfinite(values).sum())
        if invalid:
            found = f"{invalid} of {values.size} values not finite"
            raise ValueError(f"{name}: {found}; leave out NaN rows and classes without rows first")
    return gram, products


def _scaled(gram: Floats, rows: Floats, first: int) -> tuple[Floats, Floats]:
    """The symmetric part of each gram, the only one in a'Ga, near one, and its products, padded by `first`.

    Powers of two scale without rounding. Products 2^500 times the gram outweigh it by far more than float64
    can tell, so it does no harm to keep them from overflow.
    """
    n, c = len(gram), gram.shape[-1]
    gram = gram / 2 + gram.swapaxes(1, 2) / 2
    exponent = -np.frexp(np.abs(gram).max(axis=(1, 2)))[1]  # (n,)
    below_limit = np.minimum(exponent, 500 - np.frexp(np.abs(rows).max(axis=1))[1])  # (n_rows,)
    padded, padded_rows = np.zeros((n, first + c, first + c)), np.zeros((len(rows), first + c))
    np.ldexp(gram, exponent[:, None, None], out=padded[:, first:, first:])
    np.ldexp(rows, below_limit[:, None], out=padded_rows[:, first:])
    return padded, padded_rows


def _workspace(size: int) -> list[NDArray[Any]]:
    """The arrays that `_solve_rows` works on; made here, for numba takes long to compile allocations."""
    vectors = [np.float64] * 5 + [np.int64] + [np.bool_] * 2
    return [np.empty((size, size)), *(np.empty(size, dtype) for dtype in vectors)]


def _at_most_one(alpha: Floats) -> Floats:
    """Take what rounding has put above a total of one from the largest entry; in place."""
    while True:
        excess = alpha.sum(axis=1) - 1
        above = np.flatnonzero(excess > 0)
        if not above.size:
            return alpha
        alpha[above, alpha[above].argmax(axis=1)] -= excess[above]


@_compiled
def _solve_rows(
    grams: Floats,
    products: Floats,
    result: Floats,
    factor: Floats,
    alpha: Floats,
    gradient: Floats,
    trial: Floats,
    trial_gradient: Floats,
    step: Floats,
    members: Indices,
    spent: NDArray[np.bool_],
    refused: NDArray[np.bool_],
) -> None:
    """Minimiser over the simplex of each row of `products`, into `result`; all after it is work space.

    `spent`: classes whose unproven entry is used. `refused`: classes that may not enter from here.
    """
    c = products.shape[1]
    for row in range(len(products)):
        gram, product = grams[row if len(grams) > 1 else 0], products[row]
        rounding = _start(gram, product, alpha, trial, step, spent, refused)
        k, mean, least = np.int64(0), 0.0, np.inf  # a literal 0 is a type of its own: it compiles all twice
        entering = _lowest(step, np.inf, alpha, refused)  # the best vertex is the first to enter
        while entering < c:
            k = _enter(gram, trial, members, k, entering, factor, step, c * rounding)
            k = _settle(gram, product, trial, members, k, factor, step)
            trial_mean, violation = _differentiate(gram, product, trial, trial_gradient)
            noise = 2 * (c + 3) * rounding  # bounds the rounding of a fall, per unit of move
            proven = least == np.inf or _falls(alpha, gradient, trial, trial_gradient, noise)
            if k > 0 and violation <= least:
                least = violation
                for i in range(c):
                    result[row, i] = trial[i]
            if k > 0 and (proven or not spent[entering]):
                spent[entering] |= not proven
                mean = trial_mean
                for i in range(c):
                    alpha[i], gradient[i], refused[i] = trial[i], trial_gradient[i], False
            else:
                refused[entering] = True
                for i in range(c):
                    trial[i] = alpha[i]
                k = _restore(gram, alpha, members, factor, step)
            entering = _lowest(gradient, mean - rounding, alpha, refused)


@_inner
def _start(
    gram: Floats,
    product: Floats,
    alpha: Floats,
    trial: Floats,
    vertex: Floats,
    spent: NDArray[np.bool_],
    refused: NDArray[np.bool_],
) -> float:
    """Clear the work space, put the objective at each vertex into `vertex`; rounding of one operation."""
    largest, largest_product = 0.0, 0.0
    for i in range(product.size):
        alpha[i], trial[i], spent[i], refused[i] = 0.0, 0.0, False, False
        vertex[i] = gram[i, i] - 2 * product[i]
        if abs(product[i]) > largest_product:
            largest_product = abs(product[i])
        for j in range(product.size):
            if abs(gram[i, j]) > largest:
                largest = abs(gram[i, j])
    return EPS * (largest + largest_product)


@_inner
def _lowest(values: Floats, level: float, alpha: Floats, refused: NDArray[np.bool_]) -> int:
    """The class of lowest value below `level` that is no member and not refused; c if there is none."""
    lowest = alpha.size
    for i in range(alpha.size):
        if values[i] < level and alpha[i] == 0 and not refused[i]:
            level = values[i]
            lowest = i
    return lowest


@_inner
def _differentiate(gram: Floats, product: Floats, alpha: Floats, gradient: Floats) -> tuple[float, float]:
    """Half the gradient at alpha, its mean over alpha, and by how much the least entry is below that."""
    for j in range(alpha.size):
        gradient[j] = -product[j]
    for i in range(alpha.size):
        if alpha[i] > 0:
            for j in range(alpha.size):
                gradient[j] += alpha[i] * gram[i, j]
    mean, least = 0.0, gradient[0]
    for i in range(alpha.size):
        mean += alpha[i] * gradient[i]
        if gradient[i] < least:
            least = gradient[i]
    return mean, mean - least


@_inner
def _falls(alpha: Floats, gradient: Floats, trial: Floats, trial_gradient: Floats, noise: float) -> bool:
    """Whether the objective is lower at `trial` beyond doubt.

    f(a) - f(b) = (a - b)'(half gradient at a + half gradient at b): no cancellation of large terms.
    """
    fall, length = 0.0, 0.0
    for i in range(alpha.size):
        move = trial[i] - alpha[i]
        fall += move * (gradient[i] + trial_gradient[i])
        length += abs(move)
    return fall < -noise * length


@_inner
def _enter(
    gram: Floats,
    alpha: Floats,
    members: Indices,
    k: np.int64,
    entering: int,
    factor: Floats,
    step: Floats,
    rounding: float,
) -> np.int64:
    """Add a class to the k members; drop others first as long as it lies in their affine hull. In place.

    In the hull the objective falls at a constant rate on trading the others for the new class, so the trade
    goes on until one of them is used up. Returns the number of members.
    """
    members[k] = entering
    _extend(gram, members, k, factor, step)
    while k > 0:
        step[0] = -1.0
        for i in range(1, k):
            step[i] = -factor[i, k]
        _substitute(factor, k, step)  # minus the weights of the hull's point nearest to the class
        size = 1.0
        for i in range(k):
            size += abs(step[i])
        if not factor[k, k] <= rounding * size * size:  # so that NaN ends the loop, too
            break
        step[k] = 1.0
        # Some weight is as large as its share, as both sum to one: only a broken system lets it go to 2.
        length, left = _walk(gram, alpha, members, k + 1, factor, step, 2.0)
        k = left - 1
        if length == 2.0:
            break
    return k + 1


@_inner
def _settle(
    gram: Floats, product: Floats, alpha: Floats, members: Indices, k: np.int64, factor: Floats, step: Floats
) -> np.int64:
    """Go to the minimum over the affine hull of k members, dropping classes that reach zero. In place.

    Returns the number of members; 0 if the total is not one, for a system was singular to rounding.
    """
    length = 0.0
    while k > 0 and length < 1.0:
        # The step, not the solution, is solved for: its error shrinks with it.
        rest = 1.0
        for i in range(k):
            rest -= alpha[members[i]]
            step[i] = product[members[i]]
            for j in range(k):
                step[i] -= gram[members[i], members[j]] * alpha[members[j]]
        origin = members[0]
        for i in range(1, k):
            step[i] -= step[0] + rest * (gram[origin, members[i]] - gram[origin, origin])
        for i in range(1, k):
            for j in range(i + 1, k):
                step[j] -= factor[i, j] * step[i]
            step[i] /= factor[i, i]
        step[0] = rest
        _substitute(factor, k, step)
        length, k = _walk(gram, alpha, members, k, factor, step, 1.0)
    total = 0.0
    for i in range(k):
        total += alpha[members[i]]
    return k if abs(total - 1) < 1e-8 else np.int64(0)


@_inner
def _walk(
    gram: Floats, alpha: Floats, members: Indices, k: np.int64, factor: Floats, step: Floats, limit: float
) -> tuple[float, np.int64]:
    """Go `length` times `step`, at most `limit`: to where the first member is used up; drop it.

    Returns the length and the number of members left. NaN is no share: its class is dropped.
    """
    length = limit
    for i in range(k):
        if step[i] < 0 and alpha[members[i]] / -step[i] < length:
            length = alpha[members[i]] / -step[i]
    for i in range(k):
        held = alpha[members[i]]
        moved = held + length * step[i]
        used_up = step[i] < 0 and held / -step[i] <= length
        alpha[members[i]] = moved if moved > 0 and not used_up else 0.0
    left = np.int64(0)
    for i in range(k):
        if alpha[members[i]] > 0:
            members[left] = members[i]
            if left < i:  # a class before it has been dropped
                _extend(gram, members, left, factor, step)
            left += 1
    return length, left


@_inner
def _restore(gram: Floats, alpha: Floats, members: Indices, factor: Floats, column: Floats) -> np.int64:
    """Members and factors of `alpha`, from scratch; returns the number of members."""
    k = np.int64(0)
    for i in range(alpha.size):
        if alpha[i] > 0:
            members[k] = i
            _extend(gram, members, k, factor, column)
            k += 1
    return k


@_inner
def _extend(gram: Floats, members: Indices, k: np.int64, factor: Floats, column: Floats) -> None:
    """Column k of the factors, for members[k]: D on the diagonal, U above it; row and column 0 are unused."""
    origin, entering = members[0], members[k]
    shift = gram[origin, entering] - gram[origin, origin]
    for i in range(1, k + 1):
        column[i] = (gram[entering, members[i]] - gram[origin, members[i]]) - shift
    for i in range(1, k):
        factor[i, k] = column[i] / factor[i, i]
        for j in range(i + 1, k):
            column[j] -= factor[i, j] * column[i]
        column[k] -= factor[i, k] * column[i]
    factor[k, k] = column[k]


@_inner
def _substitute(factor: Floats, k: np.int64, x: Floats) -> None:
    """Solve Ux = x from the last member back to the second; the first gets what is left of the total x[0]."""
    for i in range(k - 1, 0, -1):
        for j in range(i + 1, k):
            x[i] -= factor[i, j] * x[j]
        x[0] -= x[i]
