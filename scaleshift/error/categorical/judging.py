"""How wrong are replicates at the source's covariates, and how much does a fit flatter itself?  One pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scaleshift.blocks import passes
from scaleshift.blocks.block import Block, Rows
from scaleshift.error.categorical.frame import Frame, prepared
from scaleshift.error.categorical.replicates import needed, runs, uniform_numbers
from scaleshift.error.categorical.scoring import losses, steps
from scaleshift.error.losses import Loss
from scaleshift.kernels.cpu.categorical import covariances, drawn_losses
from scaleshift.kernels.logistic import class_probabilities, logits, tiles


@dataclass(frozen=True)
class Models:
    """What a pass judges, and by what."""

    frame: Frame
    theta: np.ndarray  # (m, q, B) replicates
    generator: np.ndarray  # (m, q)
    model: np.ndarray  # (m, q) of all rows
    loss: Loss
    classes: np.ndarray
    seed: int

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return self.theta.nbytes

    @property
    def n_replicates(self) -> int:
        """B."""
        return self.theta.shape[-1]

    @property
    def width(self) -> int:
        """Numbers of one row."""
        return len(self.classes) * self.n_replicates


@dataclass(frozen=True)
class InSample:
    """Errors at the source's covariates."""

    in_b: np.ndarray  # (B,) outcomes integrated out
    drawn: np.ndarray  # (B,) with outcomes that were drawn anew
    apparent: float  # of the model on the outcomes that it was fitted to
    apparent_spread: float  # standard deviation of the same over replicates
    optimism: float  # NaN of fewer than two replicates

    @property
    def error(self) -> float:
        """Apparent error and optimism."""
        return self.apparent + self.optimism


def judged(rows: Rows, models: Models) -> InSample:
    """Judge replicates at the source's covariates: one pass."""
    b = models.n_replicates
    layout = {"in_b": (b,), "drawn": (b,), "own": (b,), "apparent": (), "optimism": (), "n": ()}
    found = passes.total(_judge, needed(rows, "train", "fresh"), layout, models=models)
    n = float(found["n"])
    divisor = n * (b - 1) / b if b > 1 else np.nan
    optimism = float(found["optimism"]) / divisor
    spread = float((found["own"] / n).std(ddof=1)) if b > 1 else np.nan
    return InSample(found["in_b"] / n, found["drawn"] / n, float(found["apparent"]) / n, spread, optimism)


def _judge(block: Block, models: Models) -> dict[str, np.ndarray]:
    b = models.n_replicates
    found = {name: np.zeros(b) for name in ("in_b", "drawn", "own")}
    found |= {name: np.zeros(()) for name in ("apparent", "optimism", "n")}
    for part in runs(block):
        ready = prepared(part, models.frame, None)
        train = uniform_numbers(part, "train", models.seed, "train", b)
        fresh = uniform_numbers(part, "fresh", models.seed, "fresh", b)
        for tile in tiles(len(ready.x), models.width):
            _judge_tile(found, ready.rows(tile), train[tile], fresh[tile], models)
    return found


def _judge_tile(
    found: dict[str, np.ndarray], block: Block, train: np.ndarray, fresh: np.ndarray, models: Models
) -> None:
    """Add what one tile of rows tells."""
    z, label = block.x, block.columns["label"]
    counts = np.ascontiguousarray(z[:, 0])
    truth = class_probabilities(logits(z, models.generator[..., None]))[..., 0]  # (K, t)
    each = losses(models.loss, logits(z, models.theta), models.classes)  # (K, t, B)
    own = losses(models.loss, logits(z, models.model[..., None]), models.classes)[..., 0]
    found["n"] += counts.sum()
    found["apparent"] += counts @ own[np.maximum(label, 0), np.arange(len(label))]
    found["in_b"] += ((truth * counts)[:, None] @ each).sum(axis=(0, 1))
    reached = steps(truth)
    drawn_losses(each, reached, fresh, counts, found["drawn"])
    drawn_losses(each, reached, train, counts, found["own"])
    found["optimism"] -= covariances(each, reached, train, counts)
