"""Mean embeddings of groups of rows, classes or samples: one additive pass each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from scaleshift.blocks import passes
from scaleshift.blocks.block import Block, Rows
from scaleshift.quantify.features import Embedding


@dataclass(frozen=True)
class GroupState:
    """Feature sums of groups, additive over any parts of the data."""

    sums: np.ndarray  # (n_groups, width)
    counts: np.ndarray  # (n_groups,) rows that are finite
    n_invalid: np.ndarray  # (n_groups,) rows that are not
    n_foreign: np.ndarray | None = None  # (n_groups, n_foreign) rows with labels that the source lacks

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


def embed_samples(rows: Rows, embedding: Embedding, foreign: np.ndarray) -> GroupState:
    """State of every sample of the column "sample", for the samples present in a block only.

    `foreign` are the codes of labels that the source lacks: their rows are counted by sample. The labels
    are read only where there are any.
    """
    n = len(rows.categories("sample"))
    layout = {"sums": (embedding.width,), "counts": (), "n_invalid": (), "n_foreign": (len(foreign),)}
    state = passes.total(
        group_sums,
        rows.only("sample", *(["label"] if foreign.size else [])),
        layout,
        keyed="sample",
        group="sample",
        foreign=foreign,
        function=embedding.sums,
        **embedding.parameters,
    )
    key = state.pop("key")
    dense = {name: np.zeros((n, *shape)) for name, shape in layout.items()}
    for name, values in state.items():
        dense[name][key] = values
    return GroupState(**dense)


def group_sums(
    block: Block,
    *,
    group: str,
    function: Callable[..., np.ndarray],
    n_groups: int = 0,
    keys: np.ndarray | None = None,
    foreign: np.ndarray | None = None,
    **parameters: Any,
) -> dict[str, np.ndarray]:
    """Kernel of both passes: feature sums, counts and invalid rows by group."""
    codes = block.codes(group)
    n_groups = n_groups if keys is None else keys.size
    state = {
        "sums": function(block.x, codes, n_groups, **parameters),
        "counts": _count(codes, n_groups),
        "n_invalid": _count(block.columns[group][~block.valid], n_groups),
    }
    if foreign is not None:
        counts = [_count(block.columns[group][block.columns["label"] == code], n_groups) for code in foreign]
        state["n_foreign"] = np.column_stack([np.zeros((n_groups, 0)), *counts])
    return state


def _count(codes: np.ndarray, n_groups: int) -> np.ndarray:
    return np.bincount(codes[codes >= 0], minlength=n_groups)
