"""At which byte do the events begin, when HEADER and TEXT may tell different things?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from scaleshift.cells.fcs.header import HEADER_BYTES, Header, Span
from scaleshift.cells.fcs.layout import Layout
from scaleshift.cells.fcs.text import integer, words
from scaleshift.cells.problem import several
from scaleshift.errors import DataError

_TOO_LARGE = 99_999_999  # what eight digits of the HEADER can say at most


class Place(NamedTuple):
    """Where the events are.

    Attributes
    ----------
    begin : int
        First byte of DATA, counted from the data set's first byte.
    n_events : int
    layout : Layout
    warnings : list of str
    """

    begin: int
    n_events: int
    layout: Layout
    warnings: list[str]


class _Sought(NamedTuple):
    """What is known of DATA before its place is."""

    pairs: Mapping[str, Span]  # of HEADER and TEXT
    told: Mapping[str, Span]  # those that say where DATA ends
    need: int  # bytes of all events
    row: int  # and of one
    text_end: int
    size: int


def locate(header: Header, keywords: Mapping[str, str], layouts: Sequence[Layout], size: int) -> Place:
    """Find DATA: a (begin, end) pair of HEADER or TEXT whose length is what the events need.

    The end may be one too large (exclusive). If both pairs fit, the one that begins nearest after TEXT is
    taken. If neither fits, bytes that are less than one event may be left over where both agree on the
    begin; if neither has an end, $TOT tells it.

    Parameters
    ----------
    header : Header
    keywords : mapping of str
    layouts : sequence of Layout
        Tried in turn.
    size : int
        Bytes from the data set's first one to the end of the file.

    Raises
    ------
    DataError
        If $TOT and the offsets do not agree, or the file ends before the events do.
    """
    promised = _promised(keywords)
    pairs = {
        "HEADER": header.data,
        "TEXT": Span(integer(keywords.get("$BEGINDATA")), integer(keywords.get("$ENDDATA"))),
    }
    told = {source: pair for source, pair in pairs.items() if _is_complete(source, pair)}
    for find in (_fitting, _leaving_some, _without_end):
        for layout in layouts:
            row = layout.row_bytes
            n_events = _count(told, row) if promised is None else promised
            if n_events is None:
                continue
            begin = find(_Sought(pairs, told, n_events * row, row, header.text.end or 0, size))
            if begin is not None:
                _check_complete(begin, n_events, row, size)
                return Place(begin, n_events, layout, _remarks(told, begin, n_events, row, promised))
    raise DataError(_disagreement(pairs, told, promised, layouts, size) + _packed(keywords, layouts[0]))


def _promised(keywords: Mapping[str, str]) -> int | None:
    """$TOT, None where it is missing."""
    told = words(keywords.get("$TOT"))
    promised = integer(told)
    if told and (promised is None or promised < 0):
        raise DataError(f"has $TOT {told[:20]!r}, no number of events; export it again")
    return promised


def _is_complete(source: str, pair: Span) -> bool:
    """Whether a pair says where DATA ends; zeros, blanks and the largest number of the HEADER do not."""
    if pair.begin is None or pair.end is None or pair.begin < HEADER_BYTES or pair.end <= pair.begin:
        return False
    return source != "HEADER" or pair.end < _TOO_LARGE


def _length(pair: Span) -> int:
    return (pair.end or 0) - (pair.begin or 0) + 1


def _count(told: Mapping[str, Span], row: int) -> int | None:
    """Number of events where $TOT is missing, which FCS 2.0 allows."""
    return next((_length(pair) // row for pair in told.values() if _length(pair) % row <= 1), None)


def _fitting(data: _Sought) -> int | None:
    """First byte of DATA by the pair whose length is right; the end may be exclusive."""
    fitting = [pair.begin or 0 for pair in data.told.values() if _length(pair) - data.need in (0, 1)]

    def badness(begin: int) -> tuple[bool, bool, int]:
        return begin + data.need > data.size, begin < data.text_end, abs(begin - data.text_end)

    return min(fitting, key=badness, default=None)


def _leaving_some(data: _Sought) -> int | None:
    """First byte of DATA where all agree on it, and less than one event is left over; any for no events."""
    if data.need == 0:
        return 0 if all(_length(pair) < data.row for pair in data.told.values()) else None
    begins = {pair.begin for pair in data.told.values()}
    agreed = len(begins) == 1 and all(0 < _length(pair) - data.need < data.row for pair in data.told.values())
    return begins.pop() if agreed else None


def _without_end(data: _Sought) -> int | None:
    """First byte of DATA where nothing tells its end; after TEXT if that leads to the end of the file."""
    if data.told or data.need == 0:
        return None
    pairs = data.pairs.values()
    begins = [pair.begin for pair in pairs if pair.begin is not None and pair.begin >= data.text_end > 0]
    if begins:
        return begins[-1]
    after = data.text_end + 1
    return after if data.size - after - data.need in (0, 8) else None  # 8: the checksum at the end of a file


def _check_complete(begin: int, n_events: int, row: int, size: int) -> None:
    if begin + n_events * row > size:
        there = max(0, size - begin) // row
        raise DataError(
            f"is cut off: {there} of the {n_events} events that $TOT promises are there (DATA begins at byte "
            f"{begin}, an event has {row} bytes, the file ends at byte {size}); get a complete copy"
        )


def _remarks(
    told: Mapping[str, Span], begin: int, n_events: int, row: int, promised: int | None
) -> list[str]:
    """What is worth saying about the offsets that were found."""
    warnings = []
    if promised is None:
        warnings.append(f"$TOT is missing; DATA holds {n_events} events")
    if len(set(told.values())) == 2:
        spans = ", ".join(f"{source} puts DATA at bytes {_show(pair)}" for source, pair in told.items())
        warnings.append(f"{spans}; bytes {begin} to {begin + n_events * row - 1} were read")
    elif told and not any(_length(pair) - n_events * row in (0, 1) for pair in told.values()):
        left = _length(next(iter(told.values()))) - n_events * row
        warnings.append(f"DATA is {left} bytes longer than $TOT = {n_events} events; they were left aside")
    return warnings


def _show(pair: Span) -> str:
    return f"{'?' if pair.begin is None else pair.begin} to {'?' if pair.end is None else pair.end}"


def _disagreement(
    pairs: Mapping[str, Span],
    told: Mapping[str, Span],
    promised: int | None,
    layouts: Sequence[Layout],
    size: int,
) -> str:
    spans = ", ".join(f"bytes {_show(pair)} by {source}" for source, pair in pairs.items())
    rows = " or ".join(str(row) for row in dict.fromkeys(layout.row_bytes for layout in layouts))
    if promised is None:
        return f"has no $TOT and no DATA of whole events of {rows} bytes ({spans}); export it again"
    row = layouts[0].row_bytes
    room = [min(_length(pair), max(0, size - (pair.begin or 0))) // row for pair in told.values()]
    there = f"{max(room)}" if room else "an unknown number"
    return (
        f"promises {promised} events of {rows} bytes in $TOT, but there are {there} (DATA: {spans}; the file "
        f"has {size} bytes); get a complete copy or export it again"
    )


def _packed(keywords: Mapping[str, str], layout: Layout) -> str:
    """What may be the reason where integers do not have whole bytes."""
    told = [f"$P{i}B" for i, is_integer in enumerate(layout.integer, start=1) if is_integer]
    odd = [f"{key}={width}" for key in told if (width := integer(keywords.get(key)) or 8) % 8]
    return f"; bits that are packed without gaps ({several(odd)}) are not read" if odd else ""
