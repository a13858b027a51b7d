"""What a quantifier answers: one xarray.Dataset, described variable by variable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

import scaleshift
from scaleshift.quantify.flags import flag, reason

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


def assembled(
    samples: np.ndarray,
    labels: np.ndarray,
    class_counts: np.ndarray,
    proportion: np.ndarray,
    unknown: np.ndarray,
    others: Mapping[str, Any],
    attributes: Mapping[str, Any],
) -> xr.Dataset:
    """The result of a quantifier, with what follows from its proportions.

    Parameters
    ----------
    samples, labels : numpy.ndarray, shapes (n_samples,) and (n_labels,)
    class_counts : numpy.ndarray, shape (n_labels,)
        Source rows of each class.
    proportion : numpy.ndarray, shape (n_samples, n_labels, 3)
        Estimate, lower and upper end.
    unknown : numpy.ndarray, shape (n_samples, 3)
        Likewise; NaN for hard methods.
    others : mapping of name to array
        Variables that stand for themselves, among them "n_cells" and "n_invalid".
    attributes : mapping
    """
    estimate, known = proportion[:, :, 0], 1 - np.nan_to_num(unknown[:, 0])
    share = class_counts / class_counts.sum()
    counts = {name: others[name].astype(np.int64) for name in ("n_cells", "n_invalid")}
    with np.errstate(invalid="ignore", divide="ignore"):
        variables = {
            "proportion": estimate,
            "proportion_low": proportion[:, :, 1],
            "proportion_high": proportion[:, :, 2],
            "proportion_known": estimate / np.where(known > 0, known, np.nan)[:, None],
            "count": estimate * counts["n_cells"][:, None],
            "weight": estimate / np.where(share > 0, share, np.nan),
            **dict(zip(("unknown", "unknown_low", "unknown_high"), unknown.T, strict=True)),
        }
    return dataset(samples, labels, {**variables, **others, **counts}, attributes)


def with_foreign(known: xr.Dataset, labels: np.ndarray, counts: np.ndarray) -> xr.Dataset:
    """The result with labels that some targets' cells have and the source lacks: NaN, and a flag.

    `counts` (n_samples, n_labels) are the rows that have them.
    """
    met = counts.any(axis=0)
    flags = []
    for text, row in zip(known["flag"].values.tolist(), counts, strict=True):
        names = ", ".join(str(label) for label, n in zip(labels, row, strict=True) if n)
        flags.append(flag([text, reason("A", names) if names else ""]))
    wider = known.reindex(label=np.concatenate([known["label"].values, labels[met]]))
    return wider.assign(flag=("sample", np.array(flags, dtype=str), known["flag"].attrs))


def described(result: xr.Dataset, cells: Any) -> xr.Dataset:
    """The result with what a cells dataset tells of its samples (donor, day, ...): coordinates on `sample`.

    One that is called like a variable of the result gets "sample_" in front. Anything else than a dataset
    tells nothing.
    """
    if not isinstance(cells, xr.Dataset):
        return result
    told = {name: of for name, of in cells.coords.items() if of.dims == SAMPLE and name not in SAMPLE}
    place = cells.indexes["sample"].get_indexer(result.indexes["sample"]) if told else np.array([], np.intp)
    if (place < 0).any():  # samples that were named otherwise in the call
        return result
    named = {f"sample_{name}" if name in result.variables else name: of for name, of in told.items()}
    return result.assign_coords({name: (SAMPLE, of.values[place]) for name, of in named.items()})
