"""Class proportions that bring the mixture of class embeddings closest to the target's embedding.

The quadratic program of distribution feature matching: minimise a'Ga - 2 q'a over the simplex, with G the
Gram matrix of the class embeddings and q their products with the target's. Solved exactly by an active-set
method: Lawson and Hanson's scheme for nonnegative least squares, with the rule of Wolfe ("Finding the nearest
point in a polytope", 1976) that the support, the classes with a > 0, stays affinely independent. Coincident
classes thus never meet in one linear system, and no ridge is needed.

Termination. In exact arithmetic each support is left for a lower objective, so none returns. In floating
point an entry is *proven* if the objective falls by more than the rounding bound of the computed difference,
and each class gets one unproven entry in all; later ones are refused. Unproven entries are thus at most c,
and between two of them the exact objective falls with every entry, so no point returns. Of the points
visited the one with the least violated optimality conditions is the answer.

The core (`_solve` and below) is plain array code on float64, without Python objects.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

EPS = float(np.finfo(np.float64).eps)
TINY = float(np.finfo(np.float64).tiny)

Floats = NDArray[np.float64]


def simplex_least_squares(gram: ArrayLike, products: ArrayLike, *, soft: bool = False) -> Floats:
    """Minimise a'Ga - 2 q'a over a >= 0 with sum a = 1 (hard) or sum a <= 1 (soft).

    Parameters
    ----------
    gram : array-like, shape (c, c)
        Inner products of the class embeddings, positive semidefinite; coincident classes are allowed.
    products : array-like, shape (c,) or (n_samples, c)
        Inner products of the class embeddings with each target embedding, one problem a row.
    soft : bool, default False
        Let the total fall below one: one more class whose embedding is the zero vector takes the rest. Where
        a class embedding is the zero vector too, this one goes first.

    Returns
    -------
    numpy.ndarray of float64, shape of `products`
        A minimiser; the only one where the class embeddings are affinely independent (with the zero vector
        among them if `soft`). Never negative; the total is 1 up to rounding, or at most 1 if `soft`.

    Raises
    ------
    ValueError
        If the shapes do not fit together or a value is not finite.

    Examples
    --------
    >>> gram = [[1.0, 0.2], [0.2, 1.0]]
    >>> simplex_least_squares(gram, [0.4, 0.8]).round(3).tolist()
    [0.25, 0.75]
    >>> simplex_least_squares(gram, [[0.2, 0.4], [-0.1, 0.3]], soft=True).round(3).tolist()
    [[0.125, 0.375], [0.0, 0.3]]
    """
    gram, products = _checked(gram, products)
    rows = np.atleast_2d(products)
    if soft:
        gram = np.pad(gram, (1, 0))
        rows = np.pad(rows, ((0, 0), (1, 0)))
    # A power of two near the trace: unlike the trace itself it scales without rounding.
    exponent = -int(np.frexp(np.trace(gram))[1])
    gram, rows = np.ldexp(gram, exponent), np.ldexp(rows, exponent)
    alpha = np.empty_like(rows)
    for row, product in enumerate(rows):
        alpha[row] = _solve(gram, product)
    if soft:
        alpha = _at_most_one(alpha[:, 1:].copy())
    return alpha.reshape(products.shape)


def _checked(gram: ArrayLike, products: ArrayLike) -> tuple[Floats, Floats]:
    """The symmetric part of `gram`, the only one in a'Ga, and `products`, as contiguous float64."""
    gram = np.asarray(gram, np.float64)
    products = np.ascontiguousarray(products, np.float64)
    if gram.ndim != 2 or gram.shape[0] != gram.shape[1] or not gram.size:
        raise ValueError(f"gram has shape {gram.shape}: expected (c, c) with at least one class")
    if products.ndim not in (1, 2) or products.shape[-1] != len(gram):
        expected = f"({len(gram)},) or (n_samples, {len(gram)})"
        raise ValueError(f"products have shape {products.shape}: with this gram expected {expected}")
    for name, values in (("gram", gram), ("products", products)):
        invalid = values.size - int(np.isfinite(values).sum())
        if invalid:
            found = f"{invalid} of {values.size} values not finite"
            raise ValueError(f"{name}: {found}; leave out NaN rows and classes without rows first")
    return gram / 2 + gram.T / 2, products


def _at_most_one(alpha: Floats) -> Floats:
    """Take what rounding has put above a total of one from the largest entry; in place."""
    while True:
        excess = alpha.sum(axis=1) - 1
        above = np.flatnonzero(excess > 0)
        if not above.size:
            return alpha
        alpha[above, alpha[above].argmax(axis=1)] -= excess[above]


def _solve(gram: Floats, product: Floats) -> Floats:
    """Minimiser over the simplex of one problem, shape (c,)."""
    c = product.size
    alpha = np.zeros(c)
    support = np.zeros(c, np.bool_)
    start = np.argmin(np.diag(gram) - 2 * product)
    alpha[start], support[start] = 1.0, True
    gradient = gram @ alpha - product  # half of it
    rounding = EPS * (np.abs(gram).max() + np.abs(product).max())  # of one operation
    noise = 2 * (c + 3) * rounding  # bounds the rounding of a fall, per unit of move
    spent = np.zeros(c, np.bool_)  # classes whose unproven entry is used
    refused = np.zeros(c, np.bool_)  # classes that may not enter from here
    best, least = alpha, alpha @ gradient - gradient.min()
    while True:
        gap = gradient - alpha @ gradient + rounding
        gap[support | refused] = 0.0
        entering = int(np.argmin(gap))
        if gap[entering] >= 0:
            return best
        trial, trial_support = alpha.copy(), support.copy()
        _enter(gram, trial, trial_support, entering, c * rounding)
        _settle(gram, product, trial, trial_support)
        trial_gradient = gram @ trial - product
        violation = trial @ trial_gradient - trial_gradient.min()
        if violation <= least:
            best, least = trial, violation
        # f(a) - f(b) = (a - b)'(half gradient at a + half gradient at b): no cancellation of large terms.
        move = trial - alpha
        proven = move @ (gradient + trial_gradient) < -noise * np.abs(move).sum()
        if proven or not spent[entering]:
            spent[entering] |= not proven
            refused[:] = False
            alpha, support, gradient = trial, trial_support, trial_gradient
        else:
            refused[entering] = True


def _enter(gram: Floats, alpha: Floats, support: NDArray[np.bool_], entering: int, rounding: float) -> None:
    """Add a class to the support; drop others first as long as it lies in their affine hull. In place.

    In the hull the objective falls at a constant rate on trading the others for the new class, so the trade
    goes on until one of them is used up.
    """
    while support.any():
        members = np.flatnonzero(support)
        cross = gram[members, entering]
        solution = np.linalg.solve(_bordered(gram, members), np.append(cross, 1.0))
        weights = solution[:-1]  # of the hull's point nearest to the class; they sum to one
        distance = gram[entering, entering] - weights @ cross - solution[-1]  # squared
        if distance > rounding * (1 + np.abs(weights).sum()) ** 2:
            break
        alpha[entering] += _walk(alpha, support, members, -weights, np.inf)
    support[entering] = True


def _settle(gram: Floats, product: Floats, alpha: Floats, support: NDArray[np.bool_]) -> None:
    """Go to the minimum over the affine hull of the support, dropping classes that reach zero. In place."""
    while True:
        members = np.flatnonzero(support)
        # The step, not the solution, is solved for: its error shrinks with it.
        right = np.append(product[members] - gram[members] @ alpha, 1 - alpha.sum())
        step = np.linalg.solve(_bordered(gram, members), right)[:-1]
        if _walk(alpha, support, members, step, 1.0) == 1.0:
            return


def _walk(
    alpha: Floats, support: NDArray[np.bool_], members: NDArray[np.intp], step: Floats, limit: float
) -> float:
    """Go `length` times `step`, at most `limit`: to where the first member is used up; drop it."""
    held = alpha[members]
    ratio = np.where(step < 0, held / np.maximum(-step, TINY), np.inf)
    length = min(ratio.min(), limit)
    used_up = ratio <= length
    held = np.where(used_up, 0.0, np.maximum(held + length * step, 0.0))
    alpha[members] = held
    support[members] = held > 0
    return length


def _bordered(gram: Floats, members: NDArray[np.intp]) -> Floats:
    """Matrix [[G, 1], [1', 0]] of the minimum over the affine hull of `members`."""
    k = members.size
    matrix = np.ones((k + 1, k + 1))
    matrix[:k, :k] = gram[members][:, members]
    matrix[k, k] = 0.0
    return matrix
