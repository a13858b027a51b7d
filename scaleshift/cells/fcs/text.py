"""Which keywords does a TEXT segment hold, and which numbers do their values mean?"""

from __future__ import annotations

import math
import re
from itertools import pairwise

from scaleshift.errors import DataError

_BLANK = " \t\r\n\0"
_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_STANDARD = re.compile(
    r"\$(?:PAR|TOT|MODE|DATATYPE|BYTEORD|NEXTDATA|(?:BEGIN|END)(?:DATA|STEXT)|P[0-9]{1,5}[BNRSEG])"
)


def parse_text(segment: bytes) -> tuple[dict[str, str], list[str]]:
    """Split a TEXT segment into keywords and values.

    The first byte is the delimiter. Between two others it ends a key or a value; doubled inside a value it
    stands for itself; doubled after a key it means an empty value, as many writers have it. The last
    delimiter may be missing. Bytes that are no UTF-8 are taken as latin-1, value by value.

    Parameters
    ----------
    segment : bytes
        The whole segment, its first delimiter included.

    Returns
    -------
    keywords : dict of str
        Keys in upper case and without blanks around them, values as they stand in the file; of a keyword
        that stands twice the last value.
    warnings : list of str

    Raises
    ------
    DataError
        If the segment does not begin with a delimiter.

    Examples
    --------
    >>> parse_text(b"/$TOT/100/ $p1n/FL1//FL2/$P1S//$PAR/1/")[0]
    {'$TOT': '100', '$P1N': 'FL1/FL2', '$P1S': '', '$PAR': '1'}
    """
    delimiter = segment[:1].decode("latin-1")
    if not delimiter or segment[:1].isalnum() or delimiter == "$":
        raise DataError(f"has no delimiter at the start of TEXT, but {segment[:8]!r}; export it again")
    pieces = _pieces(segment)
    keywords, warnings = _pair(pieces, delimiter)
    if _lacks_required(keywords):
        found = _standard_pairs(pieces)
        missing = [key for key in found if key not in keywords]
        if missing:
            warnings.append(
                f"TEXT holds its delimiter {delimiter!r} inside of values; {', '.join(missing[:5])} were "
                "found by their names, other keywords may be wrong"
            )
            keywords = {**keywords, **{key: found[key] for key in missing}}
    return keywords, warnings


def _pieces(segment: bytes) -> list[str]:
    """What stands between delimiters, decoded."""
    delimiter = segment[:1]
    if segment.isascii():
        return segment[1:].decode("ascii").split(delimiter.decode("ascii"))
    return [decode(piece) for piece in segment[1:].split(delimiter)]


def decode(piece: bytes) -> str:
    """Text of one key or value: UTF-8, or latin-1 where it is no UTF-8."""
    try:
        return piece.decode("utf-8")
    except UnicodeDecodeError:
        return piece.decode("latin-1")


def _pair(pieces: list[str], delimiter: str) -> tuple[dict[str, str], list[str]]:
    """Keywords and values, escaped delimiters put back."""
    keywords: dict[str, str] = {}
    at, last = 0, len(pieces) - 1
    while at < last:
        key = pieces[at].strip(_BLANK)
        if not key:  # a delimiter too many
            at += 1
            continue
        value = pieces[at + 1]
        at += 2
        if at < last and not pieces[at]:
            parts = [value]
            while at < last and not pieces[at]:
                parts.append(pieces[at + 1])
                at += 2
            value = delimiter.join(parts)
        keywords[key.upper()] = value
    rest = pieces[at].strip(_BLANK) if at == last else ""
    warnings = []
    if len(rest) > 1:  # one byte: an end of TEXT that is one too large
        warnings.append(f"TEXT ends after the keyword {rest[:40]!r}, which has no value; it was left out")
    return keywords, warnings


def _lacks_required(keywords: dict[str, str]) -> bool:
    """Whether a keyword without which no event can be read is missing."""
    n = integer(keywords.get("$PAR"))
    if n is None or "$DATATYPE" not in keywords or "$TOT" not in keywords:
        return True
    return any(f"$P{i}N" not in keywords for i in range(1, min(n, len(keywords)) + 1))


def _standard_pairs(pieces: list[str]) -> dict[str, str]:
    """Keywords of the standard wherever they stand, each with the piece after it."""
    found: dict[str, str] = {}
    for key, value in pairwise(pieces):
        name = key.strip(_BLANK).upper()
        if _STANDARD.fullmatch(name):
            found.setdefault(name, value)
    return found


def integer(value: str | None) -> int | None:
    """Value as an integer; None where it is missing or none.

    Examples
    --------
    >>> integer(" 0012 "), integer("32.0"), integer("1e9999"), integer(None)
    (12, 32, None, None)
    """
    if value is None:
        return None
    value = value.strip(_BLANK)
    if _INTEGER.fullmatch(value):
        return int(value)
    found = number(value)
    return int(found) if found is not None and found.is_integer() and abs(found) < 2**63 else None


def number(value: str | None) -> float | None:
    """Value as a finite number; None where it is missing or none.

    Examples
    --------
    >>> number("0.01 "), number("1e9999"), number("nan"), number("")
    (0.01, None, None, None)
    """
    value = "" if value is None else value.strip(_BLANK)
    if not _NUMBER.fullmatch(value):
        return None
    found = float(value)
    return found if math.isfinite(found) else None


def words(value: str | None) -> str:
    """Value without the blanks around it, "" where it is missing."""
    return "" if value is None else value.strip(_BLANK)
