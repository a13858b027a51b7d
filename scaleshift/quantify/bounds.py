"""How large can the error be?  Bounds of the theory, about 100 times larger than actual errors.

With probability 1 - delta the L2 error of the proportions is at most

    2 C R / sqrt(worth) (source term + 1 / sqrt(m)),    R = 2 + sqrt(2 log(2 c / delta)), C = sup ||Phi|| = 1,

with delta_min for hard and lambda_min for soft matching as the worth. The source term is ||w|| / sqrt(n) with
the importance weights w of the sample, and max_i 1 / sqrt(n_i) whatever the sample.
Source: Dussap, Blanchard and Cherief-Abdellatif (2023).
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from scaleshift.errors import DataError

ROUNDING = 1e-12  # of an eigenvalue, where squared norms are 1 at most


def error_bound(
    worth: float, labels: np.ndarray, counts: np.ndarray, delta: float, result: xr.Dataset | None = None
) -> float | xr.DataArray:
    """The bound of each sample of a result, or without one for a target without end.

    Parameters
    ----------
    worth : float
        Smallest eigenvalue of the Gram matrix that matching divides by.
    labels : numpy.ndarray, shape (n_labels,)
    counts : numpy.ndarray, shape (n_labels,)
        Source rows of each class.
    delta : float
        Probability that the bound fails.
    result : xarray.Dataset, optional
        With the variables weight (sample, label) and n_cells (sample).

    Returns
    -------
    float, or xarray.DataArray over sample

    Examples
    --------
    >>> round(error_bound(0.5, np.array(["a", "b"]), np.array([10_000, 10_000]), 0.05), 2)
    0.14
    """
    if not 0 < delta < 1:
        raise DataError(f"delta={delta!r}: expected a probability between 0 and 1")
    if not worth > ROUNDING:  # one class, or classes that coincide: nothing is bounded
        factor = np.inf
    else:
        factor = 2 * (2 + np.sqrt(2 * np.log(2 * len(counts) / delta))) / np.sqrt(worth)
    if result is None:
        return float(factor / np.sqrt(counts.min()))
    here = result.indexes["label"].get_indexer(pd.Index(labels))  # a list of bools would be a mask
    weight = result["weight"].isel(label=here)
    norm = np.sqrt((weight**2).sum("label", skipna=False) / counts.sum())
    bound = factor * (norm + result["n_cells"].where(result["n_cells"] > 0) ** -0.5)
    return bound.rename("error_bound").assign_attrs(long_name="bound of the L2 error", units="1")
