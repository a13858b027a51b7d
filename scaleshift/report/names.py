"""How is a name shown?  Names come from files: they are long, and may hold what a terminal would obey."""

from __future__ import annotations


def printable(name: object) -> str:
    """A name as one line of visible characters.

    Examples
    --------
    >>> printable("CD3\\x1b[31m")
    'CD3�[31m'
    """
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(name))


def short(name: object, longest: int) -> str:
    """A name on one line, its middle left out if it is long: names often differ at their ends.

    Examples
    --------
    >>> short("CD4 T cells, central memory", 12)
    'CD4 T…memory'
    """
    line = printable(name)
    half = longest // 2
    return line if len(line) <= longest else f"{line[: half - 1]}…{line[-half:]}"
