"""How wrong will a model be that nobody fits again?  By its own probabilities, corrected on labelled rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from scaleshift.blocks import passes
from scaleshift.blocks.block import Block, Rows
from scaleshift.error.family import Answer, Job, Settings, Sums
from scaleshift.error.losses import expected_loss, observed_loss
from scaleshift.error.refits.estimators import Asked
from scaleshift.error.refits.parts import outcome_of
from scaleshift.error.refits.worlds import TEMPERATURES, best_temperature, deviances, tempered
from scaleshift.errors import DataError
from scaleshift.kernels.reference import to_numpy


@dataclass
class FrozenFamily:
    """A fitted model, judged on labelled rows that it was not fitted to; can be saved if a `ModelFile`."""

    cv_error: float  # its mean loss there
    cv_error_se: float
    n_invalid: int
    expected: float  # its mean loss there under its own probabilities
    temperature: float
    model: Asked
    settings: Settings

    @property
    def generator(self) -> str:
        """Whose probabilities are believed."""
        return "plugin" if self.temperature == 1.0 else f"probabilities at temperature {self.temperature:.3g}"

    @property
    def sigma2(self) -> float:
        """Mean squared error of numbers; NaN of labels."""
        return self.cv_error if self.model.classes is None else np.nan

    @property
    def in_b(self) -> np.ndarray:
        """There are no replicates."""
        return np.empty(0)

    @property
    def error_in_sample(self) -> Mapping[str, float]:
        """On the labelled rows: as the model believes, and as it is."""
        return {"direct": self.expected, "decomposed": self.cv_error}

    def target_sums(self, targets: Mapping[str, Rows], noise: bool) -> dict[str, Sums]:
        """Expected losses of each target: one pass."""
        asked: dict[str, Any] = {"model": self.model, "loss": self.settings.loss}
        asked["temperature"] = self.temperature
        layout: dict[str, tuple[int, ...]] = {"n": (), "expected": ()}
        return {
            name: passes.total(expectation, rows.only(), layout, **asked) for name, rows in targets.items()
        }

    def answers(self, sums: Sums) -> dict[str, Answer]:
        """Errors of one target by "direct", "decomposed", "cv"."""
        n = float(sums["n"])
        cv = Answer(self.cv_error)
        if self.model.classes is None:  # whose law of outcomes is the same everywhere
            same = Answer(self.cv_error if n else np.nan, reason="" if n else "no rows that are finite")
            found = {"direct": same, "decomposed": same, "cv": cv}
        else:
            value = float(sums["expected"]) / n if n else np.nan
            reason = "" if n else "no rows that are finite"
            decomposed = self.cv_error + value - self.expected
            found = {
                "direct": Answer(value, reason=reason),
                "decomposed": Answer(decomposed, reason=reason),
                "cv": cv,
            }
        return {method: found[method] for method in self.settings.methods if method in found}

    def err_b(self, sums: Sums) -> np.ndarray:
        """There are no replicates."""
        return np.empty(0)

    def held_out(self, x: np.ndarray, fold: np.ndarray) -> np.ndarray:
        """What the model says: it has learned from none of these rows."""
        return self.model(x)

    def predict(self, x: np.ndarray) -> np.ndarray:
        """What the model says."""
        return self.model(x)

    def extrapolation(self, x: np.ndarray) -> np.ndarray | None:
        """Not known of an estimator."""
        return None

    def by_feature(self, sums: Sums) -> np.ndarray | None:
        """Not known of an estimator."""
        return None

    def remarks(self, sums: Sums) -> list[str]:
        """What a model without probabilities cannot tell."""
        if self.model.classes is not None:
            return []
        return ["a frozen model that predicts numbers has one residual variance: no shift changes its error"]


def learn_frozen(job: Job) -> FrozenFamily:
    """Ask a fitted model of the source's rows, of which it has learned none: one pass."""
    settings, rows = job.settings, job.rows
    used = [name for name in ("outcome", "label") if name in rows.columns]
    classes = None if "outcome" in rows.columns else rows.categories("label")
    model = Asked(settings.model, classes)
    width = 0 if classes is None else len(TEMPERATURES)
    layout: dict[str, tuple[int, ...]] = {"n": (), "invalid": (), "loss": (), "squares": ()}
    layout |= {"deviances": (width,), "expected": (width,)}
    found = passes.total(judged, rows.only(*used), layout, model=model, loss=settings.loss)
    n = float(found["n"])
    if not n:
        raise DataError(
            "no row has an outcome: refit='never' judges the model on rows that have one; give some"
        )
    error = float(found["loss"]) / n
    spread = np.sqrt(max(float(found["squares"]) / n - error**2, 0.0) / n)
    temperature = best_temperature(found["deviances"]) if width and settings.generator == "auto" else 1.0
    expected = float(found["expected"][temperature == TEMPERATURES][0]) / n if width else error
    return FrozenFamily(error, float(spread), int(found["invalid"]), expected, temperature, model, settings)


def judged(block: Block, model: Asked, loss: Any) -> dict[str, np.ndarray]:
    """Losses of a block's rows that have an outcome, and at each temperature what was expected."""
    y, known = outcome_of(block)
    known &= block.valid
    y, prediction = y[known], model(to_numpy(block.x)[known])
    losses = observed_loss(loss, y, prediction, model.classes)
    found = {"n": len(y), "invalid": (~block.valid).sum(), "loss": losses.sum(), "squares": losses @ losses}
    sums = {name: np.array(float(value)) for name, value in found.items()}
    if model.classes is None:
        return {**sums, "deviances": np.empty(0), "expected": np.empty(0)}
    truths = (tempered(prediction, temperature) for temperature in TEMPERATURES)
    expected = [expected_loss(loss, truth, prediction, model.classes).sum() for truth in truths]
    return {**sums, "deviances": deviances(prediction, y), "expected": np.array(expected)}


def expectation(block: Block, model: Asked, loss: Any, temperature: float) -> dict[str, np.ndarray]:
    """Loss that the model expects of a block's rows."""
    prediction = model(to_numpy(block.x)[block.valid])
    found = np.array(0.0)
    if model.classes is not None:
        truth = tempered(prediction, temperature)
        found = np.array(expected_loss(loss, truth, prediction, model.classes).sum())
    return {"n": np.array(float(block.valid.sum())), "expected": found}
