"""Which name was meant?  What an error says at its end of a name that there is not."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

MOST_NAMES = 8
SLIP = 0.85  # how alike a slip of the pen is, in difflib's ratio


def suggestion(name: object, known: Iterable[object]) -> str:
    """Text to end an error with: the closest known name, else the first few names.

    Examples
    --------
    >>> suggestion("CD45RA", ["CD3", "CD45-RA"])
    "; did you mean 'CD45-RA'?"
    >>> suggestion("CD4", ["CD3", "CD8"])
    '; known: CD3, CD8'
    """
    texts = [str(k) for k in known]
    near = meant(name, texts)
    if near:
        return near
    shown = ", ".join(texts[:MOST_NAMES]) + (", ..." if len(texts) > MOST_NAMES else "")
    return f"; known: {shown}" if texts else ""


def meant(name: object, known: Iterable[object]) -> str:
    """The first half of it, for an error that names all there are: "" where no name is close.

    Examples
    --------
    >>> meant("domni", ["domino", "spotlight"]), meant("x", ["domino", "spotlight"])
    ("; did you mean 'domino'?", '')
    """
    near = nearest(name, known)
    return "" if near is None else f"; did you mean {near!r}?"


def nearest(name: object, known: Iterable[object]) -> str | None:
    """The closest known name, None where none is close.

    CD3 is no misspelt CD8: a name that is close has the same numbers, or it would mislead. Which letters are
    large, and what stands between them, counts little.

    Examples
    --------
    >>> nearest("sampel_id", ["file_name", "sample_id"]), nearest("S1", ["S01", "S2"])
    ('sample_id', 'S01')
    >>> nearest("CD8", ["CD3"]) is None
    True
    """
    alike = {text.casefold(): text for text in map(str, known) if _numbers(text) == _numbers(str(name))}
    close = difflib.get_close_matches(str(name).casefold(), alike, n=1)
    return alike[close[0]] if close else None


def misspelt(names: Iterable[str], wanted: Iterable[str]) -> tuple[str, str] | None:
    """The first of some names that is a slip of the pen of a wanted one, and that one; case does not count.

    Stricter than `nearest`: the name may well be meant as it is.

    Examples
    --------
    >>> misspelt(["batch", "sampel_id"], ["sample_id", "id"]), misspelt(["sample_no"], ["sample_id"]) is None
    (('sampel_id', 'sample_id'), True)
    """
    wanted = list(wanted)
    for name in names:
        close = difflib.get_close_matches(name.strip().casefold(), wanted, n=1, cutoff=SLIP)
        if close and name.strip().casefold() not in wanted:
            return name, close[0]
    return None


def _numbers(text: str) -> list[str]:
    return [digits.lstrip("0") for digits in re.findall(r"[0-9]+", text)]
