"""How does a spotlight find its place?  Several starts climb on a sample; full passes choose and refine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit
from sklearn.cluster import KMeans

from scaleshift.kernels.spotlight import Spotlights, distances, spotlight_sums
from scaleshift.slices.spotlights.steps import (
    LAST_BARRIER,
    THRESHOLD,
    Ascent,
    Barrier,
    Form,
    Settings,
    Sums,
    ascent,
    barrier_widths,
    climb,
    objective,
)

N_STARTS = 4
N_CLUSTERS = 24  # of rows with a gain, which starts come from
SHIFTS = 5  # moves of a start to the mean of the gains in its light
WIDE = 10.0  # least weights in the light of a start: a wide light sees where to go
FIRST_BARRIER = 20.0  # least weights
SPEED = 10.0  # a learning rate is in units of so many standard deviations
STEEPNESS = 12.0  # from odds of 20 where half the rows lie within to odds of 1 / 20, three times as many
BISECTIONS = 20
LEAST_RATE = 1e-3
PASSES = 6  # over all rows, at most
LADDER = np.array([1.0, 4.0, 16.0, 64.0])  # lengths of steps that one pass compares, in learning rates


@dataclass(frozen=True)
class Lit:
    """Rows of a sample, ready for steps."""

    x: np.ndarray  # (n, d) float64
    gain: np.ndarray  # (n,)
    weight: np.ndarray  # (n,)
    least: float  # weight that a spotlight has to have

    def sums(self, squares: np.ndarray) -> Callable[[Spotlights], Sums]:
        """What a step needs."""
        return lambda spotlights: spotlight_sums(self.x, self.gain, self.weight, spotlights, squares)


def search(
    rows: Lit,
    form: Form,
    settings: Settings,
    barrier_scale: float,
    learning_rate: float,
    n_steps: int,
    generator: np.random.Generator,
) -> Ascent:
    """Climb from several starts, side by side."""
    begun = ascent(starts(rows, form, generator), SPEED * learning_rate, n_steps)
    widest = min(FIRST_BARRIER * rows.least, float(rows.weight.sum()) - rows.least)
    widths = barrier_widths(widest, rows.least, n_steps)
    barriers = [Barrier(rows.least, float(width), barrier_scale) for width in widths]
    squares = (rows.x * rows.x).sum(axis=1)
    return climb(begun, form, barriers, settings, rows.sums(squares))


# Starts ------------------------------------------------------------------------------------------------


def starts(rows: Lit, form: Form, generator: np.random.Generator) -> np.ndarray:
    """Parameters of the best of many places where gains gather, (at most N_STARTS, P)."""
    means = _gathered(rows, generator)
    target = min(WIDE * rows.least, 0.5 * float(rows.weight.sum()))
    excess = _excess(rows)
    for _ in range(SHIFTS):
        found, light = sized(rows, means, form, target)
        heavy = light * excess[:, None]
        total = heavy.sum(axis=0)
        moved = heavy.T @ rows.x / np.where(total > 0, total, 1.0)[:, None]
        means = np.where((total > 0)[:, None], moved, means)
    found, light = sized(rows, means, form, target)
    light = light * rows.weight[:, None]
    score = rows.gain @ light / np.maximum(light.sum(axis=0), np.finfo(float).tiny)
    best = np.argsort(-score, kind="stable")[:N_STARTS]
    radii = None if found.radii is None else found.radii[best]
    return form.values(found.means[best], found.precisions[best], radii)


def _excess(rows: Lit) -> np.ndarray:
    """Weighted gain beyond the mean, (n,); the weights where all gains are equal."""
    mean = rows.weight @ rows.gain / rows.weight.sum()
    excess = rows.weight * np.maximum(rows.gain - mean, 0)
    return excess if excess.sum() > 1e-12 * rows.weight.sum() else rows.weight


def _gathered(rows: Lit, generator: np.random.Generator) -> np.ndarray:
    """Means of clusters of the rows with a gain, and of all of them, (K, d)."""
    excess = _excess(rows)
    heavy = np.flatnonzero(excess > 0)
    overall = (excess @ rows.x / excess.sum())[None]
    n = min(N_CLUSTERS, len(np.unique(rows.x[heavy], axis=0)))
    if n < 2:
        return overall
    clusters = KMeans(n, n_init=1, max_iter=20, random_state=int(generator.integers(2**31)))
    clusters.fit(rows.x[heavy], sample_weight=excess[heavy])
    return np.concatenate([overall, clusters.cluster_centers_])


def sized(rows: Lit, means: np.ndarray, form: Form, target: float) -> tuple[Spotlights, np.ndarray]:
    """Spotlights at these means with this much light on the rows, and the light, (n, K)."""
    r = distances(rows.x, means)
    least = (1e-3 * form.unit) ** 2  # rows may all lie on a mean
    if not form.saturated:
        bounds = np.log(1e-8 / form.unit**2), np.log(1e8 / form.unit**2)
        found = _bisected(lambda p: _plain(form.shape, np.exp(-p) * r), -bounds[1], -bounds[0], rows, target)
        precisions = np.exp(-found)
        return Spotlights(form.shape, means, precisions), _plain(form.shape, precisions * r)
    shares = np.minimum(np.array([0.5, 1.5]) * target / rows.weight.sum(), 1.0)
    edges = np.quantile(r, shares, axis=0, method="inverted_cdf", weights=rows.weight)
    precisions = STEEPNESS / np.maximum(edges[1] - edges[0], least)
    highest = r.max(axis=0) + 80 / precisions
    radii = _bisected(
        lambda q: expit(0.5 * precisions * (q - r)), np.full(len(means), least), highest, rows, target
    )
    return Spotlights(form.shape, means, precisions, radii), expit(0.5 * precisions * (radii - r))


def saturated(rows: Lit, values: np.ndarray, plain: Form, form: Form) -> np.ndarray:
    """Parameters of the spotlight about the same mean that holds the nearest rows, of the least weight."""
    means = plain.spotlights(values[None]).means
    found, _ = sized(rows, means, form, (1 + LAST_BARRIER) * rows.least)
    assert found.radii is not None
    return form.values(found.means, found.precisions, found.radii)[0]


def _plain(shape: str, scaled: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * scaled) if shape == "gaussian" else np.maximum(1 - scaled, 0)


def _bisected(
    light: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray, rows: Lit, target: float
) -> np.ndarray:
    """Where the light on the rows, which rises, weighs `target`, (K,)."""
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        enough = rows.weight @ light(middle) >= target
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high


# Full passes -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Refinement:
    """The best spotlight so far on all rows, and those that the next pass compares it with."""

    candidates: np.ndarray  # (K, P)
    values: np.ndarray | None  # (P,)
    objective: float
    objectives: list[float]  # after each pass
    weights: list[float]
    rate: float
    chosen: int  # which of the first candidates
    done: bool


def refinement(state: Ascent) -> Refinement:
    """Where the full passes start."""
    rate = float(state.rates[0].max())
    return Refinement(state.values, None, -np.inf, [], [], rate, 0, False)


def refine(
    state: Refinement,
    form: Form,
    least: float,
    barrier_scale: float,
    evaluate: Callable[[Spotlights], Sums],
    after: Callable[[Refinement], None],
) -> Refinement:
    """Choose among the candidates by all rows, and go up as long as steps of some length pay."""
    barrier = Barrier(least, LAST_BARRIER * least, barrier_scale)
    while not state.done:
        spotlights = form.spotlights(state.candidates)
        found = evaluate(spotlights)
        value, gradient = objective(found, form, spotlights, barrier)
        best = int(np.argmax(value))
        state = _accepted(state, best, float(value[best]), gradient[best], float(found["weight"][best]))
        after(state)
    return state


def _accepted(state: Refinement, best: int, value: float, gradient: np.ndarray, weight: float) -> Refinement:
    """The state after a pass."""
    first = state.values is None
    if not first and value <= state.objective + THRESHOLD:
        return replace(state, done=True)
    values = state.candidates[best]
    length = np.sqrt((gradient**2).mean())
    direction = gradient / length if length > 0 else gradient
    return Refinement(
        values + state.rate * LADDER[:, None] * direction,
        values,
        value,
        [*state.objectives, value],
        [*state.weights, weight],
        state.rate,
        best if first else state.chosen,
        len(state.objectives) + 1 >= PASSES or length == 0,
    )
