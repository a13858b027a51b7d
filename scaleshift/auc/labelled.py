"""Which rows does a fit learn from?  Those with a label and a weight; labels without such rows are none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from scaleshift.auc.moments import weights
from scaleshift.blocks import graph, passes
from scaleshift.blocks.block import Block, Column, Rows
from scaleshift.blocks.rows import with_columns
from scaleshift.errors import DataError

MISSING = -1


def learned_from(rows: Rows, *, weighted: bool) -> Rows:
    """The same rows, their labels those that occur; a row of weight 0 is one without a label.

    Folds go by the labelled rows alone, so that rows of weight 0 are as if they were not there.

    Parameters
    ----------
    rows : Rows
        With a column "label", and with "weight" where they are `weighted`.
    weighted : bool

    Raises
    ------
    DataError
        If labels are a measurement, or no row has a weight; or a weight is negative or not finite.

    Examples
    --------
    >>> from scaleshift.blocks.rows import as_rows, with_numbers
    >>> rows = with_numbers(as_rows(np.ones((3, 1)), ["a", "b", "c"]), weight=[1.0, 0.0, 2.0])
    >>> found = learned_from(rows, weighted=True)
    >>> found.categories("label").tolist(), found.columns["label"].values.tolist()
    (['a', 'c'], [0, -1, 1])
    """
    categories = rows.categories("label")
    if categories.dtype.kind == "f" and (categories != np.floor(categories)).any():
        raise DataError(
            f"Unknown label type: y is continuous, {categories[0].item()!r} is among its {len(categories)} "
            "values; for classes, pass y.astype(str)"
        )
    if weighted:
        rows = _recoded(rows, np.arange(len(categories)), weighted)
    counts = passes.counts(rows, "label")
    if weighted and len(categories) and not counts.any():
        raise DataError("sample_weight is zero in every row that has a label: give some a weight above 0")
    occur = counts > 0
    if not occur.all():
        rows = _recoded(rows, np.where(occur, np.cumsum(occur) - 1, MISSING), weighted)
    label = replace(rows.columns["label"], categories=categories[occur], counts=counts[occur])
    return replace(rows, columns={**rows.columns, "label": label})


def _recoded(rows: Rows, code: np.ndarray, weighted: bool) -> Rows:
    """The same rows with other codes of their labels: lazy where the labels are."""
    told: dict[str, Any] = {"code": code, "weighted": weighted}
    found = passes.map_rows(code_leaf, rows.without_x(), dtype=np.int64, fill=MISSING, **told)
    codes = graph.compute(found, in_memory=True) if rows.in_memory else found
    return with_columns(rows, label=Column(codes, rows.categories("label"), coded=True))


def code_leaf(block: Block, code: np.ndarray, weighted: bool) -> np.ndarray:
    """New codes of the rows of a block, (n,)."""
    old = block.columns["label"]
    labelled = old >= 0
    if weighted:
        labelled &= weights(block) > 0
    return np.where(labelled, code[np.where(labelled, old, 0)], MISSING)
