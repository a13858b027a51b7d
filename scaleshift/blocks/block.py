"""What is a block of rows, and how do the raw arrays of one block become it?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple
from uuid import uuid4

import dask.array as da
import numpy as np
from dask.highlevelgraph import HighLevelGraph
from dask.task_spec import DataNode

from scaleshift.blocks import labels, sparse_rows
from scaleshift.blocks.travelled import aligned
from scaleshift.blocks.treatment import Treatment, check_treatment
from scaleshift.errors import DataError
from scaleshift.kernels.reference import namespace, to_numpy
from scaleshift.spelling import suggestion

Invalid = Literal["raise", "drop"]


class Block(NamedTuple):
    """What a kernel gets: consecutive rows, their columns, and where they start."""

    x: Any  # (n, n_markers), numpy, CuPy, or CSR if asked for; rows that are not finite are zero
    columns: dict[str, np.ndarray]  # name -> (n,), or (n, m) numbers; labels and samples as codes
    start: int  # absolute number of the first row
    valid: np.ndarray  # (n,) bool: False where a value was not finite
    invalid_by_column: np.ndarray  # (n_markers,) how many values of each column were not finite

    def rows(self, chosen: slice) -> Block:
        """The same of consecutive rows; what is counted by column stays that of all."""
        columns = {name: values[chosen] for name, values in self.columns.items()}
        start = self.start + (chosen.start or 0)
        return self._replace(x=self.x[chosen], columns=columns, start=start, valid=self.valid[chosen])

    def codes(self, name: str) -> np.ndarray:
        """Codes of a column, -1 also for rows that are not finite."""
        return np.where(self.valid, self.columns[name], -1)


@dataclass(frozen=True)
class Column:
    """One value a row: raw labels with their categories, or codes, or plain numbers, also several a row."""

    values: Any  # (n,) numpy or Dask; numbers may be (n, m), in one chunk along m
    categories: np.ndarray | None = None
    coded: bool = False  # values are codes of the categories already
    counts: np.ndarray | None = None  # (n_categories,) rows of each, where a pass has counted them


@dataclass(frozen=True)
class Loader:
    """Makes a `Block` of the raw arrays of one block; travels in every task."""

    columns: tuple[tuple[str, Column], ...]  # names and kinds; their values come with each block
    take: np.ndarray | None  # which columns of X, in which order
    sparse: bool = False  # whether blocks are said to be
    first: int = 0  # absolute number of the first of all rows

    def __call__(self, x: Any, *arrays: Any, start: int) -> Block:
        """Pick and check the columns of X, encode labels; `start` counts from the first of all rows."""
        start += self.first
        x, arrays = aligned((x, arrays))  # persisted ones may have come from another worker
        if not self.sparse:
            sparse_rows.refuse_block(x)
        if self.take is not None:
            x = x[:, self.take]
        columns = {
            name: _codes(name, column, to_numpy(array), start)
            for (name, column), array in zip(self.columns, arrays, strict=True)
        }
        x, valid, by_column = _finite(x)
        return Block(x, columns, start, valid, by_column)


@dataclass(frozen=True)
class Rows:
    """Aligned row blocks: one array and the columns that belong to its rows."""

    x: Any
    columns: dict[str, Column]
    markers: tuple[str, ...] | None = None
    invalid: Invalid = "raise"
    take: np.ndarray | None = None
    in_memory: bool = True
    unread: dict[str, Column] = field(default_factory=dict)  # columns that a pass does not need
    treatment: Treatment | None = None  # what is known of their transform and scaling
    first: int = 0  # absolute number of the first row: parts of rows have the noise of the whole
    is_part: bool = False  # whether they were cut from others: blocks may be parts of blocks

    @property
    def is_one_block(self) -> bool:
        """Whether a pass is a plain call."""
        return not isinstance(self.x, da.Array)

    @property
    def is_sparse(self) -> bool:
        """Whether blocks are CSR arrays."""
        return sparse_rows.is_sparse(self.x)

    @property
    def n_markers(self) -> int:
        """Columns of X that are used."""
        return self.x.shape[1] if self.take is None else len(self.take)

    @property
    def arrays(self) -> list[Any]:
        """The columns' values, in the order of their names."""
        return [column.values for column in self.columns.values()]

    @property
    def loader(self) -> Loader:
        """What turns the raw arrays of a block into a `Block`."""
        kinds = tuple((name, replace(column, values=None)) for name, column in self.columns.items())
        return Loader(kinds, self.take, self.is_sparse, self.first)

    def categories(self, name: str) -> np.ndarray:
        """Distinct values of a label column, in order of their codes."""
        found = self.columns[name].categories
        assert found is not None, f"{name} has no categories"
        return found

    def matched(
        self, markers: tuple[str, ...] | None, n_markers: int, treatment: Treatment | None = None
    ) -> Rows:
        """The same rows with the columns a model was fitted on: by name where both have names."""
        check_treatment(treatment, self.treatment, markers)
        if markers is None or self.markers is None:
            if self.x.shape[1] != n_markers:
                raise DataError(
                    f"X has {self.x.shape[1]} columns, the model was fitted on {n_markers}: pass "
                    "those, in their order"
                )
            return self
        if self.markers == markers:
            return self
        missing = [m for m in markers if m not in self.markers]
        if missing:
            hint = suggestion(missing[0], self.markers)
            raise DataError(f"X lacks the marker(s) {', '.join(missing)} that the model was fitted on{hint}")
        take = np.array([self.markers.index(m) for m in markers])
        return replace(self, markers=markers, take=take)

    def features(self, numbers: np.ndarray) -> Rows:
        """The same rows with some of the columns of X."""
        taken = numbers if self.take is None else self.take[numbers]
        markers = None if self.markers is None else tuple(self.markers[i] for i in numbers)
        return replace(self, take=taken, markers=markers)

    def only(self, *names: str) -> Rows:
        """The same rows with these columns: what a pass does not need is not read."""
        every = {**self.columns, **self.unread}
        columns = {name: every.pop(name) for name in names}
        return replace(self, columns=columns, unread=every)

    def without_x(self) -> Rows:
        """The same columns without X, which a pass over them then does not read: one of them stands in."""
        values = next(iter(self.columns.values())).values
        return Rows(values[:, None], self.columns, invalid="drop", in_memory=self.in_memory, first=self.first)

    def between(self, begin: int, end: int) -> Rows:
        """The rows [begin, end) of these, lazy where these are; they keep their absolute numbers."""
        columns, unread = (
            {name: replace(c, values=c.values[begin:end], counts=None) for name, c in group.items()}
            for group in (self.columns, self.unread)
        )
        x, first = self.x[begin:end], self.first + begin
        return replace(self, x=x, columns=columns, unread=unread, first=first, is_part=True)

    def as_dask(self) -> Rows:
        """The same rows with Dask arrays, one block at least."""
        if isinstance(self.x, da.Array):
            return self
        sizes = (self.x.shape[0],)
        columns, unread = (
            {name: replace(c, values=to_dask(c.values, sizes)) for name, c in group.items()}
            for group in (self.columns, self.unread)
        )
        x = to_dask(self.x, sizes)
        return replace(self, x=x, columns=columns, unread=unread)


@dataclass(frozen=True)
class Kept:
    """Prepared blocks: in memory, or made again by every pass. Made by `passes.keep` for `passes.total`."""

    x: Any  # (n_blocks, 1) Dask array whose every element is a Block; or one Block
    rows: Rows  # what they are made of
    held: bool  # whether they are in memory

    @property
    def is_one_block(self) -> bool:
        """Whether a pass is a plain call."""
        return isinstance(self.x, Block)

    @property
    def in_memory(self) -> bool:
        """Whether passes stay on this machine's threads."""
        return self.rows.in_memory

    @property
    def invalid(self) -> Invalid:
        """What happens to rows that are not finite."""
        return self.rows.invalid

    @property
    def arrays(self) -> list[Any]:
        """Nothing beside the blocks."""
        return []

    @property
    def loader(self) -> Callable[..., Block]:
        """A block is what it is."""
        return _as_it_is


def _as_it_is(block: Block, *, start: int) -> Block:
    found: Block = aligned(block)
    return found


def _codes(name: str, column: Column, values: np.ndarray, start: int) -> np.ndarray:
    """Codes of one block's rows, or plain numbers where the column has no categories.

    Every row needs a sample; a label may be missing.
    """
    if column.categories is None:
        return values
    codes = values if column.coded else labels.encode(values, column.categories, name)
    lowest, n = (-1 if name == "label" else 0), len(column.categories)
    if codes.size and (codes.min() < lowest or codes.max() >= n):
        row = int(np.flatnonzero((codes < lowest) | (codes >= n))[0])
        if codes[row] == -1:
            raise DataError(f"row {start + row} has no {name}: give it one, or leave the row out")
        raise DataError(f"row {start + row} has the {name} code {codes[row]}: expected {lowest} to {n - 1}")
    return codes


def _finite(x: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """Rows that are not finite, set to zero and marked. The sum finds out cheaply that there are none."""
    if sparse_rows.is_sparse(x):
        return sparse_rows.finite(x)
    none = np.zeros(x.shape[1])
    if x.dtype.kind != "f":
        return x, np.ones(len(x), bool), none
    xp = namespace(x)
    with np.errstate(all="ignore"):
        if bool(xp.isfinite(xp.sum(x))):
            return x, np.ones(len(x), bool), none
    finite = xp.isfinite(x)
    valid = finite.all(axis=1)
    by_column = (~finite).sum(axis=0)
    x = xp.where(valid[:, None], x, xp.zeros((), x.dtype))
    return x, to_numpy(valid), to_numpy(by_column).astype(np.float64)


def to_dask(array: Any, sizes: tuple[int, ...]) -> da.Array:
    """An array in memory as a Dask array of views of its rows: not copied, as Dask would, and not hashed.

    Rows of CSR arrays are copied: scipy has no views of them.

    Parameters
    ----------
    array : numpy, CuPy or CSR array, shape (n, ...)
    sizes : tuple of int
        Rows of each block; they add up to n.
    """
    name, meta = f"rows-{uuid4().hex}", array[:0]
    ends = np.cumsum(sizes).tolist()
    views: dict[Any, Any] = {}
    for number, (size, end) in enumerate(zip(sizes, ends, strict=True)):
        key = (name, number, *(0 for _ in array.shape[1:]))
        views[key] = DataNode(key, array[end - size : end])
    layers = HighLevelGraph.from_collections(name, views)
    return da.Array(layers, name, (sizes, *((size,) for size in array.shape[1:])), meta=meta)
