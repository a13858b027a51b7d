"""What is known of a table of events, one row an event? Its header, and where its rows start."""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from scaleshift.cells.files.described import Described, Group, groups_of
from scaleshift.cells.problem import Problem
from scaleshift.errors import DataError

SUFFIXES = (".csv", ".tsv", ".txt")
STEP = 16_384  # rows between two places that are remembered
BLOCK = 2**24  # bytes read at once while rows are counted
PEEK = 100  # rows that tell which columns are numbers


@dataclass(frozen=True, eq=False)
class Dialect:
    """How a table is written."""

    delimiter: str
    decimal: str
    encoding: str
    names: tuple[str, ...]

    def parse(self, raw: bytes, **options: object) -> pd.DataFrame:
        """Rows of text as a data frame."""
        return pd.read_csv(  # type: ignore[call-overload]
            io.BytesIO(raw),
            sep=self.delimiter,
            decimal=self.decimal,
            encoding=self.encoding,
            names=list(self.names),
            header=None,
            index_col=False,
            skip_blank_lines=False,
            **options,
        )


@dataclass(frozen=True, eq=False)
class TableReader:
    """Reader of the numbers of a table."""

    path: str
    dialect: Dialect
    columns: tuple[int, ...]
    n_rows: int
    places: np.ndarray  # (n_steps + 1,): the byte at which rows 0, STEP, 2 STEP, ... start; the end

    def read(self, first: int, stop: int) -> np.ndarray:
        """Rows [first, stop)."""
        parts = [self._step(i, first, stop) for i in range(first // STEP, -(-stop // STEP))]
        return np.concatenate(parts) if parts else np.empty((0, len(self.columns)), np.float32)

    def _step(self, i: int, first: int, stop: int) -> np.ndarray:
        start = i * STEP
        n = min(STEP, self.n_rows - start)
        frame = self._parsed(_bytes(self.path, int(self.places[i]), int(self.places[i + 1])), start)
        if len(frame) != n:
            raise DataError(
                f"{self.path}: rows {start}-{start + n - 1} are {len(frame)} rows now: has the file changed, "
                "or does a quoted text hold a line break?"
            )
        rows = slice(max(first - start, 0), min(stop - start, n))
        return frame.iloc[rows].to_numpy(np.float32)

    def _parsed(self, raw: bytes, start: int) -> pd.DataFrame:
        used = [self.dialect.names[c] for c in self.columns]
        try:
            frame = self.dialect.parse(raw, usecols=used, dtype=np.float64)
        except (ValueError, pd.errors.ParserError) as error:
            raise self._bad_value(raw, start, error) from None
        return frame[used]

    def _bad_value(self, raw: bytes, start: int, error: Exception) -> DataError:
        """The error with the line and column of the first value that is no number."""
        try:
            text = self.dialect.parse(raw, dtype=str)
        except (ValueError, pd.errors.ParserError):
            return DataError(f"{self.path}: near line {start + 2}: {error}")
        for c in self.columns:
            values = text[self.dialect.names[c]].str.replace(self.dialect.decimal, ".", regex=False)
            bad = np.flatnonzero(pd.to_numeric(values, errors="coerce").isna() & values.notna())
            if bad.size:
                return DataError(
                    f"{self.path}: line {start + bad[0] + 2}, column {self.dialect.names[c]!r}: "
                    f"{values.iloc[bad[0]]!r} is no number"
                )
        return DataError(f"{self.path}: near line {start + 2}: {error}")


def describe(path: str, sample: str | None = None) -> list[Described]:
    """Describe a CSV or TSV file: a header line, then one row an event.

    Parameters
    ----------
    path : str
    sample : str, optional
        Column that holds the sample of each row; the rows of a sample stand together.

    Raises
    ------
    DataError
        If there is no header, a name stands twice, or no column holds numbers.
    """
    if not os.path.getsize(path):
        raise DataError(f"{path}: is empty: expected a header line, then one row an event")
    header, start = _header(path)
    dialect, numeric = _dialect(path, header, start)
    places, n_rows, crc = _index(path, start)
    if sample is not None and sample not in dialect.names:
        raise DataError(f"{path}: has no column {sample!r}; it has {', '.join(dialect.names[:8])}")
    columns = tuple(i for i, name in enumerate(dialect.names) if numeric[i] and name != sample)
    if not columns:
        raise DataError(f"{path}: no column holds numbers: is the delimiter one of , ; or tab?")
    text = [name for i, name in enumerate(dialect.names) if not numeric[i] and name != sample]
    problems = [Problem("note", path, f"columns of text are left out: {', '.join(text)}")] if text else []
    reader = TableReader(path, dialect, columns, n_rows, places)
    return [
        Described(
            path=path,
            format="CSV",
            cytometer="",
            n_events=n_rows,
            channels=tuple(dialect.names[i] for i in columns),
            markers=("",) * len(columns),
            reader=reader,
            fingerprint=f"{os.path.getsize(path)}-{crc:08x}",
            problems=tuple(problems),
            groups=_groups(reader, sample) if sample is not None else (),
        )
    ]


def _header(path: str) -> tuple[bytes, int]:
    with open(path, "rb") as file:
        line = file.readline(2**20)
        return line, file.tell()


def _dialect(path: str, header: bytes, start: int) -> tuple[Dialect, list[bool]]:
    """How the table is written, and which of its columns are numbers, by its first rows."""
    with open(path, "rb") as file:
        file.seek(start)
        rows = b"".join(file.readline(2**20) for _ in range(PEEK))
    encoding = "utf-8-sig" if _decodes(header + rows) else "latin-1"
    line = header.decode(encoding).rstrip("\r\n")
    delimiter = max(",;\t", key=line.count)
    names = tuple(name.strip().strip('"') for name in line.split(delimiter))
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise DataError(f"{path}: line 1: column {repeated!r} stands twice: rename one of them")
    if all(_is_number(name) for name in names if name):
        raise DataError(f"{path}: line 1 is numbers: expected a header line with the names of the markers")
    decimal = "," if delimiter == ";" and b"," in rows and b"." not in rows else "."
    dialect = Dialect(delimiter, decimal, encoding.removesuffix("-sig"), names)
    try:
        frame = dialect.parse(rows) if rows else pd.DataFrame(columns=list(names), dtype=np.float64)
    except (ValueError, pd.errors.ParserError) as error:
        raise DataError(f"{path}: {error}: is every row as long as the header?") from None
    return dialect, [frame[name].dtype.kind in "iuf" for name in names]


def _index(path: str, start: int) -> tuple[np.ndarray, int, int]:
    """Places of every STEP-th row, the number of rows, and a checksum of the file's first block."""
    places, n_rows, place, last, crc = [start], 0, start, b"\n", 0
    for block in _blocks(path, start):
        crc = crc or zlib.crc32(block)
        ends = np.flatnonzero(np.frombuffer(block, np.uint8) == 10)  # line feeds
        wanted = np.arange(STEP - n_rows % STEP - 1, len(ends), STEP)
        places += (place + ends[wanted] + 1).tolist()
        n_rows, place, last = n_rows + len(ends), place + len(block), block[-1:]
    n_rows += last != b"\n"  # the last line may lack its end
    if places[-1] != place or len(places) == 1:
        places.append(place)
    return np.array(places), n_rows, crc


def _blocks(path: str, start: int) -> Iterator[bytes]:
    """The file from `start` on, without blank lines at its end."""
    with open(path, "rb") as file:
        end = file.seek(0, os.SEEK_END)
        last = max(start, end - PEEK)
        file.seek(last)
        end = last + len(file.read().rstrip())
        file.seek(start)
        while start < end and (block := file.read(min(BLOCK, end - start))):
            start += len(block)
            yield block


def _bytes(path: str, first: int, stop: int) -> bytes:
    with open(path, "rb") as file:
        file.seek(first)
        return file.read(stop - first)


def _groups(reader: TableReader, sample: str) -> tuple[Group, ...]:
    """Rows of each sample, by one reading of that column."""
    names: dict[str, int] = {}
    codes = []
    for i in range(len(reader.places) - 1):
        raw = _bytes(reader.path, int(reader.places[i]), int(reader.places[i + 1]))
        column = reader.dialect.parse(raw, usecols=[sample], dtype=str)[sample]
        if column.isna().any():
            line = i * STEP + int(np.flatnonzero(column.isna())[0]) + 2
            raise DataError(f"{reader.path}: line {line}: {sample} is missing: every row needs a sample")
        part, found = pd.factorize(column)
        codes.append(np.array([names.setdefault(name, len(names)) for name in found])[part])
    groups = groups_of(np.concatenate(codes) if codes else np.empty(0, np.int64), list(names))
    torn = next((group.sample for group in groups if not isinstance(group.rows, slice)), None)
    if torn is not None:
        raise DataError(
            f"{reader.path}: the rows of {sample} {torn!r} do not stand together: sort the file by {sample}, "
            "or, if it fits into memory, use write_cells(as_cells(table, sample=...), store)"
        )
    return groups


def _decodes(raw: bytes) -> bool:
    try:
        raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return error.end >= len(raw) and error.reason == "unexpected end of data"
    return True


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True
