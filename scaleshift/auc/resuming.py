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
from scaleshift.blocks.block import Block, Rows
from scaleshift.blocks.rows import first_rows
from scaleshift.checkpoint import Checkpoint
from scaleshift.parameters import is_whole

FIRST = 1_000  # rows whose mean tells data apart
MULTIPLIER = 2_654_435_761  # 2^32 over the golden ratio, about: its multiples modulo 2^32 lie evenly


def seed_of(path: Any, random_state: Any) -> int:
    """Seed of an earlier fit that was killed, or a new one; one that is given is obeyed."""
    resumed = None if path is None or is_whole(random_state) else checkpoint.read(_inside(path, "job"))
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
            "columns": _digits(job.rows),
            "buckets": None if job.buckets is None else job.buckets.n,
            "weighted": job.weighted,
            "seed": job.seed,
        }
    )


def _digits(rows: Rows) -> dict[str, str]:
    """Numbers that tell labels, weights and groups from others, to as many digits as chunks leave alone."""
    names = list(rows.columns)
    found = passes.total(mixed_sums, rows.without_x(), {"sums": (len(names),)})["sums"]
    return {name: f"{value:.8g}" for name, value in zip(names, found, strict=True)}


def mixed_sums(block: Block) -> dict[str, np.ndarray]:
    """Sums of the columns of a block, each row times a number of its own: rows that change places show."""
    row = np.arange(block.start, block.start + len(block.valid), dtype=np.uint64)
    factor = ((row * np.uint64(MULTIPLIER)) % np.uint64(1 << 32)).astype(np.float64)
    return {"sums": np.array([factor @ np.asarray(values, float) for values in block.columns.values()])}
