"""How is a categorical family learned?  In stages, each of a few passes over the source.

counted: units, sums by class and fold; chosen: the path of penalties, of all rows and of each fold;
generator: what outcomes are drawn from; replicates: labels drawn, refits; judged: errors at the source's
covariates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from scaleshift.blocks import blas, passes
from scaleshift.blocks.buckets import Buckets
from scaleshift.blocks.resuming import Walk
from scaleshift.error.categorical.columns import Source
from scaleshift.error.categorical.family import CategoricalFamily
from scaleshift.error.categorical.fitting import Chosen, Setting, alphas, fitted_path, held_out
from scaleshift.error.categorical.frame import Counted, counted, prepared
from scaleshift.error.categorical.generators import Generator, generator_of
from scaleshift.error.categorical.judging import InSample, Models, judged
from scaleshift.error.categorical.replicates import Replicates, label_sums, needed, refitted
from scaleshift.error.family import Job
from scaleshift.error.walking import walk_of
from scaleshift.errors import DataError

MOST_PARAMETERS = 10_000  # whose second derivatives are 0.8 GB
Stages = dict[str, Callable[[], Any]]


def learn(job: Job) -> CategoricalFamily:
    """Learn a logistic or multinomial model, and what redrawn outcomes make of it.

    Parameters
    ----------
    job : Job
        With a column "label" of codes; rows without one are not learned from. ``settings.alpha=None``: of
        20 penalties that whose models of the folds have the smallest held-out deviance; replicates keep it.

    Raises
    ------
    DataError
        If a class has no rows; a logistic model is given more than two; labels are separated and alpha is 0;
        the generator is none of a categorical model's; there are more than 10 000 parameters.
    """
    learning = Learning(job, job.rows.categories("label"), walk_of(job))
    with blas.one_thread():  # tiles are small
        for make in learning.stages().values():
            make()
    return learning.family()


@dataclass
class Learning:
    """The stages, each of which is made once and needs those before it."""

    job: Job
    classes: np.ndarray
    walk: Walk

    def stages(self) -> Stages:
        """Name of each stage, and what makes it."""
        names = ("counted", "chosen", "held_out", "generator", "replicates", "judged")
        return {name: partial(getattr, self, name) for name in names}

    @property
    def buckets(self) -> Buckets | None:
        """Folds."""
        return self.job.buckets

    @cached_property
    def counted(self) -> Counted:
        """Sums of the source."""
        _check_classes(self.job.settings.model, self.classes)
        found = self.walk.step(lambda: counted(needed(self.job.rows), self.buckets, len(self.classes)))
        empty = self.classes[found.n.sum(axis=0) == 0]
        if empty.size:
            raise DataError(
                f"label {empty.tolist()[0]!r} has no row of finite values: leave the label out, or mend them"
            )
        d = found.frame.q * (1 if len(self.classes) == 2 else len(self.classes))
        if d > MOST_PARAMETERS:
            raise DataError(
                f"{d} parameters (features and an intercept, by class) are more than {MOST_PARAMETERS}: "
                "choose features, as SparseAUC does, or project them"
            )
        return found

    @cached_property
    def setting(self) -> Setting:
        """What all fits have in common."""
        return Setting(self.counted, self.job.settings, self.classes, self.buckets is not None)

    @cached_property
    def source(self) -> Source:
        """The rows in units of z, kept where they fit into memory."""
        frame = self.counted.frame
        kept = passes.keep(
            needed(self.job.rows), prepared, row_bytes=8 * (frame.q + 3), frame=frame, buckets=self.buckets
        )
        return Source(kept, self.setting.m, frame.q, self.walk)

    @cached_property
    def held_out(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean held-out loss of the chosen penalty, and its standard error over folds."""
        if self.buckets is None:
            return np.array(np.nan), np.array(np.nan)
        loss, _, n = held_out(
            self.source, self.chosen.of_folds[:, None], self.job.settings.loss, self.classes
        )
        known = n > 0
        by_fold = loss[known, 0] / n[known]
        spread = by_fold.std(ddof=1) / np.sqrt(len(by_fold)) if len(by_fold) > 1 else np.nan
        return loss.sum() / n.sum(), np.asarray(spread)

    @cached_property
    def chosen(self) -> Chosen:
        """The model of all rows and of each fold."""
        path = alphas(self.setting)
        models, folds = fitted_path(self.source, self.setting, path)
        best = 0
        if len(path) > 1:
            deviance = held_out(self.source, folds, "deviance", self.classes)[1]
            best = int(deviance.sum(axis=0).argmin())
        return Chosen(float(path[best]), models.theta[best], folds[:, best])

    @cached_property
    def generator(self) -> Generator:
        """What outcomes are drawn from."""
        return generator_of(self.source, self.setting, self.chosen)

    @cached_property
    def replicates(self) -> Replicates:
        """Refits to labels that were drawn."""
        settings = self.job.settings
        told = self.counted.frame, self.generator.theta, settings.seed, settings.n_bootstrap
        sums = self.walk.step(lambda: label_sums(self.job.rows, *told))
        return refitted(self.source, self.setting, self.chosen.theta, self.chosen.alpha, sums)

    @cached_property
    def judged(self) -> InSample:
        """Errors at the source's covariates."""
        models = self.family_models
        return self.walk.step(lambda: judged(self.job.rows, models))

    @property
    def family_models(self) -> Models:
        """What is judged."""
        theta = np.ascontiguousarray(np.moveaxis(self.replicates.theta, 0, -1))
        settings = self.job.settings
        return Models(
            self.counted.frame,
            theta,
            self.generator.theta,
            self.chosen.theta,
            settings.loss,
            self.classes,
            settings.seed,
        )

    def family(self) -> CategoricalFamily:
        """All stages together."""
        settings, frame, refits = self.job.settings, self.counted.frame, self.replicates
        return CategoricalFamily(
            model=settings.model,
            penalty=settings.penalty,
            loss=settings.loss,
            methods=settings.methods,
            level=settings.level,
            seed=settings.seed,
            classes=self.classes,
            alpha=self.chosen.alpha,
            centre=frame.centre,
            factor=frame.factor,
            theta=self.chosen.theta,
            generator_theta=self.generator.theta,
            of_folds=self.chosen.of_folds,
            replicates=refits.theta,
            generator=self.generator.name,
            blend=self.generator.blend,
            n=int(self.counted.n.sum()),
            n_invalid=self.counted.n_invalid,
            apparent=self.judged.apparent,
            apparent_spread=self.judged.apparent_spread,
            optimism=self.judged.optimism,
            in_replicates=self.judged.in_b,
            in_drawn=self.judged.drawn,
            cv_error=float(self.held_out[0]),
            cv_error_se=float(self.held_out[1]),
            n_lost=int(refits.lost.sum()),
            n_separated=int((~refits.converged).sum()),
        )


def _check_classes(model: str, classes: np.ndarray) -> None:
    if len(classes) < 2:
        raise DataError(
            f"labels are of {len(classes)} class(es): a {model} model needs 2 at least; add rows of another"
        )
    if model == "logistic" and len(classes) != 2:
        raise DataError(f"labels are of {len(classes)} classes: give model='multinomial', or two of them")
