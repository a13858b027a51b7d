"""Which data sets does a file hold, and what does each say about itself? Reads HEADER and TEXT only."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import FileIO
from typing import NamedTuple, TypeVar

from scaleshift.cells.fcs.amplifiers import find_scales
from scaleshift.cells.fcs.file import FcsFile, opened
from scaleshift.cells.fcs.header import HEADER_BYTES, Header, Span, parse_header
from scaleshift.cells.fcs.layout import possible_layouts
from scaleshift.cells.fcs.names import Duplicates, count_channels, find_spillover, name_channels
from scaleshift.cells.fcs.offsets import locate
from scaleshift.cells.fcs.text import integer, parse_text
from scaleshift.errors import DataError

T = TypeVar("T")
Read = Callable[[int, int], bytes]  # bytes of the file from `begin` to before `end`
_MOST_DATA_SETS = 2000
_MEGABYTE = 1 << 20
_PIECE = 130  # bytes of memory that a key or a value takes at most beside its text
_CHANNEL = 400  # and a channel


class Wish(NamedTuple):
    """What the caller of `read_fcs` or `list_data_sets` asks for."""

    path: str
    raw: bool
    duplicates: Duplicates


class Preamble(NamedTuple):
    """HEADER and TEXT of one data set.

    Attributes
    ----------
    start : int
        First byte of the data set in the file.
    header : Header
    keywords : dict of str
    warnings : list of str
    crc : int
        CRC-32 of both.
    """

    start: int
    header: Header
    keywords: dict[str, str]
    warnings: list[str]
    crc: int


def read_fcs(
    path: str | os.PathLike[str],
    raw: bool = False,
    data_set: int | None = None,
    duplicates: Duplicates = "raise",
) -> FcsFile:
    """Describe an FCS file (2.0, 3.0, 3.1, 3.2); its events are read from the result, by slices.

    Parameters
    ----------
    path : str or path-like
    raw : bool
        Leave values as they are stored: no logarithmic amplifiers ($PnE), gains ($PnG) or clock ($TIMESTEP).
        Bits above the range of an integer ($PnR) are masked away in any case.
    data_set : int, optional
        Which data set, counted from 0; needed if there are several.
    duplicates : "raise" or "rename"
        What to do about channel names ($PnN) that stand twice: refuse them, or number them.

    Returns
    -------
    FcsFile

    Raises
    ------
    DataError
        One line that begins with the path: what was found, where, what to do.

    Examples
    --------
    >>> fcs = read_fcs("tests/data/flowkit_line100.fcs")
    >>> fcs.version, fcs.n_events, fcs.events.dtype
    ('FCS3.1', 100, dtype('float32'))
    """
    wish = _checked(path, raw, duplicates)
    with opened(wish.path) as (file, size):
        return _located(wish.path, lambda: describe(_reader(file, size), size, wish, data_set))


def list_data_sets(
    path: str | os.PathLike[str], raw: bool = False, duplicates: Duplicates = "raise"
) -> list[FcsFile]:
    """Describe each data set of an FCS file; most files hold one.

    Parameters
    ----------
    path, raw, duplicates
        As in `read_fcs`.

    Returns
    -------
    list of FcsFile

    Raises
    ------
    DataError
        If one of them cannot be read.

    Examples
    --------
    >>> [fcs.n_events for fcs in list_data_sets("tests/data/flowkit_line100.fcs")]
    [100]
    """
    wish = _checked(path, raw, duplicates)
    with opened(wish.path) as (file, size):
        return _located(wish.path, lambda: describe_all(_reader(file, size), size, wish))


def describe(read: Read, size: int, wish: Wish, data_set: int | None) -> FcsFile:
    """Describe one data set of the bytes that `read` gives; `size` is their number."""
    n, chosen, warnings = 0, None, list[str]()
    for number, preamble in enumerate(_preambles(read, size, warnings)):
        n = number + 1
        if number == (data_set or 0):
            chosen = preamble
    if data_set is None and n > 1:
        raise DataError(f"holds {n} data sets; pass data_set=0 to data_set={n - 1}, or split it")
    if chosen is None:
        raise DataError(f"has no data_set={data_set}: it holds {n}, counted from 0")
    fcs = _describe(_with_supplement(_readable(chosen), read, size), size, wish)
    return replace(fcs, data_set=data_set or 0, n_data_sets=n, warnings=[*warnings, *fcs.warnings])


def describe_all(read: Read, size: int, wish: Wish) -> list[FcsFile]:
    """Describe all data sets of the bytes that `read` gives."""
    warnings: list[str] = []
    files: list[FcsFile] = []
    shared: dict[str, str] = {}  # data sets of a file say the same things: kept once
    memory = 0
    preambles = _preambles(read, size, warnings)
    for number, found in enumerate(preambles):
        try:
            preamble = _with_supplement(_readable(found), read, size)
            keywords = {
                shared.setdefault(k, k): shared.setdefault(v, v) for k, v in preamble.keywords.items()
            }
            fcs = _describe(preamble._replace(keywords=keywords), size, wish)
        except DataError as error:
            n = number + 1 + sum(1 for _ in preambles)
            raise error if n == 1 else DataError(f"data set {number} of {n} {error}") from None
        files.append(replace(fcs, data_set=number))
        memory += 1000 + 50 * (len(keywords) + len(fcs.channels))
        if number and memory + _PIECE * len(shared) > _MEGABYTE + 2 * size:
            n = number + 1 + sum(1 for _ in preambles)
            raise DataError(
                f"holds {n} data sets, too many to list for {size} bytes; read one by one (data_set=)"
            )
    return [replace(fcs, n_data_sets=len(files), warnings=[*warnings, *fcs.warnings]) for fcs in files]


def read_preamble(read: Read, size: int, start: int) -> Preamble:
    """Read HEADER and TEXT."""
    head = read(start, start + HEADER_BYTES)
    header = parse_header(head)
    begin, end = header.text
    if begin is None or end is None or begin < HEADER_BYTES or end <= begin:
        raise DataError(f"has no place of TEXT in its HEADER ({head[10:26]!r}); export it again")
    if start + end >= size:
        raise DataError(
            f"is cut off inside its TEXT: it should end at byte {start + end}, the file has {size} bytes; "
            "get a complete copy"
        )
    text = read(start + begin, start + end + 1)
    _check_size(text, text[:1], size)
    keywords, warnings = parse_text(text)
    return Preamble(start, header, keywords, warnings, zlib.crc32(text, zlib.crc32(head)))


def _describe(preamble: Preamble, size: int, wish: Wish) -> FcsFile:
    """Description of one data set, as if it were the only one."""
    keywords = preamble.keywords
    n_channels = count_channels(keywords)
    if 2 * _PIECE * len(keywords) + _CHANNEL * n_channels > _MEGABYTE + 2 * size:
        raise DataError(
            f"promises {n_channels} channels, too many for a file of {size} bytes; export it again"
        )
    layouts, type_warnings = possible_layouts(keywords, n_channels)
    place = locate(preamble.header, keywords, layouts, size - preamble.start)
    channels, markers, name_warnings = name_channels(keywords, n_channels, wish.duplicates)
    spillover, spillover_warnings = find_spillover(keywords, (_MEGABYTE + size) // 100)
    scales, scale_warnings = ((), []) if wish.raw else find_scales(keywords, channels, place.layout.integer)
    return FcsFile(
        path=wish.path,
        version=preamble.header.version,
        data_set=0,
        n_data_sets=1,
        n_events=place.n_events,
        channels=channels,
        markers=markers,
        keywords=keywords,
        spillover=spillover,
        warnings=[
            *preamble.warnings,
            *type_warnings,
            *place.warnings,
            *name_warnings,
            *spillover_warnings,
            *scale_warnings,
        ],
        text_crc=preamble.crc,
        layout=place.layout,
        scales=scales,
        begin=preamble.start + place.begin,
    )


def _preambles(read: Read, size: int, warnings: list[str]) -> Iterator[Preamble | DataError]:
    """HEADER and TEXT of all data sets, along $NEXTDATA, which only leads forward.

    One that cannot be read, but for the first, is the last: its error stands in its place, to be raised where
    this data set is asked for. A $NEXTDATA that leads nowhere is added to `warnings`.
    """
    start = 0
    for number in range(_MOST_DATA_SETS):
        try:
            preamble = read_preamble(read, size, start)
        except DataError as error:
            if not number:
                raise
            yield error
            return
        yield preamble
        step = integer(preamble.keywords.get("$NEXTDATA")) or 0
        if step == 0:
            return
        start += step
        if step <= (preamble.header.text.end or 0) or start >= size or read(start, start + 3) != b"FCS":
            where = f"$NEXTDATA of data set {number} points to byte {start}"
            warnings.append(f"{where}, where no data set begins; it was taken as the last one")
            return
    raise DataError(f"holds more than {_MOST_DATA_SETS} data sets; split it")


def _readable(preamble: Preamble | DataError) -> Preamble:
    if isinstance(preamble, DataError):
        raise preamble
    return preamble


def _with_supplement(preamble: Preamble, read: Read, size: int) -> Preamble:
    """The same with the keywords of the supplemental TEXT that TEXT does not have."""
    keywords, start = preamble.keywords, preamble.start
    span = Span(integer(keywords.get("$BEGINSTEXT")), integer(keywords.get("$ENDSTEXT")))
    begin, end = span
    if not begin or not end or span == preamble.header.text:
        return preamble
    where = f"the supplemental TEXT at bytes {begin} to {end}"
    more: dict[str, str] = {}
    if begin < HEADER_BYTES or end <= begin or start + end >= size:
        warnings = [f"{where} is not inside of the file; it was left out"]
    else:
        text = read(start + begin, start + end + 1)
        try:
            _check_size(text, text[:1], size)
            more, warnings = parse_text(text)
        except DataError:
            warnings = [f"{where} is none (it begins with {text[:8]!r}); it was left out"]
    return preamble._replace(keywords={**more, **keywords}, warnings=preamble.warnings + warnings)


def _check_size(text: bytes, delimiter: bytes, size: int) -> None:
    """Refuse a TEXT whose keywords would take far more memory than the file has bytes."""
    memory = len(text) * (3 if text.isascii() else 6) + _PIECE * text.count(delimiter)
    if memory > _MEGABYTE + 2 * size:
        raise DataError(
            f"has a TEXT of {len(text)} bytes and {text.count(delimiter)} delimiters, too much for a file of "
            f"{size} bytes; export it again"
        )


def _reader(file: FileIO, size: int) -> Read:
    def read(begin: int, end: int) -> bytes:
        if begin >= size:
            return b""
        file.seek(begin)
        return file.read(min(end, size) - begin)

    return read


def _checked(path: str | os.PathLike[str], raw: bool, duplicates: Duplicates) -> Wish:
    if duplicates not in ("raise", "rename"):
        raise DataError(f'duplicates={duplicates!r}: pass "raise" or "rename"')
    name = os.fsdecode(path)
    if "\0" in name:
        raise DataError(f"{name!r}: no file can have this name")
    return Wish(name, raw, duplicates)


def _located(name: str, work: Callable[[], T]) -> T:
    """Result of `work`, whose errors get the path in front."""
    try:
        return work()
    except DataError as error:
        raise DataError(f"{name}: {error}") from None
