"""What does a small table (CSV, TSV, XLSX, pandas) say, cell by cell, as text?"""

from __future__ import annotations

import csv
import datetime
import io
import os
import re
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pandas as pd

from scaleshift.cells.optional import optional
from scaleshift.cells.regular import refuse_odd
from scaleshift.cells.text_tables import decode, style_of, without_told
from scaleshift.errors import DataError
from scaleshift.spelling import misspelt

TABLE = "table"  # what a DataFrame is called in errors
MISSING = frozenset(("", "na", "n/a", "nan", "<na>", "null", "#n/a"))
BROKEN = frozenset(("#REF!", "#NAME?", "#VALUE!", "#DIV/0!", "#NUM!", "#NULL!"))  # Excel's error values
MAX_BYTES = 2**29  # of a sheet, once unpacked; a real one has a few megabytes
MAX_ROWS, MAX_COLUMNS, MAX_CELLS = 2**20, 2**14, 2**24  # the first two are Excel's

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]\d+)?")
WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})")
PADDED = re.compile(r"[+-]?0\d")  # 007 is a name
DATA_FILE = re.compile(r"\.(fcs|lmd|h5ad)$", re.IGNORECASE)

Row = tuple[int, list[str]]  # line number in the file, cells


def read_table(source: str | os.PathLike[str] | pd.DataFrame) -> pd.DataFrame:
    """Read a sheet as text.

    Parameters
    ----------
    source : path or pandas.DataFrame
        Text with commas, semicolons or tabs, in UTF-8, UTF-16 with a byte order mark, or else
        Windows-1252; or XLSX (the first sheet that holds something, formulas by their stored values;
        extra ``excel``). The first row that is not blank has the column names. A first column
        without a name is taken for row names and left out.

    Returns
    -------
    pandas.DataFrame
        Text columns, cells stripped, "" where nothing stands; whole numbers as "3", dates in ISO format.
        Its index, called ``line``, has the line of each row in the file. ``attrs["decimal"]`` is "," for
        text with semicolons, else ".".

    Raises
    ------
    DataError
        If there is no such file, it is no table, has no header or no rows, names a column twice, or a row
        has more cells than the header; starts with the path and names line or column.

    Examples
    --------
    >>> table = read_table(pd.DataFrame({"file_name": ["a.fcs", "b.fcs"], "day": [3.0, None]}))
    >>> table["day"].tolist()
    ['3', '']
    """
    place = place_of(source)
    decimal = "."
    if isinstance(source, pd.DataFrame):
        rows = _frame_rows(source)
    else:
        content = _content(place)
        if content.startswith(b"PK\x03\x04"):
            rows = _excel_rows(content, place)
        else:
            text = decode(content, place)
            style = style_of(text)
            # More lenient than for events, since each column is then judged by itself.
            decimal = "," if style.delimiter == ";" else style.decimal
            rows = _text_rows(without_told(text), style.delimiter, place)
    table = _table([row for row in rows if any(row[1])], place)
    table.attrs["decimal"] = decimal
    return table


def place_of(source: str | os.PathLike[str] | pd.DataFrame) -> str:
    """What a sheet is called in errors: its path, or "table"."""
    return TABLE if isinstance(source, pd.DataFrame) else os.fspath(source)


def find_column(table: pd.DataFrame, synonyms: Sequence[str], other_than: str | None = None) -> str | None:
    """The column called by the first of the synonyms that there is, whatever its case and punctuation."""
    plain = {re.sub(r"[^a-z0-9]", "", str(name).casefold()): name for name in reversed(table.columns)}
    found = [plain[name] for name in synonyms if name in plain and plain[name] != other_than]
    return found[0] if found else None


def meant_column(table: pd.DataFrame, wanted: Sequence[str]) -> str:
    """Text for an error where one of the columns is nearly called as one that is wanted."""
    slip = misspelt(map(str, table.columns), wanted)
    return "" if slip is None else f" (did you mean {slip[1]!r} by {slip[0]!r}?)"


def typed_values(values: Iterable[str], decimal: str = ".") -> tuple[Any, ...]:
    """A column of text as int, float, bool or text, None where a value is missing.

    Numbers with leading zeros are names, and stay text.

    Examples
    --------
    >>> typed_values(["1", "", "3"]), typed_values(["TRUE", "false"]), typed_values(["007", "8"])
    ((1, None, 3), (True, False), ('007', '8'))
    """
    texts = [None if text.casefold() in MISSING else text for text in values]
    present = [text for text in texts if text is not None]
    plain = [text.replace(",", ".", 1) for text in present] if decimal == "," else present
    convert: Any = str
    if all(WHOLE.fullmatch(text) for text in present):
        convert = int
    elif all(NUMBER.fullmatch(text) and not PADDED.match(text) for text in plain):
        convert = _float
    elif all(text.casefold() in ("true", "false") for text in present):
        convert = _bool
    return tuple(None if text is None else convert(text) for text in texts)


def _float(text: str) -> float:
    return float(text.replace(",", "."))


def _bool(text: str) -> bool:
    return text.casefold() == "true"


def _frame_rows(frame: pd.DataFrame) -> list[Row]:
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    body = frame.astype(object).where(frame.notna(), None)
    rows = [[_text(value) for value in row] for row in body.itertuples(index=False, name=None)]
    return [(0, [_text(name) for name in frame.columns]), *enumerate(rows, start=1)]


def _content(path: str) -> bytes:
    refuse_odd(path)
    try:
        with open(path, "rb") as file:
            start = file.read(4096)
            if start.startswith(b"FCS"):
                raise DataError(f"{path}: is an FCS file, expected a sheet (CSV, TSV or XLSX)")
            if start.startswith(b"\xd0\xcf\x11\xe0"):
                raise DataError(f"{path}: is an old or protected Excel file: save it as .xlsx or CSV")
            packed = start.startswith(b"PK\x03\x04")
            if b"\0" in start and not packed and not start.startswith((b"\xff\xfe", b"\xfe\xff")):
                raise DataError(f"{path}: is no text, expected a sheet (CSV, TSV or XLSX)")
            content = start + file.read(MAX_BYTES)
    except FileNotFoundError:
        raise DataError(f"{path}: does not exist, expected a sheet (CSV, TSV or XLSX)") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    if len(content) > MAX_BYTES:
        raise DataError(
            f"{path}: has more than {MAX_BYTES >> 20} MB, which is no sheet: is it the right file?"
        )
    return content


def _text_rows(text: str, delimiter: str, place: str) -> list[Row]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        return [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except csv.Error as error:
        raise DataError(f"{place}: line {reader.line_num}: {error}: is a quote not closed?") from error


def _excel_rows(content: bytes, place: str) -> list[Row]:
    openpyxl = optional("openpyxl", "excel", f"{place}: reading XLSX, unlike CSV,")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
        if unpacked > MAX_BYTES:
            raise DataError(f"{place}: unpacks to {unpacked >> 20} MB, which is no sheet: save it as CSV")
        with warnings.catch_warnings():  # about styles and validations, which do not matter here
            warnings.simplefilter("ignore")
            book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
            for sheet in book.worksheets:
                if not hasattr(sheet, "reset_dimensions"):  # a chart
                    continue
                sheet.reset_dimensions()  # some writers store wrong ones
                rows = list(_filled_rows(sheet, place))
                if rows:
                    _refuse_broken(rows, place)
                    return rows
    except DataError:
        raise
    except Exception as error:  # whatever openpyxl makes of a damaged file
        raise DataError(
            f"{place}: cannot be read as XLSX ({type(error).__name__}): save it as CSV"
        ) from error
    return []


def _filled_rows(sheet: Any, place: str) -> Iterator[Row]:
    """Rows that hold something; a few bytes can ask for any number of empty ones, and of empty cells."""
    n_cells = 0
    for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
        n_cells += len(row)
        if number > MAX_ROWS or n_cells > MAX_CELLS:
            raise DataError(
                f"{place}: has more than {MAX_ROWS} rows or {MAX_CELLS} cells: save what is needed as CSV"
            )
        if any(value is not None for value in row):
            texts = [_text(value) for value in row]
            if any(texts):
                yield number, texts


def _refuse_broken(rows: list[Row], place: str) -> None:
    for line, row in rows:
        for column, cell in enumerate(row, start=1):
            if cell in BROKEN:
                raise DataError(f"{place}: line {line}, column {column}: the formula gives {cell}: mend it")


def _text(value: Any) -> str:
    """A value of a spreadsheet or a frame, as it would be typed."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime.datetime):
        midnight = value.time() == datetime.time()
        return value.date().isoformat() if midnight else value.isoformat(sep=" ")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value).strip()


def _table(rows: Sequence[Row], place: str) -> pd.DataFrame:
    """Rows under the names of the first of them; checks both."""
    if not rows:
        raise DataError(f"{place}: is empty, expected column names in the first row")
    line, header = rows[0]
    _check_header(header, line, place)
    if len(rows) == 1:
        raise DataError(f"{place}: has column names but no rows: add them, or leave the sheet out")
    width = len(header)
    for number, row in rows[1:]:
        if any(row[width:]):
            raise DataError(
                f"{place}: line {number} has {len(row)} cells, the header {width}: give it as many, and "
                "put text that holds the delimiter into quotes"
            )
    body = [(row + [""] * (width - len(row)))[:width] for _, row in rows[1:]]
    lines = pd.Index([number for number, _ in rows[1:]], name="line")
    table = pd.DataFrame(body, index=lines, columns=range(width), dtype=object)
    unnamed = [i for i, name in enumerate(header) if not name]
    for i in unnamed:
        if i > 0 and table[i].any():
            raise DataError(f"{place}: line {line}: column {i + 1} has no name, but values: name it")
    table = table.drop(columns=unnamed)
    return table.set_axis([name for name in header if name], axis=1).astype(str)


def _check_header(header: list[str], line: int, place: str) -> None:
    names = [name for name in header if name]
    file = next((name for name in names if DATA_FILE.search(name)), None)
    if file is not None or all(NUMBER.fullmatch(name) for name in names):
        raise DataError(
            f"{place}: line {line} looks like data ({file or names[0]!r}), expected column names: "
            "put a header above it"
        )
    if len(header) > MAX_COLUMNS:
        raise DataError(
            f"{place}: line {line} has {len(header)} cells, expected at most {MAX_COLUMNS} column names"
        )
    repeated = next((name for name, n in Counter(names).items() if n > 1), None)
    if repeated is not None:
        first, second = (i + 1 for i, name in enumerate(header) if name == repeated)
        raise DataError(
            f"{place}: line {line}: the column {repeated!r} stands twice (columns {first} and {second}): "
            "rename one"
        )
