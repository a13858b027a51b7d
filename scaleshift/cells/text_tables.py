"""How is a text table written? Its encoding, delimiter, decimal mark and names, and where its rows begin."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from scaleshift.errors import DataError

HEAD = 2**20  # bytes that tell how a long table is written
LINES = 100  # rows that tell it
BLANK = ' ,;\t\r\n"'
DELIMITERS = (",", ";", "\t")
MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
TOLD = re.compile(r'"?sep=([,;\t])"?(?:\r\n?|\n)')  # how Excel is told of the delimiter
WITH_COMMA, WITH_POINT = (re.compile(rf"[+-]?\d*{mark}\d+(?:[eE][+-]?\d+)?") for mark in (",", r"\."))


@dataclass(frozen=True)
class Style:
    """What parts the cells of a table, and what stands before the decimals of a number."""

    delimiter: str
    decimal: str


@dataclass(frozen=True)
class Layout:
    """How a long table is written.

    Attributes
    ----------
    encoding : str
        Of its names.
    style : Style
    names : tuple of str
        One for each cell of a row; "" where the header has none, as above row names.
    line : int
        Line of the first row, counted from 1.
    start : int
        Byte at which the first row begins.
    end : bytes
        What ends a line; its last byte where there are two.
    """

    encoding: str
    style: Style
    names: tuple[str, ...]
    line: int
    start: int
    end: bytes


def decode(content: bytes, place: str) -> str:
    """A whole text: UTF-16 or UTF-8 by its byte order mark, else UTF-8, Windows-1252 or Latin-1.

    Raises
    ------
    DataError
        If a text that is marked as UTF-16 is none.

    Examples
    --------
    >>> decode("Größe".encode("cp1252"), "a.csv"), decode("Größe".encode("utf-8-sig"), "a.csv")
    ('Größe', 'Größe')
    """
    encoding, mark = encoding_of(content, whole=True)
    try:
        return content[mark:].decode(encoding)
    except UnicodeDecodeError:
        raise DataError(f"{place}: is no valid text: save it as CSV in UTF-8") from None


def encoding_of(content: bytes, whole: bool) -> tuple[str, int]:
    """Encoding of a text, or of its beginning, which may end within a letter; length of its mark."""
    for mark, encoding in MARKS.items():
        if content.startswith(mark):
            if encoding != "utf-8" or _is(encoding, content[len(mark) :], whole):
                return encoding, len(mark)
            return "cp1252" if _is("cp1252", content[len(mark) :], whole) else "latin-1", len(mark)
    return next((name for name in ("utf-8", "cp1252") if _is(name, content, whole)), "latin-1"), 0


def decoded(word: str) -> str:
    """A word that was read as Latin-1, which takes all bytes, in the encoding that it has.

    Examples
    --------
    >>> decoded("Größe".encode().decode("latin-1")), decoded("Größe")
    ('Größe', 'Größe')
    """
    return word if word.isascii() else decode(word.encode("latin-1"), word)


def style_of(text: str) -> Style:
    r"""Delimiter and decimal mark, by the first lines.

    The delimiter is the one that is told in a first line `sep=;`, or else that which parts the names, outside
    of quotes; where several do, that which parts the rows alike. A comma that parts no cells is a decimal
    mark if more numbers have a comma than a point.

    Examples
    --------
    >>> style_of('"CD3, total";CD4\n1,5;2\n')
    Style(delimiter=';', decimal=',')
    """
    told = TOLD.match(text)
    lines = _lines(text[told.end() if told else 0 :])
    delimiter = told[1] if told else max(DELIMITERS, key=lambda one: _fit(lines, one))
    if delimiter == ",":
        return Style(delimiter, ".")
    cells = [cell.strip() for row in _rows(lines, delimiter)[1:] for cell in row]
    commas, points = (sum(map(bool, map(known.fullmatch, cells))) for known in (WITH_COMMA, WITH_POINT))
    return Style(delimiter, "," if commas > points else ".")


def without_told(text: str) -> str:
    """The text without the line that tells the delimiter; a blank one keeps the line numbers right."""
    told = TOLD.match(text)
    return "\n" + text[told.end() :] if told else text


def layout_of(head: bytes, place: str) -> Layout:
    r"""How a table is written whose first HEAD bytes, or all of them, are given.

    Row names, for which the header has no name or no cell at all (as R writes them), and cells that end all
    rows but the header, get the name "".

    Raises
    ------
    DataError
        If it is empty, no text, or its header does not end.

    Examples
    --------
    >>> layout_of(b"sep=;\nCD3;CD4\n1;2\n", "a.csv").names, layout_of(b"CD3,CD4\n1,5,6\n", "a.csv").names
    (('CD3', 'CD4'), ('', 'CD3', 'CD4'))
    """
    whole = len(head) < HEAD
    encoding, mark = encoding_of(head, whole)
    text = codecs.getincrementaldecoder(encoding)("replace").decode(head[mark:])
    if "\0" in text:
        raise DataError(f"{place}: is no text, expected a table (CSV or TSV)")
    lines = list(io.StringIO(text, newline=""))
    first = 1 if TOLD.match(text) else 0
    while first < len(lines) and not lines[first].strip(BLANK):
        first += 1
    if first == len(lines):
        raise DataError(f"{place}: is empty: expected a header line, then one row an event")
    style = style_of(text)
    reader = csv.reader(lines[first:], delimiter=style.delimiter, skipinitialspace=True)
    try:
        header = tuple(cell.strip() for cell in next(reader))
    except csv.Error as error:
        raise DataError(f"{place}: line {first + 1}: {error}: is it a table?") from None
    line = first + reader.line_num
    if not whole and line == len(lines):
        raise DataError(f"{place}: line {first + 1} does not end within {HEAD} bytes: is it a table?")
    rows = _rows(_lines("".join(lines[line : None if whole else -1])), style.delimiter)
    return Layout(
        encoding=encoding,
        style=style,
        names=_names(header, rows),
        line=line + 1,
        start=mark + len("".join(lines[:line]).encode(encoding)),
        end=b"\n" if "\n" in text else b"\r",
    )


def _names(header: tuple[str, ...], rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The name of each cell of most rows."""
    n = Counter(map(len, rows)).most_common(1)[0][0] if rows else len(header)
    if n == len(header) + 1 > 2:  # not below one name: a decimal comma would pass for a row name
        if not any(row[-1].strip() for row in rows):
            return (*header, "")
        if all(header):
            return ("", *header)
    return header[:n] if not any(header[n:]) else header


def _is(encoding: str, content: bytes, whole: bool) -> bool:
    try:
        codecs.getincrementaldecoder(encoding)().decode(content, final=whole)
    except UnicodeDecodeError:
        return False
    return True


def _lines(text: str) -> list[str]:
    """The header and the first rows, without blank lines."""
    return list(islice((line for line in io.StringIO(text, newline="") if line.strip(BLANK)), 1 + LINES))


def _rows(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    try:
        return list(csv.reader(lines, delimiter=delimiter, skipinitialspace=True))
    except csv.Error:
        return []


def _fit(lines: Sequence[str], delimiter: str) -> tuple[bool, float, int, bool]:
    """How well a delimiter fits: does it part the header, and as many cells from each row?"""
    widths = [len(row) for row in _rows(lines, delimiter)] or [1]
    alike = sum(width - widths[0] in (0, 1) for width in widths) / len(widths)
    return widths[0] > 1, alike, widths[0], delimiter == ","
