"""Which passes has a killed fit made?  Those in the folder of its checkpoint, of this source and settings."""

from __future__ import annotations

import numpy as np

from scaleshift import checkpoint
from scaleshift.blocks import passes
from scaleshift.blocks.block import Block
from scaleshift.blocks.buckets import Buckets
from scaleshift.blocks.resuming import Walk, factors, kept_in, rows_told, short, sums_told
from scaleshift.error.family import Job
from scaleshift.user_objects import name_of

ELSEWHERE = ("checkpoint", "loss", "methods", "level", "tol", "refit")  # or no matter for the passes


def walk_of(job: Job) -> Walk:
    """The passes of a fit, kept where the settings name a folder.

    Raises
    ------
    DataError
        If the folder is that of another job.
    """
    settings = job.settings
    if settings.checkpoint is None:
        return Walk(None)
    told = {
        "rows": rows_told(job.rows),
        "columns": _columns(job),
        "labels": job.rows.categories("label").tolist(),
        "invalid": job.rows.invalid,
        "folds": None if job.buckets is None else job.buckets.n,
        "loss": settings.loss if isinstance(settings.loss, str) else name_of(settings.loss),
        "settings": {name: value for name, value in vars(settings).items() if name not in ELSEWHERE},
    }
    return Walk(kept_in(settings.checkpoint, checkpoint.fingerprint(told), settings.seed))


def _columns(job: Job) -> dict[str, list[str]]:
    """What tells outcomes, groups, noise and folds from others: one pass over them."""
    layout = {name: () for name in (*job.rows.columns, "fold")}
    found = passes.total(_told, job.rows.without_x(), layout, buckets=job.buckets)
    return {name: short(total[None]) for name, total in found.items()}


def _told(block: Block, buckets: Buckets | None) -> dict[str, np.ndarray]:
    fold = np.zeros(len(block.valid)) if buckets is None else buckets(block) + 1.0
    return {**sums_told(block), "fold": factors(block.start, len(fold)) @ fold}
