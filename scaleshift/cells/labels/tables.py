"""Which label does a table give to which event? Text, XLSX, parquet, AnnData's obs or a DataFrame, in pieces.

A table has a column `file` or `sample` (none is needed for a study of one sample), a column `event` (else
the rows of each sample are its events, in order) and one with the label.
"""

from __future__ import annotations

import codecs
import contextlib
import gzip
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

import numpy as np
import pandas as pd
import zarr

from scaleshift.cells.files.annotated import refuse_links
from scaleshift.cells.labels.addresses import FILE, SAMPLE
from scaleshift.cells.optional import optional
from scaleshift.cells.reader import store_at
from scaleshift.cells.regular import refuse_odd
from scaleshift.cells.sheets.tables import read_table
from scaleshift.cells.text_rows import Bytes, check_widths, has_extremes, parse, whole_rows
from scaleshift.cells.text_tables import HEAD, Layout, decoded, layout_of
from scaleshift.errors import DataError
from scaleshift.spelling import misspelt, suggestion

ROWS = 1_000_000  # in one piece
NAMES = {
    FILE: ("file", "file_name", "filename"),
    SAMPLE: ("sample", "sample_id"),
    "event": ("event", "event_number"),
}
BLOCK = 2**24  # bytes of text that are read at once
EXTREME = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)[eE][+-]?\d{4,}\s*", re.ASCII)
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


class Wanted(NamedTuple):
    """Which columns of a table are wanted.

    Attributes
    ----------
    label : str or None
        Name of the column with the labels; None where none is wanted, as in the table of one gate.
    kind : "file" or "sample", default "file"
        Which of the two is taken where a table has both.
    sample : str, optional
        Name of the column with the samples, where it is none of the usual ones.
    """

    label: str | None
    kind: str = FILE
    sample: str | None = None


def choose_columns(names: Sequence[Any], table: str, wanted: Wanted) -> Columns:
    """Find the columns, by name without regard to case.

    Parameters
    ----------
    names : sequence
        Names of all columns.
    table : str
        What an error calls the table.
    wanted : Wanted

    Raises
    ------
    DataError
        If there is no such column of labels or samples, or a column stands twice.

    Examples
    --------
    >>> choose_columns(["Sample", "event", "gate"], "t.csv", Wanted("gate")).place
    'Sample'
    """
    label, kind, sample = wanted
    texts = [name for name in names if isinstance(name, str)]
    lower = {name.strip().casefold(): name for name in reversed(texts)}
    found = {what: next((lower[n] for n in known if n in lower), None) for what, known in NAMES.items()}
    if label is not None and label not in texts:
        if label.strip().casefold() not in lower:
            raise DataError(
                f"{table} has no column {label!r}{suggestion(label, texts)}; "
                "name the one with the labels: column=... (--column of label, --label-column of ingest)"
            )
        label = lower[label.strip().casefold()]
    if sample is not None:
        if sample not in texts:
            raise DataError(f"{table} has no column {sample!r} of samples{suggestion(sample, texts)}")
        kind, found[SAMPLE] = SAMPLE, sample
    other = SAMPLE if kind == FILE else FILE
    if found[kind] is None:
        kind = other
    if found["event"] is None:
        slip = misspelt(texts, NAMES["event"])
        if slip is not None:
            raise DataError(
                f"{table} has no column 'event'; did you mean it by {slip[0]!r}? Rename it, or take it out: "
                "without one, the rows of each sample are its events in order"
            )
    columns = Columns(kind, found[kind], found["event"], label)
    twice = next((column for column in columns.names if texts.count(column) > 1), None)
    if twice is not None:
        raise DataError(f"{table} has two columns {twice!r}: rename one of them")
    return columns


@contextlib.contextmanager
def open_table(table: Any, wanted: Wanted) -> Iterator[tuple[Columns, Iterator[Piece]]]:
    """Columns and pieces of a table.

    Parameters
    ----------
    table : path or pandas.DataFrame
        .csv, .tsv or .txt (also .gz), .xlsx, .parquet, .h5ad, or the folder of an AnnData Zarr store.
    wanted : Wanted

    Raises
    ------
    DataError
        If the table cannot be read, a column is missing, or a package is.

    Examples
    --------
    >>> table = pd.DataFrame({"event": [0, 3], "label": ["T", "B"]})
    >>> with open_table(table, Wanted("label")) as (columns, pieces):
    ...     next(pieces).labels.values
    ['T', 'B']
    """
    name = "the table" if isinstance(table, pd.DataFrame) else str(table)
    with contextlib.ExitStack() as stack:
        try:
            columns, pieces = _opened(stack, table, name, wanted)
        except Exception as error:  # whatever a library makes of a damaged file
            raise _unreadable(error, name) from error
        yield columns, _told(pieces, name)


def _opened(
    stack: contextlib.ExitStack, table: Any, name: str, wanted: Wanted
) -> tuple[Columns, Iterator[Piece]]:
    if isinstance(table, pd.DataFrame):
        columns = choose_columns(list(table.columns), name, wanted)
        return columns, _pieces_of_frame({n: table[n] for n in columns.names}, columns, len(table))
    refuse_odd(name, folders=True)
    if name.lower().endswith(".parquet"):
        return _parquet(stack, name, wanted)
    if name.lower().endswith(".h5ad") or os.path.isdir(name):
        return _anndata(stack, name, wanted)
    return _excel(name, wanted) if _is_excel(name) else _text(stack, name, wanted)


def _told(pieces: Iterator[Piece], name: str) -> Iterator[Piece]:
    """The pieces; what goes wrong inside a reader names the table."""
    while True:
        try:
            piece = next(pieces)
        except StopIteration:
            return
        except Exception as error:
            raise _unreadable(error, name) from error
        yield piece


def _unreadable(error: Exception, name: str) -> Exception:
    text = " ".join(str(error).split())  # names of columns may hold line breaks
    if isinstance(error, DataError):
        return DataError(text)
    return DataError(f"{name} cannot be read as a table ({text}): is it what its name says?")


def _text(stack: contextlib.ExitStack, name: str, wanted: Wanted) -> tuple[Columns, Iterator[Piece]]:
    """CSV and the like. Bytes are read as latin-1, which takes all of them, and words decoded later."""
    file = stack.enter_context(_open_bytes(name))
    head = file.read(HEAD)
    if not head.strip():
        raise ValueError("it is empty")
    layout = layout_of(head, name)
    columns = choose_columns([column for column in layout.names if column], name, wanted)
    if not columns.names:
        raise DataError(f"{name} has none of the columns file, sample, event and label in its first line")
    file.seek(layout.start)
    utf16 = layout.encoding.startswith("utf-16")
    return columns, _pieces_of_text(_AsUtf8(file, layout.encoding) if utf16 else file, layout, columns, name)


def _pieces_of_text(file: Bytes, layout: Layout, columns: Columns, path: str) -> Iterator[Piece]:
    stored = {column: layout.names.index(column) for column in columns.names}
    dtype: dict[int, Any] = {stored[n]: "category" for n in (columns.place, columns.label) if n}
    na_values = {stored[n]: MISSING for n in (columns.label, columns.event) if n}
    options = {"usecols": list(stored.values()), "keep_default_na": False, "na_values": na_values}
    first, line = 0, layout.line
    for raw in whole_rows(file, layout, BLOCK):
        check_widths(raw, layout, line, path)
        frame = parse(raw, layout, dtype=dtype, **options)
        event = stored.get(columns.event or "")
        if event is not None and frame[event].dtype.kind != "i" and has_extremes(raw):
            frame = parse(raw, layout, dtype=dtype | {event: str}, **options)
        for piece in _pieces_of_frame({name: frame[i] for name, i in stored.items()}, columns, len(frame)):
            places, labels = (
                None if words is None else words._replace(values=[_decoded(v) for v in words.values])
                for words in (piece.places, piece.labels)
            )
            yield piece._replace(first=first + piece.first, places=places, labels=labels)
        first, line = first + len(frame), line + raw.count(layout.end)


class _AsUtf8:
    """The bytes of a text in UTF-16, in UTF-8."""

    def __init__(self, file: IO[bytes], encoding: str) -> None:
        self._file, self._decoder = file, codecs.getincrementaldecoder(encoding)()

    def read(self, size: int, /) -> bytes:
        block = self._file.read(size)
        return self._decoder.decode(block, final=not block).encode()


def _excel(name: str, wanted: Wanted) -> tuple[Columns, Iterator[Piece]]:
    sheet = read_table(name)
    columns = choose_columns(list(sheet.columns), name, wanted)
    values = {column: sheet[column] for column in columns.names}
    for column in filter(None, (columns.label, columns.event)):
        values[column] = values[column].mask(values[column].isin(MISSING), None)
    return columns, _pieces_of_frame(values, columns, len(sheet))


def _is_excel(name: str) -> bool:
    with open(name, "rb") as file:
        return file.read(4) in (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")


def _open_bytes(name: str) -> IO[bytes]:
    """The file, unpacked."""
    return gzip.open(name, "rb") if name.lower().endswith(".gz") else open(name, "rb")  # type: ignore[return-value]


def _decoded(word: Any) -> Any:
    return decoded(word).strip() if isinstance(word, str) else word


def _parquet(stack: contextlib.ExitStack, name: str, wanted: Wanted) -> tuple[Columns, Iterator[Piece]]:
    parquet = optional("pyarrow.parquet", "parquet", f"reading {name}")
    file = stack.enter_context(parquet.ParquetFile(name))
    columns = choose_columns(file.schema_arrow.names, name, wanted)
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


def _anndata(stack: contextlib.ExitStack, name: str, wanted: Wanted) -> tuple[Columns, Iterator[Piece]]:
    """The obs of an AnnData file: three of its columns are read, and nothing of X."""
    reading = optional("anndata.io", "anndata", f"reading {name}")
    if name.lower().endswith(".h5ad"):
        h5py = optional("h5py", "anndata", f"reading {name}")
        group = stack.enter_context(h5py.File(name, "r"))
        refuse_links(group, name)
    else:
        group = zarr.open_group(store_at(name, read_only=True), mode="r", use_consolidated=False)
    obs = group.get("obs")
    if obs is None or "column-order" not in obs.attrs:
        raise DataError(f"{name} has no obs of AnnData 0.7 or later: write it with a newer anndata")
    columns = choose_columns([str(n) for n in obs.attrs["column-order"]], name, wanted)
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
    if isinstance(column.dtype, pd.CategoricalDtype) or not pd.api.types.is_numeric_dtype(column.dtype):
        values = column.to_numpy(object)
        extreme = np.flatnonzero(column.astype(str).str.fullmatch(EXTREME))  # which pandas must not see
        if extreme.size:
            values = values.copy()
            values[extreme] = [float(value) for value in values[extreme]]
        return values
    return column.to_numpy(np.float64, na_value=np.nan) if column.hasnans else column.to_numpy()
