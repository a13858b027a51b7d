"""Which proportions of known densities make some rows most likely?  Newton's method on the simplex.

Maximise sum_j w_j log sum_k a_k r_k(j) over the simplex, where r_k(j) is the density of class k at row j, up
to a factor of the row. The objective is concave, and its maximum is where the EM algorithm of Saerens,
Latinne and Decaestecker (2002), "Adjusting the outputs of a classifier to new a priori probabilities", ends.
Each step maximises the quadratic model of the objective on the whole simplex, so that proportions at the
boundary are zero exactly; where the objective does not rise by it, a step of EM is taken, by which it cannot
fall.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scaleshift.solve.simplex import simplex_least_squares

IMPOSSIBLE = 1e-100  # a density of a row below it counts as none
AT_A_TIME = 2**22  # entries of the arrays that are worked on at a time
EM_STEPS = 5  # first: far from the solution they go farther than Newton's
OWNED = 0.5  # mean share of a class in its rows, from which on they count as its own
NEAR = 1e-6  # share of the start that is mixed into another one: no row is impossible then


class Terms(NamedTuple):
    """The objective of some problems at some points, and its first two derivatives."""

    value: np.ndarray  # (n,) -inf where a row with weight is impossible
    gradient: np.ndarray  # (n, n_labels)
    information: np.ndarray  # (n, n_labels, n_labels), minus the second derivative

    def take(self, which: np.ndarray) -> Terms:
        """Those of some of the problems."""
        return Terms(*(values[which] for values in self))

    def put(self, which: np.ndarray, other: Terms) -> Terms:
        """With those of some of the problems replaced."""
        mine = Terms(*(values.copy() for values in self))
        for values, new in zip(mine, other, strict=True):
            values[which] = new
        return mine


def log_likelihood_terms(ratios: np.ndarray, weights: np.ndarray, proportions: np.ndarray) -> Terms:
    """The objective and its derivatives at given proportions; a problem's do not depend on the others'.

    Parameters
    ----------
    ratios : numpy.ndarray, shape (n_rows, n_labels)
        Class densities of the rows, up to a factor a row.
    weights : numpy.ndarray, shape (n, n_rows)
        Of the rows, in each problem.
    proportions : numpy.ndarray, shape (n, n_labels)

    Examples
    --------
    >>> ratios, weights = np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([[0.5, 0.5]])
    >>> terms = log_likelihood_terms(ratios, weights, np.array([[1.0, 0.0]]))
    >>> terms.gradient.tolist(), terms.information[0, 0].tolist()
    ([[1.0, 0.5]], [1.0, 0.5])
    """
    n, c = proportions.shape
    found = Terms(np.empty(n), np.empty((n, c)), np.empty((n, c, c)))
    step = max(AT_A_TIME // max(ratios.size, 1), 1)
    for first in range(0, n, step):
        here = slice(first, first + step)
        w, totals = weights[here], (ratios @ proportions[here, :, None])[..., 0]
        possible = totals > IMPOSSIBLE
        totals = np.where(possible, totals, 1)
        relative = np.where(possible, w / totals, 0)
        value = (w * np.log(totals)).sum(axis=1)
        found.value[here] = np.where((~possible & (w > 0)).any(axis=1), -np.inf, value)
        found.gradient[here] = (ratios.T @ relative[..., None])[..., 0]
        found.information[here] = ratios.T @ (np.where(possible, relative / totals, 0)[..., None] * ratios)
    return found


def newton_points(proportions: np.ndarray, terms: Terms) -> tuple[np.ndarray, np.ndarray]:
    """Where on the simplex the quadratic model is largest, and by how much it rises: (n, n_labels), (n,).

    Examples
    --------
    >>> ratios, start = np.array([[1.5, 0.5], [0.5, 1.5]]), np.full((1, 2), 0.5)
    >>> points, rise = newton_points(start, log_likelihood_terms(ratios, np.array([[0.7, 0.3]]), start))
    >>> points.round(3).tolist(), rise.round(3).tolist()
    ([[0.9, 0.1]], [0.08])
    """
    at = (terms.information @ proportions[..., None])[..., 0]
    points = simplex_least_squares(terms.information, terms.gradient + at)
    step = points - proportions
    rise = (terms.gradient * step).sum(axis=1)
    rise -= np.einsum("nk,nkl,nl->n", step, terms.information, step, optimize=True) / 2
    return points, rise


def trial_points(proportions: np.ndarray, terms: Terms, points: np.ndarray) -> np.ndarray:
    """Newton's points, but where these all but drop a class that owns rows: (n, n_labels).

    The quadratic model does not know that a row becomes impossible without its class. Of a class to which
    its rows mostly belong, EM knows the share at once.
    """
    by_em = proportions * terms.gradient
    # Mean share of the class in its rows, each weighted by this share.
    owned = np.einsum("nkk->nk", terms.information) * proportions > OWNED * terms.gradient
    points = np.where(owned & (points < by_em / 2), by_em, points)
    return points / points.sum(axis=1, keepdims=True)


def em_points(proportions: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """A step of EM: (n, n_labels). The objective does not fall by it."""
    points = proportions * gradient
    return points / points.sum(axis=1, keepdims=True)


def mixture_proportions(
    ratios: np.ndarray,
    weights: np.ndarray,
    start: np.ndarray,
    *,
    tol: float = 1e-10,
    max_iter: int = 100,
) -> np.ndarray:
    """Proportions of the highest likelihood, of some problems with the same rows.

    Parameters
    ----------
    ratios : numpy.ndarray, shape (n_rows, n_labels)
        Class densities of the rows, up to a factor a row: posteriors over the prior, say. A column of zeros
        is a class that gets nothing.
    weights : numpy.ndarray, shape (n, n_rows)
        Of the rows, in each problem: counts, say; not all zero.
    start : numpy.ndarray, shape (n_labels,)
        Positive proportions of total 1 at which no row is impossible, such as the prior.
    tol : float, default 1e-10
        A problem is solved once a step promises less than that of log-likelihood a row.
    max_iter : int, default 100

    Returns
    -------
    numpy.ndarray, shape (n, n_labels)
        A problem's do not depend on the others, to the bit.

    Examples
    --------
    >>> ratios = np.array([[2.0, 0.0], [0.5, 1.5], [0.0, 2.0]])
    >>> mixture_proportions(ratios, np.array([[6, 2, 2], [8, 0, 0]]), np.full(2, 0.5)).round(3).tolist()
    [[0.684, 0.316], [1.0, 0.0]]
    """
    weights = weights / weights.sum(axis=1, keepdims=True)
    found = np.tile(start, (len(weights), 1))
    for _ in range(EM_STEPS):
        found = em_points(found, _gradient(ratios, weights, found))
    found = (1 - NEAR) * found + NEAR * start
    active = np.arange(len(weights))
    terms = log_likelihood_terms(ratios, weights, found)
    for _ in range(max_iter):
        points, rise = newton_points(found[active], terms)
        open_ = rise > tol
        found[active[~open_]] = points[~open_]  # the error is the square of what was left
        active, points, terms = active[open_], points[open_], terms.take(open_)
        if not active.size:
            break
        points = trial_points(found[active], terms, points)
        new = log_likelihood_terms(ratios, weights[active], points)
        fell = np.flatnonzero(new.value <= terms.value)
        if fell.size:
            points[fell] = em_points(found[active[fell]], terms.gradient[fell])
            new = new.put(fell, log_likelihood_terms(ratios, weights[active[fell]], points[fell]))
        found[active], terms = points, new
    return found


def redrawn_proportions(ratios: np.ndarray, weights: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Proportions of problems that differ little from one that is solved: one step of Newton's method.

    Parameters
    ----------
    ratios : numpy.ndarray, shape (n_rows, n_labels)
    weights : numpy.ndarray, shape (n, n_rows)
        Of the rows, in each problem.
    at : numpy.ndarray, shape (n_labels,)
        Proportions near the solutions, at which no row is impossible.

    Returns
    -------
    numpy.ndarray, shape (n, n_labels)

    Examples
    --------
    >>> ratios = np.array([[1.5, 0.5], [0.5, 1.5]])
    >>> redrawn_proportions(ratios, np.array([[51, 49], [49, 51]]), np.full(2, 0.5)).round(3).tolist()
    [[0.52, 0.48], [0.48, 0.52]]
    """
    weights = weights / weights.sum(axis=1, keepdims=True)
    relative = ratios / (ratios @ at)[:, None]
    c = len(at)
    squares = (relative[:, :, None] * relative[:, None, :]).reshape(len(ratios), c * c)
    information = (weights @ squares).reshape(len(weights), c, c)
    return simplex_least_squares(information, 2 * weights @ relative)


def _gradient(ratios: np.ndarray, weights: np.ndarray, proportions: np.ndarray) -> np.ndarray:
    totals = (ratios @ proportions[..., None])[..., 0]
    return (ratios.T @ (weights / np.maximum(totals, IMPOSSIBLE))[..., None])[..., 0]
