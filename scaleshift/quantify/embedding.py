"""Mean embeddings of groups of rows, classes or samples: one additive pass each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from scaleshift.blocks import passes
from scaleshift.blocks.rows import Block, Rows
from scaleshift.quantify.features import Embedding


@dataclass(frozen=True)
class GroupState:
    """Feature sums of groups, additive over any parts of the data."""

    sums: np.ndarray  # (n_groups, width)
    counts: np.ndarray  # (n_groups,) rows that are finite
    n_invalid: np.ndarray  # (n_groups,) rows that are not

    @property
    def means(self) -> np.ndarray:
        """Mean embeddings, (n_groups, width); NaN for groups without rows."""
        with np.errstate(invalid="ignore"):
            return self.sums / np.where(self.counts > 0, self.counts, np.nan)[:, None]


def embed_classes(rows: Rows, embedding: Embedding) -> GroupState:
    """State of every class of the column "label"; unlabelled rows are left out."""
    n = len(rows.categories("label"))
    layout = {"sums": (n, embedding.width), "counts": (n,), "n_invalid": (n,)}
    state = passes.total(
        group_sums,
        rows.only("label"),
        layout,
        group="label",
        n_groups=n,
        function=embedding.sums,
        **embedding.parameters,
    )
    return GroupState(state["sums"], state["counts"], state["n_invalid"])


def embed_samples(rows: Rows, embedding: Embedding) -> GroupState:
    """State of every sample of the column "sample", for the samples present in a block only."""
    n = len(rows.categories("sample"))
    layout = {"sums": (embedding.width,), "counts": (), "n_invalid": ()}
    state = passes.total(
        group_sums,
        rows.only("sample"),
        layout,
        keyed="sample",
        group="sample",
        function=embedding.sums,
        **embedding.parameters,
    )
    key = state["key"]
    dense = GroupState(np.zeros((n, embedding.width)), np.zeros(n), np.zeros(n))
    dense.sums[key], dense.counts[key], dense.n_invalid[key] = (
        state["sums"],
        state["counts"],
        state["n_invalid"],
    )
    return dense


def group_sums(
    block: Block, *, group: str, n_groups: int, function: Callable[..., np.ndarray], **parameters: Any
) -> dict[str, np.ndarray]:
    """Kernel of both passes: feature sums, counts and invalid rows by group."""
    codes = block.codes(group)
    lost = block.columns[group][~block.valid]
    return {
        "sums": function(block.x, codes, n_groups, **parameters),
        "counts": np.bincount(codes[codes >= 0], minlength=n_groups),
        "n_invalid": np.bincount(lost[lost >= 0], minlength=n_groups),
    }
