"""What deserves caution?  Every reason that rows of a result have a flag, and whose it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from scaleshift.cells.problem import several
from scaleshift.report.names import short
from scaleshift.report.pages.parts import Points, Words

JOINT = "; "  # between the reasons of a flag; ": " comes before what one is about
MOST_NAMES = 12  # behind a reason
LONGEST_NAME = 48
HEADING = "What deserves caution"


def by_reason(
    flags: Iterable[tuple[object, object]],
    what: str,
    told: Callable[[str], tuple[str, str]] = lambda phrase: (f"{phrase}:", ""),
) -> Points | Words:
    """Reasons in words, each with the names of the rows that have it.

    Parameters
    ----------
    flags : iterable of (name, flag)
        A flag is text: reasons joined by "; ", empty if there is none.
    what : str
        What a row is, as in "slice".
    told : callable
        Heading of a reason, and what comes before the names, by its phrase.

    Examples
    --------
    >>> by_reason([("0", "few rows: 3"), ("1", "few rows: 5; may be chance"), ("2", "")], "slice").entries
    [('few rows:', '0 (3), 1 (5)'), ('may be chance:', '1')]
    """
    by_phrase: dict[str, list[str]] = {}
    for name, flag in flags:
        for reason in filter(None, str(flag).split(JOINT)):
            phrase, _, about = reason.partition(": ")
            of = short(name, LONGEST_NAME)
            by_phrase.setdefault(phrase, []).append(f"{of} ({about})" if about else of)
    if not by_phrase:
        return Words([f"No {what} has a flag. That is no guarantee."])
    entries = []
    for phrase, names in by_phrase.items():
        heading, before = told(phrase)
        entries.append((heading, before + several(names, MOST_NAMES)))
    return Points(entries)
