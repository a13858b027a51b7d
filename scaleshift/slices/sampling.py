"""Which rows stand for all?  A sample in which rare errors are not rare."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from scaleshift.blocks import passes
from scaleshift.blocks.block import Block, Kept
from scaleshift.blocks.rows import as_rows
from scaleshift.slices.outcomes import Kind
from scaleshift.slices.prepared import strata_of
from scaleshift.slices.survey import Survey

ROWS = 8_192
LOSSES = ("label", "extra", "weight", "held")  # columns that say what went wrong, and in which stratum


@dataclass(frozen=True)
class Sample:
    """Some rows of the kept blocks as a block of their own."""

    block: Block  # its weights are those of all rows that a row stands for
    row: np.ndarray  # (n,) absolute numbers

    @property
    def weight(self) -> np.ndarray:
        """(n,) what each row stands for."""
        return self.block.columns["weight"]

    @property
    def kept(self) -> Kept:
        """As a pass takes it."""
        return Kept(self.block, as_rows(self.block.x), held=True)


def draw(
    kept: Kept,
    kind: Kind,
    found: Survey,
    seed: int,
    n_rows: int = ROWS,
    names: tuple[str, ...] | None = None,
) -> Sample:
    """Draw about `n_rows` rows of the fit, half of them in equal parts from the strata: one pass.

    All rows where there are no more. A row weighs what it stands for. It has the columns `names`, those of
    `LOSSES` among them: by default those that a mixture needs.
    """
    names = columns_of(kind) if names is None else names
    size = found.strata
    n = size.sum()
    wanted = np.ceil(n_rows / 2 * (size / max(n, 1) + (size > 0) / max((size > 0).sum(), 1))).astype(np.int64)
    wanted = size if n <= n_rows else np.minimum(size, wanted)
    by = functools.partial(strata_of, kind=kind)
    drawn = passes.sample(kept, wanted, by, seed=seed, stream="slices", columns=names)
    order = np.argsort(drawn["row"])
    drawn = {name: values[order] for name, values in drawn.items()}
    columns = {name: drawn[name] for name in names}
    drawn_of = np.bincount(drawn["code"], minlength=len(size))
    each = size / np.maximum(drawn_of, 1)
    columns["weight"] = (columns["weight"] * each[drawn["code"]]).astype(columns["weight"].dtype)
    return Sample(
        Block(drawn["x"], columns, 0, np.ones(len(order), bool), np.zeros(drawn["x"].shape[1])), drawn["row"]
    )


def columns_of(kind: Kind) -> tuple[str, ...]:
    """Columns of prepared blocks that a mixture's sample has."""
    return (*LOSSES, *(("prediction",) if kind.has_errors else ()))
