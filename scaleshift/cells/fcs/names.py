"""What are the channels called, and how do they spill over?"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Literal

from scaleshift.cells.fcs.text import integer, words
from scaleshift.cells.problem import several
from scaleshift.cells.treatment.compensation import Spillover
from scaleshift.errors import DataError

Duplicates = Literal["raise", "rename"]
_SPILLOVER = ("$SPILLOVER", "SPILLOVER", "$SPILL", "SPILL", "$COMP", "COMP")


def count_channels(keywords: Mapping[str, str]) -> int:
    """$PAR, refused where the keywords do not describe as many channels."""
    n = integer(keywords.get("$PAR"))
    if n is None or n < 1:
        told = words(keywords.get("$PAR"))[:20]
        raise DataError(f"has $PAR {told!r}, no number of channels; export it again")
    # the number is not trusted before it is known that TEXT has so many keywords
    if n > len(keywords) or not any(f"$P{n}{letter}" in keywords for letter in "NBRSE"):
        raise DataError(f"promises {n} channels in $PAR, but TEXT does not describe them; export it again")
    return n


def name_channels(
    keywords: Mapping[str, str], n: int, duplicates: Duplicates
) -> tuple[list[str], list[str], list[str]]:
    """Channels ($PnN), markers ($PnS, "" where there is none) and warnings.

    Raises
    ------
    DataError
        If a name stands twice and `duplicates` is "raise".

    Examples
    --------
    >>> keywords = {"$P1N": "FL1", "$P2N": "FL1", "$P2S": "CD4"}
    >>> name_channels(keywords, 2, "rename")[:2]
    (['FL1-1', 'FL1-2'], ['', 'CD4'])
    """
    channels = [words(keywords.get(f"$P{i}N")) for i in range(1, n + 1)]
    markers = [words(keywords.get(f"$P{i}S")) for i in range(1, n + 1)]
    warnings = []
    nameless = [i for i, name in enumerate(channels, start=1) if not name]
    for i in nameless:
        channels[i - 1] = markers[i - 1] or f"P{i}"
    if nameless:
        told = several([f"$P{i}N" for i in nameless])
        warnings.append(f"{told}: is empty or missing; called by $PnS or the number")
    numbers: dict[str, list[int]] = {}
    for i, name in enumerate(channels, start=1):
        numbers.setdefault(name, []).append(i)
    twice = {name: where for name, where in numbers.items() if len(where) > 1}
    if twice:
        told = several([f"{name[:40]!r} (channels {several(where)})" for name, where in twice.items()])
        if duplicates == "raise":
            raise DataError(f'has channel names twice: {told}; pass duplicates="rename" or mend its $PnN')
        channels = numbered(channels, twice)
        warnings.append(f"channel names stood twice and were numbered: {told}")
    return channels, markers, warnings


def numbered(channels: Sequence[str], twice: Container[str]) -> list[str]:
    """Names that stand several times numbered, in a way that no other channel is called."""
    taken = {name for name in channels if name not in twice}
    following: dict[str, int] = {}
    renamed = []
    for name in channels:
        if name not in twice:
            renamed.append(name)
            continue
        number = following.get(name, 1)
        while f"{name}-{number}" in taken:
            number += 1
        following[name] = number + 1
        taken.add(f"{name}-{number}")
        renamed.append(f"{name}-{number}")
    return renamed


def find_spillover(keywords: Mapping[str, str], budget: int) -> tuple[Spillover | None, list[str]]:
    """The first spillover matrix that can be read, and what is wrong with the others.

    $DFCiTOj is left alone: it tells which compensation the instrument has applied, not one to apply.

    Parameters
    ----------
    keywords : mapping of str
    budget : int
        Largest number of entries that is read.
    """
    warnings = []
    for key in _SPILLOVER:
        text = words(keywords.get(key))
        if text in ("", "0"):  # no channels
            continue
        if text.count(",") > budget:
            warnings.append(
                f"{key} has {text.count(',') + 1} entries, too many for a file of this size; left out"
            )
            continue
        try:
            return Spillover.parse(text, key), warnings
        except DataError as error:
            warnings.append(f"{key} cannot be used: {error}")
    return None, warnings
