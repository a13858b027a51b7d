"""How is a fit found?  Newton steps: with second derivatives of its own, or with those of a fit nearby.

Own ones (`newton`) take any start: a step is halved until the objective falls. Those of a fit nearby
(`chord`) are factorised once for all columns, each of which then costs its share of Z'P a pass; columns that
do not come closer fast are handed to `newton`. With an l1 penalty a step minimises the penalised quadratic.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from scaleshift.error.categorical.columns import Columns, Curves, Source
from scaleshift.solve.penalised_quadratic import penalised_quadratic

CLOSE = 1e-9  # a Newton step of so much curvature-weighted length leaves an error of its square
CHORD_CLOSE = 1e-12  # what a chord step may leave, told from how fast the last one shrank
FLOOR = 1e-9  # below, steps that shrink no more are rounding
SLOW, WILD = 0.7, 1.5  # a chord that shrinks its steps less is given up; with secants, one that grows so
SECANTS = 8  # that are remembered
MOST_STEPS, MOST_CHORDS = 40, 60
STATE_BYTES = 64_000_000  # of second derivatives in one pass
SMALLEST = 1e-11  # eigenvalue, by the largest of a matrix with a unit diagonal, that is not 0
STILL = 1e-3  # last step by the parameters' size; labels that can be separated move them by 1 for ever


@dataclass(frozen=True)
class Fitted:
    """Parameters of columns."""

    theta: np.ndarray  # (n_fits, m, q)
    converged: np.ndarray  # (n_fits,) bool; False: labels are separated, as a rule


def newton(source: Source, columns: Columns) -> Fitted:
    """Fit columns from where they start, with second derivatives of their own."""
    d = source.m * source.q
    size = max(1, STATE_BYTES // (8 * d * d))
    parts = [
        _newton(source, columns.take(np.arange(first, min(first + size, len(columns)))))
        for first in range(0, len(columns), size)
    ]
    theta = np.concatenate([part.theta for part in parts])
    return Fitted(theta, np.concatenate([part.converged for part in parts]))


def _newton(source: Source, columns: Columns) -> Fitted:
    n_fits = len(columns)
    base = columns.start.reshape(n_fits, -1).copy()
    trial, direction = base.copy(), np.zeros_like(base)
    length, bound, fall = np.ones(n_fits), np.full(n_fits, np.inf), np.zeros(n_fits)
    converged: np.ndarray = np.logical_not(columns.free.any(axis=1))
    active = np.flatnonzero(~converged)
    for _ in range(MOST_STEPS):
        if not active.size:
            break
        chosen = columns.take(active)
        found = source.curves(trial[active], chosen)
        ok = found.value <= bound[active] + 1e-4 * length[active] * fall[active]
        good = active[ok]
        base[good] = trial[good]
        step = _directions(source, found, chosen, base[active], np.flatnonzero(ok))
        direction[good], length[good] = step, 1.0
        fall[good] = np.einsum("cd,cd->c", found.slope[ok], step) + (
            columns.take(good).lasso * (np.abs(base[good] + step) - np.abs(base[good]))
        ).sum(axis=1)
        bound[good] = found.value[ok] + 1e-12 * np.maximum(1, np.abs(found.value[ok]))
        reach = np.sqrt(np.maximum(np.einsum("cd,cde,ce->c", step, found.curvature[ok], step), 0))
        still = np.abs(step).max(axis=1, initial=0) <= STILL * (1 + np.abs(base[good]).max(axis=1))
        done = (reach <= CLOSE) & still
        converged[good[done]] = True
        base[good[done]] += step[done]
        length[active[~ok]] /= 2
        active = active[~converged[active] & (length[active] > 1e-12)]
        trial[active] = base[active] + length[active, None] * direction[active]
    return Fitted(base.reshape(columns.start.shape), converged)


def _directions(
    source: Source, found: Curves, columns: Columns, theta: np.ndarray, chosen: np.ndarray
) -> np.ndarray:
    """Newton's step of some of the columns: (n_chosen, d)."""
    if columns.lasso.any():
        curvature, slope = found.curvature[chosen], found.slope[chosen]
        return _penalised(
            source, curvature, np.arange(len(chosen)), slope, columns.take(chosen), theta[chosen]
        )
    steps = [-Quadratic.of(found.curvature[c]).solve(found.slope[c]) for c in chosen]
    return np.array(steps).reshape(len(chosen), theta.shape[1])


def _penalised(
    source: Source,
    curvature: np.ndarray,
    which: np.ndarray,
    slope: np.ndarray,
    columns: Columns,
    theta: np.ndarray,
) -> np.ndarray:
    """Step to the minimum of the l1-penalised quadratic."""
    linear = slope - np.stack([curvature[w] @ t for w, t in zip(which, theta, strict=True)])
    found = penalised_quadratic(curvature, which, linear, columns.lasso, theta, columns.free, source.m)
    return found - theta


@dataclass(frozen=True)
class Quadratic:
    """Second derivatives that are ready to be solved."""

    curvature: np.ndarray  # (d, d)
    inverse: np.ndarray | None  # (d, d) where they are singular: the pseudo-inverse
    factor: tuple[np.ndarray, bool] | None
    unit: np.ndarray  # (d,)

    @classmethod
    def of(cls, curvature: np.ndarray) -> Quadratic:
        """Factorise: Cholesky, or eigenvectors where a direction has no curvature."""
        diagonal = np.diagonal(curvature)
        unit = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1))
        scaled = curvature * unit[:, None] * unit
        try:
            factor = linalg.cho_factor(scaled, lower=True, check_finite=False)
            if np.diagonal(factor[0]).min() ** 2 > SMALLEST:
                return cls(curvature, None, factor, unit)
        except linalg.LinAlgError:
            pass
        values, vectors = linalg.eigh(scaled, check_finite=False)
        large = values > SMALLEST * max(values[-1], 1e-300)
        inverse = (vectors[:, large] / values[large]) @ vectors[:, large].T
        return cls(curvature, inverse * unit[:, None] * unit, None, unit)

    def solve(self, slope: np.ndarray) -> np.ndarray:
        """Solutions of (..., d)."""
        if self.factor is None:
            return slope @ self.inverse
        solved: np.ndarray = linalg.cho_solve(self.factor, (slope * self.unit).T, check_finite=False).T
        return solved * self.unit


def chord(
    source: Source,
    columns: Columns,
    near: list[np.ndarray],
    which: np.ndarray,
    fitted: np.ndarray | None = None,
) -> Fitted:
    """Fit columns from where they start, with the second derivatives of fits nearby.

    Parameters
    ----------
    source : Source
    columns : Columns
    near : list of numpy.ndarray, shape (d, d)
        Second derivatives of the smooth part, penalties included.
    which : numpy.ndarray of int, shape (n_fits,)
        Which of them is near each column.
    fitted : numpy.ndarray, shape (m, q), optional
        Z'P where all columns start, if they start alike: it saves a pass.
    """
    n_fits = len(columns)
    theta = columns.start.reshape(n_fits, -1).copy()
    curvature = np.stack(near)
    quadratics = [] if columns.lasso.any() else [Quadratic.of(one) for one in near]
    last = np.full(n_fits, np.inf)
    secants = Secants(n_fits, theta.shape[1])
    fast = np.asarray(columns.free.any(axis=1))
    whole = columns.free.all(axis=1)  # coordinates that are held do not fit the second derivatives nearby
    converged: np.ndarray = np.logical_not(fast)
    active = np.flatnonzero(fast & whole)
    for _ in range(MOST_CHORDS):
        if not active.size:
            break
        chosen, near_by = columns.take(active), which[active]
        if fitted is not None:
            slope, fitted = chosen.slope(fitted[None], theta[active]), None
        else:
            slope = source.slopes(theta[active], chosen)
        if quadratics:
            step = np.empty_like(slope)
            for number in np.unique(near_by):
                here = near_by == number
                step[here] = -quadratics[number].solve(slope[here])
            step = secants.improved(step, active, curvature, near_by)
        else:
            step = _penalised(source, curvature, near_by, slope, chosen, theta[active])
        reach = _reach(curvature, near_by, step)
        ratio = reach / last[active]
        close = reach * np.where(ratio > 0, np.minimum(ratio, 1), 1) <= CHORD_CLOSE  # ratio 0: the first step
        close |= (reach <= FLOOR) & (ratio > 0.5)
        lost = ~close & ~(ratio < (WILD if quadratics else SLOW))
        moved = active[~lost]
        theta[moved] += step[~lost]
        last[active] = reach
        converged[active[close]] = True
        active = active[~close & ~lost]
    rest = np.flatnonzero(~converged)
    if rest.size:
        again = newton(source, columns.take(rest))
        theta[rest], converged[rest] = again.theta.reshape(rest.size, -1), again.converged
    return Fitted(theta.reshape(columns.start.shape), converged)


class Secants:
    """What chord steps have told of the second derivatives: Broyden's updates, of each column its own.

    Kelley (1995), Iterative Methods for Linear and Nonlinear Equations, section 7.3, with lengths weighted by
    curvature. Columns begin together, so that all remember equally many steps.
    """

    def __init__(self, n_fits: int, d: int):
        self.steps = np.zeros((n_fits, SECANTS, d))
        self.duals = np.zeros((n_fits, SECANTS, d))  # H s / s'H s
        self.n = 0

    def improved(
        self, step: np.ndarray, active: np.ndarray, curvature: np.ndarray, which: np.ndarray
    ) -> np.ndarray:
        """The steps of active columns, which are remembered: (n_active, d)."""
        if self.n == SECANTS:
            self.n = 0
        step = step.copy()
        for j in range(self.n - 1):
            share = np.einsum("cd,cd->c", self.duals[active, j], step)
            step += self.steps[active, j + 1] * share[:, None]
        if self.n:
            share = np.einsum("cd,cd->c", self.duals[active, self.n - 1], step)
            step /= np.where(share < 0.5, 1 - share, 1)[:, None]
        dual = np.empty_like(step)
        for number in np.unique(which):
            here = which == number
            dual[here] = step[here] @ curvature[number]
        length = np.einsum("cd,cd->c", dual, step)
        self.steps[active, self.n] = step
        self.duals[active, self.n] = dual / np.where(length > 0, length, 1)[:, None]
        self.n += 1
        return step


def _reach(curvature: np.ndarray, which: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Length of steps, weighted by curvature: (n_fits,)."""
    found = np.empty(len(step))
    for number in np.unique(which):
        here = which == number
        found[here] = np.einsum("cd,cd->c", step[here] @ curvature[number], step[here])
    return np.sqrt(np.maximum(found, 0))
