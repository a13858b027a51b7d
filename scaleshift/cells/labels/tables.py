"""Which label does a table give to which event? CSV, parquet, AnnData's obs or a DataFrame, piece by piece.

A table has a column `file` or `sample` (none is needed for a study of one sample), a column `event` (else
the rows of each sample are its events, in order) and one with the label.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

import numpy as np
import pandas as pd
import zarr

from scaleshift.blocks.labels import suggestion
from scaleshift.cells.labels.addresses import FILE, SAMPLE
from scaleshift.cells.optional import optional
from scaleshift.cells.text_tables import HEAD, decoded, layout_of
from scaleshift.errors import DataError

ROWS = 1_000_000  # in one piece
NAMES = {
    FILE: ("file", "file_name", "filename"),
    SAMPLE: ("sample", "sample_id"),
    "event": ("event", "event_number"),
}
MISSING = ["", "NA", "N/A", "n/a", "<NA>", "NaN", "nan", "None", "null", "NULL"]


class Words(NamedTuple):
    """A column: the position of each row's value among `values`, -1 where it is missing."""

    codes: np.ndarray  # (n,)
    values: list[Any]


class Piece(NamedTuple):
    """Consecutive rows of a table."""

    first: int  # number of the first row, from 0
    places: Words | None  # names of files or samples
    events: np.ndarray | None  # (n,) numbers as they stand in the table
    labels: Words | None


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are what; None where there is none."""

    kind: str  # what `place` names: "file" or "sample"
    place: str | None
    event: str | None
    label: str | None

    @property
    def names(self) -> list[str]:
        """The columns that are read."""
        return [name for name in (self.place, self.event, self.label) if name is not None]


def choose_columns(names: Sequence[Any], table: str, label: str | None, kind: str = FILE) -> Columns:
    """Find the columns, by name without regard to case.

    Parameters
    ----------
    names : sequence
        Names of all columns.
    table : str
        What an error calls the table.
    label : str or None
        Name of the column with the labels; None where none is wanted, as in the table of one gate.
    kind : "file" or "sample", default "file"
        Which of the two is taken where a table has both.

    Raises
    ------
    DataError
        If there is no such label column.

    Examples
    --------
    >>> choose_columns(["Sample", "event", "gate"], "t.csv", "gate").place
    'Sample'
    """
    texts = [name for name in names if isinstance(name, str)]
    lower = {name.strip().casefold(): name for name in reversed(texts)}
    found = {what: next((lower[n] for n in known if n in lower), None) for what, known in NAMES.items()}
    if label is not None and label not in texts:
        if label.strip().casefold() not in lower:
            raise DataError(
                f"{table} has no column {label!r}{suggestion(label, texts)}; "
                "name the one with the labels: column=... (--column)"
            )
        label = lower[label.strip().casefold()]
    other = SAMPLE if kind == FILE else FILE
    if found[kind] is None:
        kind = other
    return Columns(kind, found[kind], found["event"], label)


@contextlib.contextmanager
def open_table(table: Any, label: str | None, kind: str = FILE) -> Iterator[tuple[Columns, Iterator[Piece]]]:
    """Columns and pieces of a table.

    Parameters
    ----------
    table : path or pandas.DataFrame
        .csv, .tsv or .txt (also .gz), .parquet, .h5ad, or the folder of an AnnData Zarr store.
    label, kind : as in `choose_columns`

    Raises
    ------
    DataError
        If the table cannot be read, a column is missing, or a package is.

    Examples
    --------
    >>> table = pd.DataFrame({"event": [0, 3], "label": ["T", "B"]})
    >>> with open_table(table, "label") as (columns, pieces):
    ...     next(pieces).labels.values
    ['T', 'B']
    """
    name = "the table" if isinstance(table, pd.DataFrame) else str(table)
    with contextlib.ExitStack() as stack:
        try:
            columns, pieces = _opened(stack, table, name, label, kind)
        except (OSError, ValueError) as error:
            raise _unreadable(error, name) from error
        yield columns, _told(pieces, name)


def _opened(
    stack: contextlib.ExitStack, table: Any, name: str, label: str | None, kind: str
) -> tuple[Columns, Iterator[Piece]]:
    if isinstance(table, pd.DataFrame):
        columns = choose_columns(list(table.columns), name, label, kind)
        return columns, _pieces_of_frame({n: table[n] for n in columns.names}, columns, len(table))
    if name.lower().endswith(".parquet"):
        return _parquet(stack, name, label, kind)
    if name.lower().endswith(".h5ad") or os.path.isdir(name):
        return _anndata(stack, name, label, kind)
    return _text(stack, name, label, kind)


def _told(pieces: Iterator[Piece], name: str) -> Iterator[Piece]:
    """The pieces; what goes wrong inside a reader names the table."""
    while True:
        try:
            piece = next(pieces)
        except StopIteration:
            return
        except (OSError, ValueError) as error:
            raise _unreadable(error, name) from error
        yield piece


def _unreadable(error: Exception, name: str) -> Exception:
    if isinstance(error, DataError):
        return error
    text = " ".join(str(error).split())
    return DataError(f"{name} cannot be read as a table ({text}): is it what its name says?")


def _text(
    stack: contextlib.ExitStack, name: str, label: str | None, kind: str
) -> tuple[Columns, Iterator[Piece]]:
    """CSV and the like. Bytes are read as latin-1, which takes all of them, and words decoded later."""
    file = stack.enter_context(_open_bytes(name))
    head = file.read(HEAD)
    if not head.strip():
        raise ValueError("it is empty")
    layout = layout_of(head, name)
    stored = {column: i for i, column in reversed(list(enumerate(layout.names))) if column}
    columns = choose_columns(list(reversed(stored)), name, label, kind)
    if not columns.names:
        raise DataError(f"{name} has none of the columns file, sample, event and label in its first line")
    words = [stored[column] for column in (columns.place, columns.label) if column is not None]
    na_values: dict[Any, list[str]] = {stored[n]: MISSING for n in (columns.label, columns.event) if n}
    file.seek(layout.start)
    reader = pd.read_csv(
        file,
        sep=layout.style.delimiter,
        encoding=layout.encoding if layout.encoding.startswith("utf-16") else "latin-1",
        skipinitialspace=True,
        header=None,
        names=range(len(layout.names)),
        usecols=[stored[column] for column in columns.names],
        dtype=dict.fromkeys(words, "category"),
        keep_default_na=False,
        na_values=na_values,
        chunksize=ROWS,
    )
    return columns, _pieces_of_text(stack.enter_context(reader), columns, stored)


def _pieces_of_text(reader: Any, columns: Columns, stored: dict[str, int]) -> Iterator[Piece]:
    first = 0
    for frame in reader:
        cut = {column: frame[stored[column]] for column in columns.names}
        for piece in _pieces_of_frame(cut, columns, len(frame)):  # one: it is as long as a piece may be
            places, labels = (
                None if words is None else words._replace(values=[_decoded(v) for v in words.values])
                for words in (piece.places, piece.labels)
            )
            yield piece._replace(first=first, places=places, labels=labels)
        first += len(frame)


def _open_bytes(name: str) -> IO[bytes]:
    """The file, unpacked."""
    return gzip.open(name, "rb") if name.lower().endswith(".gz") else open(name, "rb")  # type: ignore[return-value]


def _decoded(word: Any) -> Any:
    return decoded(word).strip() if isinstance(word, str) else word


def _parquet(
    stack: contextlib.ExitStack, name: str, label: str | None, kind: str
) -> tuple[Columns, Iterator[Piece]]:
    parquet = optional("pyarrow.parquet", "parquet", f"reading {name}")
    file = stack.enter_context(parquet.ParquetFile(name))
    columns = choose_columns(file.schema_arrow.names, name, label, kind)
    return columns, _pieces_of_parquet(file, columns)


def _pieces_of_parquet(file: Any, columns: Columns) -> Iterator[Piece]:
    first = 0
    for batch in file.iter_batches(batch_size=ROWS, columns=columns.names):
        arrays = {name: batch.column(batch.schema.names.index(name)) for name in columns.names}
        events = arrays[columns.event].to_numpy(zero_copy_only=False) if columns.event else None
        yield Piece(
            first,
            _words_of_arrow(arrays[columns.place]) if columns.place else None,
            events,
            _words_of_arrow(arrays[columns.label]) if columns.label else None,
        )
        first += batch.num_rows


def _words_of_arrow(array: Any) -> Words:
    """An arrow column as words, its values in their own type."""
    encoded = array if hasattr(array, "dictionary") else array.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return Words(codes.astype(np.int64), encoded.dictionary.to_pylist())


def _anndata(
    stack: contextlib.ExitStack, name: str, label: str | None, kind: str
) -> tuple[Columns, Iterator[Piece]]:
    """The obs of an AnnData file: three of its columns are read, and nothing of X."""
    reading = optional("anndata.io", "anndata", f"reading {name}")
    if name.lower().endswith(".h5ad"):
        h5py = optional("h5py", "anndata", f"reading {name}")
        group = stack.enter_context(h5py.File(name, "r"))
    else:
        group = zarr.open_group(name, mode="r", use_consolidated=False)
    obs = group.get("obs")
    if obs is None or "column-order" not in obs.attrs:
        raise DataError(f"{name} has no obs of AnnData 0.7 or later: write it with a newer anndata")
    columns = choose_columns([str(n) for n in obs.attrs["column-order"]], name, label, kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = {column: reading.read_elem(obs[column]) for column in columns.names}
    n = len(next(iter(values.values()), ()))
    return columns, _pieces_of_frame({k: pd.Series(v) for k, v in values.items()}, columns, n)


def _pieces_of_frame(values: dict[str, pd.Series], columns: Columns, n: int) -> Iterator[Piece]:
    for first in range(0, n, ROWS):
        part = {name: column.iloc[first : first + ROWS] for name, column in values.items()}
        yield Piece(
            first,
            _words(part[columns.place]) if columns.place else None,
            _numbers(part[columns.event]) if columns.event else None,
            _words(part[columns.label]) if columns.label else None,
        )


def _words(column: pd.Series) -> Words:
    if isinstance(column.dtype, pd.CategoricalDtype):
        values = column.cat.categories.tolist()
        return Words(column.cat.codes.to_numpy(np.int64), values)
    codes, distinct = pd.factorize(column)
    return Words(codes.astype(np.int64), [v.item() if isinstance(v, np.generic) else v for v in distinct])


def _numbers(column: pd.Series) -> np.ndarray:
    """Numbers, text where there is any that is none."""
    if isinstance(column.dtype, pd.CategoricalDtype) or column.dtype == object:
        return column.to_numpy(object)
    return column.to_numpy(np.float64, na_value=np.nan) if column.hasnans else column.to_numpy()
