"""How unlike every class of the source is a cell?  Its distance to the nearest of some landmark cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

TILE = 8_192  # rows at a time: bounds the matrix of distances


@dataclass(frozen=True)
class Landmarks:
    """Cells of all classes, each with the spread of its class; all in standardised units."""

    place: np.ndarray  # (n, n_markers)
    scale: np.ndarray  # (n, n_markers)
    part: np.ndarray  # (n,) which part of the source it is of, -1 for none
    row: np.ndarray  # (n,) its absolute number there
    by_sample: bool  # whether the parts are samples

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return 2 * self.place.nbytes

    def novelty(self, z: np.ndarray) -> np.ndarray:
        """Of cells that are none of the source: (n, n_markers) -> (n,).

        Where samples are the parts, the mean over parts of the distance without that part's landmarks: what
        held-out cells of the source have been given too.
        """
        near = self._by_part(z)
        if not self.by_sample:
            return near.min(axis=1, initial=np.inf)
        n_parts = int(self.part.max()) + 1
        return np.mean([_without(near, part) for part in range(n_parts)], axis=0)

    def held_out(self, z: np.ndarray, part: np.ndarray, row: np.ndarray) -> np.ndarray:
        """Of source cells: without the landmarks of a cell's own sample, and without itself."""
        near = self._by_part(z)
        found = near.min(axis=1, initial=np.inf)
        own = np.ones(len(z), bool) if self.by_sample else np.isin(row, self.row)
        for number in np.unique(part[own]):
            here = own & (part == number)
            found[here] = _without(near[here], number)
        return found

    def only_others(self, part: int) -> Landmarks:
        """Those that are not of a part, as if they were all."""
        kept = self.part != part
        return Landmarks(self.place[kept], self.scale[kept], self.part[kept], self.row[kept], False)

    def _by_part(self, z: np.ndarray) -> np.ndarray:
        """Distance to the nearest landmark of each part, those of none last: (n, n_parts + 1)."""
        n_parts = int(self.part.max(initial=-1)) + 1
        precision = self.scale**-2.0
        constant = (self.place**2 * precision).sum(axis=1)
        linear, square = (-2 * self.place * precision).T, precision.T
        near = np.full((len(z), n_parts + 1), np.inf)
        for first in range(0, len(z), TILE):
            x = z[first : first + TILE]
            distance = x**2 @ square
            distance += x @ linear
            distance += constant
            for part in np.unique(self.part):
                near[first : first + TILE, part] = distance[:, self.part == part].min(axis=1)
        return np.sqrt(np.maximum(near, 0) / z.shape[1])


def _without(near: np.ndarray, part: int) -> np.ndarray:
    others = np.arange(near.shape[1]) != part % near.shape[1]  # -1 is the last
    return near[:, others].min(axis=1, initial=np.inf)


def spread(z: np.ndarray, code: np.ndarray, weight: np.ndarray, n_classes: int) -> np.ndarray:
    """Standard deviation of each class by marker, .3 of the pooled one at least: (n_classes, n_markers)."""
    variance, total = np.zeros((n_classes, z.shape[1])), np.bincount(code, weight, n_classes)
    for number in np.unique(code):
        here = code == number
        mean = np.average(z[here], axis=0, weights=weight[here])
        variance[number] = np.average((z[here] - mean) ** 2, axis=0, weights=weight[here])
    pooled = np.sqrt(total @ variance / total.sum())
    return np.maximum(np.maximum(np.sqrt(variance), 0.3 * pooled), 1e-6)
