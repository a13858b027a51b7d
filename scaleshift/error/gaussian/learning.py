"""What does a linear model's source tell of its error anywhere?  One pass, then all from sums."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from scaleshift.blocks.blas import one_thread
from scaleshift.error.family import Job, Settings
from scaleshift.error.gaussian import replicates
from scaleshift.error.gaussian.choosing import (
    PenaltyCurve,
    choose_alpha,
    fold_models,
    held_out_errors,
    mean_and_error,
)
from scaleshift.error.gaussian.closed import ClosedForm, closed_form, none
from scaleshift.error.gaussian.clusters import Clusters, NoiseVariance, clusters, noise_of
from scaleshift.error.gaussian.design import Design, design_of
from scaleshift.error.gaussian.family import GaussianFamily
from scaleshift.error.gaussian.generators import (
    GENERATORS,
    Fits,
    Generated,
    fits,
    residual_squares,
)
from scaleshift.error.gaussian.nested import N_OUTER, OuterReplicates
from scaleshift.error.gaussian.procedures import PROCEDURES, Procedure
from scaleshift.error.gaussian.spread import RefitSpread, exact_spread, spread_of
from scaleshift.error.gaussian.sums import Outcomes, SourceSums, source_sums
from scaleshift.error.walking import walk_of
from scaleshift.errors import DataError
from scaleshift.spelling import meant


@dataclass(frozen=True)
class Learner:
    """The whole procedure of the user, as it is rerun on replicates."""

    design: Design
    procedure: Procedure
    generator: str
    chosen: bool  # whether the penalty is chosen by cross-validation
    alpha: float

    def penalties(self, outcomes: Outcomes) -> tuple[np.ndarray, PenaltyCurve | None]:
        """A penalty for each outcome."""
        if self.chosen:
            return choose_alpha(self.design, self.procedure, outcomes)
        return np.full(outcomes.size, self.alpha), None

    def generated(self, outcomes: Outcomes, found: Fits) -> Generated:
        """The generator of each outcome."""
        return GENERATORS[self.generator](self.design, self.procedure, outcomes, found)

    def exact_spread(
        self, source: SourceSums, groups: Clusters | None, generated: Generated, noise: NoiseVariance
    ) -> RefitSpread | None:
        """The spread of refits that are linear in outcomes; None of others, and where noise was given."""
        operator = None if self.chosen else self.procedure.operator(self.design.whole, self.alpha)
        if operator is None or source.train is not None:
            return None
        between = None if groups is None else groups.between.sum(axis=0)
        return exact_spread(operator, self.design.total, between, generated.mean[:, 0], noise)


def learn(job: Job) -> GaussianFamily:
    """Learn a linear model, and what its refits to other outcomes would be.

    Parameters
    ----------
    job : Job
        With ``settings.model`` in `PROCEDURES` and the loss "squared". Without folds (``buckets=None``) the
        penalty must be given. `Settings.tol`, `refit` and `penalty` have no meaning here.

    Returns
    -------
    GaussianFamily

    Raises
    ------
    DataError
        If rows are too few, outcomes all the same, numbers too large, the penalty negative or not to be
        chosen, or if the generator has no room.

    Examples
    --------
    >>> import numpy as np
    >>> from scaleshift.blocks.rows import as_rows, with_numbers
    >>> settings = Settings(
    ...     "ols", "squared", ("direct",), "auto", None, "l2", 200, 0.95, None, "cold", scale=False, seed=0
    ... )
    >>> x = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> source = with_numbers(as_rows(x), outcome=np.array([0.0, 2.0, 1.0, 3.0]))
    >>> family = learn(Job(source, None, settings))
    >>> sums = family.target_sums({"far": as_rows(x + 10)}, noise=False)["far"]
    >>> round(family.answers(sums)["direct"].error, 6)
    19.35
    """
    settings = job.settings
    _check(settings, job)
    walk = walk_of(job)
    source = walk.step(lambda: source_sums(job.rows, job.buckets, job.given_noise))
    groups = walk.step(lambda: clusters(job.rows, job.buckets, source)) if job.grouped else None
    with one_thread():
        return _learned(settings, source, groups)


def _check(settings: Settings, job: Job) -> None:
    """Refuse settings that nothing follows from."""
    if settings.loss != "squared":
        raise DataError(f"loss={settings.loss!r}: a linear model of numbers has the loss 'squared'")
    if settings.generator not in GENERATORS:
        hint = meant(settings.generator, GENERATORS)
        raise DataError(f"generator={settings.generator!r}: expected one of {', '.join(GENERATORS)}{hint}")
    alpha = settings.alpha
    if alpha is not None and not 0 <= alpha < np.inf:
        raise DataError(
            f"alpha={alpha!r}: expected a number from 0, or None to choose it by cross-validation"
        )
    if settings.n_bootstrap < 2 and PROCEDURES[settings.model].penalised:
        raise DataError(f"n_bootstrap={settings.n_bootstrap}: {settings.model!r} needs 2 replicates at least")
    if alpha is None and PROCEDURES[settings.model].penalised and job.buckets is None:
        raise DataError(f"alpha=None of {settings.model!r} is chosen by cross-validation: give alpha, or cv")


def _learned(settings: Settings, source: SourceSums, groups: Clusters | None) -> GaussianFamily:
    """All that follows from sums."""
    learner = _learner(settings, source)
    design, procedure = learner.design, learner.procedure
    alpha, curve = learner.penalties(source.outcomes)
    if not settings.rechoose:
        learner = replace(learner, chosen=False, alpha=float(alpha[0]))
    fit = fits(design, procedure, source.outcomes, alpha)
    generated = learner.generated(source.outcomes, fit)
    noise, err_in = _noise(learner, source, groups, fit, generated)
    spread, outer = _spread(learner, settings, source, groups, fit, generated, noise, err_in)
    fold_theta, cv_error, cv_error_se = _cross_validated(learner, source, fit)
    return GaussianFamily(
        model=settings.model,
        methods=tuple(settings.methods),
        generator_name=settings.generator,
        level=settings.level,
        seed=settings.seed,
        grouped=groups is not None,
        n=source.n,
        n_folds=len(design.folds) if design.training else 0,
        n_invalid=source.n_invalid,
        centre=source.centre,
        middle=source.middle,
        theta=fit.theta[:, 0],
        fold_theta=fold_theta,
        generator=generated.mean[:, 0],
        share=float(generated.share[0]),
        alpha=float(alpha[0]),
        curve=curve,
        freedom=float(fit.freedom[0]),
        rss=float(fit.rss[0]),
        noise=noise,
        err_in=err_in,
        gram=design.total,
        part=design.whole,
        spread=spread,
        closed=_closed(learner, source, groups, fit, noise),
        outer=outer,
        cv_error=cv_error,
        cv_error_se=cv_error_se,
    )


def _learner(settings: Settings, source: SourceSums) -> Learner:
    """The procedure of the settings, on the source's features."""
    design = design_of(source.gram, settings.scale, source.centre)
    procedure = PROCEDURES[settings.model]
    chosen = settings.alpha is None and procedure.penalised
    if chosen and not design.training:
        raise DataError("all rows with an outcome are in one fold: give alpha, or another cv")
    alpha = float(settings.alpha or 0) if procedure.penalised else 0.0
    return Learner(design, procedure, settings.generator, chosen, alpha)


def _closed(
    learner: Learner, source: SourceSums, groups: Clusters | None, fit: Fits, noise: NoiseVariance
) -> ClosedForm:
    """The error without replicates. With groups that of least squares stays unbiased, but has no interval."""
    design, procedure = learner.design, learner.procedure
    if groups is None:
        return closed_form(design, procedure, source.outcomes, fit)
    if procedure.penalised:
        return none(len(fit.theta), "closed forms are of independent rows, and there are groups")
    operator = PROCEDURES["ols"].hat(design.whole, fit.theta[:, 0], 0.0)
    between = groups.between.sum(axis=0)
    matrix = exact_spread(operator, design.total, between, fit.theta[:, 0], noise).matrix
    return ClosedForm(noise.total, matrix, 0.0, "")


def _noise(
    learner: Learner, source: SourceSums, groups: Clusters | None, fit: Fits, generated: Generated
) -> tuple[NoiseVariance, float]:
    """Variance of noise about the generator, and the in-sample error by degrees of freedom."""
    n, s2, rss = source.n, float(generated.variance[0]), float(fit.rss[0])
    alone = NoiseVariance(s2, 0.0)
    if groups is None or not np.isfinite(s2):
        return alone, rss / n + 2 * float(fit.freedom[0]) * s2 / n
    part, gram, alpha = learner.design.whole, learner.design.total, float(fit.alpha[0])
    hat = learner.procedure.hat(part, fit.theta[:, 0], alpha)
    told, residual = fit.theta[:, 0], rss
    by = hat
    if learner.generator == "ols":  # whose variance is that of its own residuals
        by = PROCEDURES["ols"].hat(part, told, 0.0)
        told = by @ source.outcomes.cross.sum(axis=0)[:, 0]
        residual = float(residual_squares(learner.design, source.outcomes, told[:, None])[0])
    noise = noise_of(groups, by, gram, told, residual, s2)
    shared = np.vdot(hat, groups.between.sum(axis=0))
    return noise, rss / n + 2 * (noise.own * float(fit.freedom[0]) + noise.shared * float(shared)) / n


def _spread(
    learner: Learner,
    settings: Settings,
    source: SourceSums,
    groups: Clusters | None,
    fit: Fits,
    generated: Generated,
    noise: NoiseVariance,
    err_in: float,
) -> tuple[RefitSpread, OuterReplicates | None]:
    """How refits scatter about the generator; and the estimator on the first of the replicates."""
    design, procedure = learner.design, learner.procedure
    mean, exact = generated.mean[:, 0], learner.exact_spread(source, groups, generated, noise)
    needs_outer = groups is None and procedure.penalised
    if not np.isfinite(noise.total):
        return RefitSpread.unknown(len(mean)), None
    if exact is not None and not needs_outer:
        return exact, None
    if source.train is not None:
        outcomes = replicates.given(design, mean, noise.total, source.train)
    else:
        b = settings.n_bootstrap if exact is None else min(N_OUTER, settings.n_bootstrap)
        outcomes = replicates.drawn(design, mean, noise, groups, settings.seed, b)
    alpha, _ = learner.penalties(outcomes)
    refits = fits(design, procedure, outcomes, alpha, fit.theta[:, 0])
    spread = exact or spread_of(refits.theta, mean, noise, design.total, source.train, source.fresh)
    if not needs_outer:
        return spread, None
    return spread, _outer(learner, source, outcomes, refits, fit, generated, err_in)


def _outer(
    learner: Learner,
    source: SourceSums,
    outcomes: Outcomes,
    refits: Fits,
    fit: Fits,
    generated: Generated,
    err_in: float,
) -> OuterReplicates:
    """The whole estimator on the first replicates."""
    o, n = slice(0, N_OUTER), source.n
    first = outcomes[o]
    found = Fits(refits.theta[:, o], refits.alpha[o], refits.freedom[o], refits.rss[o])
    own = learner.generated(first, found)
    usable = np.isfinite(own.variance)
    in_sample = found.rss / n + 2 * found.freedom * own.variance / n
    return OuterReplicates(
        np.concatenate([fit.theta, found.theta[:, usable]], axis=1),
        np.concatenate([generated.mean, own.mean[:, usable]], axis=1),
        np.concatenate([generated.variance, own.variance[usable]]),
        np.concatenate([fit.alpha, found.alpha[usable]]),
        np.concatenate([[err_in], in_sample[usable]]),
    )


def _cross_validated(learner: Learner, source: SourceSums, fit: Fits) -> tuple[np.ndarray, float, float]:
    """Models of the folds, (K, q), that of all rows where a fold is empty; their error and its own."""
    design, k = learner.design, len(source.gram)
    if not design.training:
        return np.zeros((0, len(fit.theta))), np.nan, np.nan
    models = fold_models(design, learner.procedure, source.outcomes, fit.alpha, fit.theta[:, 0])
    errors = held_out_errors(design, source.outcomes, models)[:, 0]
    mean, se = mean_and_error(errors, design.n_by_fold[design.folds])
    by_fold = np.tile(fit.theta[:, 0], (k, 1))
    by_fold[design.folds] = models[..., 0]
    return by_fold, float(mean), float(se)
