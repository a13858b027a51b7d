"""What do the letters in a table's column of flags stand for?  The reasons in words, below the table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from scaleshift.quantify.flags import JOINT, REASONS, codes

MOST_NAMES = 5  # samples with the same reasons; of more, not all are named
MOST_LINES = 20  # of reasons; a table of hundreds of samples has its reasons in the CSV
NAMES_WIDTH = 24  # characters; longer names wrap and leave room for the reasons


def letters(flag: str) -> str:
    """A flag's codes, each once.

    Examples
    --------
    >>> letters("label shift rejected; unknown above baseline: 10.7 %")
    'S U'
    """
    return " ".join(dict.fromkeys(codes(flag)))


def legend(samples: Sequence[str], flags: Sequence[str]) -> Group:
    """Reasons of flagged samples in words, then what each letter that occurs means.

    Samples with the same reasons share a line; a reason that all of several samples have stands once. Of
    many lines the first MOST_LINES are shown.

    Parameters
    ----------
    samples : sequence of str, length n_samples
        Names, fit to print.
    flags : sequence of str, length n_samples
        Reasons joined by "; ", fit to print.

    Returns
    -------
    rich.console.Group
        Nothing where no sample has a flag.
    """
    found = [[reason for reason in flag.split(JOINT) if reason] for flag in flags]
    common = _common(found)
    by_words: dict[str, list[str]] = {}
    for name, reasons in zip(samples, found, strict=True):
        own = [reason for reason in reasons if reason not in common]
        if own:
            by_words.setdefault(_lettered(own), []).append(name)
    rows = [("all samples", _lettered(common))] if common else []
    lines = [(_listed(names), words) for words, names in by_words.items()]
    rows += lines[:MOST_LINES]
    left_out = sum(len(names) for names in list(by_words.values())[MOST_LINES:])
    more = [Text(f"and {left_out} more: see the CSV")] if left_out else []
    met = {code for flag in flags for code in codes(flag)}
    meanings = [(code, reason.meaning) for code, reason in REASONS.items() if code in met]
    parts: list[RenderableType] = [_grid(rows), *more] if rows else []
    return Group(*parts, *([_grid(meanings)] if meanings else []))


def _common(found: list[list[str]]) -> list[str]:
    """Reasons of every sample: they are about the source, not about a sample."""
    if len(found) < 2:
        return []
    everywhere = set(found[0]).intersection(*found[1:])
    return [reason for reason in dict.fromkeys(found[0]) if reason in everywhere]


def _lettered(reasons: list[str]) -> str:
    return JOINT.join(f"{codes(reason)[0]} {reason}" for reason in reasons)


def _listed(names: list[str]) -> str:
    if len(names) <= MOST_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[:2])} and {len(names) - 2} more"


def _grid(rows: list[tuple[str, str]]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(overflow="fold", max_width=NAMES_WIDTH)
    grid.add_column(overflow="fold")
    for row in rows:
        grid.add_row(*map(Text, row))
    return grid
