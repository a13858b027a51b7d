"""What do the rows of a long text table hold? Cut into pieces, their cells counted, and taken as numbers."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from typing import Protocol

import numpy as np
import pandas as pd

from scaleshift.cells.text_tables import Layout, decoded
from scaleshift.errors import DataError

OPEN = 4  # pieces in which the end of a quote is looked for
BLANKS = b" \r\n"
CALLED = {",": "comma", ";": "semicolon", "\t": "tab"}
EXTREME = re.compile(rb"[eE](?<=[\d.][eE])[+-]?\d{4}")  # pandas misreads such exponents, or dies of them
NUMBERS = {
    mark: re.compile(
        rf"\s*[+-]?((\d+{mark}?\d*|{mark}\d+)([eE][+-]?\d+)?|inf(inity)?)\s*", re.IGNORECASE | re.ASCII
    )
    for mark in (",", r"\.")
}


class Bytes(Protocol):
    """What bytes can be read from."""

    def read(self, size: int, /) -> bytes:
        """At most so many bytes; none at the end."""


def whole_rows(file: Bytes, layout: Layout, size: int) -> Iterator[bytes]:
    r"""The rows of a file from where it stands, about `size` bytes at a time, without blank lines at its end.

    A row is cut at line breaks within quotes only where no quote seems to end; then its pieces have not the
    cells that they should.

    Examples
    --------
    >>> from scaleshift.cells.text_tables import Style
    >>> layout = Layout("utf-8", Style(",", "."), ("a",), 2, 0, b"\n")
    >>> list(whole_rows(io.BytesIO(b"1\n2\n\n3\n\n\n"), layout, 4))
    [b'1\n2\n', b'\n3\n']
    """
    rest = b""
    while block := file.read(size):
        rest += block
        rows = rest[: _last_end(rest, layout.end, open_ends=len(rest) > OPEN * size)]
        full = len(rows.rstrip(BLANKS))
        if full:  # blank lines below wait: they may be the last
            stop = rows.index(layout.end, full) + 1
            yield rows[:stop]
            rest = rest[stop:]
    if rest := rest.rstrip(BLANKS):
        yield rest


def _last_end(raw: bytes, end: bytes, open_ends: bool) -> int:
    """Where the last whole row ends, if need be within quotes; 0 where there is none."""
    last = raw.rfind(end) + 1
    if b'"' not in raw:
        return last
    data = np.frombuffer(raw, np.uint8)
    outside = np.cumsum(data == ord('"')) % 2 == 0
    ends = np.flatnonzero((data == ord(end)) & outside)
    return int(ends[-1]) + 1 if ends.size else last * open_ends


def check_widths(raw: bytes, layout: Layout, line: int, path: str) -> None:
    """Raise DataError for the first row that has not one cell a column; `line` is that of the first row."""
    data = np.frombuffer(raw, np.uint8)
    cuts, ends = data == ord(layout.style.delimiter), data == ord(layout.end)
    if b'"' in raw:
        cuts &= np.cumsum(data == ord('"')) % 2 == 0  # not those inside of quotes
    stops = np.flatnonzero(ends)
    if not raw.endswith(layout.end):  # the last line may lack its end
        stops = np.append(stops, len(data))
    widths = np.diff(np.searchsorted(np.flatnonzero(cuts), stops), prepend=0) + 1
    lines = np.arange(len(widths))
    names = len(layout.names)
    if (widths == names).all():
        return
    if b'"' in raw:  # quotes may stand inside of a word too: counted anew, by the rules that are parsed by
        lines, widths = _counted(raw, layout)
    wrong = np.flatnonzero(widths != names)
    if wrong.size:
        at, found = int(lines[wrong[0]]), widths[wrong[0]]
        if not raw.split(layout.end)[at].strip():
            raise DataError(f"{path}: line {line + at} is blank, expected {names} cells: take it out")
        raise DataError(
            f"{path}: line {line + at} has {found} cell{'s' * bool(found > 1)}, "
            f"expected {names}, one a name: mend it, or put text with a {CALLED[layout.style.delimiter]} "
            "into quotes"
        )


def _counted(raw: bytes, layout: Layout) -> tuple[np.ndarray, np.ndarray]:
    """Line of each row, from 0, and its number of cells."""
    text = io.StringIO(raw.decode("latin-1"), newline="")
    reader = csv.reader(text, delimiter=layout.style.delimiter, skipinitialspace=True)
    try:
        counted = np.array([(reader.line_num, max(len(row), 1)) for row in reader], np.int64).reshape(-1, 2)
    except csv.Error:  # a cell without an end
        return np.zeros(1, np.int64), np.zeros(1, np.int64)
    return np.concatenate([[0], counted[:-1, 0]]), counted[:, 1]


def parse(raw: bytes, layout: Layout, **options: object) -> pd.DataFrame:
    """Rows of text as a data frame, columns by number; words are not decoded (see `decoded`)."""
    return pd.read_csv(  # type: ignore[call-overload]
        io.BytesIO(raw),
        sep=layout.style.delimiter,
        decimal=layout.style.decimal,
        encoding="latin-1",  # which takes all bytes: a letter of another encoding spoils no number
        names=range(len(layout.names)),
        header=None,
        index_col=False,
        skip_blank_lines=False,
        skipinitialspace=True,
        float_precision="legacy",  # the others err with 1e-20 in full, or die of large exponents
        **options,
    )


def numbers(raw: bytes, layout: Layout, columns: list[int], line: int, path: str) -> pd.DataFrame:
    """Columns of rows as float64: NaN where nothing stands, infinite beyond float64.

    Raises
    ------
    DataError
        That names line and column of the first word that is no number.
    """
    if not has_extremes(raw):
        try:
            return parse(raw, layout, usecols=columns, dtype=np.float64)
        except (ValueError, pd.errors.ParserError):
            pass  # what is wrong is told word by word
    words = parse(raw, layout, usecols=columns, dtype=str)
    for column in columns:
        wrong = misfits(words[column], layout)
        if wrong.size:
            raise misfit(words[column], int(wrong[0]), layout, line, path)
    return words.apply(lambda one: one.str.replace(layout.style.decimal, ".", regex=False).astype(np.float64))


def has_extremes(raw: bytes) -> bool:
    """Whether there may be a number that pandas must not see."""
    return (b"e" in raw or b"E" in raw) and EXTREME.search(raw) is not None


def misfits(words: pd.Series, layout: Layout) -> np.ndarray:
    """Rows in which a word stands that is no number."""
    known = words.notna()
    if not known.any():
        return np.empty(0, np.intp)
    pattern = NUMBERS["," if layout.style.decimal == "," else r"\."]
    return np.flatnonzero(known & ~words.str.fullmatch(pattern, na=False))


def misfit(words: pd.Series, row: int, layout: Layout, line: int, path: str) -> DataError:
    """The error of a word that is no number."""
    word = decoded(words.iloc[row])[:40]
    name = layout.names[words.name]  # type: ignore[call-overload]
    hint = ", since decimals stand behind a comma here" if layout.style.decimal == "," and "." in word else ""
    return DataError(
        f"{path}: line {line + row}, column {name!r}: {word!r} is no number{hint}: "
        "mend it, leave the cell empty, or leave the column out"
    )
