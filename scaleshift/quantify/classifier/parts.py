"""In which part is a row held out?  A hash of its absolute number says so: the same for any chunking."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scaleshift.blocks import noise

STREAM = "cross-fit"
ROWS_A_PART = 2  # of a class, on average; a smaller class is learned from in every part


@dataclass(frozen=True)
class Parts:
    """Random parts of the labelled rows; made by `divided`.

    Rows of a class that is too small to be missed in training are in no part: -1.
    """

    n_parts: int
    seed: int
    held_out: np.ndarray  # (n_labels,) bool

    def of_block(self, start: int, codes: np.ndarray) -> np.ndarray:
        """Part of each row of the block that begins at the absolute row `start`: (n,) -> (n,)."""
        return self._where(noise.keys(self.seed, STREAM, start, len(codes)), codes)

    def of_rows(self, rows: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Part of each of some rows by their absolute numbers, in any order."""
        return self._where(noise.keys_of(self.seed, STREAM, rows), codes)

    def _where(self, keys: np.ndarray, codes: np.ndarray) -> np.ndarray:
        part = (keys % np.uint64(self.n_parts)).astype(np.int32)
        known = np.where(codes < 0, 0, codes)
        return np.where((codes >= 0) & self.held_out[known], part, -1)


def divided(counts: np.ndarray, n_parts: int, seed: int) -> Parts:
    """Parts of a source with so many rows of each class.

    Examples
    --------
    >>> parts = divided(np.array([1_000, 1]), 5, seed=0)
    >>> sorted(set(parts.of_block(0, np.zeros(100, np.int64)).tolist()))
    [0, 1, 2, 3, 4]
    >>> parts.of_block(0, np.array([1])).tolist()
    [-1]
    """
    return Parts(n_parts, seed, counts >= ROWS_A_PART * n_parts)
