"""How is a fit found from any start?  Newton steps with second derivatives of its own.

A step is halved until the objective falls. With an l1 penalty it minimises the penalised quadratic.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from scaleshift.error.categorical.columns import Columns, Curves, Source
from scaleshift.solve.penalised_quadratic import penalised_quadratic

CLOSE = 1e-9  # a Newton step of so much curvature-weighted length leaves an error of its square
MOST_STEPS = 40
STATE_BYTES = 64_000_000  # of second derivatives in one pass
SMALLEST = 1e-11  # eigenvalue, by the largest of a matrix with a unit diagonal, that is not 0
FLAT = 1e-7  # curvature by that of the start: probabilities of a direction's rows have become 0 and 1
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
        source.part(_newton, columns.take(np.arange(first, min(first + size, len(columns)))))
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
    # Place among the first second derivatives of fits whose weights no penalty bounds; -1: bounded.
    bare = np.where((columns.ridge + columns.lasso).any(axis=1), -1, np.cumsum(~converged) - 1)
    first: np.ndarray | None = None
    for _ in range(MOST_STEPS):
        if not active.size:
            break
        found = source.curves(trial[active], columns.take(active))
        first = found.curvature if first is None else first
        ok = found.value <= bound[active] + 1e-4 * length[active] * fall[active]
        good, bad = active[ok], active[~ok]
        base[good], length[good] = trial[good], 1.0
        length[bad] /= 2
        better = found.take(ok)
        step = _directions(source, better, columns.take(good), base[good])
        direction[good] = step
        fall[good] = _fall(better, columns.take(good), base[good], step)
        bound[good] = better.value + 1e-12 * np.maximum(1, np.abs(better.value))
        done = _done(better, base[good], step)
        base[good[done]] += step[done]
        for c, curvature in zip(good[done], better.curvature[done], strict=True):
            converged[c] = bare[c] < 0 or not _flat(curvature, first[bare[c]])
        active = np.setdiff1d(active[length[active] > 1e-12], good[done])
        trial[active] = base[active] + length[active, None] * direction[active]
    return Fitted(base.reshape(columns.start.shape), converged)


def _fall(found: Curves, columns: Columns, theta: np.ndarray, step: np.ndarray) -> np.ndarray:
    """By how much the objective falls to first order: (n_fits,), negative."""
    penalty = (columns.lasso * (np.abs(theta + step) - np.abs(theta))).sum(axis=1)
    return np.asarray(np.einsum("cd,cd->c", found.slope, step) + penalty)


def _done(found: Curves, theta: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Whether a step is the last that is needed: (n_fits,) bool."""
    squared = [float(s @ h @ s) for s, h in zip(step, found.curvature, strict=True)]
    still = np.abs(step).max(axis=1, initial=0) <= STILL * (1 + np.abs(theta).max(axis=1, initial=0))
    return np.asarray((np.sqrt(np.maximum(squared, 0)) <= CLOSE) & still)


def _flat(end: np.ndarray, begin: np.ndarray) -> bool:
    """Whether a direction has lost its curvature: labels are separated, slopes 0 of rounding."""
    values, vectors = linalg.eigh(begin, check_finite=False)
    large = values > SMALLEST * values[-1]
    unit = vectors[:, large] / np.sqrt(values[large])
    return bool(linalg.eigvalsh(unit.T @ end @ unit, check_finite=False)[0] < FLAT)


def _directions(source: Source, found: Curves, columns: Columns, theta: np.ndarray) -> np.ndarray:
    """Newton's step of each column: (n_fits, d)."""
    if columns.lasso.any():
        which = np.arange(len(columns))
        return penalised_step(source, found.curvature, which, found.slope, columns, theta)
    steps = [-Quadratic.of(h).solve(g) for h, g in zip(found.curvature, found.slope, strict=True)]
    return np.array(steps).reshape(theta.shape)


def penalised_step(
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
