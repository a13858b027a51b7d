"""How many rows of a block are worked on at a time?  So few that what is made of them is small beside it."""

from __future__ import annotations

from collections.abc import Iterator

ROWS = 4_096


def tiles(n_rows: int) -> Iterator[slice]:
    """Consecutive rows of a block; one empty tile of a block without rows.

    Examples
    --------
    >>> [(rows.start, rows.stop) for rows in tiles(5_000)]
    [(0, 4096), (4096, 5000)]
    """
    for start in range(0, max(n_rows, 1), ROWS):
        yield slice(start, min(start + ROWS, n_rows))
