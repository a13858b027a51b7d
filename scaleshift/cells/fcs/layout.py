"""How are the values of one event stored: types, widths, byte order, bits that count?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from scaleshift.cells.fcs.remarks import Remarks
from scaleshift.cells.fcs.text import integer, number, words
from scaleshift.cells.problem import several
from scaleshift.errors import DataError

LITTLE, BIG = "<", ">"
# 16-bit words in another order than the bytes inside of them, as on a PDP-11, and its mirror image
LITTLE_WORDS, BIG_WORDS = "<w", ">w"
_ORDERS = {(3, 4, 1, 2): LITTLE_WORDS, (2, 1, 4, 3): BIG_WORDS}
_WIDTHS = {"F": 32, "D": 64}
_EXACT_BITS = 24  # integers that float32 holds exactly


@dataclass(frozen=True)
class Run:
    """Channels side by side that are stored alike.

    Attributes
    ----------
    first, stop : int
        The channels, counted from 0.
    offset : int
        Bytes of an event before the first of them.
    kind : "f" or "u"
        Floating point or unsigned integer.
    width : int
        Bytes of one value.
    masks : tuple of int or None
        For each channel the bits that count; None where all do.
    """

    first: int
    stop: int
    offset: int
    kind: str
    width: int
    masks: tuple[int, ...] | None


@dataclass(frozen=True)
class Layout:
    """How an event is stored, and as what it is read.

    Attributes
    ----------
    runs : tuple of Run
    order : "<", ">", "<w" or ">w"
        Byte order; with w, 16-bit words of that order, of which the other end comes first.
    row_bytes : int
    n_channels : int
    dtype : "float32" or "float64"
    integer : tuple of bool
        For each channel whether it is stored as an integer.
    """

    runs: tuple[Run, ...]
    order: str
    row_bytes: int
    n_channels: int
    dtype: str
    integer: tuple[bool, ...]


def possible_layouts(keywords: Mapping[str, str], n_channels: int) -> tuple[list[Layout], list[str]]:
    """Layouts that the keywords allow, the likeliest first: the size of DATA tells which it is.

    Parameters
    ----------
    keywords : mapping of str
    n_channels : int
        $PAR, checked against the number of keywords.

    Returns
    -------
    layouts : list of Layout
    warnings : list of str

    Raises
    ------
    DataError
        If $MODE, $DATATYPE, $PnB or $BYTEORD name something that is not read here.

    Examples
    --------
    >>> keywords = {"$DATATYPE": "I", "$BYTEORD": "1,2", "$P1B": "10", "$P1R": "1024"}
    >>> layouts, _ = possible_layouts(keywords, 1)
    >>> [(layout.row_bytes, layout.runs[0].masks) for layout in layouts]
    [(2, (1023,))]
    """
    _check_mode(keywords)
    types = _types(keywords, n_channels)
    widths = [integer(keywords.get(f"$P{i}B")) for i in range(1, n_channels + 1)]
    remarks = Remarks()
    masks = [
        _mask_bits(keywords, i, remarks) if kind == "I" else None for i, kind in enumerate(types, start=1)
    ]
    candidates: list[list[int]] = []
    for stored in (_rounded_up, _whole_bytes, _declared):
        bits = [stored(kind, width, i) for i, (kind, width) in enumerate(zip(types, widths, strict=True), 1)]
        if bits not in candidates:
            candidates.append(bits)
    odd = [i for i, (kind, width) in enumerate(zip(types, widths, strict=True), 1) if _is_odd(kind, width)]
    if odd:
        told = several([f"$P{i}B={widths[i - 1]}" for i in odd])
        remarks.add(told, "is not how such values are stored; the size of DATA told the width")
    order = _byte_order(keywords, {stored for bits in candidates for stored in bits})
    return [_layout(types, bits, masks, order) for bits in candidates], remarks.lines()


def _check_mode(keywords: Mapping[str, str]) -> None:
    mode = words(keywords.get("$MODE")).upper() or "L"
    if mode != "L":
        kind = {"C": "a correlated histogram", "U": "uncorrelated histograms"}.get(mode, "unknown")
        raise DataError(f"has $MODE {mode[:20]!r} ({kind}), not a list of events; export it in list mode (L)")


def _types(keywords: Mapping[str, str], n_channels: int) -> list[str]:
    """I, F or D for each channel."""
    common = words(keywords.get("$DATATYPE")).upper()
    types = []
    for i in range(1, n_channels + 1):
        own = words(keywords.get(f"$P{i}DATATYPE")).upper()
        kind, key = (own, f"$P{i}DATATYPE") if own else (common, "$DATATYPE")
        if kind not in ("I", "F", "D"):
            what = "values as text, which is not read" if kind == "A" else "no type of the standard"
            raise DataError(f"has {key} {kind[:20]!r}: {what}; export it with $DATATYPE F or I")
        types.append(kind)
    return types


def _rounded_up(kind: str, width: int | None, channel: int) -> int:
    """Stored bits: 10 bits stand in 16, 20 in 32."""
    if kind != "I":
        return _WIDTHS[kind]
    if width is None or not 0 < width <= 64:
        told = "is missing or no number" if width is None else f"is {width}"
        raise DataError(f"cannot be read: $P{channel}B {told}, expected 8 to 64 bits; export it again")
    return width if width % 8 == 0 else next(bits for bits in (8, 16, 32, 64) if bits > width)


def _whole_bytes(kind: str, width: int | None, channel: int) -> int:
    """Stored bits: 20 bits stand in 24."""
    return _WIDTHS[kind] if kind != "I" else -(-(width or 8) // 8) * 8


def _declared(kind: str, width: int | None, channel: int) -> int:
    """Stored bits: those of $PnB, also where $DATATYPE F stands beside 64 bits."""
    return width if kind != "I" and width in (32, 64) else _rounded_up(kind, width, channel)


def _is_odd(kind: str, width: int | None) -> bool:
    return width is not None and (width % 8 != 0 if kind == "I" else width != _WIDTHS[kind])


def _mask_bits(keywords: Mapping[str, str], channel: int, remarks: Remarks) -> int | None:
    """Number of low bits that $PnR lets count; None for all."""
    top = number(keywords.get(f"$P{channel}R"))
    if top is None or top < 2:
        told = words(keywords.get(f"$P{channel}R"))[:20]
        remarks.add(f"$P{channel}R", f"is {told!r}, no range; all stored bits were kept")
        return None
    return (-int(-top // 1) - 1).bit_length()  # ceil(log2($PnR))


def _byte_order(keywords: Mapping[str, str], widths: set[int]) -> str:
    told = words(keywords.get("$BYTEORD"))
    significance = tuple(int(digit) for digit in re.findall("[0-9]", told[:64]))
    ascending = tuple(range(1, len(significance) + 1))
    if significance and significance == ascending:
        return LITTLE
    if significance and significance == ascending[::-1]:
        return BIG
    if significance in _ORDERS and widths <= {8, 16, 32}:
        return _ORDERS[significance]
    if not told and widths == {8}:
        return LITTLE
    orders = "1,2,3,4 | 4,3,2,1 | 1,2 | 2,1 | 3,4,1,2 (the last up to 32 bits)"
    raise DataError(
        f"has $BYTEORD {told[:20]!r} for values of {max(widths)} bits; export it with one of {orders}"
    )


def _layout(types: Sequence[str], bits: Sequence[int], masks: Sequence[int | None], order: str) -> Layout:
    """Neighbours that are stored alike as one run; few runs are fast."""
    stored = [("u" if kind == "I" else "f", width // 8) for kind, width in zip(types, bits, strict=True)]
    counting = [width if kept is None else min(width, kept) for width, kept in zip(bits, masks, strict=True)]
    exact = [
        count <= _EXACT_BITS if kind == "u" else width == 4
        for (kind, width), count in zip(stored, counting, strict=True)
    ]
    runs: list[Run] = []
    first = offset = 0
    for (kind, width), group in groupby(stored):
        stop = first + len(list(group))
        masked = kind == "u" and any(count < 8 * width for count in counting[first:stop])
        kept = tuple((1 << count) - 1 for count in counting[first:stop]) if masked else None
        runs.append(Run(first, stop, offset, kind, width, kept))
        offset += (stop - first) * width
        first = stop
    return Layout(
        runs=tuple(runs),
        order=order,
        row_bytes=offset,
        n_channels=len(types),
        dtype="float32" if all(exact) else "float64",
        integer=tuple(kind == "I" for kind in types),
    )
