"""In which of J random groups of rows is a row?  The same for any chunking, equal parts where it matters.

Below 10 000 rows the parts of a category are exactly equal: a random permutation of the ranks of its rows.
Above, where equal or not makes no difference, a hash of the absolute row.
"""

from __future__ import annotations

import functools
import zlib
from dataclasses import dataclass

import numpy as np

from scaleshift.blocks import noise, passes
from scaleshift.blocks.block import Rows

EQUAL_BELOW = 10_000  # rows of a category


@dataclass(frozen=True)
class Folds:
    """Random parts of every category of a column; made by `divide`."""

    n_folds: int
    seed: int
    stream: str
    n_rows: np.ndarray  # (n_categories,) rows of each category
    names: np.ndarray  # (n_categories,) hashes: a small category has the same folds, whatever the others are
    # Ranks of categories below 10 000 rows: for the block that begins at row start[i], entries
    # first[i] .. first[i + 1] say how many rows of a category came before.
    start: np.ndarray  # (n_blocks,)
    first: np.ndarray  # (n_blocks + 1,)
    category: np.ndarray  # (n_entries,) ascending within a block
    before: np.ndarray  # (n_entries,)

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return 2 * self.n_rows.nbytes + self.category.nbytes + self.before.nbytes

    def __call__(self, start: int, codes: np.ndarray) -> np.ndarray:
        """Fold of each row of the block that begins at the absolute row `start`.

        Parameters
        ----------
        start : int
        codes : numpy.ndarray of int, shape (n,)
            Category of each row; negative: none.

        Returns
        -------
        numpy.ndarray of int32, shape (n,)
            Folds 0 .. n_folds - 1; of no meaning where the code is negative.
        """
        fold = (noise.keys(self.seed, self.stream, start, len(codes)) % self.n_folds).astype(np.int32)
        block = int(np.searchsorted(self.start, start, "right")) - 1  # the last: empty ones start there too
        entries = slice(self.first[block], self.first[block + 1])
        if not self.category[entries].size:
            return fold
        order = np.argsort(codes, kind="stable")
        ordered = codes[order]
        lower = np.searchsorted(ordered, self.category[entries], "left")
        upper = np.searchsorted(ordered, self.category[entries], "right")
        for category, before, a, b in zip(
            self.category[entries], self.before[entries], lower, upper, strict=True
        ):
            name, n_rows = int(self.names[category]), int(self.n_rows[category])
            parts = _parts(self.seed, self.stream, name, n_rows, self.n_folds)
            fold[order[a:b]] = parts[before : before + b - a]
        return fold


def divide(rows: Rows, name: str, n_folds: int, seed: int, stream: str) -> Folds:
    """Divide the rows of every category of the column `name` at random: one pass over that column.

    Examples
    --------
    >>> from scaleshift.blocks.rows import as_rows
    >>> rows = as_rows(np.ones((8, 1)), np.repeat(["a", "b"], 4))
    >>> folds = divide(rows, "label", 2, seed=0, stream="folds")
    >>> found = folds(0, np.repeat([0, 1], 4))
    >>> np.bincount(found[:4]).tolist(), np.bincount(found[4:]).tolist()
    ([2, 2], [2, 2])
    """
    blocks = passes.tally(rows, name)
    n_rows = np.zeros(len(rows.categories(name)), np.int64)
    for codes, n in blocks:
        np.add.at(n_rows, codes, n)
    seen = np.zeros_like(n_rows)
    first, category, before = [0], [], []
    for codes, n in blocks:
        small = codes[n_rows[codes] < EQUAL_BELOW]
        category.append(small)
        before.append(seen[small])
        first.append(first[-1] + small.size)
        seen[codes] += n
    sizes = [rows.x.shape[0]] if rows.is_one_block else rows.x.chunks[0]
    return Folds(
        n_folds,
        seed,
        stream,
        n_rows,
        names=np.array([zlib.crc32(str(category).encode()) for category in rows.categories(name)], np.int64),
        start=rows.first + np.concatenate([[0], np.cumsum(sizes)[:-1]]),
        first=np.array(first),
        category=np.concatenate(category),
        before=np.concatenate(before),
    )


@functools.lru_cache(maxsize=4_096)  # 40 MB at most: samples that lie in every block are asked for again
def _parts(seed: int, stream: str, name: int, n_rows: int, n_folds: int) -> np.ndarray:
    """Fold by rank in the category: a permutation of parts that are as equal as they can be."""
    sequence = np.random.SeedSequence([seed, zlib.crc32(stream.encode()), name])
    random = np.random.Generator(np.random.Philox(sequence))
    if n_rows < n_folds:  # or many small categories would all lie in the first parts
        parts = random.permutation(n_folds)[:n_rows]
    else:
        parts = random.permutation(np.arange(n_rows) % n_folds)
    return parts.astype(np.min_scalar_type(n_folds))
