"""From what passes have summed to the rankings of every contrast: choose, learn, judge.

A contrast is one question: these labels against those. All contrasts share the passes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from scaleshift.auc import probability
from scaleshift.auc.evidence import Evidence
from scaleshift.auc.held_out import Rankings, Scored, bin_scores
from scaleshift.auc.judging import Judged
from scaleshift.auc.moments import Contrast
from scaleshift.auc.ranking import auc_binormal, objective, products, sparse_path
from scaleshift.auc.selection import HeldOut, Options, best, cross_validated
from scaleshift.auc.stability import stability

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
    halves: list[list[int]]  # buckets of the parts that stability is told from


@dataclass(frozen=True)
class Chosen:
    """A path of rankings at the shrinkage that was chosen."""

    sign: np.ndarray  # (n_classes,) int8
    found: Contrast  # of all rows, of the candidates
    held: HeldOut | None
    alpha: int  # places among the options
    size: int
    path: np.ndarray  # (n_sizes, p) of the candidates


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
    weight: np.ndarray = field(default_factory=lambda: np.full(2, np.nan))  # of negatives, of positives


def choose(evidence: Evidence, sign: np.ndarray, task: Task) -> Chosen:
    """Size and shrinkage by cross-validation, and the path of all rows."""
    options = task.options
    found = evidence.contrast(sign)
    held, alpha = None, 0
    size = len(options.sizes) - 1 if task.only is None else task.only
    if task.folds:
        held = cross_validated(evidence, sign, task.folds, options)
        alpha, size = best(held, task.rule, only=task.only)
    path = sparse_path(
        found,
        options.sizes,
        alpha=options.alphas[alpha],
        scale=options.scale,
        positive=options.positive,
        among=evidence.among(sign),
    )
    return Chosen(sign, found, held, alpha, size, path)


def rankings_of_folds(chosen: Chosen, candidates: np.ndarray, task: Task) -> Rankings:
    """Each fold's path, and what would have been chosen without its held-out rows: to score these."""
    held = chosen.held
    assert held is not None
    own = []
    for fold in range(len(held.gap)):
        alpha, size = best(held, task.rule, only=task.only, left_out=fold)
        own.append(held.weights[fold, alpha, size])
    weights = np.concatenate([held.weights[:, chosen.alpha], np.stack(own)[:, None]], axis=1)
    used = np.flatnonzero((weights != 0).any(axis=(0, 1)))
    centre = chosen.found.mean.mean(axis=0)
    return Rankings(chosen.sign, candidates[used], weights[:, :, used], weights @ centre)


def learned(
    evidence: Evidence, signs: list[np.ndarray], task: Task, n_features: int, judge: Judge | None
) -> tuple[list[LearnedRanking], Judged | None]:
    """Rankings of all contrasts, judged on rows where there are some to ask."""
    every = [choose(evidence, sign, task) for sign in signs]
    judged = None
    if judge is not None:
        folds = [rankings_of_folds(chosen, evidence.candidates, task) for chosen in every if chosen.held]
        final = np.zeros((len(every), n_features))
        final[:, evidence.candidates] = np.stack([chosen.path[chosen.size] for chosen in every])
        judged = judge(folds, final)
    scored = judged.scored if judged is not None and judged.scored else [None] * len(every)
    return [
        _told(evidence, chosen, one, task, n_features) for chosen, one in zip(every, scored, strict=True)
    ], judged


def _told(
    evidence: Evidence, chosen: Chosen, scored: Scored | None, task: Task, n_features: int
) -> LearnedRanking:
    """All that is known of a ranking."""
    found, options = chosen.found, task.options
    sizes, alpha = np.array(options.sizes), options.alphas[chosen.alpha]
    coef = chosen.path[chosen.size]
    _, spread = products(found, coef)
    unit = float(np.sqrt(spread)) if spread > 0 else 1.0
    curve = _curve(chosen, scored, coef / unit)
    middle = float(coef @ found.mean.mean(axis=0))
    slope = curve.slope / unit
    auc, error, bound = _by_fold(scored, len(sizes) + 1)
    shares = stability(
        evidence,
        chosen.sign,
        task.halves,
        options.sizes[chosen.size],
        alpha,
        scale=options.scale,
        positive=options.positive,
    )

    def spread_out(values: np.ndarray, fill: float = 0.0) -> np.ndarray:
        whole = np.full((*values.shape[:-1], n_features), fill)
        whole[..., evidence.candidates] = values
        return whole

    return LearnedRanking(
        coef=spread_out(coef),
        slope=slope,
        intercept=curve.intercept / slope - middle,
        alpha=alpha,
        sizes=sizes,
        size=chosen.size,
        path=spread_out(chosen.path),
        objective=objective(found, chosen.path),
        auc_binormal=auc_binormal(found, chosen.path),
        auc=auc[:-1],
        auc_se=error[:-1],
        auc_bound=bound[:-1],
        cv_auc=float(auc[-1]),
        cv_auc_se=float(error[-1]),
        stability=spread_out(shares, 0.0 if task.halves else np.nan),
        mean=spread_out(found.mean, np.nan),
        deviation=spread_out(np.sqrt(found.variance), np.nan),
        weight=found.weight,
    )


def _curve(chosen: Chosen, scored: Scored | None, coef: np.ndarray) -> probability.Curve:
    """Probabilities: from held-out scores where there are some, else from moments."""
    if scored is not None:
        counts = scored.pooled(chosen.size)
        if (counts.sum(axis=1) > 0).all():
            return probability.platt(bin_scores(), counts)
    return probability.binormal(chosen.found, coef)


def _by_fold(scored: Scored | None, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean over folds of the held-out AUC of m rankings, its standard error, and the bound."""
    if scored is None:
        nothing = np.full(m, np.nan)
        return nothing, nothing, nothing
    auc, bound = scored.auc()
    known = np.isfinite(auc[:, 0])
    if not known.any():
        return np.full(m, np.nan), np.full(m, np.nan), np.full(m, np.nan)
    auc, n = auc[known], int(known.sum())
    error = auc.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full(m, np.nan)
    return auc.mean(axis=0), error, bound[known].mean(axis=0)
