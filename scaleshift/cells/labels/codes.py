"""Which label has each cell, as far as the sources have told? One number a cell, in a file that is mapped.

Labels come in any order, from many tables; 4 bytes a cell are kept in a temporary file, not in memory.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import IO, Any, NamedTuple

import numpy as np
import pandas as pd

from scaleshift.blocks.labels import CODE, order
from scaleshift.cells.manifest import plain
from scaleshift.cells.schema import UNLABELLED
from scaleshift.cells.sheets.filenames import composed
from scaleshift.errors import DataError
from scaleshift.spelling import suggestion

UNLABELLED_WORDS = ("0", "ungated", "unlabeled", "unlabelled", "unknown")
MAX_LABELS = 10_000
WHOLE = re.compile(r"[+-]?[0-9]+")
WHOLE_DECIMAL = re.compile(r"([+-]?[0-9]+)\.0*")
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
UNTOLD = 0  # the number of a cell that no source has told about: what a new file is full of


class Clashes(NamedTuple):
    """Rows that have another label already; the numbers of that one, and of the one that they do not get."""

    rows: np.ndarray  # (n,)
    earlier: np.ndarray  # (n,)
    wanted: np.ndarray  # (n,)


class CellLabels:
    """Labels of the cells of a study, told piece by piece; numbered from 1 in order of appearance.

    Parameters
    ----------
    n_cells : int
    unlabelled : iterable of str
        Words that mean "no label", whatever their case; missing values and "" always do.
    as_words : bool
        Whether labels are words of a text file, which may stand for numbers.
    """

    def __init__(self, n_cells: int, unlabelled: Iterable[str], as_words: bool) -> None:
        if isinstance(unlabelled, str):
            raise DataError(f"unlabelled={unlabelled!r} is one word: give a list, [{unlabelled!r}]")
        self.n_cells = n_cells
        self.values: list[Any] = []
        self._as_words = as_words
        self.unlabelled: Counter[str] = Counter()  # words that mean it, and how often they were met
        self._words = {"", *(word_of(word).casefold() for word in unlabelled)}
        self._numbers: dict[tuple[type, Any], int] = {}
        self._on_disk = CellNumbers(n_cells)
        self._told = self._on_disk.numbers

    def close(self) -> None:
        """Free the temporary file."""
        del self._told
        self._on_disk.close()

    def means_none(self, name: Any) -> bool:
        """Whether a name is a word that means "no label"."""
        return word_of(name).casefold() in self._words

    def number(self, value: Any) -> int:
        """The number of a label; UNTOLD where it means "no label"."""
        if value is None or (pd.api.types.is_scalar(value) and pd.isna(value)):
            return UNTOLD
        if self.means_none(value):
            return UNTOLD
        value = composed(value) if isinstance(value, str) else value
        key = (type(value), value)
        if key not in self._numbers:
            if len(self.values) == MAX_LABELS:
                raise DataError(
                    f"there are more than {MAX_LABELS} different labels ({value!r}, ...): "
                    "is it the right column?"
                )
            self.values.append(value)
            self._numbers[key] = len(self.values)
        return self._numbers[key]

    def numbers(self, codes: np.ndarray, values: list[Any]) -> np.ndarray:
        """Numbers of a column of codes (-1: missing) and values; words that mean "no label" are counted."""
        known = np.full(len(values) + 1, UNTOLD, CODE)  # the last one serves the code -1
        n_rows = np.bincount(codes[codes >= 0], minlength=len(values))
        for i in np.flatnonzero(n_rows):  # a category that no row has is no label
            known[i] = self.number(values[i])
            if known[i] == UNTOLD:
                self.unlabelled[word_of(values[i])] += int(n_rows[i])
        return known[codes]

    def tell(self, rows: np.ndarray, numbers: np.ndarray) -> Clashes:
        """Give these rows these labels, but for those that have another one already: they are returned."""
        rows, numbers = rows[numbers != UNTOLD], numbers[numbers != UNTOLD]
        earlier = self._told[rows]
        free = earlier == UNTOLD
        self._told[rows[free]] = numbers[free]
        # A row that came twice among these has the last of its labels now.
        clash = self._told[rows] != numbers
        return Clashes(rows[clash], self._told[rows[clash]], numbers[clash])

    def labels(self) -> tuple[Any, ...]:
        """The labels in their order, in their own type."""
        values = self._typed()
        return plain(order(pd.Series(values, dtype=object).to_numpy()), "label") if values else ()

    def coded(self, labels: tuple[Any, ...], step: int) -> Iterator[tuple[int, np.ndarray]]:
        """Codes of the cells: pairs of the first row and `step` codes."""
        code_of = {value: code for code, value in enumerate(labels)}
        known = np.array([UNLABELLED, *(code_of[value] for value in self._typed())], CODE)
        rows = range(0, len(self._told), step)
        return ((first, known[self._told[first : first + step]]) for first in rows)

    def _typed(self) -> list[Any]:
        return typed_words(self.values) if self._as_words else self.values


class CellNumbers:
    """One number a cell, 0 at first, in a temporary file that is mapped."""

    def __init__(self, n_cells: int) -> None:
        n = max(1, n_cells)  # nothing can be mapped of an empty file
        self._file = _zeros_on_disk(n * CODE.itemsize)
        self.numbers: np.ndarray = np.memmap(self._file, CODE, "r+", shape=(n,))[:n_cells]

    def close(self) -> None:
        """Free the file."""
        del self.numbers
        self._file.close()


def _zeros_on_disk(n_bytes: int) -> IO[bytes]:
    """A temporary file of zeros; takes its room now: a mapped file that finds none ends the process."""
    file = tempfile.TemporaryFile()  # noqa: SIM115
    try:
        file.truncate(n_bytes)
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, n_bytes)
    except OSError as error:
        file.close()
        raise DataError(
            f"labels need {n_bytes / 2**20:.0f} MB in {tempfile.gettempdir()} ({error.strerror}): "
            "free some, or set TMPDIR to another folder"
        ) from error
    return file


def word_of(value: Any) -> str:
    """A label as a word: 0, 0.0, "0" and "0.0" are one."""
    word = composed(value).strip() if isinstance(value, str) else str(value)
    decimal = WHOLE_DECIMAL.fullmatch(word)
    return decimal[1] if decimal else word


def typed_words(words: list[str]) -> list[Any]:
    """Words of a text file as whole numbers, numbers or bools, if all of them are; else as they are.

    Not as in sheets: there 2.0 is a measurement and 1E3 a well, here 2.0 is the cluster 2 and 1E3 a number.

    Examples
    --------
    >>> typed_words(["1", "2.0"]), typed_words(["1", "T"]), typed_words(["007", "1"])
    ([1, 2], ['1', 'T'], ['007', '1'])
    """
    whole = [word_of(word) for word in words]
    if all(WHOLE.fullmatch(word) and str(int(word)) == word for word in whole):
        numbers = [int(word) for word in whole]
        return numbers if all(-(2**63) <= n < 2**63 for n in numbers) else words
    if all(word in ("True", "False", "TRUE", "FALSE") for word in words):
        return [word.casefold() == "true" for word in words]
    numeric = all(NUMBER.fullmatch(word) and not re.match(r"[+-]?0[0-9]", word) for word in words)
    return [float(word) for word in words] if numeric else words


def chosen(names: Iterable[Any], known: Iterable[Any], what: str) -> list[Any]:
    """Names that must be known, in their own order; DataError that suggests one if not."""
    if isinstance(names, str):
        raise DataError(f"{what}={names!r} is one name: give a list, [{names!r}]")
    names, known = [composed(n) if isinstance(n, str) else n for n in names], list(known)
    for name in names:
        if name not in known:
            raise DataError(f"{what}: {name!r} is not there{suggestion(name, known)}")
    return names
