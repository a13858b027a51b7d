"""What does a refit to drawn outcomes predict?  Two replicates a task, and every table scored there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from scaleshift.blocks import noise
from scaleshift.blocks.block import Block
from scaleshift.blocks.graph import SHARE_BYTES
from scaleshift.error.refits.estimators import Asked, continued, fitted
from scaleshift.error.refits.parts import outcome_of
from scaleshift.error.refits.worlds import World
from scaleshift.errors import DataError
from scaleshift.kernels.reference import to_numpy

PAIR = 2
GIVEN = ("train", "fresh", "noise")  # columns of the caller's noise
ROWS = 65_536  # that are asked at a time
SCORES = ("integrated", "drawn", "again", "optimism")  # last axis of a table's scores
AGAIN = SCORES.index("again")
Table = dict[str, np.ndarray]


def predicted(name: str, block: Block, asked: Asked) -> Block:
    """What the model of all rows says of each row; of the source those rows that it has learned from."""
    columns = {part: values for part, values in block.columns.items() if part in GIVEN}
    columns["prediction"] = asked(to_numpy(block.x))
    valid = block.valid & outcome_of(block)[1] if name == "source" else block.valid
    return block._replace(columns=columns, valid=valid)


@dataclass
class Refit:
    """One replicate."""

    number: int
    y: np.ndarray  # what was drawn for it
    asked: Asked | None = None
    cause: str = ""  # why there is none

    def __call__(self, x: np.ndarray) -> np.ndarray | None:
        """What it predicts; None where it failed."""
        if self.asked is None:
            return None
        try:
            return self.asked(x)
        except DataError as error:
            self.asked, self.cause = None, str(error)
            return None


@dataclass(frozen=True)
class Plan:
    """How replicates are made; travels in tasks."""

    world: World
    model: Asked  # of all rows
    estimator: Any
    warm: bool
    seed: int
    names: tuple[str, ...]  # of the tables, the source first

    @property
    def nbytes(self) -> int:
        """Models are taken as large."""
        return 2 * SHARE_BYTES

    def refit(self, source: Table, number: int) -> Refit:
        """Draw outcomes of the source's rows and learn from them."""
        refit = Refit(number, self.outcome(source, "train", "train", number, slice(None)))
        y = self.world.outcomes(refit.y)
        try:
            model = continued(self.model.model, source["x"], y) if self.warm else None
            model = fitted(self.estimator, source["x"], y) if model is None else model
            refit.asked = Asked(model, self.model.classes)
        except DataError as error:
            refit.cause = str(error)
        return refit

    def outcome(self, table: Table, column: str, stream: str, number: int, rows: slice) -> np.ndarray:
        """Outcomes of some rows in a replicate, of the caller's noise where there is some."""
        truth = self.world.truth(table["prediction"][rows])
        if column in table:
            return self.world.given(truth, table[column][rows, number])
        place = table["row"][rows]
        if not len(place):
            return self.world.drawn(truth, np.empty(0))
        first, last = int(place[0]), int(place[-1])
        uniform = noise.uniforms_of(self.seed, stream, first, last + 1 - first, number)
        return self.world.drawn(truth, uniform[place - first])


def replicate(tables: dict[str, Table], key: int, plan: Plan) -> dict[str, np.ndarray]:
    """Two refits, asked of every table.

    Returns
    -------
    dict
        scores (2, n_tables, 4): mean losses of each refit by table, in the order of `SCORES`; "again" is the
        expected loss of a study that begins with this replicate and goes on as the other one did. cause (2,):
        why a refit failed, or empty.
    """
    source = tables["source"]
    wanted = range(PAIR * key, PAIR * key + PAIR)
    if "train" in source:
        wanted = range(wanted.start, min(wanted.stop, source["train"].shape[1]))
    refits = [plan.refit(source, number) for number in wanted]
    scores = np.full((PAIR, len(plan.names), len(SCORES)), np.nan)
    for place, name in enumerate(plan.names):
        found = _scores(tables[name], name, refits, plan)
        scores[: len(refits), place] = found
    causes = [refit.cause for refit in refits] + ["not asked for"] * (PAIR - len(refits))
    scores[[cause != "" for cause in causes]] = np.nan
    return {"scores": scores, "cause": np.array(causes)}


def _scores(table: Table, name: str, refits: list[Refit], plan: Plan) -> np.ndarray:
    """Means over the rows of a table, (n_refits, 4); "again" of targets alone."""
    world, n, is_source = plan.world, len(table["x"]), name == "source"
    column, stream = ("fresh", "fresh") if is_source else ("noise", name)
    total = np.zeros((len(refits), len(SCORES)))
    for rows in _slices(n):
        truth = world.truth(table["prediction"][rows])
        told = [refit(table["x"][rows]) for refit in refits]
        for place, (refit, found) in enumerate(zip(refits, told, strict=True)):
            if found is None:
                continue
            y = plan.outcome(table, column, stream, refit.number, rows)
            scored = world.scored(truth, found, y, refit.y[rows] if is_source else None)
            total[place] += scored.expected, scored.observed, 0, scored.optimism
        total[:, AGAIN] += np.nan if is_source else _again(world, table["prediction"][rows], told)
    total[:, AGAIN] *= [world.spread(plan.seed, refit.number) for refit in refits]
    return total / max(n, 1)


def _again(world: World, centre: np.ndarray, told: list[np.ndarray | None]) -> np.ndarray:
    """Expected losses of studies that begin with one refit and deviate as the other did: (n_refits,)."""
    one, other = told if len(told) == PAIR else (None, None)
    if one is None or other is None:
        return np.full(len(told), np.nan)
    moved = world.coordinates(one) + world.coordinates(other) - world.coordinates(centre)
    prediction = world.prediction(moved)
    return np.array([world.expected(world.truth(begun), prediction).sum() for begun in (one, other)])


def _slices(n: int) -> Iterator[slice]:
    return (slice(first, min(first + ROWS, n)) for first in range(0, n, ROWS))
