"""How does a killed prediction go on?  Samples are answered piece by piece, and what is finished is kept."""

from __future__ import annotations

import contextvars
import copy
import functools
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from scaleshift.blocks import blas, graph
from scaleshift.blocks.block import Rows
from scaleshift.blocks.resuming import Kept, columns_told, kept_in, rows_told
from scaleshift.blocks.runs import pieces
from scaleshift.checkpoint import fingerprint
from scaleshift.doing import doing
from scaleshift.encoding import encode
from scaleshift.errors import DataError

PIECE_ROWS = 2**20  # about a second of one core; a larger sample is a piece of its own
MOST_PIECES = 256  # of large data: each costs the driver a tenth of a second
BLOCKS_AHEAD = 2  # a thread of a cluster, of pieces that are under way together

Answers = dict[str, np.ndarray]
Path = str | os.PathLike[str]


def answered(
    answer: Callable[[Rows], Answers], rows: Rows, model: Any, foreign: np.ndarray, path: Path | None
) -> Answers:
    """What is said of every sample: of all at once, or piece by piece where a checkpoint is wanted.

    Parameters
    ----------
    answer : callable
        ``answer(rows)`` -> arrays with a leading axis over the samples that have rows, their positions in
        "key"; "n_foreign" over all samples.
    rows : Rows
        With the column "sample".
    model : Quantifier
        That answers; what it has learned is a part of the job's fingerprint.
    foreign : numpy.ndarray
        Codes of labels that it does not know.
    path : path or None
        Folder of finished pieces. A killed prediction of the same rows and model goes on from there.

    Raises
    ------
    DataError
        If the folder is of another job, or if the model holds what cannot be saved, by which it could be told
        from another.
    """
    if path is None:
        return answer(rows)
    read = rows.only("sample", *(["label"] if foreign.size else []))
    told = {
        "rows": rows_told(rows),
        "columns": columns_told(read),
        "samples": rows.categories("sample").tolist(),  # folds of small ones follow from their names
        "foreign": foreign.tolist(),
        "model": _digest(model),
    }
    kept = kept_in(path, fingerprint(told), model.seed_)
    parts = pieces(rows, "sample", max(PIECE_ROWS, rows.x.shape[0] // MOST_PIECES))
    return joined(_each(answer, rows, parts, kept))


def _each(
    answer: Callable[[Rows], Answers], rows: Rows, parts: Sequence[tuple[int, int]], kept: Kept
) -> list[Answers]:
    """Answers for every piece; on a cluster as many pieces at a time as its threads want."""
    n_blocks = 1 if rows.is_one_block else rows.x.numblocks[0]
    share = min(len(parts) / n_blocks, 1)  # of a thread's blocks: a piece has one at least
    wanted = BLOCKS_AHEAD * graph.n_threads() * share
    at_once = max(1, round(wanted)) if graph.client() is not None and not rows.in_memory else 1

    def one(number: int) -> Answers:
        begin, end = parts[number]
        found = kept(f"samples-{number:06d}", functools.partial(answer, rows.between(begin, end)))
        advance(len(found["key"]))
        return found

    # BLAS here: what each thread would set back, another one may still need.
    with doing("samples", len(rows.categories("sample"))) as advance, blas.one_thread():
        if at_once == 1:
            return [one(number) for number in range(len(parts))]
        pool = ThreadPoolExecutor(at_once)
        try:
            # In the caller's context: the client in scope may be known there alone.
            calls = [pool.submit(contextvars.copy_context().run, one, number) for number in range(len(parts))]
            return [call.result() for call in calls]
        finally:  # after an error or Ctrl-C nobody waits for what is under way
            pool.shutdown(wait=False, cancel_futures=True)


def joined(parts: Sequence[Answers]) -> Answers:
    """Answers for the samples of all pieces, in the order of the samples.

    Examples
    --------
    >>> one = {"key": np.array([1]), "share": np.array([[0.5, 0.5]])}
    >>> two = {"key": np.array([0]), "share": np.array([[1.0, 0.0]])}
    >>> joined([one, two])["share"].tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    if len(parts) == 1:
        return parts[0]
    order = np.argsort(np.concatenate([part["key"] for part in parts]))
    found = {}
    for name in parts[0]:
        arrays = [np.asarray(part[name]) for part in parts]
        if name == "n_foreign":  # of all samples in every piece
            found[name] = np.sum(arrays, axis=0)
        else:
            found[name] = np.concatenate(_as_wide(arrays))[order]
    return found


def _as_wide(arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Rows of equal length: where one piece took more iterations than another, NaN fills its traces."""
    if arrays[0].ndim != 2 or len({array.shape[1] for array in arrays}) == 1:
        return arrays
    width = max(array.shape[1] for array in arrays)
    wide = [np.full((len(array), width), np.nan) for array in arrays]
    for row, array in zip(wide, arrays, strict=True):
        row[:, : array.shape[1]] = array
    return wide


def _digest(model: Any) -> str:
    """What tells a fitted model from another; not where its fit kept what it had finished."""
    model = copy.copy(model)
    model.checkpoint = None
    try:
        tree, arrays = encode(model)
    except DataError as error:
        raise DataError(
            f"checkpoint= needs a model that can be saved, by which it knows it again: {error}"
        ) from error
    digest = hashlib.sha256(json.dumps(tree, sort_keys=True, default=str).encode())
    for name in sorted(arrays):
        digest.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()
