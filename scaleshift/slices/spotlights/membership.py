"""Who belongs to spotlights?  Rows in at least half of the strongest light that a row of the fit gets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scaleshift.kernels import spotlight as kernel
from scaleshift.kernels.mixture import Outcomes
from scaleshift.kernels.spotlight import Spotlights
from scaleshift.slices.tiles import tiles


@dataclass(frozen=True)
class SpotlightSlices:
    """Spotlights as slices, best first."""

    shape: str  # of kernels.spotlight.SHAPES
    means: np.ndarray  # (n_slices, d') in projected space
    precisions: np.ndarray  # (n_slices,)
    radii: np.ndarray | None  # (n_slices,) squared, where a membership is a half; None: unsaturated
    peaks: np.ndarray  # (n_slices,) strongest light on a row of the fit

    def __post_init__(self) -> None:
        """Refuse parts that do not belong together, as a damaged file may hold: kernels check no bounds."""
        radii = self.peaks if self.radii is None else self.radii
        if np.ndim(self.means) != 2 or any(
            np.shape(part) != (len(self.means),) for part in (self.precisions, self.peaks, radii)
        ):
            raise ValueError("the parts of the spotlights have other shapes than their means")

    @property
    def n_slices(self) -> int:
        """Best first."""
        return len(self.means)

    @property
    def centres(self) -> np.ndarray:
        """Means, (n_slices, d')."""
        return self.means

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return self.means.nbytes

    def memberships(self, x: np.ndarray, outcomes: Outcomes) -> np.ndarray:
        """Weights u in [0, 1] of rows, (n, n_slices): by their embeddings, whatever else is known."""
        return self._light(x)

    def assigned(self, x: np.ndarray, outcomes: Outcomes) -> np.ndarray:
        """1 for every spotlight that a row is a member of, (n, n_slices): as `describe` counts."""
        return self.members(x).astype(np.int64)

    def members(self, x: np.ndarray) -> np.ndarray:
        """Rows in at least half of the peak's light, (n, n_slices) bool; spotlights may overlap."""
        return self._light(x) >= 0.5 * self.peaks

    def typicality(self, x: np.ndarray) -> np.ndarray:
        """Minus the squared distance from the mean in units of 2 / precision, (n, n_slices)."""
        result = np.empty((len(x), self.n_slices))
        for rows in tiles(len(x)):
            result[rows] = -0.5 * self.precisions * kernel.distances(x[rows], self.means)
        return result

    def unexplained(self, x: np.ndarray) -> np.ndarray:
        """Product of 1 - u / peak over the spotlights, (n,): what they leave of a loss."""
        return (1 - np.minimum(self._light(x) / self.peaks, 1)).prod(axis=1)

    def _light(self, x: np.ndarray) -> np.ndarray:
        return kernel.light(x, Spotlights(self.shape, self.means, self.precisions, self.radii))


@dataclass(frozen=True)
class FoundSpotlight:
    """One spotlight that has come to rest, and how it got there."""

    mean: np.ndarray  # (d',) in projected space
    precision: float
    radius: float | None  # squared
    peak: float  # strongest light on a row
    weight: float  # sum of the light on all rows of the fit
    effective_size: float  # (sum u)^2 / sum u^2
    weighted_loss: float  # mean in its light of the losses that it saw: less what earlier ones explain
    mean_loss: float  # mean in its light of the losses themselves
    objectives: np.ndarray  # (steps,)
    weights: np.ndarray  # (steps,)
    rates: np.ndarray  # (steps,)


def slices_of(shape: str, found: list[FoundSpotlight]) -> SpotlightSlices:
    """Spotlights as one object."""
    saturated = found[0].radius is not None
    return SpotlightSlices(
        shape,
        np.stack([one.mean for one in found]),
        np.array([one.precision for one in found]),
        np.array([one.radius for one in found], np.float64) if saturated else None,
        np.array([one.peak for one in found]),
    )
