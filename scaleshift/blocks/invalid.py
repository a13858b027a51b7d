"""What does a pass say of rows that are not finite?  How many by column, and which come first."""

from __future__ import annotations

import functools

import numpy as np

from scaleshift.blocks import graph, states
from scaleshift.blocks.block import Kept, Rows
from scaleshift.errors import DataError

NO_SOURCE = "no labelled row of the source is finite: mend NaN and infinite values, or give other rows"


def refuse_invalid(rows: Rows | Kept, by_column: np.ndarray) -> None:
    """Raise for values that are not finite; finding the first rows is a pass that only the error pays for."""
    if rows.invalid == "drop" or not by_column.any():
        return
    if isinstance(rows, Kept):
        rows = rows.rows
    merge = functools.partial(states.merge_first, 5)
    rows = rows.only(*({"sample"} & {*rows.columns, *rows.unread}))
    first = graph.reduce_blocks(states.first_invalid_leaf, merge, rows, {"n": 5})
    if "sample" in rows.columns and len(rows.categories("sample")) > 1:
        listed = ", ".join(f"{row} (sample {rows.categories('sample')[code]})" for row, code in first)
    else:
        listed = states.listed(first[:, 0])
    names = rows.markers or [f"column {i}" for i in range(len(by_column))]
    counts = ", ".join(f"{name}: {int(c)}" for name, c in zip(names, by_column, strict=True) if c)
    raise DataError(
        f"NaN or infinite values by column: {counts}; first rows {listed}. "
        "Mend them, or leave these rows out: invalid='drop' does that and counts them (--invalid drop on "
        "the command line)"
    )
