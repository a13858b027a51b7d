"""Where does the HEADER of an FCS data set say that its segments are?"""

from __future__ import annotations

import re
from typing import NamedTuple

from scaleshift.errors import DataError

HEADER_BYTES = 58
VERSIONS = ("FCS2.0", "FCS3.0", "FCS3.1", "FCS3.2")
_OFFSET = re.compile(rb"[ \0]*(\d+)[ \0]*")
_OTHERS = {b"PK": "a ZIP archive", b"\x1f\x8b": "a gzip file", b"\x89HDF": "an HDF5 file", b"<?xml": "XML"}


class Span(NamedTuple):
    """First and last byte of a segment, counted from the data set's first byte; None where not told."""

    begin: int | None
    end: int | None


class Header(NamedTuple):
    """What the first 58 bytes of a data set say."""

    version: str
    text: Span
    data: Span


def parse_header(head: bytes) -> Header:
    """Read the HEADER; refuse what does not begin as an FCS file of a known version does.

    Parameters
    ----------
    head : bytes
        The first 58 bytes of a data set, or less where the file is shorter.

    Raises
    ------
    DataError
        If these are not the first bytes of FCS 2.0, 3.0, 3.1 or 3.2.

    Examples
    --------
    >>> parse_header(b"FCS3.0          58    2507    2508   38507       0       0").text
    Span(begin=58, end=2507)
    """
    if not head:
        raise DataError("is empty (0 bytes); export or copy it again")
    if not head.startswith(b"FCS"):
        kind = next((f" ({name})" for start, name in _OTHERS.items() if head.startswith(start)), "")
        raise DataError(
            f"is not an FCS file{kind}: it begins with {head[:8]!r}, not with b'FCS'; leave it out or "
            "export it as FCS"
        )
    version = head[:6].decode("latin-1")
    if version not in VERSIONS:
        raise DataError(f"has version {version!r}; export it as one of {', '.join(VERSIONS)}")
    if len(head) < HEADER_BYTES:
        raise DataError(f"is cut off inside its HEADER ({len(head)} of 58 bytes); get a complete copy")
    fields = [_offset(head[at : at + 8]) for at in range(10, 42, 8)]
    return Header(version, Span(*fields[:2]), Span(*fields[2:]))


def _offset(field: bytes) -> int | None:
    """Offset as a number; None where the field is blank or something else."""
    found = _OFFSET.fullmatch(field)
    return int(found[1]) if found else None
