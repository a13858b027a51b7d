"""How far does the axis of expected errors go?  As far as the engine's, so that no comparator ruins it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr

from scaleshift.report import error_words as words

ENGINE = ("direct", "decomposed", "corrected", "closed_form")
MOST = 3.0  # times the largest of the engine: what is within is shown too
MARGIN = 0.04  # of the span


class Axis(NamedTuple):
    """The ends of the axis; what lies outside is drawn at them."""

    low: float
    high: float

    def has(self, values: np.ndarray) -> np.ndarray:
        """Which values are shown where they are; NaN is nowhere, and thus not outside either."""
        return ~((values < self.low) | (values > self.high))


def axis_of(result: xr.Dataset, lines: list[float]) -> Axis:
    """The range of the engine's estimates and intervals and of observed errors, and of others near it.

    Parameters
    ----------
    result : xarray.Dataset
        Of `PredictionError`, in memory.
    lines : list of float
        Values of lines, which are shown where they are near.

    Examples
    --------
    >>> from scaleshift.report.error import _example
    >>> axis = axis_of(_example(), [0.07, 5.0])
    >>> bool(0.16 < axis.high < 0.2)
    True
    """
    ruling = _ruling(result)
    others = np.concatenate([result["error"].values.ravel(), np.array(lines, float)])
    others = others[np.isfinite(others)]
    if ruling.size and ruling.any():
        others = others[np.abs(others) <= MOST * np.abs(ruling).max()]
    shown = np.concatenate([[0.0], ruling, others])
    margin = MARGIN * (float(np.ptp(shown)) or 1.0)
    low, high = float(shown.min()), float(shown.max())
    return Axis(low - margin if low < 0 else 0.0, high + margin)


def _ruling(result: xr.Dataset) -> np.ndarray:
    """What has to be shown, finite."""
    names = words.methods(result)
    places = [i for i, name in enumerate(names) if name in ENGINE] or [0]
    found = [
        result[name].transpose("target", "method").values[:, places].ravel()
        for name in ("error", "error_low", "error_high")
    ]
    found.append(result["error_in_sample"].values[:1])
    if words.has_observed(result):
        se = np.nan_to_num(result["observed_se"].values)
        found += [result["observed"].values - se, result["observed"].values + se]
    every = np.concatenate(found).astype(float)
    return every[np.isfinite(every)]
