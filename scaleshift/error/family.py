"""What does every kind of model tell of targets?  The contract between `PredictionError` and its engines.

An engine learns from the source once (`learn(job) -> Family`) and then turns any number of targets into sums
that can be added: of parts of a target, of batches that come in, and scaled where the past is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from scaleshift.blocks.block import Rows
from scaleshift.blocks.buckets import Buckets
from scaleshift.error.losses import Loss

Sums = dict[str, np.ndarray]  # named float64 arrays of one target; "n", shape (), its rows


class Answer(NamedTuple):
    """The error of one target, by one method."""

    error: float  # noise of outcomes integrated out where that can be
    drawn: float = np.nan  # the same with outcomes that were drawn
    low: float = np.nan
    high: float = np.nan
    mc_error: float = 0.0  # Monte-Carlo standard error of `error`; 0 of closed forms
    reason: str = ""  # why it is NaN, or what to mind


@dataclass(frozen=True)
class Settings:
    """Parameters of a fit, checked."""

    model: Any  # "ols", "ridge", "lasso", "logistic", "multinomial", or an estimator
    loss: Loss  # never "auto"
    methods: tuple[str, ...]
    generator: str
    alpha: float | None
    penalty: str
    n_bootstrap: int
    level: float
    tol: float | None
    refit: str  # "cold", "warm", "never": of estimators
    scale: bool
    seed: int
    checkpoint: Any = None
    rechoose: bool = False  # whether replicates of linear models choose alpha anew


@dataclass(frozen=True)
class Job:
    """What an engine learns from."""

    rows: Rows  # columns "label", and of numbers "outcome" (NaN: none); "group" where there are groups;
    # "train" and "fresh", (n, B) numbers, where noise was given
    buckets: Buckets | None  # folds; None: no cross-validation
    settings: Settings

    @property
    def given_noise(self) -> bool:
        """Whether the caller has drawn the noise."""
        return "train" in self.rows.columns

    @property
    def grouped(self) -> bool:
        """Whether rows come in groups that depend on each other."""
        return "group" in self.rows.columns


class Family(Protocol):
    """What was learned from the source, without its rows: a dataclass that `encoding.CLASSES` knows."""

    cv_error: float  # mean held-out loss; NaN without folds
    cv_error_se: float
    n_invalid: int

    @property
    def error_in_sample(self) -> Mapping[str, float]:
        """At the source's covariates, by method: "direct", "decomposed"."""

    @property
    def in_b(self) -> np.ndarray:
        """In-sample error of each replicate, outcome noise integrated out, (B,); empty of closed forms."""

    def target_sums(self, targets: Mapping[str, Rows], noise: bool) -> dict[str, Sums]:
        """Sums of each target: one pass each, or the refits, of which each meets all targets.

        `noise`: whether targets have a column "noise", (m, B) numbers, which the caller has drawn.
        """

    def answers(self, sums: Sums) -> dict[str, Answer]:
        """Errors of one target by each method of the settings that the engine answers."""

    def err_b(self, sums: Sums) -> np.ndarray:
        """Error of each replicate on one target, (B,); empty of closed forms."""

    def held_out(self, x: np.ndarray, fold: np.ndarray) -> np.ndarray:
        """What models that were fitted without a row's fold predict of it: (n,) or (n, K).

        A fold below 0, or no cross-validation: the model of all rows.
        """

    def predict(self, x: np.ndarray) -> np.ndarray:
        """What the model of all rows predicts: (n,) numbers or (n, K) probabilities."""

    def extrapolation(self, x: np.ndarray) -> np.ndarray | None:
        """How far each row is from what the source tells of: variance of its prediction by that of noise.

        (n,), or None where the engine has no such score.
        """

    def by_feature(self, sums: Sums) -> np.ndarray | None:
        """What each feature adds to the excess error of one target, (p,); None: not known."""

    def remarks(self, sums: Sums) -> list[str]:
        """What makes answers for one target doubtful, in words."""


@runtime_checkable
class WithLeverage(Protocol):
    """A family that knows how much the model's prediction of a source row is owed to that row."""

    def leverage(self, x: np.ndarray) -> np.ndarray:
        """Change of a source row's prediction by that of its outcome: (n,), from 0 to 1."""


Learn = Callable[[Job], Family]
