"""How well does a linear ranking separate positives from negatives, and which sparse one does it best?

All from the moments of both classes. With delta the difference of the means and W the sum of the covariances,
the mean over all pairs of (1 - w'(x+ - x-))^2 is F(w) = (1 - w'delta)^2 + w'Ww. Its best vector with a
support S points along inv(W_SS) delta_S, so supports are compared by delta_S' inv(W_SS) delta_S.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import ndtr

from scaleshift.auc.moments import Contrast
from scaleshift.solve.best_subset import best_subsets

Search = Callable[..., np.ndarray]
NEGLIGIBLE = 1e-12  # of delta squared: the least variance that a feature can have
LEAST = 1e-280  # variance: of a smaller one the weights' squares leave the range of float64
CONSTANT = 1e-24  # of the mean squared: no variance but that of rounding


def products(found: Contrast, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return w'delta and w'Ww of rankings: (..., p) -> (...), (...)."""
    within = found.within
    spread = weights * within if within.ndim == 1 else weights @ within
    return weights @ found.delta, np.einsum("...p,...p->...", spread, weights)


def objective(found: Contrast, weights: np.ndarray) -> np.ndarray:
    """F, the mean over all pairs of (1 - w'(x+ - x-))^2: (..., p) -> (...).

    Examples
    --------
    >>> two = Contrast(np.ones(2), np.ones(2), np.array([[0.0], [2.0]]), np.array([[[1.0]], [[1.0]]]))
    >>> objective(two, np.array([[0.0], [0.5]])).tolist()
    [1.0, 0.5]
    """
    gap, spread = products(found, weights)
    return (1 - gap) ** 2 + spread


def auc_binormal(found: Contrast, weights: np.ndarray) -> np.ndarray:
    """AUC if both classes' scores were normal: (..., p) -> (...).

    0.5 where there is no ranking. A proxy: what a ranking attains on rows is measured on rows.

    Examples
    --------
    >>> two = Contrast(np.ones(2), np.ones(2), np.array([[0.0], [2.0]]), np.array([[[1.0]], [[1.0]]]))
    >>> auc_binormal(two, np.array([[0.0], [0.5], [-0.5]])).round(3).tolist()
    [0.5, 0.921, 0.079]
    """
    return binormal_auc(*products(found, weights))


def binormal_auc(gap: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Phi(gap / sqrt(spread)) of scores: the difference of their means and the sum of their variances."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return ndtr(np.where(gap == 0, 0, gap / np.sqrt(spread)))


def scales(found: Contrast) -> np.ndarray:
    """Standard deviation within the classes, (p,); infinite where a feature is constant, NaN without rows.

    A feature that is constant in each class and differs between them ranks perfectly: its is tiny, not 0.
    """
    variance, delta = found.variance, found.delta
    floor = NEGLIGIBLE * delta**2
    constant = np.maximum(variance, floor) <= np.maximum(CONSTANT * (found.mean**2).max(axis=0), LEAST)
    return np.where(constant, np.inf, np.sqrt(np.maximum(variance, floor)))


def t_statistic(found: Contrast) -> np.ndarray:
    """Student's two-sample t of each feature, (p,); 0 where it is constant, or a class has no rows."""
    n = found.weight
    if not n.all():
        return np.zeros_like(found.delta)
    pooled = np.maximum(n @ found.variances / max(n.sum() - 2, 1), NEGLIGIBLE * found.delta**2)
    usable = np.isfinite(scales(found)) & (pooled > 0)
    return np.where(usable, found.delta / np.sqrt(np.where(usable, pooled, 1) * (1 / n).sum()), 0)


def sparse_path(
    found: Contrast,
    sizes: Sequence[int],
    *,
    alpha: float,
    scale: bool = True,
    positive: bool = False,
    among: np.ndarray | None = None,
    search: Search = best_subsets,
) -> np.ndarray:
    """Rankings with few features: of each size the best found, in the units of the features.

    Parameters
    ----------
    found : Contrast
        With covariances, or with variances alone: features then count as independent.
    sizes : sequence of int
        Ascending numbers of features.
    alpha : float
        Shrinkage: W + alpha diag(W) takes the place of W.
    scale : bool, default True
        Whether shrinkage goes by each feature's own variance; False: by their mean variance.
    positive : bool, default False
        Whether no weight may be below 0.
    among : numpy.ndarray of int, optional
        Features that may be chosen; all where left out.
    search : callable, default `best_subsets`
        How subsets are found: `forward_subsets` is quicker.

    Returns
    -------
    numpy.ndarray, shape (n_sizes, p)
        Each scaled so that F is smallest along its direction.

    Examples
    --------
    >>> means, covariances = np.array([[0.0, 0.0], [1.0, 2.0]]), np.stack([np.eye(2) / 2] * 2)
    >>> two = Contrast(np.ones(2), np.ones(2), means, covariances)
    >>> sparse_path(two, [1, 2], alpha=0.0).round(3).tolist()
    [[0.0, 0.4], [0.167, 0.333]]
    """
    unit = scales(found)
    usable = np.isfinite(unit)
    if among is not None:
        usable &= np.isin(np.arange(len(unit)), among)
    chosen = np.flatnonzero(usable)
    weights = np.zeros((len(sizes), len(unit)))
    own = unit[chosen]
    unit = own if scale or not chosen.size else np.full(chosen.size, np.sqrt(np.mean(own**2)))
    gain = found.delta[chosen] / unit
    if found.covariance.ndim == 2:
        among_independent = _independent(gain, (own / unit) ** 2 + alpha, sizes, positive)
        weights[:, chosen] = among_independent / unit
    elif chosen.size:
        within = found.within if usable.all() else found.within[np.ix_(chosen, chosen)]
        matrix = np.outer(unit, unit)
        np.divide(within, matrix, out=matrix)
        matrix[np.diag_indices_from(matrix)] = (own / unit) ** 2 + alpha
        weights[:, chosen] = search(matrix, gain, sizes, positive=positive) / unit
    return best_scaled(found, weights)


def _independent(gain: np.ndarray, diagonal: np.ndarray, sizes: Sequence[int], positive: bool) -> np.ndarray:
    """The same as `best_subsets` of a diagonal matrix: largest t, both variances alike."""
    gain = np.maximum(gain, 0) if positive else gain
    order = np.argsort(-(gain**2) / diagonal, kind="stable")
    weights = np.zeros((len(sizes), len(gain)))
    for row, size in enumerate(sizes):
        weights[row, order[:size]] = (gain / diagonal)[order[:size]]
    return weights


def best_scaled(found: Contrast, weights: np.ndarray) -> np.ndarray:
    """The same directions, each at the length at which F is smallest."""
    gap, spread = products(found, weights)
    length = gap**2 + spread
    return weights * np.divide(gap, length, out=np.zeros_like(gap), where=length > 0)[..., None]


def debiased(found: Contrast, path: np.ndarray, *, scale: bool, positive: bool) -> np.ndarray:
    """The same supports, their weights learned without shrinkage: (n_sizes, p)."""
    whole = np.zeros_like(path)
    for row, weights in enumerate(path):
        support = np.flatnonzero(weights)
        if support.size:
            size = [support.size]
            whole[row] = sparse_path(found, size, alpha=0.0, scale=scale, positive=positive, among=support)[0]
    return whole
