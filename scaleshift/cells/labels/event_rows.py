"""Which rows of a study do the rows of a table tell about? Event numbers checked, and counted from 0."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
import pandas as pd

from scaleshift.cells.labels.addresses import Addresses, Place
from scaleshift.cells.labels.tables import Columns, Piece, Words
from scaleshift.errors import DataError

ARE_THEY = ": are these the events of this study?"
BEYOND = 2**62  # no event has such a number, and 64 bits hold it and its neighbours


class _Outside(NamedTuple):
    """An event that is not there."""

    table: str
    place: Place
    event: int


class EventRows:
    """Turns names and event numbers of any number of tables into rows of one study.

    A table without event numbers gives the events of each file or sample in order, and all of them.

    Parameters
    ----------
    addresses : Addresses
    first_event : 0 or 1
        Number of a file's first event.
    evidence : str
        The event by which that was found out, "" where it was given.
    """

    def __init__(self, addresses: Addresses, first_event: int, evidence: str = "") -> None:
        self.addresses, self.first_event, self._evidence = addresses, first_event, evidence
        self._lowest: float = np.inf  # of the events met, counted from 0
        self._beyond = 0  # how far the events met lie beyond the last one of their file
        self._outside: _Outside | None = None
        self._seen: Counter[tuple[str, Place]] = Counter()  # rows of tables without event numbers

    def rows(
        self, piece: Piece, columns: Columns, table: str, place: Place | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows of the study that a piece tells about, and which rows of the piece these are.

        Events that are not there are left out, and are an error in `finish`: only then is it known
        whether the table counts from another number.

        Parameters
        ----------
        piece : Piece
        columns : Columns
        table : str
            What an error calls the table.
        place : Place, optional
            Whose events the rows are, where no column tells.

        Returns
        -------
        rows : numpy.ndarray, shape (n,)
        told : numpy.ndarray of bool, shape (n_rows_of_the_piece,)
        """
        codes, places = located(self.addresses, piece, columns, table, place)
        starts = np.array([place.start for place in places], np.int64)[codes]
        counts = np.array([place.n for place in places], np.int64)[codes]
        if piece.events is None:
            events = self._in_order(codes, places, table)
            told = events < counts
        else:
            events = event_numbers(piece, columns, table) - self.first_event
            told = (events >= 0) & (events < counts)
            self._note(events, counts, told, codes, places, table)
        return starts[told] + events[told], told

    def event(self, row: int) -> str:
        """The event that stands in a row of the study, in words."""
        return self.addresses.event(row, self.first_event)

    def finish(self) -> None:
        """Raise DataError where an event is not there, or rows without numbers are not one an event."""
        if self._outside is not None:
            table, place, event = self._outside
            number, last = event + self.first_event, place.n - 1 + self.first_event
            if self._evidence and number == (place.n if self.first_event == 0 else 0) and place.n:
                raise contradiction(table, self._evidence, mark(place, number))
            numbers = f"numbered {self.first_event} to {last}"
            raise not_there(table, place, number, numbers, self._other_first())
        for (table, place), n in self._seen.items():
            if n != place.n:
                raise DataError(
                    f"{table}: {place} has {n} rows and {place.n} events: without a column 'event' "
                    "there must be one row an event, in the order of the events"
                )

    def _other_first(self) -> str:
        if self._evidence:
            return ARE_THEY
        if self.first_event == 0 and self._lowest > 0 and self._beyond == 1:
            return "; if they are counted from 1, pass first_event=1 (--first-event 1)"
        if self.first_event == 1 and self._lowest == -1 and self._beyond <= 0:
            return "; if they are counted from 0, pass first_event=0 (--first-event 0)"
        return ARE_THEY

    def _in_order(self, codes: np.ndarray, places: list[Place], table: str) -> np.ndarray:
        """The event of each row where the rows of a place are its events in order."""
        distinct = list(dict.fromkeys(places))  # two names may be one place
        codes = np.array([distinct.index(place) for place in places], np.int64)[codes]
        n_rows = np.bincount(codes, minlength=len(distinct))
        order = np.argsort(codes, kind="stable")
        events = np.empty(len(codes), np.int64)
        events[order] = np.arange(len(codes)) - (np.cumsum(n_rows) - n_rows)[codes[order]]
        before = np.array([self._seen[table, place] for place in distinct], np.int64)
        self._seen.update({(table, place): int(n) for place, n in zip(distinct, n_rows, strict=True)})
        return events + before[codes]

    def _note(
        self,
        events: np.ndarray,
        counts: np.ndarray,
        told: np.ndarray,
        codes: np.ndarray,
        places: list[Place],
        table: str,
    ) -> None:
        """Keep what tells later whether the table counts from another number."""
        if not len(events):
            return
        self._lowest = min(self._lowest, int(events.min()))
        self._beyond = max(self._beyond, int((events - counts).max()) + 1)
        outside = np.flatnonzero(~told)
        if outside.size and self._outside is None:
            self._outside = _Outside(table, places[codes[outside[0]]], int(events[outside[0]]))


def located(
    addresses: Addresses, piece: Piece, columns: Columns, table: str, place: Place | None = None
) -> tuple[np.ndarray, list[Place]]:
    """Files or samples that the rows of a piece tell about, and the position of each row's among them.

    Parameters
    ----------
    addresses, piece, columns, table, place
        As in `EventRows.rows`.
    """
    if piece.places is not None:
        return _named(addresses, piece, piece.places, columns, table)
    values = piece.events if piece.labels is None else piece.labels.codes
    assert values is not None, "a table of gates without events was refused"
    return np.zeros(len(values), np.int64), [place or addresses.only_sample(table)]


def _named(
    addresses: Addresses, piece: Piece, words: Words, columns: Columns, table: str
) -> tuple[np.ndarray, list[Place]]:
    """Codes into the places of a piece; values that no row has are not looked for."""
    missing = np.flatnonzero(words.codes < 0)
    if missing.size:
        row = piece.first + missing[0] + 1
        raise DataError(f"{table}: row {row} names no {columns.kind}: fill the column {columns.place!r}")
    used = np.flatnonzero(np.bincount(words.codes, minlength=len(words.values)))
    places = [addresses.place(str(words.values[i]), columns.kind, table) for i in used]
    new = np.zeros(len(words.values), np.int64)
    new[used] = np.arange(len(used))
    return new[words.codes], places


def event_numbers(piece: Piece, columns: Columns, table: str) -> np.ndarray:
    """The event numbers of a piece as they stand there; DataError that names the first row that has none."""
    values = np.asarray(piece.events)
    numbers = values if values.dtype.kind in "iuf" else pd.to_numeric(values, errors="coerce")
    numbers = np.asarray(numbers, np.float64 if numbers.dtype.kind not in "iu" else None)
    bad = np.flatnonzero((numbers >= BEYOND) | (numbers <= -BEYOND))
    if numbers.dtype.kind == "f":
        bad = np.flatnonzero(~(np.abs(numbers) < BEYOND) | (numbers != np.floor(numbers)))
    if bad.size:
        found = values[bad[0]]
        raise DataError(
            f"{table}: row {piece.first + bad[0] + 1} has "
            f"{found.item() if isinstance(found, np.generic) else found!r} in the column {columns.event!r}, "
            "expected the number of an event"
        )
    return numbers.astype(np.int64)


def not_there(table: str, place: Place, number: int, numbers: str, hint: str = ARE_THEY) -> DataError:
    """What to raise for an event that is not there."""
    numbers = numbers if place.n else "so none can have a label"
    return DataError(
        f"{table}: event {number} of {place} has a label, but there are {place.n} events, {numbers}{hint}"
    )


def mark(place: Place, number: int) -> str:
    """The first or last event of a place, in words that tell which of the two it is."""
    return f"event {number} of {place}" + (f", which has {place.n} events" if number else "")


def contradiction(table: str, one: str, other: str) -> DataError:
    """What to raise where one event is there only if they count from 0, and another only if from 1."""
    return DataError(
        f"{table}: there is {one}, and there is {other}: events count neither from 0 nor from 1; "
        "give each file's events the same first number"
    )
