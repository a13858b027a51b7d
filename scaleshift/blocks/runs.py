"""Which rows belong together?  Runs of one category, and pieces of rows that hold whole categories."""

from __future__ import annotations

import functools

import numpy as np

from scaleshift.blocks import passes
from scaleshift.blocks.block import Block, Rows

MOST = 100_000  # runs; more of them are categories in no order


def pieces(rows: Rows, name: str, n_rows: int) -> list[tuple[int, int]]:
    """Ranges of rows that hold whole categories of a column: one pass over that column.

    Parameters
    ----------
    rows : Rows
    name : str
        Name of a column of codes, such as the sample.
    n_rows : int
        Rows of a piece at least, but of the last.

    Returns
    -------
    list of (begin, end)
        One after the other, together all rows. One piece where the rows of a category do not lie together.

    Examples
    --------
    >>> from scaleshift.blocks.rows import as_rows
    >>> pieces(as_rows(np.ones((5, 1)), None, ["a", "b", "b", "b", "c"]), "sample", 2)
    [(0, 4), (4, 5)]
    >>> pieces(as_rows(np.ones((3, 1)), None, ["a", "b", "a"]), "sample", 1)
    [(0, 3)]
    """
    n = rows.x.shape[0]
    merge = functools.partial(_joined, most=MOST)
    found = passes.total(_runs, rows.only(name).without_x(), None, merge=merge, name=name)
    if len(found["code"]) > MOST or len(np.unique(found["code"])) < len(found["code"]):
        return [(0, n)]
    ends = [*(found["begin"][1:] - rows.first).tolist(), n]
    cuts, begin = [], 0
    for end in ends:
        if end - begin >= n_rows:
            cuts.append((begin, end))
            begin = end
    return [*cuts, (begin, n)] if begin < n or not cuts else cuts


def _runs(block: Block, name: str) -> dict[str, np.ndarray]:
    """Where runs begin, and of which code they are."""
    codes = block.columns[name]
    begin = np.flatnonzero(np.diff(codes, prepend=codes[:1] - 1))[: MOST + 1]
    return {"code": codes[begin].astype(np.int64), "begin": block.start + begin}


def _joined(a: dict[str, np.ndarray], b: dict[str, np.ndarray], most: int) -> dict[str, np.ndarray]:
    """Runs of two neighbours; one that goes on is one. Of too many, one more than are allowed."""
    goes_on = a["code"].size and b["code"].size and a["code"][-1] == b["code"][0]
    first = 1 if goes_on else 0
    return {key: np.concatenate([a[key], b[key][first:]])[: most + 1] for key in a}
