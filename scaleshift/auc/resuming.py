"""How does a killed fit go on?  Every pass leaves its sums in a folder; those there are not made again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from scaleshift import checkpoint
from scaleshift.auc.solving import Job
from scaleshift.blocks import passes
from scaleshift.blocks.block import Block
from scaleshift.blocks.buckets import Buckets
from scaleshift.blocks.resuming import factors, kept_in, rows_told, short
from scaleshift.blocks.resuming import seed_of as seed_of


def resumable(job: Job, name: str) -> Job:
    """The same job, which keeps its sums; one of other data or parameters is refused."""
    if job.checkpoint is None:
        return job
    return replace(job, kept=kept_in(job.checkpoint, _fingerprint(job, name), job.seed))


def _fingerprint(job: Job, name: str) -> str:
    columns = passes.total(column_sums, job.rows.without_x(), {"sums": (3,)}, buckets=job.buckets)
    return checkpoint.fingerprint(
        {
            "solver": name,
            **rows_told(job.rows),
            "columns": short(columns["sums"]),
            "labels": job.rows.categories("label").tolist(),
            "buckets": None if job.buckets is None else job.buckets.n,
            "weighted": job.weighted,
            "invalid": job.rows.invalid,
            "seed": job.seed,
        }
    )


def column_sums(block: Block, buckets: Buckets | None) -> dict[str, np.ndarray]:
    """Sums of labels, weights and buckets, each row's times a factor of its own: the order counts."""
    label = block.columns["label"].astype(np.float64)
    factor = factors(block.start, len(label))
    learned = np.where(label >= 0, factor, 0.0)
    weight = np.asarray(block.columns.get("weight", np.ones(len(label))), np.float64)
    part = np.zeros(len(label)) if buckets is None else buckets(block) + 1.0
    return {"sums": np.array([factor @ (label + 2), learned @ weight, learned @ part])}
