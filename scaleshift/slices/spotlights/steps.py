"""How does a spotlight move?  Adam up an objective with a barrier, its rate halved on a plateau.

No data here: what a step needs of the rows are the sums of `kernels.spotlight`. A spotlight's parameters are
one vector, in units of the embeddings' spread: mean / unit, log(precision unit^2) and, where it is saturated,
log(radius / unit^2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from scaleshift.kernels.spotlight import Spotlights

BETAS = 0.9, 0.999  # of Adam
EPSILON = 1e-8
THRESHOLD = 1e-4  # of an improvement: relative in faithful mode, else in standard deviations of the losses
LEAST_CHANGE = 1e-8  # of the learning rate
LAST_BARRIER = 0.05  # of the least weight

Sums = dict[str, np.ndarray]


@dataclass(frozen=True)
class Form:
    """What parameter vectors mean."""

    shape: str  # of kernels.spotlight.SHAPES
    unit: float  # spread of the embeddings
    saturated: bool

    def spotlights(self, values: np.ndarray) -> Spotlights:
        """Of parameters, (R, P)."""
        d = values.shape[1] - (2 if self.saturated else 1)
        radii = np.exp(values[:, d + 1]) * self.unit**2 if self.saturated else None
        precisions = np.exp(values[:, d]) / self.unit**2
        return Spotlights(self.shape, values[:, :d] * self.unit, precisions, radii)

    def values(self, means: np.ndarray, precisions: np.ndarray, radii: np.ndarray | None) -> np.ndarray:
        """Parameters, (R, P)."""
        parts = [means / self.unit, np.log(precisions * self.unit**2)[:, None]]
        if radii is not None:
            parts.append(np.log(radii / self.unit**2)[:, None])
        return np.concatenate(parts, axis=1)


class Barrier(NamedTuple):
    """What a spotlight with too little light pays: scale (W - m - b)^2 / b^2 where W < m + b."""

    least: float  # m
    width: float  # b
    scale: float


def barrier_widths(first: float, least: float, n_steps: int) -> np.ndarray:
    """Widths b of all steps, (n_steps,), down to a twentieth of the least weight m.

    Examples
    --------
    >>> barrier_widths(98.0, 2.0, 3).round(3).tolist()
    [98.0, 3.13, 0.1]
    """
    last = LAST_BARRIER * least
    return np.geomspace(max(first, last), last, n_steps)


def objective(sums: Sums, form: Form, spotlights: Spotlights, barrier: Barrier) -> tuple[Any, np.ndarray]:
    """Mean loss in the light less the barrier, (R,), and its gradient in the parameters, (R, P)."""
    mass, p = sums["weight"], spotlights.precisions
    safe = np.maximum(mass, np.finfo(float).tiny)
    mean = sums["loss"] / safe
    lack = np.minimum(mass - (barrier.least + barrier.width), 0.0)
    by_mass = -2 * barrier.scale * lack / barrier.width**2

    def derivative(name: str, factor: np.ndarray) -> np.ndarray:
        """From the sums of du and of l du."""
        of_mass, of_loss = sums[name].T, sums["slope_loss" if name == "slope" else f"{name}_loss"].T
        return (factor * ((of_loss - mean * of_mass) / safe + by_mass * of_mass)).T

    by_precision = derivative("r", -p / 2)
    parts = [derivative("x", p * form.unit)]
    if spotlights.radii is not None:
        by_radius = derivative("slope", p * spotlights.radii / 2)
        parts += [(by_precision + by_radius)[:, None], by_radius[:, None]]
    else:
        parts.append(by_precision[:, None])
    value = mean - barrier.scale * lack**2 / barrier.width**2
    return value, np.concatenate(parts, axis=1)


@dataclass
class Ascent:
    """Spotlights on their way up, side by side, and where they have been."""

    values: np.ndarray  # (R, P)
    first: np.ndarray  # (R, P) mean gradient
    second: np.ndarray  # (R, P) mean square of the gradient
    rate: np.ndarray  # (R,) learning rates
    best: np.ndarray  # (R,) highest objective
    waited: np.ndarray  # (R,) steps since
    step: int  # steps done
    objectives: np.ndarray  # (n_steps, R) before each step
    masses: np.ndarray  # (n_steps, R)
    rates: np.ndarray  # (n_steps, R) after each step


def ascent(values: np.ndarray, learning_rate: float, n_steps: int) -> Ascent:
    """At the start."""
    n = len(values)
    traces = [np.full((n_steps, n), np.nan) for _ in range(3)]
    zeros = np.zeros_like(values)
    return Ascent(
        values.copy(),
        zeros,
        zeros.copy(),
        np.full(n, float(learning_rate)),
        np.full(n, -np.inf),
        np.zeros(n),
        0,
        *traces,
    )


@dataclass(frozen=True)
class Settings:
    """How spotlights move."""

    patience: int
    decay: float
    relative: bool  # an improvement is relative to the objective, as torch has it
    least_rate: float = 0.0  # share of the first learning rate at which a spotlight has arrived


def climb(
    state: Ascent,
    form: Form,
    barriers: list[Barrier],
    settings: Settings,
    evaluate: Callable[[Spotlights], Sums],
    after: Callable[[Ascent], None] = lambda state: None,
) -> Ascent:
    """Take the steps that are left, one evaluation each.

    Parameters
    ----------
    state : Ascent
        Where to go on; it is changed.
    form : Form
    barriers : list of Barrier
        Of each step.
    settings : Settings
    evaluate : callable
        Sums of the rows under some spotlights.
    after : callable, optional
        Called after each step: to keep the state.
    """
    while state.step < len(barriers):
        spotlights = form.spotlights(state.values)
        sums = evaluate(spotlights)
        value, gradient = objective(sums, form, spotlights, barriers[state.step])
        state.objectives[state.step], state.masses[state.step] = value, sums["weight"]
        _move(state, gradient)
        _slow_down(state, value, settings)
        state.rates[state.step] = state.rate
        state.step += 1
        after(state)
        if settings.least_rate and (state.rate <= settings.least_rate * state.rates[0]).all():
            break
    return state


def _move(state: Ascent, gradient: np.ndarray) -> None:
    """A step of Adam (Kingma and Ba 2015)."""
    one, two = BETAS
    step = state.step + 1
    state.first += (1 - one) * (gradient - state.first)
    state.second += (1 - two) * (gradient * gradient - state.second)
    spread = np.sqrt(state.second) / np.sqrt(1 - two**step) + EPSILON
    state.values += (state.rate / (1 - one**step))[:, None] * state.first / spread


def _slow_down(state: Ascent, value: np.ndarray, settings: Settings) -> None:
    """Multiply the rates of those that have not risen for longer than `patience` steps."""
    # torch asks of v = -J whether v < best (1 - threshold), also where best is negative.
    with np.errstate(invalid="ignore"):
        wanted = state.best * (1 - THRESHOLD) if settings.relative else state.best + THRESHOLD
    better = (value > wanted) | np.isneginf(state.best)
    state.best = np.where(better, value, state.best)
    state.waited = np.where(better, 0, state.waited + 1)
    late = state.waited > settings.patience
    slower = state.rate * settings.decay
    state.rate = np.where(late & (state.rate - slower > LEAST_CHANGE), slower, state.rate)
    state.best = np.where(late, -np.inf, state.best)
    state.waited = np.where(late, 0, state.waited)
