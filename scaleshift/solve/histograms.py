"""Class proportions whose mixture of class histograms comes nearest to a sample's histograms.

Sequential quadratic programming on the simplex, many problems at once. At a point a with the mixture q = a'P
the distance is replaced by its second-order model, or where that is no bowl by one that bounds it from above;
the quadratic program of `simplex` gives the next point, classes at exactly zero with it, and backtracking
makes the distance fall. Seen from q the classes are P_i - q: what they have in common drops out.

The slopes of both distances go to minus infinity as a bin of the mixture empties that the target fills. The
iteration starts inside the simplex, and no step takes more than nine tenths of such a bin away.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from scaleshift.solve.simplex import simplex_least_squares

QUICK, MAX_STEPS = 15, 100  # without stages; in each of them, for problems that have a kink in the way
CLOSE = 1e-12  # a step that moves no proportion by more is the last
INSIDE = 0.01  # of the start, spread over all classes
TAKEN = 0.9  # of a bin, at most, in one step
ENOUGH = 1e-4  # of the fall that the slope promises
NOISE = 1e-15  # of a distance, for each histogram


class Slopes(NamedTuple):
    """A distance, and how it depends on the bins of the mixture."""

    value: np.ndarray  # (n,)
    slope: np.ndarray  # (n, n_histograms, n_bins)
    curvature: np.ndarray  # the same shape, not negative
    bend: np.ndarray  # (n, n_histograms) times a histogram's slopes with themselves: to be subtracted


#: ``distance(targets, mixtures)``, both (n, n_histograms, n_bins) -> `Slopes`; those of a bin that is empty
#: in the mixture are not used.
Distance = Callable[[np.ndarray, np.ndarray], Slopes]


def topsoe(target: np.ndarray, mixture: np.ndarray) -> Slopes:
    """Sum over histograms of p log(2p / (p + q)) + q log(2q / (p + q)): convex.

    Examples
    --------
    >>> float(topsoe(np.array([[[1.0, 0.0]]]), np.array([[[0.0, 1.0]]])).value[0] / np.log(2))
    2.0
    """
    both = target + mixture
    with np.errstate(divide="ignore", invalid="ignore"):
        half = 2 / np.where(both > 0, both, 2)
        slope = np.log(mixture * half)
        bins = xlogy(target, target * half) + xlogy(mixture, mixture * half)
        curvature = target / (mixture * both)
    return Slopes(bins.reshape(len(bins), -1).sum(axis=1), slope, curvature, np.zeros(target.shape[:2]))


def hellinger(target: np.ndarray, mixture: np.ndarray, smooth: float = 0.0) -> Slopes:
    """Mean over histograms of sqrt(sum (sqrt p - sqrt q)^2 + smooth^2).

    Convex only near a good fit. `smooth` rounds the kink that a histogram makes where it is met exactly.

    Examples
    --------
    >>> round(float(hellinger(np.array([[[1.0, 0.0]]]), np.array([[[0.0, 1.0]]])).value[0] ** 2), 12)
    2.0
    """
    root = np.sqrt(np.square(np.sqrt(target) - np.sqrt(mixture)).sum(axis=2) + smooth**2)
    m = root.shape[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 1 / (2 * m * root)[..., None]
        ratio = np.sqrt(target / mixture)
        return Slopes(root.mean(axis=1), (1 - ratio) * scale, ratio / (2 * mixture) * scale, m / root)


# The last is the distance; where its kinks bar the way, each is solved from the answer of the one before.
TOPSOE: Sequence[Distance] = (topsoe,)
HELLINGER: Sequence[Distance] = tuple(functools.partial(hellinger, smooth=10.0**-k) for k in (2, 4, 6, 8, 10))


def nearest_mixture(stages: Sequence[Distance], means: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Minimise the distance of a target to mixtures of the classes.

    Parameters
    ----------
    stages : sequence of callables
        `TOPSOE` or `HELLINGER`.
    means : numpy.ndarray, shape (n, c, n_histograms, n_bins)
        Histograms of the classes, each with the sum 1: n problems.
    targets : numpy.ndarray, shape (n, n_histograms, n_bins)
        Histograms of the targets.

    Returns
    -------
    numpy.ndarray, shape (n, c)
        Never negative, with the sum 1. A problem's minimiser does not depend on those solved with it.

    Notes
    -----
    Topsoe's distance has one minimum. A mean of Hellinger distances may have several; from its start, the
    least squares fit, the iteration ends in the one below.

    Examples
    --------
    >>> means = np.array([[[[0.5, 0.5, 0.0]], [[0.0, 0.5, 0.5]]]])
    >>> nearest_mixture(TOPSOE, means, np.array([[[0.2, 0.5, 0.3]]])).round(6).tolist()
    [[0.4, 0.6]]
    """
    n, c = means.shape[:2]
    flat, target = means.reshape(n, c, -1), targets.reshape(n, -1)
    start = simplex_least_squares(flat @ flat.swapaxes(1, 2), (flat @ target[..., None])[..., 0])
    result = (1 - INSIDE) * start + INSIDE / c
    left = _descend(stages[-1], flat, targets, result, np.arange(n), QUICK)
    for distance in stages if left.size else ():
        _descend(distance, flat, targets, result, left, MAX_STEPS)
    return result / result.sum(axis=1, keepdims=True)


def _descend(
    distance: Distance,
    flat: np.ndarray,
    targets: np.ndarray,
    alpha: np.ndarray,
    rows: np.ndarray,
    n_steps: int,
) -> np.ndarray:
    """Go down from `alpha`, in place, for some of the problems; returns those that have not arrived."""
    stuck = [rows[:0]]
    for _ in range(n_steps):
        if not rows.size:
            break
        some = slice(None) if rows.size == len(flat) else rows  # no copy of all
        way, length = _step(distance, flat[some], targets[some], alpha[some])
        alpha[rows] = np.maximum(alpha[rows] + length[:, None] * way, 0)
        far = np.abs(way).max(axis=1) > CLOSE
        stuck.append(rows[far & (length == 0)])
        rows = rows[far & (length > 0)]
    return np.concatenate([*stuck, rows])


def _step(
    distance: Distance, flat: np.ndarray, targets: np.ndarray, alpha: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Whereto, (n, c), and how far of that, (n,)."""
    n, c, _ = flat.shape
    mixture = _mixed(alpha, flat)
    here = distance(targets, mixture.reshape(targets.shape))
    held = mixture > 0  # a bin that no class fills is the same everywhere
    slope, curvature = (np.where(held, of.reshape(n, -1), 0) for of in (here.slope, here.curvature))
    seen = flat - mixture[:, None]
    tilt = np.einsum("ncjb,njb->ncj", seen.reshape(n, c, *targets.shape[1:]), slope.reshape(targets.shape))
    gradient = tilt.sum(axis=2)
    way = simplex_least_squares(_hessian(seen, curvature, tilt, here.bend), -gradient) - alpha
    change = _mixed(way, flat)
    emptied = held & (targets.reshape(n, -1) > 0) & (change < 0)
    length = np.where(emptied, TAKEN * mixture / np.where(emptied, -change, 1), 1).min(axis=1)
    promised = (way * gradient).sum(axis=1)

    def fallen(rows: np.ndarray, length: np.ndarray) -> np.ndarray:
        there = mixture[rows] + length[:, None] * change[rows]
        risen = distance(targets[rows], there.reshape(targets[rows].shape)).value - here.value[rows]
        return risen <= ENOUGH * length * promised[rows] + NOISE * targets.shape[1]

    return way, _backtracked(fallen, np.minimum(length, 1))


def _hessian(seen: np.ndarray, curvature: np.ndarray, tilt: np.ndarray, bend: np.ndarray) -> np.ndarray:
    """Second derivatives by proportions, (n, c, c); where they are no bowl, without the bend."""
    above = (seen * curvature[:, None]) @ seen.swapaxes(1, 2)
    if not bend.any():
        return above
    exact = above - (tilt * bend[:, None]) @ tilt.swapaxes(1, 2)
    bowl = np.linalg.eigvalsh(exact)[:, 0] > -1e-9 * np.trace(exact, axis1=1, axis2=2)
    return np.where(bowl[:, None, None], exact, above)


def _backtracked(fallen: Callable[[np.ndarray, np.ndarray], np.ndarray], length: np.ndarray) -> np.ndarray:
    """The first of length, length / 2, ... at which the distance has fallen enough; 0 if there is none."""
    left = np.arange(len(length))
    for _ in range(40):
        left = left[~fallen(left, length[left])]
        if not left.size:
            return length
        length[left] /= 2
    length[left] = 0
    return length


def _mixed(alpha: np.ndarray, flat: np.ndarray) -> np.ndarray:
    """(n, c), (n, c, n_features) -> (n, n_features)."""
    return (alpha[:, None] @ flat)[:, 0]
