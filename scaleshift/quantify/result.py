"""What a quantifier answers: one xarray.Dataset, described variable by variable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

import scaleshift

SAMPLE, LABEL = ("sample",), ("sample", "label")

#: name -> (dimensions, long_name, description)
VARIABLES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "proportion": (LABEL, "proportion", "share of the sample's cells that belong to the class"),
    "proportion_low": (LABEL, "lower end of the interval", "NaN where no interval was computed"),
    "proportion_high": (LABEL, "upper end of the interval", "NaN where no interval was computed"),
    "proportion_known": (
        LABEL,
        "proportion among known cells",
        "proportion / (1 - unknown): share among the cells that belong to a class of the source",
    ),
    "count": (LABEL, "estimated number of cells", "proportion times n_cells"),
    "weight": (LABEL, "importance weight", "proportion over the class's share of the source"),
    "unknown": (
        SAMPLE,
        "unknown share",
        "share of cells unlike every class of the source; NaN for hard methods",
    ),
    "unknown_low": (SAMPLE, "lower end of the interval", "NaN where no interval was computed"),
    "unknown_high": (SAMPLE, "upper end of the interval", "NaN where no interval was computed"),
    "distance": (
        SAMPLE,
        "distance to the best mixture",
        "norm between the sample's embedding and that of the best mixture of the classes without an "
        "unknown share; 0 under pure label shift and infinite data; NaN for the exact kernel",
    ),
    "misfit": (SAMPLE, "relative misfit", "distance over the norm of the sample's embedding"),
    "p_value": (
        SAMPLE,
        "p-value of label shift",
        "probability of a distance as large if the sample's cells were those of the source's classes; not "
        "adjusted for the number of samples; NaN where no test was computed",
    ),
    "n_cells": (SAMPLE, "cells used", "rows of the sample that are finite"),
    "n_invalid": (SAMPLE, "cells left out", "rows of the sample with NaN or infinite values"),
    "unknown_baseline": (
        (),
        "usual unknown share",
        "unknown share that samples without unknown cells show; NaN for hard methods",
    ),
    "flag": (SAMPLE, "reasons for caution", "joined by '; '; empty if none"),
}


def dataset(
    samples: np.ndarray, labels: np.ndarray, variables: Mapping[str, Any], attributes: Mapping[str, Any]
) -> xr.Dataset:
    """Wrap arrays as the result of a quantifier.

    Parameters
    ----------
    samples, labels : numpy.ndarray, shapes (n_samples,) and (n_labels,)
    variables : mapping of name to array
        Those of `VARIABLES`; numbers left out are NaN.
    attributes : mapping
        Method, citation, parameters, seed.

    Returns
    -------
    xarray.Dataset
        Dimensions (sample, label).
    """
    sizes = {"sample": len(samples), "label": len(labels)}
    data = {}
    for name, (dims, long_name, description) in VARIABLES.items():
        values = variables.get(name)
        if values is None:
            values = np.full([sizes[d] for d in dims], np.nan)
        attrs = {"long_name": long_name, "units": "1", "description": description}
        if name == "flag":
            del attrs["units"]
        data[name] = (dims, np.asarray(values, str if name == "flag" else None), attrs)
    attrs = {"scaleshift_version": scaleshift.__version__, **attributes}
    return xr.Dataset(data, coords={"sample": samples, "label": labels}, attrs=attrs)
