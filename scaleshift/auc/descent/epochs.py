"""How does an epoch of steps go, and when is the step too long?  As many steps as blocks, then F is asked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from scaleshift.auc.descent.problem import Problem
from scaleshift.blocks import noise
from scaleshift.errors import DataError

TRACE_BYTES = 4_000_000  # of iterates that are handed on at a time
HISTORY_BYTES = 64_000_000  # of iterates that are returned
JUDGED = 64  # iterates of an epoch whose mean F says whether the step is too long
MAX_POWER, POWER_TOL = 30, 1e-3
TOL = 1e-6  # of the largest coefficient: an epoch that moves less is the last
WORSE, MAX_HALVINGS = 10.0, 100


class Way(Protocol):
    """A way of taking steps."""

    problem: Problem

    def walk(self, v: np.ndarray, numbers: np.ndarray, step: float, k: int) -> np.ndarray:
        """Iterates after each of some steps on blocks of these numbers, (n_steps, d)."""

    def within(self, iterates: np.ndarray) -> np.ndarray:
        """The quadratic forms v'Wv of some iterates, (n,)."""

    def spread(self, u: np.ndarray) -> np.ndarray:
        """W u."""


@dataclass(frozen=True)
class State:
    """Where a run stands after an epoch; all of it is kept in a checkpoint."""

    v: np.ndarray  # (d,) in units
    t: int  # steps taken
    step: float
    mean: float  # F of the last epoch's iterates; of the start before the first
    objective: np.ndarray
    history: np.ndarray  # in units
    history_steps: np.ndarray
    halvings: int = 0
    done: bool = False
    converged: bool = False


def begin(way: Way, v: np.ndarray, step_size: float | None, seed: int) -> State:
    """Before the first step."""
    step = longest_step(way, seed) if step_size is None else float(step_size)
    objective = way.problem.objective(way.within(v[None]), v[None])
    mean = float((objective + v**2 @ way.problem.ridge)[0])
    return State(v, 0, step, mean, objective, v[None], np.zeros(1, int))


class Run:
    """Epochs of one run."""

    def __init__(self, way: Way, numbers: np.ndarray, n_parts: int, k: int, *, adapts: bool, stops: bool):
        self.way, self.numbers, self.n_parts, self.k = way, numbers, n_parts, k
        self.adapts, self.stops = adapts, stops
        self.every = 1
        d = len(way.problem.unit)
        fitting = max(HISTORY_BYTES // (8 * d), 2)
        if len(numbers) + 1 > fitting:  # whole epochs lie between the iterates that are kept
            self.every = n_parts * -(-(len(numbers) + 1) // (fitting * n_parts))
        self.at_once = max(TRACE_BYTES // (8 * d), 1)

    def epoch(self, state: State) -> State:
        """As many steps as there are blocks."""
        numbers = self.numbers[state.t : state.t + self.n_parts]
        if not len(numbers):
            return replace(state, done=True)
        judged = np.unique(np.linspace(0, len(numbers) - 1, min(JUDGED, len(numbers))).astype(int))
        kept = np.flatnonzero((state.t + 1 + np.arange(len(numbers))) % self.every == 0)
        if not self.adapts:
            judged = judged[-1:]
        with np.errstate(over="ignore", invalid="ignore"):
            v, found = self._walk(state, numbers, np.union1d(judged, kept))
            iterates = np.stack([found[i] for i in judged])
            finite = bool(np.isfinite(iterates).all() and np.isfinite(v).all())
            objective = np.full(len(judged), np.nan)
            if finite:
                objective = self.way.problem.objective(self.way.within(iterates), iterates)
            mean = float((objective + iterates**2 @ self.way.problem.ridge).mean())
        finite = finite and bool(np.isfinite(objective).all())
        if self.adapts and (not finite or mean > WORSE * state.mean) and state.halvings < MAX_HALVINGS:
            return replace(state, step=state.step / 2, halvings=state.halvings + 1)
        if not finite:
            raise DataError(
                f"SHT-AUC has coefficients that are not finite by step {state.t + len(numbers)}: the "
                f"step_size {state.step:g} is too long for these rows; give a smaller one, or scale=True"
            )
        rises = self.adapts and state.t > 0 and mean > state.mean
        t = state.t + len(numbers)
        converged = self.stops and bool(np.abs(v - state.v).max() <= TOL * np.abs(v).max())
        return State(
            v,
            t,
            state.step / 2 if rises else state.step,
            mean,
            np.append(state.objective, objective[-1]),
            np.concatenate([state.history, *(found[i][None] for i in kept)]),
            np.concatenate([state.history_steps, state.t + 1 + kept]),
            state.halvings + rises,
            done=converged or t == len(self.numbers),
            converged=converged,
        )

    def _walk(self, state: State, numbers: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, dict]:
        """The last iterate, and those after the steps of these numbers."""
        v, found = state.v, {}
        for first in range(0, len(numbers), self.at_once):
            part = numbers[first : first + self.at_once]
            trace = self.way.walk(v, part, state.step, self.k)
            v = trace[-1]
            here = wanted[(wanted >= first) & (wanted < first + len(part))]
            found.update({int(i): trace[i - first] for i in here})
        return v, found


def longest_step(way: Way, seed: int) -> float:
    """1 / (2 lambda_max(A)) by power iteration: that of a smooth descent on F."""
    problem = way.problem
    u = np.where(problem.unit > 0, noise.generator(seed, "sht power").normal(size=len(problem.unit)), 0.0)
    largest = 0.0
    for _ in range(MAX_POWER):
        norm = float(np.linalg.norm(u))
        if norm == 0:
            break
        u = u / norm
        moved = way.spread(u) + problem.delta * (problem.delta @ u) + problem.ridge * u
        before, largest = largest, float(np.linalg.norm(moved))
        u = moved
        if largest - before <= POWER_TOL * largest:
            break
    return 1 / (2 * largest) if largest > 0 else 1.0
