"""What is kept between two updates of a model that is watched?  One thing, so that it is saved as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import xarray as xr

from scaleshift.error.watch import Watch


@dataclass(frozen=True)
class Monitor:
    """A fitted `PredictionError` with the sums of its targets, the alarm, and the last answer.

    An update may be run again by a job that was killed after its state was saved: `is_last` knows it by the
    fingerprint of its rows, and `answer` gives the answer again.
    """

    model: Any
    watch: Watch | None  # None: no alarm was asked for
    fitted: dict[str, Any] = field(
        default_factory=dict
    )  # what was asked of the fit, by the name of the option
    study: str = ""  # that was learned from
    samples: list[Any] = field(default_factory=list)  # of it
    fingerprint: str = ""  # of the rows of the last update
    stored: dict[str, Any] = field(default_factory=dict)  # the last answer

    def is_last(self, fingerprint: str) -> bool:
        """Whether rows of this fingerprint are those of the last update, which the sums hold already."""
        return fingerprint == self.fingerprint

    def after(self, result: xr.Dataset, watch: Watch | None, fingerprint: str) -> Monitor:
        """The same after an update that was answered with `result`."""
        return replace(self, watch=watch, fingerprint=fingerprint, stored=_as_plain(result))

    @property
    def answer(self) -> xr.Dataset:
        """The last answer."""
        stored = self.stored
        return xr.Dataset(stored["variables"], coords=stored["coordinates"], attrs=stored["attributes"])


def _as_plain(result: xr.Dataset) -> dict[str, Any]:
    """A dataset as what `scaleshift.encoding` can write."""
    return {
        "variables": {str(name): _variable(found) for name, found in result.data_vars.items()},
        "coordinates": {str(name): _variable(found) for name, found in result.coords.items()},
        "attributes": {str(name): value for name, value in result.attrs.items()},
    }


def _variable(found: xr.DataArray) -> tuple[Any, ...]:
    attributes = {str(name): value for name, value in found.attrs.items()}
    return list(map(str, found.dims)), np.asarray(found.values), attributes
