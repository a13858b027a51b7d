"""How are many fits near one another found?  Newton steps with the second derivatives of a fit nearby.

They are factorised once for all columns, each of which then costs its share of Z'P a pass. What steps tell of
the second derivatives of their own column is learned (Broyden). Columns that go far, or come no closer, are
handed to `newton`. With an l1 penalty a step minimises the penalised quadratic.
"""

from __future__ import annotations

import numpy as np

from scaleshift.error.categorical.columns import Columns, Source
from scaleshift.error.categorical.newton import Fitted, Quadratic, newton, penalised_step

CLOSE = 1e-12  # what a step may leave, by its curvature, told from how fast the last one shrank
FLOOR = 1e-9  # below, steps that shrink no more are rounding
SLOW, WILD = 0.7, 1.5  # steps that shrink less are given up; with secants, those that grow so
FAR_AWAY = 1.0  # from the begin, by its curvature: there it tells nothing, as of separated labels
SECANTS = 8  # that are remembered
MOST_CHORDS = 60


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
    fitting = _Chord(source, columns, np.stack(near), which)
    for number in range(MOST_CHORDS):
        if not fitting.active.size:
            break
        fitting.step(fitted if number == 0 else None)
    theta, converged = fitting.theta, fitting.converged
    rest = np.flatnonzero(~converged)
    if rest.size:
        again = newton(source, columns.take(rest))
        theta[rest], converged[rest] = again.theta.reshape(rest.size, -1), again.converged
    return Fitted(theta.reshape(columns.start.shape), converged)


class _Chord:
    """Columns on their way."""

    def __init__(self, source: Source, columns: Columns, curvature: np.ndarray, which: np.ndarray):
        self.source, self.columns, self.curvature, self.which = source, columns, curvature, which
        self.theta = columns.start.reshape(len(columns), -1).copy()
        self.begin = self.theta.copy()
        self.last = np.full(len(columns), np.inf)  # length of the last step
        self.lasso = bool(columns.lasso.any())
        self.quadratics = [] if self.lasso else [Quadratic.of(one) for one in curvature]
        self.secants = Secants(*self.theta.shape)
        self.converged: np.ndarray = np.logical_not(columns.free.any(axis=1))
        # Coordinates that are held do not fit the second derivatives nearby.
        self.active = np.flatnonzero(columns.free.all(axis=1))

    def step(self, fitted: np.ndarray | None) -> None:
        """Move all active columns; those that are there, or come no closer, are active no more."""
        active = self.active
        columns, theta, which = self.columns.take(active), self.theta[active], self.which[active]
        slope = self.source.slopes(theta, columns) if fitted is None else columns.slope(fitted[None], theta)
        step = self._steps(columns, theta, which, slope)
        reach = _reach(self.curvature, which, step)
        ratio = reach / self.last[active]
        close = reach * np.where(ratio > 0, np.minimum(ratio, 1), 1) <= CLOSE  # ratio 0: the first step
        close |= (reach <= FLOOR) & (ratio > 0.5)
        lost = _reach(self.curvature, which, theta + step - self.begin[active]) > FAR_AWAY
        lost |= ~close & ~(ratio < (SLOW if self.lasso else WILD))
        self.theta[active[~lost]] += step[~lost]
        self.last[active] = reach
        self.converged[active[close & ~lost]] = True
        self.active = active[~close & ~lost]

    def _steps(self, columns: Columns, theta: np.ndarray, which: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """Steps of active columns: (n_active, d)."""
        if self.lasso:
            return penalised_step(self.source, self.curvature, which, slope, columns, theta)
        step = np.empty_like(slope)
        for number in np.unique(which):
            here = which == number
            step[here] = -self.quadratics[number].solve(slope[here])
        return self.secants.improved(step, self.active, self.curvature, which)


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
