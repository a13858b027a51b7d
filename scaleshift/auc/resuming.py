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
from scaleshift.blocks import graph, noise, passes
from scaleshift.blocks.block import Block, Rows
from scaleshift.blocks.buckets import Buckets
from scaleshift.blocks.rows import first_rows
from scaleshift.checkpoint import Checkpoint
from scaleshift.errors import DataError
from scaleshift.parameters import check, is_whole

LOOKED_AT = 100  # rows at the start, in the middle and at the end, whose means tell data apart


def seed_of(path: Any, random_state: Any) -> int:
    """Seed of an earlier fit that was killed, or a new one; one that is given is obeyed."""
    if path is not None:
        is_path = isinstance(path, str | os.PathLike) and "\0" not in (name := os.fspath(path)) and name
        check("checkpoint", path, lambda _: is_path, "the path of a folder, or None")
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
        try:
            os.makedirs(job.checkpoint, exist_ok=True)
        except OSError as error:
            raise DataError(
                f"checkpoint={os.fspath(job.checkpoint)!r} is no folder ({error.strerror}): choose another"
            ) from error
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
    columns = passes.total(column_sums, job.rows.without_x(), {"sums": (3,)}, buckets=job.buckets)
    return checkpoint.fingerprint(
        {
            "solver": name,
            "rows": [job.rows.x.shape[0], job.rows.n_markers, job.rows.markers],
            "columns": _short(columns["sums"]),
            "looked_at": [_short(few.mean(axis=0, dtype=np.float64)) for few in _some_rows(job.rows)],
            "labels": job.rows.categories("label").tolist(),
            "buckets": None if job.buckets is None else job.buckets.n,
            "weighted": job.weighted,
            "invalid": job.rows.invalid,
            "seed": job.seed,
        }
    )


def _short(values: np.ndarray) -> list[str]:
    """To as many digits as other chunks leave alone."""
    return [f"{value:.9g}" for value in values.tolist()]


def column_sums(block: Block, buckets: Buckets | None) -> dict[str, np.ndarray]:
    """Sums of labels, weights and buckets, each row's times a factor of its own: the order counts."""
    label = block.columns["label"].astype(np.float64)
    factor = noise.keys(0, "fingerprint", block.start, len(label)) / 2.0**64 + 0.5
    learned = np.where(label >= 0, factor, 0.0)
    weight = np.asarray(block.columns.get("weight", np.ones(len(label))), np.float64)
    part = np.zeros(len(label)) if buckets is None else buckets(block) + 1.0
    return {"sums": np.array([factor @ (label + 2), learned @ weight, learned @ part])}


def _some_rows(rows: Rows) -> list[np.ndarray]:
    """Rows at the start, in the middle and at the end for any chunks; of sparse ones the first block's."""
    if rows.is_sparse:
        return [few for few in [first_rows(rows, LOOKED_AT)] if len(few)]
    n, found = rows.x.shape[0], []
    for start in sorted({0, n // 2, max(n - LOOKED_AT, 0)}):
        x = rows.x[start : start + LOOKED_AT]  # of one block or of two
        x = x if rows.is_one_block else graph.compute(x, rows.in_memory)
        few = first_rows(Rows(x, {}), LOOKED_AT)
        found += [few] if len(few) else []
    return found
