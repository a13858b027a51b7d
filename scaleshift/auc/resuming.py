"""How does a killed fit go on?  Every pass leaves its sums in a folder; those there are not made again."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from scaleshift import checkpoint
from scaleshift.auc.moments import ClassMoments
from scaleshift.auc.solving import Job
from scaleshift.blocks import noise, passes
from scaleshift.blocks.rows import first_rows
from scaleshift.checkpoint import Checkpoint
from scaleshift.parameters import check

FIRST = 1_000  # rows whose mean tells data apart


def seed_of(path: Any, random_state: Any) -> int:
    """Seed of an earlier fit that was killed, or a new one."""
    if path is not None:
        is_path = isinstance(path, str | os.PathLike)
        check("checkpoint", path, lambda _: is_path, "the path of a folder, or None")
    resumed = None if path is None else checkpoint.read(_inside(path, "job"))
    return noise.seed_of(random_state) if resumed is None else resumed.seed


def resumable(job: Job, name: str) -> Job:
    """The same job, which keeps its sums; one of other data or parameters is refused."""
    if job.checkpoint is None:
        return job
    fingerprint = _fingerprint(job, name)
    path = _inside(job.checkpoint, "job")
    found = checkpoint.read(path)
    checkpoint.check(found, fingerprint, job.checkpoint)
    if found is None:
        os.makedirs(job.checkpoint, exist_ok=True)
        checkpoint.write(path, Checkpoint(fingerprint, job.seed, {}))
    return replace(job, kept=Kept(os.fspath(job.checkpoint), fingerprint, job.seed))


class Kept:
    """Sums of passes in a folder."""

    def __init__(self, path: str, fingerprint: str, seed: int):
        self.path, self.fingerprint, self.seed = path, fingerprint, seed

    def __call__(self, name: str, make: Callable[[], ClassMoments]) -> ClassMoments:
        """The sums of a name: those that are there, or new ones."""
        path = _inside(self.path, name)
        found = checkpoint.read(path)
        checkpoint.check(found, self.fingerprint, self.path)
        if found is not None:
            return found.state
        made = make()
        checkpoint.write(path, Checkpoint(self.fingerprint, self.seed, made))
        return made


def _inside(path: Any, name: str) -> str:
    return os.path.join(os.fspath(path), name)


def _fingerprint(job: Job, name: str) -> str:
    few = first_rows(job.rows, FIRST)
    return checkpoint.fingerprint(
        {
            "solver": name,
            "rows": [job.rows.x.shape[0], job.rows.n_markers, job.rows.markers],
            "first": few.mean(axis=0, dtype=np.float64).tolist() if len(few) else [],
            "labels": job.rows.categories("label").tolist(),
            "counts": passes.counts(job.rows, "label").tolist(),
            "buckets": None if job.buckets is None else job.buckets.n,
            "groups": "group" in job.rows.columns,
            "weighted": job.weighted,
            "n_screened": job.n_screened,
            "signs": [sign.tolist() for sign in job.contrasts.sign],
            "seed": job.seed,
        }
    )
