"""The energy distance as a kernel, k(x, y) = ||x - o|| + ||y - o|| - ||x - y||, exactly. For small data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from scaleshift.errors import DataError
from scaleshift.kernels import dispatch
from scaleshift.quantify.features.base import FeatureMap, Source
from scaleshift.quantify.features.exact import PairwiseEmbedding, check_few

LARGEST = 1e100  # of a coordinate: squares are finite


class EnergyKernel(FeatureMap):
    """Exact energy kernel ||x - o|| + ||y - o|| - ||x - y||; keeps the labelled source rows.

    Parameters
    ----------
    origin : float or array-like of shape (n_markers,), default 0
        The point o, in the units of X. Hard matching does not depend on it. Soft matching does: an
        unknown share counts as cells that all lie at this point, and unknown cells elsewhere are mistaken
        for others.

    Raises
    ------
    DataError
        When fitted on more than 50 000 labelled rows: the cost is (source rows) x (all rows). Also with a
        `bandwidth`, which this kernel does not have.

    Notes
    -----
    The kernel is not bounded: one far cell weighs as much as many near ones, and hard matching suffers from
    far unknown cells more than with other kernels.
    Source: Szekely and Rizzo (2013), "Energy statistics: a class of statistics based on distances".

    Examples
    --------
    >>> EnergyKernel(origin=1.5)
    EnergyKernel(origin=1.5)
    """

    def __init__(self, origin: Any = 0):
        self.origin = origin

    def learn(self, source: Source) -> EnergyEmbedding:
        """Keep the labelled rows.

        Examples
        --------
        >>> from scaleshift import DFM
        >>> kernel = EnergyKernel()
        >>> model = DFM(kernel, n_bootstrap=0).fit([[0.0], [1.0], [5.0]], ["B", "B", "T"])
        >>> sorted(model.embedding_.points.ravel().tolist())  # the rows are kept, and saved with the model
        [0.0, 1.0, 5.0]
        """
        source.refuse_bandwidth("the energy kernel")
        origin = checked_origin(self.origin, source.n_columns)
        check_few(source, "use features='sliced-energy'")
        kept = source.draw(source.counts)
        if len(kept["x"]) and not float(np.abs(kept["x"]).max()) < LARGEST:
            raise DataError("distances overflow: bring the markers to a scale near 1")
        return EnergyEmbedding(kept["x"], kept["code"], len(source.counts), origin)


def checked_origin(origin: Any, d: int) -> np.ndarray:
    """The point as (d,) float64; DataError unless it is a finite number or d of them.

    Examples
    --------
    >>> checked_origin(0, 3)
    array([0., 0., 0.])
    """
    given = np.asarray(origin)
    if given.dtype.kind not in "iuf" or given.shape not in ((), (d,)) or not np.isfinite(given).all():
        raise DataError(f"origin={origin!r}: expected a number or one for each of the {d} markers")
    return np.broadcast_to(given, d).astype(np.float64)


@dataclass(frozen=True, repr=False)
class EnergyEmbedding(PairwiseEmbedding):
    """Mean values of the energy kernel with each class of the source, and k(x, x) = 2 ||x - o||."""

    points: np.ndarray  # (n, n_markers)
    point_groups: np.ndarray  # (n,)
    n_labels: int
    origin: np.ndarray  # (n_markers,)
    bandwidth = float("nan")
    largest_norm = float("inf")
    is_density = False
    sums = staticmethod(dispatch.energy_sums)

    @property
    def width(self) -> int:
        """Number of classes, and one."""
        return self.n_labels + 1

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The source rows, their classes and the origin."""
        return {
            "points": self.points,
            "point_groups": self.point_groups,
            "n_point_groups": self.n_labels,
            "origin": self.origin,
        }

    def self_products(self, means: np.ndarray) -> np.ndarray:
        """Summed beside the kernel values."""
        return means[:, -1]
