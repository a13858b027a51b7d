"""What do refits tell of targets?  Each replicate meets all of them, in the task that has fitted it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from scaleshift import checkpoint
from scaleshift.blocks import passes
from scaleshift.blocks.block import Block, Rows
from scaleshift.blocks.buckets import Buckets
from scaleshift.blocks.replicated import Gathered, Result
from scaleshift.blocks.resuming import KeptReplicates, columns_told, kept_in, rows_told
from scaleshift.error.family import Answer, Settings, Sums
from scaleshift.error.refits.answering import Replicated, answers_of, standard_error
from scaleshift.error.refits.estimators import Asked
from scaleshift.error.refits.replicating import PAIR, SCORES, Plan, predicted, replicate
from scaleshift.error.refits.worlds import Labels, Numbers, World
from scaleshift.errors import DataError
from scaleshift.user_objects import name_of, told

BY_REFITS = ("direct", "decomposed", "corrected")  # methods that need replicates
SOURCE = "source"


@dataclass
class RefitFamily:
    """An estimator that was fitted to the source, and is refitted when targets come.

    It needs the source's rows for that, and refers to them. `in_b` and `error_in_sample` are those of the
    last refits: empty and NaN before; ``target_sums({}, False)`` makes them without a target.
    """

    cv_error: float
    cv_error_se: float
    n_invalid: int
    n: int  # rows that were learned from
    apparent: float  # mean loss of the model on them
    world: World
    model: Asked
    fold_models: tuple[Asked, ...]
    settings: Settings
    source: Rows
    buckets: Buckets | None
    last: dict[str, np.ndarray] = field(default_factory=dict)  # scores of the source by replicate

    not_saved: ClassVar[str] = (
        "what was learned of an estimator cannot be saved: it is refitted when targets come, which needs the "
        "estimator, which is code, and the source's rows; save its results instead, or fit again"
    )

    @property
    def generator(self) -> str:
        """How outcomes are drawn."""
        if isinstance(self.world, Labels) and self.world.temperature != 1.0:
            return f"probabilities at temperature {self.world.temperature:.3g}"
        return "plugin"

    @property
    def sigma2(self) -> float:
        """Variance of held-out residuals; NaN of labels."""
        return self.world.sigma2 if isinstance(self.world, Numbers) else np.nan

    @property
    def refits(self) -> bool:
        """Whether a method was asked for that needs replicates."""
        return any(method in BY_REFITS for method in self.settings.methods)

    @property
    def in_b(self) -> np.ndarray:
        """In-sample error by replicate of the last refits, (B,), NaN where one failed or was not needed."""
        return self.last.get("integrated", np.empty(0))

    @property
    def error_in_sample(self) -> Mapping[str, float]:
        """At the source's covariates."""
        if not self.last:
            return {"direct": np.nan, "decomposed": np.nan}
        direct, optimism = (float(np.nanmean(self.last[name])) for name in ("integrated", "optimism"))
        return {"direct": direct, "decomposed": self.apparent + optimism}

    def target_sums(self, targets: Mapping[str, Rows], noise: bool) -> dict[str, Sums]:
        """Sums of each target, of means by replicate times its rows: the refits, of which each meets all.

        Sums of two batches add where both have the same settings: replicates that one of them lacks are NaN
        in the sum.

        Raises
        ------
        DataError
            If rows weigh more than a third of a worker's memory, or no replicate could be fitted.
        """
        keep = ("noise",) if noise else ()
        data = {f"target {name}": rows.only(*keep) for name, rows in targets.items()}
        if not self.refits:
            return {name: {"n": _counted(rows)} for name, rows in targets.items()}
        data = {SOURCE: self.source, **data}
        gathered = passes.gather(data, predicted, asked=self.model)
        plan = Plan(
            self.world,
            self.model,
            self.settings.model,
            self.settings.refit == "warm",
            self.settings.seed,
            tuple(data),
        )
        scores = self._scores(gathered, data, plan)  # (B, n_tables, 4)
        self.last = {name: scores[:, 0, place] for place, name in enumerate(SCORES)}
        return {
            name: self._sums(scores[:, place], gathered.n_rows[f"target {name}"])
            for place, name in enumerate(targets, start=1)
        }

    def _scores(self, gathered: Gathered, data: Mapping[str, Rows], plan: Plan) -> np.ndarray:
        n_bootstrap = self.settings.n_bootstrap
        keys = range(-(-n_bootstrap // PAIR))
        kept = None if self.settings.checkpoint is None else self._kept(data)
        found = passes.replicates(replicate, gathered, keys, kept=kept, enough=self._enough(), plan=plan)
        scores = np.full((PAIR * len(keys), len(data), len(SCORES)), np.nan)
        scores[: PAIR * len(found)] = np.concatenate([result["scores"] for result in found.values()])
        scores = scores[:n_bootstrap]
        if np.isnan(scores[:, 0, 0]).all():
            causes = [cause for result in found.values() for cause in result["cause"].tolist() if cause]
            causes = causes or ["its losses are no numbers"]
            raise DataError(
                f"none of {len(causes)} refits to drawn outcomes succeeded, the first: {causes[0]}; try the "
                "estimator on outcomes with more noise, or ask for method='cv' alone"
            )
        return scores

    def _enough(self) -> Callable[[dict[int, Result]], bool] | None:
        """Whether the Monte-Carlo error is small on every target."""
        tol = self.settings.tol
        if tol is None:
            return None

        def small(results: dict[int, Result]) -> bool:
            scores = np.concatenate([result["scores"] for result in results.values()])
            asked = scores[:, 1:, 0] if scores.shape[1] > 1 else scores[:, :1, 0]
            return all(standard_error(asked[:, place]) < tol for place in range(asked.shape[1]))

        return small

    def _kept(self, data: Mapping[str, Rows]) -> KeptReplicates:
        """The folder of this fit; replicates of other targets stand beside in it."""
        settings = self.settings
        job = {
            "rows": rows_told(self.source),
            "columns": columns_told(self.source),
            "model": told(settings.model),
            "loss": settings.loss if isinstance(settings.loss, str) else name_of(settings.loss),
            "generator": [
                settings.generator,
                settings.refit,
                None if self.buckets is None else self.buckets.n,
            ],
            "labels": self.world.classes.tolist() if isinstance(self.world, Labels) else None,
            "found": [f"{value:.9g}" for value in (self.apparent, self.cv_error)],
            "seed": settings.seed,
        }
        targets = {
            name: [rows_told(rows), columns_told(rows)] for name, rows in data.items() if name != SOURCE
        }
        kept = kept_in(settings.checkpoint, checkpoint.fingerprint(job), settings.seed)
        return KeptReplicates(kept, f"refits-{checkpoint.fingerprint(targets)[:12]}")

    def _sums(self, scores: np.ndarray, n: int) -> Sums:
        """Means by replicate, of the target and beside it of the source, each times the target's rows."""
        sums = {name: n * scores[:, place] for place, name in enumerate(SCORES[:3])}
        sums |= {f"source_{name}": n * values for name, values in self.last.items()}
        return {"n": np.array(float(n)), **sums}

    def answers(self, sums: Sums) -> dict[str, Answer]:
        """Errors of one target by "direct", "decomposed", "corrected", "cv"."""
        return answers_of(sums, self.apparent, self.cv_error, self.settings, refits=self.refits)

    def err_b(self, sums: Sums) -> np.ndarray:
        """Error of each replicate, (B,), NaN where one failed or was not needed."""
        return Replicated(sums).mean("integrated") if self.refits else np.empty(0)

    def held_out(self, x: np.ndarray, fold: np.ndarray) -> np.ndarray:
        """What models say that were fitted without a row's fold."""
        found = np.empty((len(x), *self.model(x[:0]).shape[1:]))
        of = np.where(fold < len(self.fold_models), fold, -1)
        for number in np.unique(of):
            here = of == number
            found[here] = (self.model if number < 0 else self.fold_models[number])(x[here])
        return found

    def predict(self, x: np.ndarray) -> np.ndarray:
        """What the model of all rows says."""
        return self.model(x)

    def extrapolation(self, x: np.ndarray) -> np.ndarray | None:
        """Not known of an estimator."""
        return None

    def by_feature(self, sums: Sums) -> np.ndarray | None:
        """Not known of an estimator."""
        return None

    def remarks(self, sums: Sums) -> list[str]:
        """Replicates that failed, and generators that no held-out rows have corrected."""
        found = []
        failed = int(np.isnan(self.last["integrated"][: self._n_tried()]).sum()) if self.last else 0
        if self.refits and failed:
            found.append(f"{failed} of {self._n_tried()} refits to drawn outcomes failed and are left out")
        if self.refits and not self.fold_models:
            flat = "residuals" if isinstance(self.world, Numbers) else "probabilities"
            found.append(
                f"without folds {flat} of the rows learned from give the noise: errors may be too small"
            )
        return found

    def _n_tried(self) -> int:
        """Replicates up to the last that succeeded: later ones were not needed."""
        done = np.flatnonzero(np.isfinite(self.last["integrated"]))
        return int(done[-1]) + 1 if done.size else 0


def _counted(rows: Rows) -> np.ndarray:
    """Rows of a target that are finite: one pass."""
    return passes.total(valid_rows, rows.only(), {"n": ()})["n"]


def valid_rows(block: Block) -> dict[str, np.ndarray]:
    """How many rows of a block are finite."""
    return {"n": np.array(float(block.valid.sum()))}
