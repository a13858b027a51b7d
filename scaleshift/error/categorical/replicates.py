"""What would the model have been with other outcomes?  Replicates: labels drawn from the generator, refitted.

Labels enter as sums, which one pass makes for all replicates; every further pass is shared by all columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from scaleshift.blocks import noise, passes
from scaleshift.blocks.block import Block, Rows
from scaleshift.error.categorical.chord import chord
from scaleshift.error.categorical.columns import Columns, Source, without_lost
from scaleshift.error.categorical.fitting import Setting, bounded
from scaleshift.error.categorical.frame import Frame, prepared
from scaleshift.error.categorical.scoring import steps
from scaleshift.kernels.cpu.categorical import labels_above
from scaleshift.kernels.logistic import class_probabilities, logits, tiles


@dataclass(frozen=True)
class Replicates:
    """Parameters of all refits."""

    theta: np.ndarray  # (B, m, q)
    lost: np.ndarray  # (B,) bool: a class has drawn no row
    converged: np.ndarray  # (B,) bool


def runs(block: Block) -> Iterator[Block]:
    """Parts of a block that noise is drawn for at once: cut where its tiles are."""
    begin = 0
    while begin < len(block.x):
        end = min(begin + noise.TILE - (block.start + begin) % noise.TILE, len(block.x))
        yield block.rows(slice(begin, end))
        begin = end


def uniform_numbers(block: Block, name: str, seed: int, stream: str, n_replicates: int) -> np.ndarray:
    """Uniform numbers of a block's rows, as given in a column or drawn: (n, B)."""
    if name in block.columns:
        return np.ascontiguousarray(block.columns[name], np.float64)
    return noise.uniforms(seed, stream, block.start, len(block.x), n_replicates)


def needed(rows: Rows, *noise_columns: str) -> Rows:
    """The rows with the columns that a pass over them reads."""
    names = [name for name in ("label", "group", *noise_columns) if name in rows.columns]
    return rows.only(*names)


def label_sums(rows: Rows, frame: Frame, generator: np.ndarray, seed: int, n_replicates: int) -> np.ndarray:
    """Sums of z by class of the labels that each replicate draws: one pass, (B, K, q)."""
    m, q = generator.shape
    n_steps = max(m - 1, 1)
    layout = {"sums": (n_steps, q, n_replicates), "all": (q,)}
    found = passes.total(
        _label_sums,
        needed(rows, "train"),
        layout,
        frame=frame,
        generator=generator[..., None],
        seed=seed,
        n_replicates=n_replicates,
    )
    above = np.moveaxis(found["sums"], -1, 0)  # (B, K - 1, q) of labels that are above each class
    every = np.broadcast_to(found["all"], (n_replicates, 1, q))
    steps = np.concatenate([every, above, np.zeros((n_replicates, 1, q))], axis=1)
    return steps[:, :-1] - steps[:, 1:]


def _label_sums(
    block: Block, frame: Frame, generator: np.ndarray, seed: int, n_replicates: int
) -> dict[str, np.ndarray]:
    m, q, _ = generator.shape
    found = np.zeros((max(m - 1, 1), q, n_replicates))
    total = np.zeros(q)
    for part in runs(block):
        z = prepared(part, frame, None).x
        uniforms = uniform_numbers(part, "train", seed, "train", n_replicates)
        reached = steps(class_probabilities(logits(z, generator))[..., 0])
        for tile in tiles(len(z), found.shape[0] * n_replicates):
            above = np.empty((len(reached), tile.stop - tile.start, n_replicates))
            labels_above(np.ascontiguousarray(reached[:, tile]), uniforms[tile], above)
            found += np.matmul(z[tile].T, above)
        total += z.sum(axis=0)
    return {"sums": found, "all": total}


def refitted(
    source: Source, setting: Setting, model: np.ndarray, alpha: float, sums: np.ndarray
) -> Replicates:
    """Refit all replicates, from the model's parameters, (m, q), and with its second derivatives."""
    n_replicates = len(sums)
    start = np.repeat(model[None], n_replicates, axis=0)
    n_by_class = np.rint(sums[..., 0])
    columns = Columns(
        sums=setting.sums(sums),
        n=n_by_class.sum(axis=1),
        left_out=np.full(n_replicates, -1),
        **setting.penalties(np.full(n_replicates, alpha)),
        free=np.ones((n_replicates, setting.m * setting.q), bool),
        start=start,
    )
    one = columns.take(np.array([0]))
    near = source.curves(model.reshape(1, -1), one)
    columns = without_lost(columns, n_by_class, setting.m)
    which = np.zeros(n_replicates, np.int64)
    fitted = chord(source, columns, [near.curvature[0]], which, near.fitted[0])
    fitted = bounded(source, setting, columns, fitted)
    return Replicates(fitted.theta, (n_by_class == 0).any(axis=1), fitted.converged)
