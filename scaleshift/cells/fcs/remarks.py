"""How are many warnings of one kind said in one line?"""

from __future__ import annotations

from scaleshift.cells.problem import several


class Remarks:
    """Warnings about keywords, those of the same text joined.

    Examples
    --------
    >>> remarks = Remarks()
    >>> for n in range(1, 12):
    ...     remarks.add(f"$P{n}G", "is '0'; taken as 1")
    >>> remarks.lines()
    ["$P1G, $P2G, $P3G, $P4G, $P5G, $P6G, $P7G, $P8G and 3 more: is '0'; taken as 1"]
    """

    def __init__(self) -> None:
        self._keys: dict[str, list[str]] = {}

    def add(self, key: str, text: str) -> None:
        """Add what is to be said about one keyword."""
        self._keys.setdefault(text, []).append(key)

    def lines(self) -> list[str]:
        """One line for each text."""
        return [f"{several(keys)}: {text}" for text, keys in self._keys.items()]
