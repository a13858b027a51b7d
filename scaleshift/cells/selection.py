"""Which samples does a selection name? The small language of `--source` and `--target`.

    selection = condition { "and" condition }
    condition = column ( "==" | "!=" ) value  |  column "in" "(" value { "," value } ")"

Columns and values are bare words, or stand in single or double quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from scaleshift.cells.schema import SAMPLE
from scaleshift.errors import DataError
from scaleshift.spelling import suggestion

TOKEN = re.compile(
    r"""\s*(?:
        (?P<quoted>"[^"]*"|'[^']*')
      | (?P<symbol>==|!=|\(|\)|,)
      | (?P<word>[^\s"'()=!,]+)
    )""",
    re.VERBOSE,
)

QUOTES = "names with blanks need quotes"


@dataclass(frozen=True)
class Token:
    """A piece of the text; `kind` is quoted, symbol, word or end."""

    kind: str
    text: str
    place: int


def select_samples(text: str, table: Mapping[str, Iterable[Any]]) -> list[Any]:
    """Names of the samples that a selection chooses.

    Parameters
    ----------
    text : str
        Conditions on columns of the table, joined by `and`: `day == 3`, `arm != control`,
        `sample in (a, "b c")`. Values are compared as numbers with a column of numbers, as true or
        false with one of bools, else as text.
    table : mapping of str to values
        Column name to one value a sample, `sample` among them. A sample whose value is missing is
        chosen by no condition on that column, not even `!=`.

    Returns
    -------
    list
        Names in the order of the table, in their own type.

    Raises
    ------
    DataError
        If the text is not a selection, a column or value is not in the table, or no sample is left.

    Examples
    --------
    >>> table = {"sample": ["s1", "s2", "s3"], "day": [0, 3, 3], "arm": ["a", "a", "b"]}
    >>> select_samples("day == 3 and arm in (a, c)", table)
    Traceback (most recent call last):
        ...
    scaleshift.errors.DataError: selection: no sample has arm 'c'; known: a, b
      day == 3 and arm in (a, c)
                              ^
    >>> select_samples("day == 3 and arm != a", table)
    ['s3']
    """
    columns = {name: _plain(values) for name, values in table.items()}
    parser = _Parser(text, columns)
    chosen = parser.selection()
    names = [name for name, keep in zip(columns[SAMPLE], chosen, strict=True) if keep]
    if not names:
        there = "; ".join(f"{name}: {_listed(columns[name])}" for name in parser.used)
        raise DataError(f"selection {text!r} chooses no sample; there is {there}")
    return names


class _Parser:
    """Reads the tokens once, from left to right; the state is the position and the columns met."""

    def __init__(self, text: str, columns: Mapping[str, list[Any]]) -> None:
        self._text = text
        self._columns = columns
        self._tokens = list(self._split())
        self._next = 0
        self.used: dict[str, None] = {}

    def selection(self) -> list[bool]:
        """One bool a sample: whether all conditions hold."""
        chosen = self._condition()
        while not self._at("end"):
            if not self._at("word", "and"):
                self._fail(f"expected 'and' or the end; {QUOTES}", self._token)
            self._take()
            chosen = [a and b for a, b in zip(chosen, self._condition(), strict=True)]
        return chosen

    def _condition(self) -> list[bool]:
        column = self._operand("the name of a column")
        if column.text not in self._columns:
            self._fail(self._no_column(column), column)
        values = self._columns[column.text]
        self.used[column.text] = None
        operator = self._take()
        if operator.text in ("==", "!=") and operator.kind == "symbol":
            wanted = [self._value(column.text)]
        elif operator.text == "in" and operator.kind == "word":
            wanted = self._list(column.text)
        else:
            self._fail("expected ==, != or in", operator)
        equal = operator.text != "!="
        return [value is not None and (value in wanted) == equal for value in values]

    def _list(self, column: str) -> list[Any]:
        if not self._at("symbol", "("):
            self._fail("expected ( and a list of values", self._token)
        wanted: list[Any] = []
        while not wanted or self._at("symbol", ","):
            self._take()
            wanted.append(self._value(column))
        if not self._at("symbol", ")"):
            hint = "" if self._at("symbol") or self._at("end") else f"; {QUOTES}"
            self._fail(f"expected , or ){hint}", self._token)
        self._take()
        return wanted

    def _value(self, column: str) -> Any:
        """A value that stands in the column, in the column's type."""
        token = self._operand("a value")
        known = list(dict.fromkeys(v for v in self._columns[column] if v is not None))
        value = _converted(token.text, known)
        if value is None or value not in known:
            whole = self._unquoted(token, known)
            hint = suggestion(token.text, known) if whole is None else f"; {QUOTES}: {_quoted(whole)}"
            self._fail(f"no sample has {column} {token.text!r}{hint}", token)
        return value

    def _no_column(self, token: Token) -> str:
        """What to say of a name that no column has: it may be a sample's, or have blanks and no quotes."""
        samples = [str(name) for name in self._columns[SAMPLE]]
        sample = token.text if token.text in samples else self._unquoted(token, samples)
        if sample is not None:
            return f"{sample} is a sample: {SAMPLE} == {_quoted(sample)}"
        column = self._unquoted(token, self._columns)
        hint = suggestion(token.text, self._columns) if column is None else f"; {QUOTES}: {_quoted(column)}"
        return f"no column {token.text!r}{hint}"

    def _unquoted(self, token: Token, known: Iterable[Any]) -> str | None:
        """The longest of the known names that stands in the text where a word begins, without its quotes."""
        found = [str(name) for name in known if self._text.startswith(str(name), token.place)]
        return max((name for name in found if len(name) > len(token.text)), key=len, default=None)

    def _operand(self, what: str) -> Token:
        token = self._take()
        if token.kind == "quoted":
            return Token(token.kind, token.text[1:-1], token.place)
        if token.kind != "word" or token.text == "and":
            self._fail(f"expected {what}", token)
        return token

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _at(self, kind: str, text: str | None = None) -> bool:
        return self._token.kind == kind and text in (None, self._token.text)

    def _take(self) -> Token:
        token = self._token
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def _split(self) -> Iterable[Token]:
        place, end = 0, len(self._text.rstrip())
        while place < end:
            match = TOKEN.match(self._text, place)
            if match is None:
                place += len(self._text[place:]) - len(self._text[place:].lstrip())
                self._fail(_stray(self._text[place:]), Token("end", "", place))
            kind = str(match.lastgroup)
            yield Token(kind, match[kind], match.start(kind))
            place = match.end()
        yield Token("end", "", end)

    def _fail(self, message: str, token: Token) -> NoReturn:
        shown = "".join(c if c.isprintable() else " " for c in self._text)
        raise DataError(f"selection: {message}\n  {shown}\n  {' ' * token.place}^")


def _stray(rest: str) -> str:
    if rest[0] in "\"'":
        return f"the quote {rest[0]} is not closed"
    return f"expected {'!=' if rest[0] == '!' else '=='}, found a single {rest[0]}"


def _quoted(name: str) -> str:
    """A name as it can stand in a selection."""
    if (match := TOKEN.fullmatch(name)) and match.lastgroup == "word" and name != "and":
        return name
    return f'"{name}"' if "'" in name else f"'{name}'"


def _plain(values: Iterable[Any]) -> list[Any]:
    """Values as Python objects, None where missing."""
    items = [v.item() if isinstance(v, np.generic) else v for v in values]
    return [None if pd.isna(v) else v for v in items]


def _converted(text: str, known: list[Any]) -> Any:
    """A word of the selection in the type of the column's values; None if it is no such value."""
    kinds = {type(v) for v in known}
    if kinds == {bool}:
        return {"true": True, "false": False}.get(text.lower())
    if kinds and kinds <= {int, float}:
        for number in (int, float):
            try:
                return number(text)
            except ValueError:
                continue
        return None
    return next((v for v in known if str(v) == text), None)


def _listed(values: list[Any]) -> str:
    texts = [str(v) for v in dict.fromkeys(values) if v is not None]
    return ", ".join(texts[:8]) + (", ..." if len(texts) > 8 else "")
