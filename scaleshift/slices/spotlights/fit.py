"""How is the next spotlight found?  As published, by steps over all rows; or on a sample first."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from scaleshift.blocks import noise
from scaleshift.blocks.block import Kept
from scaleshift.kernels.spotlight import Spotlights
from scaleshift.slices import sampling
from scaleshift.slices.spotlights.gains import TINY, Gains, settled, shown, sums, weight_of
from scaleshift.slices.spotlights.membership import FoundSpotlight
from scaleshift.slices.spotlights.search import LEAST_RATE, Lit, refine, refinement, saturated, search
from scaleshift.slices.spotlights.steps import (
    LAST_BARRIER,
    Ascent,
    Barrier,
    Form,
    Settings,
    Sums,
    ascent,
    barrier_widths,
    climb,
)

START_PRECISION = 1e-4  # of the published start
SAMPLE_LIGHT = 200  # rows of the sample that a spotlight of the least weight has, at least
MOST_ROWS = 65_536  # of a sample
RADII = np.geomspace(0.5, 2, 17)  # squared ones that one pass compares, of that of the sample


class Known(NamedTuple):
    """What a pass over the losses of the fit found."""

    mass: float  # sum of the weights
    mean: float  # of the signed losses
    deviation: float
    least: float


@dataclass(frozen=True)
class Search:
    """Everything that a spotlight is sought with, but for the losses that it sees."""

    kept: Kept
    known: Known
    form: Form
    sample: sampling.Sample | None  # None where every step is over all rows
    seed: int
    size: float  # least weight of a spotlight, as a share of all
    n_steps: int
    learning_rate: float
    barrier_scale: float
    patience: int
    decay: float
    n_columns: int  # of the projected embeddings

    @property
    def least(self) -> float:
        """Least weight m."""
        return self.size * self.known.mass


class Path(NamedTuple):
    """Where a spotlight came to rest, and how."""

    values: np.ndarray  # (P,)
    objectives: np.ndarray  # (steps,) of gains
    weights: np.ndarray  # (steps,)
    rates: np.ndarray  # (steps,)


Keep = Callable[[Any], None]  # what is told each state that a fit can go on from


def published(job: Search, gains: Gains, number: int, state: Any, keep: Keep) -> Path:
    """From the origin and a wide light, every step over all rows."""
    if state is None:
        start = job.form.values(np.zeros((1, job.n_columns)), np.array([START_PRECISION]), None)
        state = ascent(start, job.learning_rate, job.n_steps)
    assert isinstance(state, Ascent)
    kept = settled(job.kept, gains)
    widths = barrier_widths(job.known.mass - job.least, job.least, job.n_steps)
    barriers = [Barrier(job.least, float(width), job.barrier_scale) for width in widths]
    settings = Settings(job.patience, job.decay, relative=True)
    done = climb(state, job.form, barriers, settings, functools.partial(sums, kept, gains), keep)
    return Path(done.values[0], done.objectives[:, 0], done.masses[:, 0], done.rates[:, 0])


def sampled(job: Search, gains: Gains, number: int, state: Any, keep: Keep) -> Path:
    """From several starts on a sample, then a few passes over all rows.

    The light that is moved is not saturated: it averages many rows, and follows chance less than a ball with
    few of them does. Saturated at the end, it holds the rows nearest to where it came to rest.
    """
    rows = _lit(job, gains)
    settings = Settings(job.patience, job.decay, relative=False, least_rate=LEAST_RATE)
    generator = noise.generator(job.seed, f"spotlight {number}")
    # The steps on the sample are taken again by a fit that is resumed: they are the same.
    plain = replace(job.form, saturated=False)
    climbed = search(rows, plain, settings, job.barrier_scale, job.learning_rate, job.n_steps, generator)
    state = refinement(climbed) if state is None else state
    kept = settled(job.kept, gains)
    evaluate = functools.partial(sums, kept, gains)
    done = refine(state, plain, job.least, job.barrier_scale, evaluate, keep)
    assert done.values is not None  # after the first pass
    steps, first = slice(climbed.step), done.chosen
    share = job.known.mass / rows.weight.sum()
    values = done.values
    if job.form.saturated:
        values = _weighed(job, evaluate, saturated(rows, values, plain, job.form))
    return Path(
        values,
        np.concatenate([climbed.objectives[steps, first], done.objectives]),
        np.concatenate([climbed.masses[steps, first] * share, done.weights]),
        climbed.rates[steps, first],
    )


def _weighed(job: Search, evaluate: Callable[[Spotlights], Sums], values: np.ndarray) -> np.ndarray:
    """The same spotlight with the radius at which it has its weight on all rows: one pass."""
    logarithms = values[-1] + np.log(RADII)
    candidates = np.column_stack([np.tile(values[:-1], (len(RADII), 1)), logarithms])
    weights = np.maximum(evaluate(job.form.spotlights(candidates))["weight"], TINY)
    target = (1 + LAST_BARRIER) * job.least
    return np.append(values[:-1], np.interp(np.log(target), np.log(weights), logarithms))


def sample_rows(size: float) -> int:
    """Rows of a sample for spotlights of this size."""
    return int(min(max(sampling.ROWS, SAMPLE_LIGHT / size), MOST_ROWS))


def _lit(job: Search, gains: Gains) -> Lit:
    """The sample as this spotlight sees it."""
    assert job.sample is not None
    block = job.sample.block
    weight = weight_of(block)
    return Lit(block.x.astype(np.float64), gains.of(block), weight, job.size * float(weight.sum()))


def at_rest(job: Search, gains: Gains, path: Path) -> FoundSpotlight:
    """What a spotlight shows: one pass."""
    spotlight = job.form.spotlights(path.values[None])
    seen = shown(job.kept, gains, spotlight)
    weight = max(seen["weight"], TINY)
    return FoundSpotlight(
        mean=spotlight.means[0],
        precision=float(spotlight.precisions[0]),
        radius=None if spotlight.radii is None else float(spotlight.radii[0]),
        peak=max(seen["peak"], TINY),
        weight=seen["weight"],
        effective_size=seen["weight"] ** 2 / max(seen["squares"], TINY),
        weighted_loss=gains.sign * gains.as_objective(seen["gain"] / weight),
        mean_loss=seen["loss"] / weight,
        objectives=gains.as_objective(path.objectives),
        weights=path.weights,
        rates=path.rates,
    )
