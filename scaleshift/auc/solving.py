"""How does each solver come to its rankings?  Which passes it takes, and what it makes of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from scaleshift.auc.contrasts import Contrasts
from scaleshift.auc.evidence import Evidence
from scaleshift.auc.fitting import LearnedRanking, Task, learned
from scaleshift.auc.held_out import Rankings
from scaleshift.auc.judging import Final, Judged, judge, overlooked
from scaleshift.auc.moments import ClassMoments, class_moments, usable
from scaleshift.auc.screening import class_spread, screened_by_any
from scaleshift.blocks.block import Rows
from scaleshift.blocks.buckets import Buckets
from scaleshift.checkpoint import fingerprint


def _made(name: str, make: Callable[[], Any]) -> Any:
    """What is finished, without a folder that keeps it."""
    return make()


@dataclass(frozen=True)
class Job:
    """A fit: its rows, and what is asked of them."""

    rows: Rows  # with "label", "weight" where they are `weighted`, and "group" where these are held together
    weighted: bool
    contrasts: Contrasts
    buckets: Buckets | None  # parts of the rows
    task: Task
    n_screened: int
    seed: int
    steps: Mapping[str, Any]  # what "sht" is told beside
    checkpoint: str | os.PathLike[str] | None = None
    kept: Callable[[str, Callable[[], Any]], Any] = _made  # sums of a pass, a descent: by its name

    @property
    def n_folds(self) -> int:
        """Of the cross-validation; 0 without."""
        return len(self.task.folds)

    @property
    def fewest(self) -> int:
        """Rows of each side of a contrast."""
        return 2 if self.n_folds else 1

    def judge(self, rankings: list[Rankings], final: np.ndarray | None) -> Judged:
        """Ask all rows: one pass. With final rankings, (n_contrasts, d), for overlooked features too."""
        asked = None if final is None else Final(final, np.stack(self.contrasts.sign))
        return judge(self.rows, self.buckets, self.n_folds, rankings, asked, weighted=self.weighted)


@dataclass(frozen=True)
class Solved:
    """Rankings of all contrasts, and what their solver found beside."""

    learned: list[LearnedRanking]
    n_rows: int  # labelled ones that are finite
    moments: ClassMoments | None = None  # of all features, where they can be merged with others
    remarks: Mapping[str, Any] | None = None  # fitted attributes


def moments(job: Job) -> Solved:
    """One pass for covariances of all features, one over held-out rows."""
    found = job.kept("moments", lambda: class_moments(job.rows, job.buckets, weighted=job.weighted))
    usable(found, job.contrasts.sign, job.fewest)
    return from_moments(found, job.contrasts, job.task, job.rows.n_markers, _judge(job))


def from_moments(
    found: ClassMoments,
    asked: Contrasts,
    task: Task,
    n_features: int,
    judge: Callable[[list[Rankings], np.ndarray], Judged] | None,
) -> Solved:
    """The same, of sums that are there already."""
    evidence = Evidence(found, np.arange(n_features))
    rankings, _ = learned(evidence, asked.sign, task, n_features, judge)
    return Solved(rankings, _n_rows(found), found)


def screen(job: Job) -> Solved:
    """One pass for variances of all features, one over held-out rows: features count as independent."""
    spread = job.kept("spread", lambda: class_spread(job.rows, job.buckets, weighted=job.weighted))
    usable(spread, job.contrasts.sign, job.fewest)
    evidence = Evidence(spread, np.arange(job.rows.n_markers))
    task = replace(job.task, options=replace(job.task.options, alphas=(0.0,)))
    rankings, _ = learned(evidence, job.contrasts.sign, task, job.rows.n_markers, _judge(job))
    return Solved(rankings, _n_rows(spread))


def stream(job: Job) -> Solved:
    """One pass for variances of all features, one for covariances of candidates, one over all rows.

    The last asks held-out rows, and whether a feature was overlooked: if one was, the last two are done
    again, once, with such features among the candidates.
    """
    d, signs = job.rows.n_markers, job.contrasts.sign
    how = {"scale": job.task.options.scale, "positive": job.task.options.positive}
    every = list(range(job.buckets.n if job.buckets else 1))
    inside = [[bucket for bucket in every if bucket not in out] for out in (*job.task.folds, *job.task.again)]
    parts = [every, *inside]  # halves, which only tell of stability, choose among these candidates
    spread = job.kept("spread", lambda: class_spread(job.rows, job.buckets, weighted=job.weighted))
    usable(spread, job.contrasts.sign, job.fewest)
    candidates, n_each = screened_by_any(spread, signs, parts, job.n_screened)
    moments_ = usable(_moments_of(job, "candidates", candidates), signs, job.fewest)
    evidence = Evidence(moments_, candidates, spread, n_each)
    for last in (False, True):
        rankings, judged = learned(evidence, signs, job.task, d, lambda folds, final: job.judge(folds, final))
        assert judged is not None
        assert judged.across is not None
        more = [
            overlooked(across, spread, sign, found.coef, found.alpha, evidence.candidates, **how)
            for across, sign, found in zip(judged.across, signs, rankings, strict=True)
        ]
        missed = np.unique(np.concatenate(more))
        if last or not missed.size:
            break
        candidates = np.union1d(candidates, missed)
        moments_ = _moments_of(job, "overlooked", candidates)
        evidence = Evidence(moments_, candidates, spread, n_each, tuple(missed.tolist()))
    return Solved(rankings, _n_rows(spread), remarks={"n_overlooked_": missed.size})


def _n_rows(found: ClassMoments) -> int:
    return int(found.count.sum())


def _moments_of(job: Job, name: str, features: np.ndarray) -> ClassMoments:
    """Covariances of some features: one pass."""
    rows = job.rows.features(features)
    name = f"{name}-{fingerprint({'features': features.tolist()})[:8]}"  # other parameters choose others
    return job.kept(name, lambda: class_moments(rows, job.buckets, weighted=job.weighted))


def _judge(job: Job) -> Callable[[list[Rankings], np.ndarray], Judged] | None:
    """Held-out rows are asked where there are folds."""
    return (lambda folds, final: job.judge(folds, None)) if job.n_folds else None


def state_bytes(n_classes: int, n_buckets: int, n_features: int) -> int:
    """Bytes of the sums of "moments"."""
    return 8 * n_classes * n_buckets * n_features**2
