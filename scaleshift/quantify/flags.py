"""Why does a row of the result deserve caution?  Reasons in words, each with a one-letter code.

A flag is text: reasons joined by "; ", each one of the phrases below, or one followed by ": " and what it is
about. Tables print the codes, with the words below.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Reason(NamedTuple):
    """A kind of caution."""

    code: str  # one letter, for tables
    phrase: str  # how the reason starts in words
    meaning: str  # what to do about it


REASONS = {
    reason.code: reason
    for reason in (
        Reason("E", "no cells", "the sample is empty: nothing was estimated"),
        Reason("F", "few cells", "under 50 cells: the intervals say more than the shares"),
        Reason("X", "cells left out", "cells with NaN or infinite values were left out"),
        Reason(
            "A", "not in the source", "the class has no cells to learn from: label some, or drop the class"
        ),
        Reason("C", "few source cells", "under 50 cells to learn the class from: label more"),
        Reason("I", "not identifiable", "these classes look alike: use their sum, or merge them"),
        Reason("W", "wide interval", "the interval spans over half of the scale: do not use the share"),
        Reason(
            "S",
            "label shift rejected",
            "no mixture of the source's classes looks like the sample: its intervals do not hold",
        ),
        Reason(
            "U", "unknown above baseline", "more cells unlike every class than samples of known classes show"
        ),
        Reason(
            "N",
            "cells unlike every class",
            "cells of no known class, or a strong batch shift: compare novel with novel_unaligned",
        ),
        Reason(
            "K",
            "unlike every class, counted as known",
            "too few to tell from how samples differ: the intervals reach to where they are unknown",
        ),
        Reason("M", "estimators disagree", "treat the proportions with care: label one more sample"),
        Reason("D", "do not use", "the sample is too unlike the source: label one more like it"),
    )
}
JOINT = "; "


def reason(code: str, detail: str = "") -> str:
    """One reason in words.

    Examples
    --------
    >>> reason("C", "B cells (12)")
    'few source cells: B cells (12)'
    """
    phrase = REASONS[code].phrase
    return f"{phrase}: {detail.replace(JOINT, ', ')}" if detail else phrase


def flag(reasons: Iterable[str]) -> str:
    """Reasons as one text; empty ones are left out.

    Examples
    --------
    >>> flag([reason("F", "12"), "", reason("U", "10 %")])
    'few cells: 12; unknown above baseline: 10 %'
    """
    return JOINT.join(filter(None, reasons))


def codes(text: str) -> list[str]:
    """Codes of a flag's reasons, in their order; "?" for one that is not known here.

    Examples
    --------
    >>> codes("few cells: 12; unknown above baseline: 10 %"), codes("")
    (['F', 'U'], [])
    """
    found = []
    for part in filter(None, text.split(JOINT)):
        phrase = part.split(": ", 1)[0]
        found.append(next((r.code for r in REASONS.values() if r.phrase == phrase), "?"))
    return found
