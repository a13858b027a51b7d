"""From what passes have summed to the rankings of every contrast: choose, learn, judge.

A contrast is one question: these labels against those. All contrasts share the passes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from scaleshift.auc import probability
from scaleshift.auc.evidence import Evidence
from scaleshift.auc.held_out import Rankings, Scored, bin_scores
from scaleshift.auc.judging import Judged
from scaleshift.auc.moments import Contrast
from scaleshift.auc.ranking import binormal_auc, scales
from scaleshift.auc.selection import HeldOut, Options, best, cross_validated, nested
from scaleshift.auc.stability import stability
from scaleshift.blocks import blas
from scaleshift.errors import DataError

Judge = Callable[
    [list[Rankings], np.ndarray], Judged
]  # rankings of the folds, and (n_contrasts, d) final ones


@dataclass(frozen=True)
class Task:
    """What is asked of every contrast."""

    options: Options
    rule: str  # how size and shrinkage are chosen: "best", "one_se"
    only: int | None  # place of the size that is given
    folds: list[list[int]]  # buckets that each fold leaves out; none without cross-validation
    again: list[list[int]]  # buckets that further folds leave out, which choose alone
    halves: list[list[int]]  # buckets of the parts that stability is told from


@dataclass(frozen=True)
class Chosen:
    """A path of rankings at the shrinkage that was chosen."""

    sign: np.ndarray  # (n_classes,) int8
    found: Contrast  # of all rows, of the candidates: variances alone, or many contrasts would weigh much
    held: HeldOut | None
    alpha: int  # places among the options
    size: int
    path: np.ndarray  # (n_sizes, p) of the candidates
    of_folds: list[tuple[int, int]]  # shrinkage and size that are chosen without each fold's rows
    scores: ScoreMoments  # of the path's rankings


@dataclass(frozen=True)
class LearnedRanking:
    """A sparse ranking, its path, and what is known of it."""

    coef: np.ndarray  # (d,) in units of X
    slope: float  # log odds of a positive are slope * (score + intercept)
    intercept: float
    alpha: float
    sizes: np.ndarray  # (n_sizes,) numbers of features
    size: int  # place of the one that was chosen
    path: np.ndarray  # (n_sizes, d)
    objective: np.ndarray  # (n_sizes,) F of all pairs of rows
    auc_binormal: np.ndarray  # (n_sizes,) of the training rows
    auc: np.ndarray  # (n_sizes,) mean over folds of the held-out AUC; NaN without folds
    auc_se: np.ndarray  # (n_sizes,)
    auc_bound: np.ndarray  # (n_sizes,) at most so far from the exact one
    cv_auc: float  # held-out AUC of what each fold would have chosen without its own rows' say
    cv_auc_se: float
    stability: np.ndarray  # (d,) share of halves that choose the feature, NaN without
    mean: np.ndarray  # (2, d) of negatives, of positives; NaN of features without moments
    deviation: np.ndarray  # (d,) standard deviation within the classes
    alone: np.ndarray  # (d,) AUC of each feature by itself: see `_auc_alone`
    weight: np.ndarray  # (2,) of negatives, of positives


def choose(evidence: Evidence, sign: np.ndarray, task: Task) -> Chosen:
    """Size and shrinkage by cross-validation, and the path of all rows."""
    options = task.options
    found = evidence.contrast(sign)
    if not found.count.all():
        side = "positives" if found.count[0] else "negatives"
        raise DataError(
            f"no {side} are left: all their rows hold NaN or infinite values; mend them, or leave the label "
            "out"
        )
    held, alpha, of_folds = None, 0, []
    size = len(options.sizes) - 1 if task.only is None else task.only
    if task.folds:
        held = cross_validated(evidence, sign, [*task.folds, *task.again], options)
        alpha, size = best(held, task.rule, only=task.only)
        if _chooses(task):
            inner = nested(evidence, sign, task.folds, options)
            of_folds = [best(one, task.rule, only=task.only) for one in inner]
        else:
            of_folds = [best(held, task.rule, only=task.only, left_out=out) for out in task.folds]
    path = options.path(found, options.alphas[alpha], evidence.among(sign))
    scores = ScoreMoments(found.weight, *_of_scores(found, path))
    variances = found if found.covariance.ndim == 2 else replace(found, covariance=found.variances)
    return Chosen(sign, variances, held, alpha, size, path, of_folds, scores)


def _chooses(task: Task) -> bool:
    """Whether there is more than one size or shrinkage in question, and a fold to learn from beside two."""
    in_question = len(task.options.alphas) * (len(task.options.sizes) if task.only is None else 1)
    return in_question > 1 and len(task.folds) > 2


def rankings_of_folds(chosen: Chosen, candidates: np.ndarray, task: Task) -> Rankings:
    """What held-out rows are scored by.

    Each fold's path, then what would have been chosen without the fold's rows, then each feature of the final
    ranking by itself: (n_folds, n_sizes + 1 + k, p).
    """
    assert chosen.held is not None
    found = chosen.held.weights
    assert found is not None
    alone = _alone(chosen)
    own = [found[fold, alpha, size] for fold, (alpha, size) in enumerate(chosen.of_folds)]
    path = found[: len(own), chosen.alpha]
    weights = np.concatenate([path, np.stack(own)[:, None], np.stack([alone] * len(own))], axis=1)
    used = np.flatnonzero((weights != 0).any(axis=(0, 1)))
    centre = chosen.found.mean.mean(axis=0)
    return Rankings(chosen.sign, candidates[used], weights[:, :, used], weights @ centre)


def _alone(chosen: Chosen) -> np.ndarray:
    """Each feature of the final ranking by itself, in units of its spread: (k, p)."""
    support = np.flatnonzero(chosen.path[chosen.size])
    alone = np.zeros((len(support), chosen.path.shape[1]))
    alone[np.arange(len(support)), support] = 1 / scales(chosen.found)[support]
    return alone


def learned(
    evidence: Evidence, signs: list[np.ndarray], task: Task, n_features: int, judge: Judge | None
) -> tuple[list[LearnedRanking], Judged | None]:
    """Rankings of all contrasts, judged on rows where there are some to ask."""
    with blas.one_thread():  # many small products
        every = [choose(evidence, sign, task) for sign in signs]
    judged = None
    if judge is not None:
        folds = [rankings_of_folds(chosen, evidence.candidates, task) for chosen in every if chosen.held]
        final = np.zeros((len(every), n_features))
        final[:, evidence.candidates] = np.stack([chosen.path[chosen.size] for chosen in every])
        judged = judge(folds, final)
    scored = judged.scored if judged is not None and judged.scored else [None] * len(every)
    with blas.one_thread():
        told = [_told(evidence, *pair, task, n_features) for pair in zip(every, scored, strict=True)]
    return told, judged


def _told(
    evidence: Evidence, chosen: Chosen, scored: Scored | None, task: Task, n_features: int
) -> LearnedRanking:
    """All that is known of a ranking."""
    options, alpha = task.options, task.options.alphas[chosen.alpha]
    size = options.sizes[chosen.size]
    shares = stability(evidence, chosen.sign, task.halves, options, size, alpha)

    def spread_out(values: np.ndarray, fill: float = 0.0) -> np.ndarray:
        whole = np.full((*values.shape[:-1], n_features), fill)
        whole[..., evidence.candidates] = values
        return whole

    found = chosen.found
    path = chosen.path
    return assembled(
        Path(spread_out(path), np.array(options.sizes), chosen.size, alpha),
        chosen.scores,
        scored,
        stability=spread_out(shares, 0.0 if task.halves else np.nan),
        mean=spread_out(found.mean, np.nan),
        deviation=spread_out(scales(found), np.nan),
        alone=spread_out(_auc_alone(chosen, scored), np.nan),
    )


def _auc_alone(chosen: Chosen, scored: Scored | None) -> np.ndarray:
    """AUC of each feature, (p,): counted of those of the ranking, of others as if it were normal."""
    found, unit = chosen.found, scales(chosen.found)
    with np.errstate(invalid="ignore"):
        alone = binormal_auc(found.delta, unit**2)
    if scored is not None:
        support = np.flatnonzero(chosen.path[chosen.size])
        alone[support] = scored.pooled_auc()[scored.counts.shape[1] - len(support) :]
    return alone


def _of_scores(found: Contrast, path: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances of the scores of rankings: (2, n_sizes) each."""
    covariance = found.covariance
    if covariance.ndim == 2:
        return found.mean @ path.T, covariance @ (path**2).T
    return found.mean @ path.T, np.einsum("kp,cpq,kq->ck", path, covariance, path, optimize=True)


@dataclass(frozen=True)
class Path:
    """Rankings by number of features, and which of them was chosen."""

    weights: np.ndarray  # (n_sizes, d)
    sizes: np.ndarray  # (n_sizes,)
    size: int  # place
    alpha: float


@dataclass(frozen=True)
class ScoreMoments:
    """Of the scores of a path's rankings, of negatives and positives."""

    weight: np.ndarray  # (2,)
    mean: np.ndarray  # (2, n_sizes)
    variance: np.ndarray  # (2, n_sizes)


def assembled(
    path: Path,
    scores: ScoreMoments,
    scored: Scored | None,
    *,
    stability: np.ndarray,
    mean: np.ndarray,
    deviation: np.ndarray,
    alone: np.ndarray,
) -> LearnedRanking:
    """A ranking with its probabilities and AUCs, from the moments of its scores and held-out ones."""
    gap, spread = scores.mean[1] - scores.mean[0], scores.variance.sum(axis=0)
    size = path.size
    unit = float(np.sqrt(spread[size])) if spread[size] > 0 else 1.0
    curve = None if scored is None else _platt(scored, size)
    if curve is None:
        curve = probability.binormal(gap[size] / unit, scores.variance[:, size] / unit**2, scores.weight)
    auc, error, bound = _by_fold(scored, len(path.sizes) + 1)
    slope = curve.slope / unit
    return LearnedRanking(
        coef=path.weights[size],
        slope=slope,
        intercept=curve.intercept / slope - float(scores.mean[:, size].mean()),
        alpha=path.alpha,
        sizes=path.sizes,
        size=size,
        path=path.weights,
        objective=(1 - gap) ** 2 + spread,
        auc_binormal=binormal_auc(gap, spread),
        auc=auc[:-1],
        auc_se=error[:-1],
        auc_bound=bound[:-1],
        cv_auc=float(auc[-1]),
        cv_auc_se=float(error[-1]),
        stability=stability,
        mean=mean,
        deviation=deviation,
        alone=alone,
        weight=scores.weight,
    )


def _platt(scored: Scored, size: int) -> probability.Curve | None:
    """Probabilities from held-out scores, where both classes have some."""
    counts = scored.pooled(size)
    return probability.platt(bin_scores(counts.shape[1]), counts) if (counts.sum(axis=1) > 0).all() else None


def _by_fold(scored: Scored | None, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean over folds of the held-out AUC of m rankings, its standard error, and the bound.

    The error is that which the folds show, or that of their numbers of rows where it is larger: of a few
    folds the first is itself uncertain.
    """
    nothing = np.full(m, np.nan)
    if scored is None:
        return nothing, nothing, nothing
    auc, bound = scored.auc()
    known = np.isfinite(auc[:, 0])
    if not known.any():
        return nothing, nothing, nothing
    auc, bound, n = auc[known, :m], bound[known, :m], int(known.sum())
    by_rows = np.sqrt(scored.variance()[known, :m].sum(axis=0)) / n
    error = np.maximum(auc.std(axis=0, ddof=1) / np.sqrt(n), by_rows) if n > 1 else by_rows
    return auc.mean(axis=0), error, bound.mean(axis=0)
