"""What does a pass do with one block, and with two states?  Told without reading: for passes and plans."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from scaleshift.blocks import states, statistics
from scaleshift.blocks.block import Kept, Rows
from scaleshift.blocks.states import Finish, Kernel, Merge
from scaleshift.blocks.statistics import Layout


class Work(NamedTuple):
    """What a pass does with a block and with two states."""

    leaf: Callable[..., Any]  # a Block and the pass's parameters -> state
    merge: Merge
    width: int  # float64 values of a state, at most; 0 where that is not known
    shared: dict[str, Any]  # parameters of both


def summing(
    kernel: Kernel,
    rows: Rows | Kept,
    layout: Layout | None,
    *,
    keyed: str | None = None,
    merge: Merge | None = None,
    finish: Finish | None = None,
) -> Work:
    """What `total` does with these arguments, told without reading."""
    if (merge is None) == (layout is None) or (merge is not None and keyed is not None):
        raise ValueError(
            "a pass adds arrays of a layout, by key or not, or merges states in a way of its own"
        )
    if merge is not None:
        merged = functools.partial(states.merged_leaf, kernel)
        return Work(merged, functools.partial(states.merge_with, merge), 0, {})
    assert layout is not None
    if keyed is None:
        assert finish is None, "only sums by key are finished"
        packed = functools.partial(states.packed_leaf, kernel, layout)
        return Work(packed, np.add, statistics.size(layout), {})
    assert isinstance(rows, Rows), "kept blocks have no keys"
    width = statistics.size(layout) * len(rows.categories(keyed))
    if finish is None:
        by_key = functools.partial(states.keyed_leaf, kernel, layout, keyed)
        return Work(by_key, states.merge_keyed, width, {})
    finished = functools.partial(states.finished_leaf, kernel, layout, keyed)
    return Work(finished, functools.partial(states.merge_finished, layout), width, {"finish": finish})


def drawing(n: np.ndarray, finish: Finish) -> Work:
    """What `sample` does with a `finish`, told without reading."""
    return Work(states.drawn_leaf, functools.partial(states.merge_drawn, n), 0, {"finish": finish})
