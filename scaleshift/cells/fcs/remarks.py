"""How are many warnings of one kind said in one line?"""

from __future__ import annotations

from collections.abc import Sequence

_SHOWN = 5


class Remarks:
    """Warnings about keywords, those of the same text joined.

    Examples
    --------
    >>> remarks = Remarks()
    >>> for n in range(1, 9):
    ...     remarks.add(f"$P{n}G", "is '0'; taken as 1")
    >>> remarks.lines()
    ["$P1G, $P2G, $P3G, $P4G, $P5G and 3 more: is '0'; taken as 1"]
    """

    def __init__(self) -> None:
        self._keys: dict[str, list[str]] = {}

    def add(self, key: str, text: str) -> None:
        """Add what is to be said about one keyword."""
        self._keys.setdefault(text, []).append(key)

    def lines(self) -> list[str]:
        """One line for each text."""
        return [f"{several(keys)}: {text}" for text, keys in self._keys.items()]


def several(items: Sequence[object]) -> str:
    """The first few of many, and how many more there are.

    Examples
    --------
    >>> several([1, 2, 3]), several(range(1, 9))
    ('1, 2, 3', '1, 2, 3, 4, 5 and 3 more')
    """
    shown = ", ".join(str(item) for item in items[:_SHOWN])
    return shown if len(items) <= _SHOWN else f"{shown} and {len(items) - _SHOWN} more"
