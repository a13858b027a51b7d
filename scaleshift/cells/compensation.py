"""How do channels spill over into each other, and what undoes it?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scaleshift.errors import DataError


@dataclass(frozen=True)
class Spillover:
    """A spillover matrix by channel name."""

    channels: tuple[str, ...]
    matrix: np.ndarray
    source: str

    @classmethod
    def parse(cls, text: str, source: str) -> Spillover:
        """Read `n,name_1,...,name_n,s_11,s_12,...`."""
        pieces = [piece.strip() for piece in text.split(",")]
        n = int(pieces[0]) if pieces[0].isascii() and pieces[0].isdigit() and len(pieces[0]) < 6 else 0
        if n < 1 or len(pieces) != 1 + n + n * n:
            raise DataError(f"{source} is no spillover matrix: {text[:30]!r}")
        try:
            matrix = np.array(pieces[1 + n :], dtype=np.float64).reshape(n, n)
        except ValueError:
            raise DataError(f"{source} holds something that is no number: {text[:30]!r}") from None
        return cls(tuple(pieces[1 : 1 + n]), matrix, source)
