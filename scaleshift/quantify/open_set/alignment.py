"""By how much did a sample's classes move?  Seen from its cells, without labels.

Two corrections, in standardised units. *Recentring*, only where the source is one labelled sample and cannot
tell how samples differ: one shift for all cells. *Class shifts*: by predicted class, of the cells that are
not too novel. A cell counts as novel only if it is before and after the shift of its class.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scaleshift.blocks.statistics import Layout
from scaleshift.quantify.open_set.landmarks import Landmarks
from scaleshift.quantify.open_set.profile import Profile, quantile
from scaleshift.quantify.open_set.scoring import Scorer

RESERVOIR = 20_000  # cells of a sample that the medians are taken of
NEAR = 1.5  # thresholds: up to here a cell tells where its class is
FARTHEST = 1.5  # standard deviations within the class, and .05 of all cells
FEW = 50  # cells: so many halve the shift


@dataclass(frozen=True)
class Aligner:
    """Finds the shifts of one sample from a draw of its cells; travels to the workers."""

    scorer: Scorer
    profile: Profile
    recentre: bool

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return self.scorer.nbytes

    @property
    def layout(self) -> Layout:
        """Shapes of what a call returns."""
        n_classes, n_markers = self.profile.medians.shape
        return {"centre": (n_markers,), "shift": (n_classes, n_markers)}

    def __call__(self, drawn: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """What to take from every cell, and what more from those predicted to be of each class."""
        z = self.scorer.standardised(drawn["x"])
        centre, seen = np.zeros(z.shape[1]), self._seen(z)
        if self.recentre and len(z):
            centre = recentring(z, seen[0], self.profile)
            centred = self._seen(z - centre)
            if self._strange(*centred) <= self._strange(*seen):
                z, seen = z - centre, centred
            else:  # the medians moved by cells of no known class, and the cells with them
                centre = np.zeros_like(centre)
        return {"centre": centre, "shift": class_shifts(z, *seen, self.profile)}

    def _seen(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Predicted class and novelty of each cell."""
        return self.scorer.logits(z).argmax(axis=1), self.scorer.landmarks.novelty(z)

    def _strange(self, predicted: np.ndarray, novelty: np.ndarray) -> float:
        """Share of the cells that are unlike every class."""
        return float(np.mean(novelty > self.profile.thresholds[predicted]))


def recentring(z: np.ndarray, predicted: np.ndarray, profile: Profile) -> np.ndarray:
    """Median over classes of how far each moved, weighted by the root of their cells: (n_markers,)."""
    counts = np.bincount(predicted, minlength=len(profile.medians))
    met = np.flatnonzero((counts > 0) & np.isfinite(profile.medians[:, 0]))
    if not met.size:
        return np.zeros(z.shape[1])
    moved = np.array([np.median(z[predicted == number], axis=0) for number in met]) - profile.medians[met]
    return np.array([quantile(values, np.sqrt(counts[met]), 0.5) for values in moved.T])


def class_shifts(z: np.ndarray, predicted: np.ndarray, novelty: np.ndarray, profile: Profile) -> np.ndarray:
    """How far each class moved, less where few cells say so; none for the unknown cells' class."""
    shift = np.zeros(profile.medians.shape)
    near = novelty < NEAR * profile.thresholds[predicted]
    for number in np.unique(predicted[near]):
        if number == profile.unknown or np.isnan(profile.medians[number, 0]):
            continue
        here = z[near & (predicted == number)]
        farthest = FARTHEST * profile.spread[number] + 0.05
        moved = np.clip(np.median(here, axis=0) - profile.medians[number], -farthest, farthest)
        shift[number] = moved * len(here) / (len(here) + FEW)
    return shift


def flagged(
    z: np.ndarray,
    predicted: np.ndarray,
    novelty: np.ndarray,
    shift: np.ndarray,
    sample: np.ndarray,
    landmarks: Landmarks,
    profile: Profile,
) -> tuple[np.ndarray, np.ndarray]:
    """Which cells are unlike every class, before and after their class is shifted: two masks, (n,).

    Parameters
    ----------
    z : numpy.ndarray, shape (n, n_markers)
    predicted, novelty : numpy.ndarray, shape (n,)
    shift : numpy.ndarray, shape (n_samples, n_classes, n_markers)
    sample : numpy.ndarray of int, shape (n,)
        Whose shifts are a cell's.
    landmarks : Landmarks
    profile : Profile
    """
    before = novelty > profile.thresholds[predicted]
    after = before.copy()
    moved = z[before] - shift[sample[before], predicted[before]]
    after[before] = landmarks.novelty(moved) > profile.thresholds[predicted[before]]
    return before, after
