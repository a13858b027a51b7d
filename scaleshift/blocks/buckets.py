"""Into which parts are rows divided for cross-validation?  At random within labels, by groups, as given.

A *bucket* is a part that is never divided again: folds and halves are runs and choices of buckets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from scaleshift.blocks import noise, passes
from scaleshift.blocks.block import Block, Column, Rows
from scaleshift.blocks.folds import Folds, divide
from scaleshift.blocks.rows import with_columns
from scaleshift.errors import DataError


class Buckets(Protocol):
    """Parts of the rows; travels in every task of a pass."""

    @property
    def n(self) -> int:
        """Number of buckets."""

    def __call__(self, block: Block) -> np.ndarray:
        """Bucket of each row of a block: (n,), of no meaning where it has no label."""


@dataclass(frozen=True)
class RandomBuckets:
    """Random parts with the same share of every label."""

    folds: Folds

    @property
    def n(self) -> int:
        """Number of buckets."""
        return self.folds.n_folds

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return self.folds.nbytes

    def __call__(self, block: Block) -> np.ndarray:
        """Bucket of each row of a block."""
        return self.folds(block.start, block.columns["label"])


@dataclass(frozen=True)
class GroupBuckets:
    """Whole groups of rows: samples, donors, plates."""

    n: int
    bucket: np.ndarray  # (n_groups,) of each group

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return self.bucket.nbytes

    def __call__(self, block: Block) -> np.ndarray:
        """Bucket of each row of a block."""
        return self.bucket[block.columns["group"]]


@dataclass(frozen=True)
class SplitBuckets:
    """Parts that the user has given row by row, whatever groups there are beside."""

    n: int
    bucket: np.ndarray  # (n_rows,) of each row

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return self.bucket.nbytes

    def __call__(self, block: Block) -> np.ndarray:
        """Bucket of each row of a block."""
        return self.bucket[block.start : block.start + len(block.valid)].astype(np.int64)


def random_buckets(rows: Rows, n: int, seed: int) -> Buckets:
    """Divide the rows of every label at random: a pass over the labels alone."""
    return RandomBuckets(divide(rows, "label", n, seed, "buckets"))


def group_buckets(rows: Rows, n: int, seed: int, signs: Sequence[np.ndarray] = ()) -> GroupBuckets:
    """Divide groups, the largest first, each to the bucket that has the fewest rows: a pass over two columns.

    Parameters
    ----------
    rows : Rows
        With the columns "label" and "group".
    n : int
        Fewer where there are fewer groups.
    seed : int
        Of the order of groups of one size.
    signs : sequence of numpy.ndarray of int8, shape (n_labels,)
        Which labels each contrast holds against which.

    Raises
    ------
    DataError
        If there is one group alone, or one that holds all rows of a side of a contrast.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from scaleshift.blocks.rows import as_rows
    >>> rows = as_rows(np.ones((6, 1)), [0, 1] * 3, ["a", "a", "b", "b", "c", "c"])
    >>> rows = replace(rows, columns={"label": rows.columns["label"], "group": rows.columns["sample"]})
    >>> sorted(group_buckets(rows, 5, seed=0).bucket.tolist())
    [0, 1, 2]
    """
    by_group = passes.crossed(rows, "group", "label")[:, 1:]  # (n_groups, n_labels)
    n_groups = int((by_group.sum(axis=1) > 0).sum())
    if n_groups < 2:
        raise DataError(
            f"groups hold {n_groups} group(s) with labels: cross-validation needs 2 at least; leave "
            "groups out, or pass rows of more groups"
        )
    for sign in signs:
        for side in (-1, 1):
            holds = by_group[:, sign == side].any(axis=1)
            if holds.sum() < 2:
                label = ", ".join(map(repr, rows.categories("label")[sign == side].tolist()[:4]))
                raise DataError(
                    f"all rows of label {label} are in the group (or split of cv) "
                    f"{rows.categories('group')[holds].tolist()[0]!r}: nothing can be learned without it; "
                    "give other groups, or a number of folds alone"
                )
    share = (by_group / np.maximum(by_group.sum(axis=0), 1)).sum(axis=1)  # rare labels count as others do
    order = noise.generator(seed, "groups").permutation(len(share))
    order = order[np.argsort(-share[order], kind="stable")]
    n = min(n, n_groups)
    filled, bucket = np.zeros(n), np.zeros(len(share), np.int64)
    for group in order:
        bucket[group] = filled.argmin()
        filled[bucket[group]] += share[group]
    return GroupBuckets(n, bucket)


def split_buckets(rows: Rows, splits: Sequence[Any], seed: int) -> Buckets:
    """Rows that a splitter tests together: a pass over the labels. Splits without a label are none.

    Parameters
    ----------
    rows : Rows
        With the column "label".
    splits : sequence of (train, test)
        As of `given_splits`.
    seed : int

    Raises
    ------
    DataError
        As `given_splits`; and if one split alone tests rows with a label.
    """
    column = given_splits(splits, rows.x.shape[0])
    found = group_buckets(with_columns(rows, group=column), len(splits), seed).bucket
    narrow = np.min_scalar_type(int(found.max()))
    return SplitBuckets(int(found.max()) + 1, found.astype(narrow)[column.values])


def given_splits(splits: Sequence[Any], n_rows: int) -> Column:
    """Groups of rows that are tested together, of splits that test every row once.

    Parameters
    ----------
    splits : sequence of (train, test)
        Row numbers, as scikit-learn's splitters give them. Each row trains wherever it is not tested.
    n_rows : int

    Returns
    -------
    Column
        The split of each row.

    Raises
    ------
    DataError
        If a row is tested twice or never, or trains where it is tested.

    Examples
    --------
    >>> given_splits([([0, 1], [2, 3]), ([2, 3], [0, 1])], 4).values.tolist()
    [1, 1, 0, 0]
    """
    found = np.full(n_rows, -1, np.int64)
    for number, split in enumerate(splits):
        trained, tested = _split(split, number, n_rows)
        every = np.sort(np.concatenate([trained, tested]))
        if not np.array_equal(every, np.arange(n_rows)) or (found[tested] >= 0).any():
            raise DataError(
                f"split {number} of cv leaves rows out, or tests some again: every row is tested once, and "
                "trains in all other splits; give a number of folds, or groups"
            )
        found[tested] = number
    if (found < 0).any():
        raise DataError(
            f"row {np.flatnonzero(found < 0)[0]} is tested by no split of cv: give groups instead"
        )
    return Column(found, np.arange(len(splits)), coded=True)


def _split(split: Any, number: int, n_rows: int) -> list[np.ndarray]:
    """Row numbers of (train, test)."""
    try:
        train, test = (np.asarray(part) for part in split)
    except (TypeError, ValueError):
        train = test = np.array(None)
    for rows in (train, test):
        numbers = rows.ndim == 1 and (rows.dtype.kind in "iu" or not rows.size)
        if not numbers or (rows.size and not (rows.min() >= 0 and rows.max() < n_rows)):
            raise DataError(
                f"split {number} of cv is no pair (train, test) of row numbers from 0 to {n_rows - 1}: give "
                "what a splitter of scikit-learn gives, list(splitter.split(X, y)), or a number of folds"
            )
    return [rows.astype(np.int64) for rows in (train, test)]
