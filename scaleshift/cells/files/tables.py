"""What is known of a table of events, one row an event? Its header, and where its rows start."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from scaleshift.cells.files.described import (
    TELLS_SAMPLE,
    Described,
    Group,
    Wish,
    fingerprint,
    groups_of,
    reading,
    refuse_torn,
)
from scaleshift.cells.problem import Level, Problem, several
from scaleshift.cells.text_rows import NUMBERS, check_widths, misfit, misfits, numbers, parse
from scaleshift.cells.text_tables import HEAD, Layout, decoded, layout_of
from scaleshift.errors import DataError
from scaleshift.spelling import suggestion

SUFFIXES = (".csv", ".tsv", ".txt")
STEP = 16_384  # rows between two places that are remembered, and parsed at once
BLOCK = 2**24  # bytes read at once while rows are counted
TAIL = 4096  # bytes in which blank lines at the end are looked for
PEEK = 100  # rows that tell which columns are numbers


@dataclass(frozen=True, eq=False)
class TableReader:
    """Reader of the numbers of a table."""

    path: str
    layout: Layout
    columns: tuple[int, ...]
    n_rows: int
    places: np.ndarray  # (n_steps + 1,): the byte at which rows 0, STEP, 2 STEP, ... start; the end

    def read(self, first: int, stop: int) -> np.ndarray:
        """Rows [first, stop)."""
        out = np.empty((max(stop - first, 0), len(self.columns)), np.float32)
        with reading(self.path):
            for start in range(first // STEP * STEP, stop, STEP):
                begin, end = max(first, start), min(stop, start + STEP)
                step = self._parsed(self.text(start // STEP), start)
                out[begin - first : end - first] = step[begin - start : end - start]
        return out

    def text(self, step: int) -> bytes:
        """The rows of a step; checked to have as many cells each as the header."""
        first, stop = self.places[step : step + 2].tolist()
        with open(self.path, "rb") as file:
            file.seek(first)
            raw = file.read(stop - first)
        check_widths(raw, self.layout, self.layout.line + step * STEP, self.path)
        return raw

    def _parsed(self, raw: bytes, start: int) -> np.ndarray:
        """The numbers of a step, (n, n_columns)."""
        line = self.layout.line + start
        _refuse_unnamed(raw, self.layout, line, self.path)
        frame = numbers(raw, self.layout, list(self.columns), line, self.path)
        n = min(STEP, self.n_rows - start)
        if len(frame) != n:
            raise DataError(
                f"{self.path}: rows {start}-{start + n - 1} are {len(frame)} rows now: has the file changed, "
                "or does a quoted text hold a line break?"
            )
        with np.errstate(over="ignore"):  # beyond float32 is infinite
            return frame[list(self.columns)].to_numpy(np.float32)


def claims(path: str) -> bool:
    """Whether a file is a table, by its name."""
    return path.lower().endswith(SUFFIXES) and not os.path.isdir(path)


def describe(path: str, wish: Wish) -> list[Described]:
    """Describe a CSV or TSV file: a header line, then one row an event.

    The rows of a sample stand together where `wish.sample` names their column. Row names are left out.

    Raises
    ------
    DataError
        If there is no header, a name stands twice, no column holds numbers, or a row has fewer or more
        cells than the header.
    """
    with open(path, "rb") as file:
        head = file.read(HEAD)
    layout, sample = layout_of(head, path), wish.sample
    _check(layout, path)
    words = _first_words(layout, head, path)
    numbers_of = _numbers(words, layout, path, sample)
    names = layout.names
    places, n_rows = _index(path, layout)
    if sample is not None and sample not in names:
        raise DataError(f"{path}: has no column {sample!r}{suggestion(sample, filter(None, names))}")
    columns = tuple(i for i, name in enumerate(names) if name and numbers_of[i] == 1 and name != sample)
    text = [i for i, name in enumerate(names) if name and numbers_of[i] < 1 and name != sample]
    comma = _decimal_comma(words, text)
    if not columns:
        raise DataError(f"{path}: no column holds numbers: {comma or 'is the delimiter one of , ; or tab?'}")
    doubtful = [names[i] for i in text if numbers_of[i]]
    problems = _remarks([names[i] for i in text], doubtful, comma, path, sample)
    if not names[0]:
        problems.append(
            Problem("note", path, "the first column has no name: taken for row names and left out")
        )
    if not n_rows:
        fix = "leave it out if that is not meant"
        problems.append(Problem("note", path, "has a header and no rows: a sample without cells", fix))
    reader = TableReader(path, layout, columns, n_rows, places)
    return [
        Described(
            path=path,
            format="CSV",
            cytometer="",
            n_events=n_rows,
            channels=tuple(names[i] for i in columns),
            markers=("",) * len(columns),
            reader=reader,
            fingerprint=fingerprint(path),
            problems=tuple(problems),
            groups=_groups(reader, sample) if sample is not None else (),
        )
    ]


def _remarks(
    text: list[str], doubtful: list[str], comma: str, path: str, sample: str | None
) -> list[Problem]:
    """What to say of columns of text, some of which hold numbers, or such with a decimal comma."""
    if not text:
        return []
    fixes = [comma] if comma else []
    if doubtful:
        fixes.append(f"if {several(doubtful)} should be numbers, mend what is none in them")
    level: Level = "warning" if fixes else "note"
    fix = "; ".join(fixes) or (TELLS_SAMPLE if sample is None else "")
    return [Problem(level, path, f"columns of text are left out: {several(text)}", fix)]


def _refuse_unnamed(raw: bytes, layout: Layout, line: int, path: str) -> None:
    """Refuse values in columns without a name: nothing may stand there but row names."""
    unnamed = [i for i, name in enumerate(layout.names) if i and not name]
    if not unnamed:
        return
    words = parse(raw, layout, usecols=unnamed, dtype=str)
    for i in unnamed:
        full = np.flatnonzero(words[i].notna())
        if full.size:
            raise DataError(f"{path}: line {line + full[0]}: column {i + 1} has no name, but values: name it")


def _check(layout: Layout, path: str) -> None:
    """Refuse what is no header."""
    names = [name for name in layout.names if name]
    if layout.encoding.startswith("utf-16"):
        raise DataError(f"{path}: is written in UTF-16: save it as CSV in UTF-8")
    repeated = next((name for name, n in Counter(names).items() if n > 1), None)
    if repeated is not None:
        raise DataError(
            f"{path}: line {layout.line - 1}: column {repeated!r} stands twice: rename one of them"
        )
    if all(_is_number(name) for name in names):
        raise DataError(
            f"{path}: line {layout.line - 1} is numbers: expected a header line with the names of the markers"
        )


def _first_words(layout: Layout, head: bytes, path: str) -> pd.DataFrame:
    """The words of the first rows, columns by number."""
    rows, whole = head[layout.start :], len(head) < HEAD
    ends = np.flatnonzero(np.frombuffer(rows, np.uint8) == ord(layout.end))[:PEEK]
    if len(ends) == PEEK or not whole:
        rows = rows[: ends[-1] + 1 if len(ends) else 0]
    rows = rows.rstrip(b" \r\n")
    if not rows:
        if not whole:
            raise DataError(
                f"{path}: line {layout.line} does not end within {HEAD} bytes: is it a table of events?"
            )
        return pd.DataFrame(columns=range(len(layout.names)), dtype=str)
    check_widths(rows, layout, layout.line, path)
    _refuse_unnamed(rows, layout, layout.line, path)
    return parse(rows, layout, dtype=str)


def _decimal_comma(words: pd.DataFrame, columns: list[int]) -> str:
    """What to do where a column that is none of numbers would be one if decimals stood behind a comma."""
    for i in columns:
        known = words[i].dropna()
        if known.str.fullmatch(NUMBERS[","]).all():
            word = known[known.str.contains(",")].iloc[0]
            return f"{word!r} has a decimal comma: save with ; between columns"
    return ""


def _numbers(words: pd.DataFrame, layout: Layout, path: str, sample: str | None) -> list[float]:
    """Share of numbers among the first words of each column.

    A column of which nine words in ten, or all but one of at least three, are numbers is one of numbers, and
    the others are mistakes: else one bad word would take a marker out of the study.
    """
    shares = []
    for i, name in enumerate(layout.names):
        wrong, known = misfits(words[i], layout), words[i].notna().sum()
        if name and name != sample and 0 < len(wrong) <= max(known > 2, known / 10):
            raise misfit(words[i], int(wrong[0]), layout, layout.line, path)
        shares.append(1 - len(wrong) / max(known, 1))
    return shares


def _index(path: str, layout: Layout) -> tuple[np.ndarray, int]:
    """Places of every STEP-th row, and the number of rows."""
    start = place = layout.start
    places, n_rows, last = [start], 0, layout.end
    for block in _blocks(path, start):
        ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord(layout.end))
        wanted = np.arange(STEP - n_rows % STEP - 1, len(ends), STEP)
        places += (place + ends[wanted] + 1).tolist()
        n_rows, place, last = n_rows + len(ends), place + len(block), block[-1:]
    n_rows += last != layout.end  # the last line may lack its end
    if places[-1] != place or len(places) == 1:
        places.append(place)
    return np.array(places), n_rows


def _blocks(path: str, start: int) -> Iterator[bytes]:
    """The file from `start` on, without blank lines at its end."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        tail = max(start, size - TAIL)
        file.seek(tail)
        end = tail + len(file.read().rstrip(b" \r\n"))
        file.seek(start)
        while start < end and (block := file.read(min(BLOCK, end - start))):
            start += len(block)
            yield block


def _groups(reader: TableReader, sample: str) -> tuple[Group, ...]:
    """Rows of each sample, by one reading of that column."""
    if not reader.n_rows:
        raise DataError(f"{reader.path}: has a header and no rows, so it names no sample: leave it out")
    names: dict[str, int] = {}
    codes = []
    c = reader.layout.names.index(sample)
    for i in range(len(reader.places) - 1):
        column = parse(reader.text(i), reader.layout, usecols=[c], dtype=str)[c]
        if column.isna().any():
            line = reader.layout.line + i * STEP + int(np.flatnonzero(column.isna())[0])
            raise DataError(
                f"{reader.path}: line {line}: {sample} is missing: every row needs a sample; fill it in"
            )
        part, found = pd.factorize(column.str.rstrip())
        codes.append(np.array([names.setdefault(name, len(names)) for name in found], np.int64)[part])
    groups = groups_of(np.concatenate(codes), [decoded(name) for name in names])
    way_out = ", or, if it fits into memory, use write_cells(as_cells(table, sample=...), store)"
    refuse_torn(groups, reader.path, sample, way_out)
    return groups


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True
