"""What a user passes as X, y and sample -> aligned row blocks.

The only place that rechunks a column to its rows, merges chunks along the markers, counts unknown
chunks, matches columns by name and finds rows that are not finite (contract "Rows").
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import dask.array as da
import numpy as np
import xarray as xr

from scaleshift.blocks import labels, passes
from scaleshift.blocks.inputs import check_same_rows, matrix
from scaleshift.errors import ChunkError, DataError
from scaleshift.kernels.reference import to_numpy

BLOCK_ROWS = 65_536  # in-memory input is cut into blocks of so many rows
Invalid = Literal["raise", "drop"]


class Block(NamedTuple):
    """What a kernel gets: consecutive rows, their columns, and where they start."""

    x: Any  # (n, n_markers), numpy or CuPy; rows that are not finite are zero
    columns: dict[str, np.ndarray]  # name -> (n,); labels and samples as codes
    start: int  # absolute number of the first row
    valid: np.ndarray  # (n,) bool: False where a value was not finite
    invalid_by_column: np.ndarray  # (n_markers,) how many values of each column were not finite

    def codes(self, name: str) -> np.ndarray:
        """Codes of a column, -1 also for rows that are not finite."""
        return np.where(self.valid, self.columns[name], -1)


@dataclass(frozen=True)
class Column:
    """One value a row: raw labels with their categories, or codes, or plain numbers."""

    values: Any  # (n,) numpy or Dask
    categories: np.ndarray | None = None
    coded: bool = False  # values are codes of the categories already
    counts: np.ndarray | None = None  # (n_categories,) rows of each, where a pass has counted them


@dataclass(frozen=True)
class Loader:
    """Makes a `Block` of the raw arrays of one block; travels in every task."""

    columns: tuple[tuple[str, Column], ...]  # names and kinds; their values come with each block
    take: np.ndarray | None  # which columns of X, in which order

    def __call__(self, x: Any, *arrays: Any, start: int) -> Block:
        """Pick and check the columns of X, encode labels."""
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

    @property
    def is_one_block(self) -> bool:
        """Whether a pass is a plain call."""
        return not isinstance(self.x, da.Array)

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
        return Loader(kinds, self.take)

    def categories(self, name: str) -> np.ndarray:
        """Distinct values of a label column, in order of their codes."""
        found = self.columns[name].categories
        assert found is not None, f"{name} has no categories"
        return found

    def counts(self, name: str) -> np.ndarray:
        """Rows of each category, finite or not: one pass over that column only, or none if counted before."""
        column = self.columns[name]
        if column.counts is not None:
            return column.counts
        found, counts = passes.values(column)
        result = np.zeros(len(self.categories(name)), np.int64)
        result[found[found >= 0]] = counts[found >= 0]
        return result

    def matched(self, markers: tuple[str, ...] | None, n_markers: int) -> Rows:
        """The same rows with the columns a model was fitted on: by name where both have names."""
        if markers is None or self.markers is None:
            if self.x.shape[1] != n_markers:
                raise DataError(f"X has {self.x.shape[1]} columns, the model was fitted on {n_markers}")
            return self
        if self.markers == markers:
            return self
        missing = [m for m in markers if m not in self.markers]
        if missing:
            hint = labels.suggestion(missing[0], self.markers)
            raise DataError(f"X lacks the marker(s) {', '.join(missing)} that the model was fitted on{hint}")
        take = np.array([self.markers.index(m) for m in markers])
        return replace(self, markers=markers, take=take)

    def only(self, *names: str) -> Rows:
        """The same rows with these columns: what a pass does not need is not read."""
        every = {**self.columns, **self.unread}
        columns = {name: every.pop(name) for name in names}
        return replace(self, columns=columns, unread=every)

    def as_dask(self) -> Rows:
        """The same rows with Dask arrays, one block at least."""
        if isinstance(self.x, da.Array):
            return self
        chunks = (len(self.x),)
        columns, unread = (
            {name: replace(c, values=_to_dask(c.values, (chunks,))) for name, c in group.items()}
            for group in (self.columns, self.unread)
        )
        x = _to_dask(self.x, (chunks, (self.x.shape[1],)))
        return replace(self, x=x, columns=columns, unread=unread)


def as_rows(X: Any, y: Any = None, sample: Any = None, *, invalid: Invalid = "raise") -> Rows:
    """Align X with its labels and samples.

    Parameters
    ----------
    X : array-like, shape (n, n_markers), or a cells dataset
        numpy, Dask (any chunks), CuPy, pandas, xarray, AnnData. A cells dataset brings its labels and
        samples along.
    y : array-like, shape (n,), optional
        Labels; NaN, None and pandas.NA mean unlabelled. In place of the dataset's own.
    sample : array-like, shape (n,), optional
        Which sample a row belongs to. In place of the dataset's own.
    invalid : {"raise", "drop"}, default "raise"
        What to do with rows that hold NaN or infinite values.

    Returns
    -------
    Rows
        With a column "label" if there are labels, and "sample": one sample "all" where none are given.

    Raises
    ------
    DataError
        Wrong dimensions or dtype; labels of mixed types. A row without a sample is found by the first pass.
    ChunkError
        If a Dask column cannot be aligned with X.

    Examples
    --------
    >>> import numpy as np
    >>> as_rows(np.ones((4, 2)), y=[1, 0, None, 1]).categories("label").tolist()
    [0, 1]
    """
    if invalid not in ("raise", "drop"):
        raise DataError(f"invalid={invalid!r}: expected 'raise' or 'drop'")
    given = {"label": y, "sample": sample}
    columns: dict[str, Column] = {}
    if isinstance(X, xr.Dataset):
        columns, given = _dataset_columns(X, given)
        X = X["X"]
    table = X
    x, markers = matrix(X)
    x = _known_chunks(x)
    for name, values_ in given.items():
        if values_ is not None:
            check_same_rows(table, values_, name)
            columns[name] = _column(values_, name)
    in_memory = not isinstance(x, da.Array)
    if in_memory and any(isinstance(c.values, da.Array) for c in columns.values()):
        x, in_memory = _to_dask(x, (_cut(len(x)), (x.shape[1],))), False
    if in_memory and len(x) > BLOCK_ROWS:
        x = _to_dask(x, (_cut(len(x)), (x.shape[1],)))
    if "sample" not in columns:
        columns["sample"] = Column(_zeros(x), np.array(["all"]), coded=True)
    columns = {name: replace(c, values=_aligned(c.values, x, name)) for name, c in columns.items()}
    return Rows(x, columns, markers, invalid, None, in_memory)


def _dataset_columns(cells: xr.Dataset, given: dict[str, Any]) -> tuple[dict[str, Column], dict[str, Any]]:
    """Labels and samples of a cells dataset, where the caller gave none."""
    if "X" not in cells:
        found = ", ".join(map(str, cells.data_vars)) or "none"
        raise DataError(f"the dataset has no variable X; it has {found}: see scaleshift.as_cells")
    columns = {}
    for name in given:
        code = f"{name}_code"
        if given[name] is None and code in cells and cells.sizes.get(name, 0):
            labels.check_fingerprint(cells[code].attrs, cells[name].values, name)
            columns[name] = Column(cells[code].data, cells[name].values, coded=True)
    return columns, given


def _known_chunks(x: Any) -> Any:
    if not isinstance(x, da.Array):
        return x
    if np.isnan(x.shape[0]):
        x = x.copy().compute_chunk_sizes()  # one counting pass
    if x.numblocks[1] > 1:
        warnings.warn(
            f"X has {x.numblocks[1]} chunks along the markers: they are merged block by block, which copies "
            "the data; store all markers in one chunk",
            stacklevel=4,
        )
        x = x.rechunk({1: -1})
    return x


def _column(values: Any, name: str) -> Column:
    """Labels in memory become codes at once; lazy ones cost a pass over them and are encoded in the tasks."""
    if isinstance(values, xr.DataArray):
        values = values.data
    if not isinstance(values, da.Array):
        codes, categories = labels.factorize(values, name)
        # As narrow as they can be: beside a Dask X they travel in the graph.
        narrow = np.min_scalar_type(-len(categories) - 1)
        return Column(codes.astype(narrow), categories, coded=True)
    if values.ndim != 1:
        raise DataError(f"{name}s have {values.ndim} dimensions: expected one value a row")
    values = _known_length(values)
    found, counts = passes.values(Column(values))
    categories = labels.order(found, name)
    by_category = np.zeros(len(categories), np.int64)
    by_category[labels.encode(found, categories, name)] = counts
    return Column(values, categories, counts=by_category)


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


def _zeros(x: Any) -> Any:
    """One code a row without a row-sized array on the driver."""
    if isinstance(x, da.Array):
        return da.zeros(x.shape[0], chunks=(x.chunks[0],), dtype=labels.CODE)
    return np.zeros(len(x), labels.CODE)


def _known_length(values: da.Array) -> da.Array:
    return values.copy().compute_chunk_sizes() if np.isnan(values.shape[0]) else values


def _aligned(values: Any, x: Any, name: str) -> Any:
    """A column with the row chunks of X."""
    if len(values) != x.shape[0]:
        raise ChunkError(f"{name} has {len(values)} values, X has {x.shape[0]} rows")
    if not isinstance(x, da.Array):
        return values
    if isinstance(values, da.Array):
        return values if values.chunks[0] == x.chunks[0] else values.rechunk((x.chunks[0],))
    return _to_dask(values, (x.chunks[0],))


def _to_dask(array: Any, chunks: Any) -> da.Array:
    return da.from_array(array, chunks=chunks, meta=array[:0], name=False, asarray=False)


def _cut(n: int) -> tuple[int, ...]:
    return (BLOCK_ROWS,) * (n // BLOCK_ROWS) + ((n % BLOCK_ROWS,) if n % BLOCK_ROWS or not n else ())


def _finite(x: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """Rows that are not finite, set to zero and marked. The sum finds out cheaply that there are none."""
    none = np.zeros(x.shape[1])
    if x.dtype.kind != "f":
        return x, np.ones(len(x), bool), none
    xp = np if isinstance(x, np.ndarray) else x.__array_namespace__()
    with np.errstate(all="ignore"):
        if bool(xp.isfinite(xp.sum(x))):
            return x, np.ones(len(x), bool), none
    finite = xp.isfinite(x)
    valid = finite.all(axis=1)
    by_column = (~finite).sum(axis=0)
    x = xp.where(valid[:, None], x, xp.zeros((), x.dtype))
    return x, to_numpy(valid), to_numpy(by_column).astype(np.float64)
