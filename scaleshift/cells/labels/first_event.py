"""Do the events of a table count from 0 or from 1? Its own first and last events tell."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from scaleshift.cells.labels.addresses import Addresses, Place
from scaleshift.cells.labels.event_rows import contradiction, event_numbers, located, mark, not_there
from scaleshift.cells.labels.tables import Columns, Piece
from scaleshift.errors import DataError


class Numbered(NamedTuple):
    """A piece of a table that has event numbers."""

    piece: Piece
    columns: Columns
    table: str  # what an error calls it
    place: Place | None = None  # whose events the rows are, where no column tells


class FirstEvent(NamedTuple):
    """The number of a file's first event, and the event that tells it, "" where there are no events."""

    number: int
    evidence: str


def first_event_of(pieces: Iterable[Numbered], addresses: Addresses, where: str) -> FirstEvent:
    """Find out from what number events count.

    An event 0 is there only if they count from 0; one whose number is that of all events of its file, only
    if they count from 1. Pieces are read until there is one of these; whether the others fit is seen when
    they are read again.

    Parameters
    ----------
    pieces : iterable of Numbered
    addresses : Addresses
    where : str
        What an error calls all of the tables.

    Raises
    ------
    DataError
        If there is neither, or both in one piece; or neither, and an event that is there neither way.
    """
    stray: DataError | None = None
    n_events = 0
    for piece, columns, table, given in pieces:
        codes, places = located(addresses, piece, columns, table, given)
        events = event_numbers(piece, columns, table)
        counts = np.array([place.n for place in places], np.int64)[codes]
        n_events += len(events)
        found = []
        for number, marks in ((0, events == 0), (1, events == counts)):
            rows = np.flatnonzero(marks & (counts > 0))
            if rows.size:
                found.append(FirstEvent(number, mark(places[codes[rows[0]]], int(events[rows[0]]))))
        if len(found) == 2:
            raise contradiction(table, found[0].evidence, found[1].evidence)
        if found:
            return found[0]
        odd = np.flatnonzero((events < 0) | (events > counts) | (counts == 0))
        if odd.size and stray is None:
            place = places[codes[odd[0]]]
            numbers = f"numbered 0 to {place.n - 1} or 1 to {place.n}"
            stray = not_there(table, place, int(events[odd[0]]), numbers)
    if not n_events:
        return FirstEvent(0, "")
    raise stray or DataError(
        f"the events of {where} may count from 0 or from 1, as it holds neither the first nor the last event "
        "of any file: pass first_event=0 or first_event=1 (--first-event)"
    )
