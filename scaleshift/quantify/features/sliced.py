"""The energy kernel for large data: distributions of the rows along many directions, summed in one pass.

||x - y|| = C E_w |w.(x - y)| over directions w of the unit sphere, and in one dimension
|a| + |b| - |a - b| = 2 integral phi_a(t) phi_b(t) dt, phi_a = 1 between 0 and a > 0, -1 between a < 0 and 0.
The mean of phi_a over a bin of a grid is linear in the masses that a row leaves at the bin's ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from scaleshift.blocks import noise
from scaleshift.errors import DataError
from scaleshift.kernels import dispatch
from scaleshift.quantify import bandwidth
from scaleshift.quantify.features.base import Embedding, ExplicitEmbedding, FeatureMap, Source
from scaleshift.quantify.features.directions import spread_directions
from scaleshift.quantify.features.energy import checked_origin

ROOM = 0.25  # of the drawn rows' range, on each side of it
MAX_BINS = 1_000


class SlicedEnergy(FeatureMap):
    """The energy kernel of `EnergyKernel` by projections on directions: of any number of rows in one pass.

    Parameters
    ----------
    n_directions : int, default 256
        Spread out evenly.
    n_bins : int, default 64
        Of the grid along each direction.
    origin : float or array-like of shape (n_markers,), default 0
        As in `EnergyKernel`: soft matching depends on it, hard matching does not.
    random_state : None, int or numpy.random.Generator
        Of the directions. None takes the quantifier's.

    Notes
    -----
    One pass over the source draws 2 000 labelled rows for the range of the grids: theirs and a quarter of it
    on each side in equal bins, then on each side one bin as wide as all of these, or to the origin. What lies
    beyond counts as if at the grid's end. Proportions depend on inner products with the source's classes
    alone: it does not matter to them how far beyond the source a target's cells lie. Distance and misfit are
    too small where cells lie beyond the outer bins.

    A sample's state has n_directions (n_bins + 3) numbers, 17 times those of Fourier features, in each fold:
    many classes or samples at once may need ``n_bootstrap=0``, fewer directions or fewer bins.

    Examples
    --------
    >>> SlicedEnergy(n_directions=64)
    SlicedEnergy(n_directions=64)
    """

    def __init__(self, n_directions: int = 256, n_bins: int = 64, origin: Any = 0, random_state: Any = None):
        self.n_directions = n_directions
        self.n_bins = n_bins
        self.origin = origin
        self.random_state = random_state

    def learn(self, source: Source) -> SlicedEmbedding:
        """Draw directions, and lay the grids over the range of some source rows.

        Examples
        --------
        >>> from scaleshift import DFM
        >>> X, y = [[0.0], [0.1], [5.0], [5.1]], ["B", "B", "T", "T"]
        >>> model = DFM(SlicedEnergy(n_bins=16), n_bootstrap=0).fit(X, y)
        >>> model.embedding_  # what this gave
        <SlicedEmbedding, 18 features>
        """
        source.refuse_bandwidth("the energy kernel")
        d = source.n_columns
        origin = checked_origin(self.origin, d)
        for name, value, most in (
            ("n_directions", self.n_directions, None),
            ("n_bins", self.n_bins, MAX_BINS),
        ):
            if not isinstance(value, int | np.integer) or value < 1 or (most and value > most):
                limit = f" up to {most}" if most else ""
                raise DataError(f"{name}={value!r}: expected a positive number{limit}")
        rng = noise.generator(source.seed_of(self.random_state), "directions")
        w = spread_directions(int(self.n_directions) if d > 1 else 1, d, rng)  # a line has one direction
        x = source.draw(bandwidth.allocation(source.counts))["x"].astype(np.float64)
        centre = x.mean(axis=0)
        ends = _ends((x - centre) @ w.T, (origin - centre) @ w.T, int(self.n_bins))
        return SlicedEmbedding(w, centre, ends, int(self.n_bins), origin)


def _ends(projected: np.ndarray, origin: np.ndarray, n_bins: int) -> np.ndarray:
    """Ends of the outer and of the inner bins along each direction, (n_directions, 4).

    projected : (n, n_directions) rows; origin : (n_directions,). The origin becomes a node: within a bin it
    would leave an error as wide as the bin.
    """
    low, high = projected.min(axis=0), projected.max(axis=0)
    widest = float((high - low).max())
    if not 1e-15 < widest < 1e15:
        raise DataError(
            f"the source's labelled rows span {widest:g} along a direction: bring the markers to a scale "
            "near 1"
        )
    room = np.maximum(ROOM * (high - low), 1e-3 * widest)
    low, size = low - room, high - low + 2 * room
    place = (origin - low) / size * n_bins  # in bins
    near = (place > -1) & (place < n_bins + 1)
    low = np.where(near, origin - np.clip(np.rint(place), 0, n_bins) * (size / n_bins), low)
    high = low + size
    below, above = ~near & (origin < low), ~near & (origin > high)
    return np.stack(
        [np.where(below, origin, low - size), low, high, np.where(above, origin, high + size)], axis=1
    )


@dataclass(frozen=True, repr=False)
class SlicedEmbedding(ExplicitEmbedding):
    """Masses of projected rows at the nodes of grids; see `kernels.energy.sliced_sums`."""

    directions: np.ndarray  # (n_directions, n_markers) unit vectors
    centre: np.ndarray  # (n_markers,)
    ends: np.ndarray  # (n_directions, 4), about the centre
    n_bins: int
    origin: np.ndarray  # (n_markers,)
    bandwidth = float("nan")
    largest_norm = float("inf")
    is_density = False
    sums = staticmethod(dispatch.sliced_sums)

    @property
    def width(self) -> int:
        """A mass for every direction and node."""
        return len(self.directions) * (self.n_bins + 3)

    @property
    def n_matching(self) -> int:  # type: ignore[override]
        """A feature for every direction and bin."""
        return len(self.directions) * (self.n_bins + 2)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Directions and grids."""
        return {
            "directions": self.directions,
            "centre": self.centre,
            "ends": self.ends,
            "n_bins": self.n_bins,
        }

    def same_as(self, other: Embedding) -> bool:
        """Masses do not depend on the origin, but what is made of them does."""
        return (
            isinstance(other, SlicedEmbedding)
            and super().same_as(other)
            and np.array_equal(self.origin, other.origin)
        )

    @property
    def nodes(self) -> np.ndarray:
        """Where the masses stand along each direction, (n_directions, n_bins + 3)."""
        inner = np.linspace(self.ends[:, 1], self.ends[:, 2], self.n_bins + 1, axis=1)
        return np.concatenate([self.ends[:, :1], inner, self.ends[:, 3:]], axis=1)

    @property
    def _scale(self) -> float:
        """2 C / n_directions, with C = 1 / E|w_1| = sqrt(pi) Gamma((d + 1) / 2) / Gamma(d / 2)."""
        n, d = self.directions.shape
        return float(2 * np.exp(gammaln((d + 1) / 2) - gammaln(d / 2)) * np.sqrt(np.pi) / n)

    def features(self, means: np.ndarray) -> np.ndarray:
        """Mean of phi over each bin, times the root of the bin's width: (..., width) -> (..., n_matching).

        phi is 1 below a row less 1 below the origin, so that the sum over rows needs their number: it is the
        mass along each direction.
        """
        nodes = self.nodes
        at = (self.origin - self.centre) @ self.directions.T
        below_origin = np.clip((at[:, None] - nodes[:, :-1]) / np.diff(nodes, axis=1), 0, 1)
        masses = means.reshape(*means.shape[:-1], *nodes.shape)
        above = np.cumsum(masses[..., ::-1], axis=-1)[..., ::-1]  # at a node and above
        phi = above[..., 1:] - above[..., :1] * below_origin
        phi *= np.sqrt(self._scale * np.diff(nodes, axis=1))
        return phi.reshape(*means.shape[:-1], self.n_matching)

    def self_products(self, means: np.ndarray) -> np.ndarray:
        """2 ||x - o|| by the same directions: |w.(x - o)| is linear between nodes, of which o is one."""
        at = (self.origin - self.centre) @ self.directions.T
        return means @ (self._scale * np.abs(self.nodes - at[:, None])).ravel()
