"""How many pairs of a positive and a negative row does a score rank in the right order?  Ties count one half.

Rows that tie are one entry: their score and the sums of both classes. Counts are whole numbers, of any size,
until they are divided; weights are float64.
"""

from __future__ import annotations

import numpy as np

from scaleshift.blocks.block import Block
from scaleshift.blocks.ranges import Table

CLASSES = ("positive", "negative")


def ties(block: Block, signs: np.ndarray) -> Table:
    """The labelled rows of a block as distinct scores, ascending, and the sums of either class."""
    sign = signs_of(block, signs)
    labelled = sign != 0
    weight = block.columns.get("weight")
    weight = np.ones(len(sign), np.uint8) if weight is None else weight.astype(np.float64)
    table = {"score": block.columns["score"][labelled]}
    for name, of in zip(CLASSES, (1, -1), strict=True):
        table[name] = np.where(sign == of, weight, weight.dtype.type(0))[labelled]
    return joined([table])


def signs_of(block: Block, signs: np.ndarray) -> np.ndarray:
    """+1, -1, and 0 for rows without a label."""
    return np.append(signs, np.int8(0))[block.columns["label"]]  # the code of no label, -1, is the last


def joined(tables: list[Table]) -> Table:
    """The entries of several tables as one: equal scores are one entry.

    Examples
    --------
    >>> values = {"score": [2.0, 1.0, 2.0], "positive": [1, 0, 0], "negative": [0, 1, 1]}
    >>> table = {name: np.array(column) for name, column in values.items()}
    >>> {name: values.tolist() for name, values in joined([table, table]).items()}
    {'score': [1.0, 2.0], 'positive': [0, 2], 'negative': [2, 2]}
    """
    score = np.concatenate([table["score"] for table in tables])
    order = np.argsort(score, kind="stable")  # quick where parts are sorted already
    score = score[order]
    first = np.flatnonzero(np.concatenate([[True], score[1:] != score[:-1]])[: len(score)])
    table = {"score": score[first]}
    for name in CLASSES:
        values = np.concatenate([table_[name] for table_ in tables])[order]
        whole = values.dtype.kind != "f"
        sums = np.add.reduceat(values, first, dtype=np.int64 if whole else np.float64)
        table[name] = _narrow(sums) if whole else sums
    return table


def _narrow(counts: np.ndarray) -> np.ndarray:
    """In the fewest bytes: most entries are of one row, and they travel."""
    return counts.astype(np.min_scalar_type(counts.max(initial=0)))


def twice_in_order(table: Table, totals: Table, number: int) -> int | float:
    """Twice the pairs in the right order whose negative row is in range `number`: a whole number of counts.

    Parameters
    ----------
    table : Table
        The entries of this range.
    totals : Table
        Sums of either class by range, (n_ranges,) each.
    number : int

    Examples
    --------
    >>> table = {"score": np.array([1, 2]), "positive": np.array([1, 1]), "negative": np.array([1, 2])}
    >>> twice_in_order(table, {"positive": np.array([2, 5]), "negative": np.array([3, 0])}, 0)
    35
    """
    positive, negative = table["positive"], table["negative"]
    all_positive, all_negative = (totals[name][number].item() for name in CLASSES)
    most = 2 * all_positive * all_negative
    kind = np.float64 if isinstance(most, float) else np.int64 if most < 2**63 else object
    positive, negative = positive.astype(kind), negative.astype(kind)
    here = np.sum(negative * (2 * above(positive) + positive))
    here = here.item() if isinstance(here, np.generic) else here
    return here + 2 * all_negative * totals["positive"][number + 1 :].sum().item()


def in_order_until(table: Table, totals: Table, number: int, limit: float) -> float:
    """Pairs in the right order in range `number`, of the `limit` negative rows that score highest alone."""
    beyond = {name: float(totals[name][number + 1 :].sum()) for name in CLASSES}
    taken, before = until(table, limit, beyond)
    return float(np.sum(taken * (before + table["positive"] * share(taken, table["negative"]) / 2)))


def until(table: Table, limit: float, beyond: dict[str, float]) -> tuple[np.ndarray, np.ndarray]:
    """Negative rows of each entry among the first `limit`, and positive ones above it: float64, (m,) each.

    `beyond` are the sums of either class above all entries.
    """
    positive, negative = (table[name].astype(np.float64) for name in CLASSES)
    taken = np.clip(limit - beyond["negative"] - above(negative), 0, negative)
    return taken, beyond["positive"] + above(positive)


def above(values: np.ndarray) -> np.ndarray:
    """Sum of the entries above each.

    Examples
    --------
    >>> above(np.array([1, 2, 3])).tolist()
    [5, 3, 0]
    """
    return np.append(np.cumsum(values[::-1])[::-1][1:], 0)[: len(values)]


def share(taken: np.ndarray, of: np.ndarray) -> np.ndarray:
    """Part of each that is taken; of nothing, nothing."""
    return taken / np.where(of > 0, of, 1)


def standardised(area: float, max_fpr: float) -> float:
    """Partial area between 0.5, a score by chance, and 1 (McClish).

    Examples
    --------
    >>> standardised(0.2, 0.2), standardised(0.02, 0.2)
    (1.0, 0.5)
    """
    least = max_fpr**2 / 2
    return (1 + (area - least) / (max_fpr - least)) / 2
