"""Was the error what was expected?  The observed one, where outcomes of target cells are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import xarray as xr

    from scaleshift.error.prediction_error import PredictionError

NAMES = {"observed": "error", "observed_se": "error_se", "n_observed": "n_rows"}
UNKNOWN = (np.nan, np.nan, 0)


def beside_observed(
    result: xr.Dataset, model: PredictionError, observed: Mapping[str, tuple[xr.Dataset, Any]]
) -> xr.Dataset:
    """A result with the observed errors of targets, where some outcomes are known: a pass over these targets.

    Parameters
    ----------
    result : xarray.Dataset
        What `predict` or `update` returned.
    model : PredictionError
        Fitted.
    observed : mapping of str to (cells, outcomes)
        By target; outcomes are None where the cells bring labels.

    Returns
    -------
    xarray.Dataset
        With observed, observed_se, n_observed (target): of the cells at hand, whatever earlier updates had.
    """
    result = result.drop_vars(list(NAMES), errors="ignore")
    found = {name: model.observed(cells, y) for name, (cells, y) in observed.items()}
    if not sum(int(one["n_rows"]) for one in found.values()):
        return result
    rows = []
    for name in map(str, result["target"].values.tolist()):
        one = found.get(name)
        rows.append(UNKNOWN if one is None else tuple(one[of].item() for of in NAMES.values()))
    some = next(iter(found.values()))
    columns = zip(NAMES.items(), zip(*rows, strict=True), strict=True)
    return result.assign(
        {name: ("target", np.array(values), some[of].attrs) for (name, of), values in columns}
    )
