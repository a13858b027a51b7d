"""How must source cells be weighted to stand for a target sample?"""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import xarray as xr

from scaleshift.blocks import labels, passes
from scaleshift.blocks.block import Block, Column, Rows
from scaleshift.errors import DataError
from scaleshift.spelling import suggestion


def sample_weight(result: xr.Dataset, y: Any, sample: Any = None) -> Any:
    """Weights under which the labelled source looks like one target sample.

    Parameters
    ----------
    result : xarray.Dataset
        What `predict` gave.
    y : array-like or Dask array, shape (n,)
        Labels of source cells: those that the model was fitted on.
    sample : optional
        Name of the target sample; needed where the result has several.

    Returns
    -------
    numpy.ndarray or dask.array.Array of float64, shape (n,)
        The class's proportion in the sample over its share of the source; 0 for cells without a label
        (NaN, None, pandas.NA), which stand for no class, and where the proportion is negative (the plain
        inverse of BBSE). Lazy, in the chunks of `y`, where that is Dask. To be passed as `sample_weight` to
        the `fit` of a scikit-learn estimator.

    Raises
    ------
    DataError
        If there is no such sample, it has no estimate, or a label has no weight; for a Dask `y` that is found
        when the weights are computed.

    Notes
    -----
    Weights add up to n (1 - unknown): the unknown share has no labelled cells to stand for it. A classifier
    that is trained with them knows the sample's proportions; its probabilities are for the known cells.

    Examples
    --------
    >>> from scaleshift import DFM
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["a", "b"], [500, 500])
    >>> x = np.where(y == "a", -3, 3)[:, None] + rng.normal(size=(1000, 1))
    >>> result = DFM(random_state=0).fit(x, y).predict(x[400:600])
    >>> sample_weight(result, ["a", "b", None]).round(1).tolist()
    [1.0, 1.0, 0.0]
    """
    weight = np.maximum(_of_sample(result, sample)["weight"].values, 0)  # NaN stays
    known = result["label"].values
    if isinstance(y, xr.DataArray):
        y = y.data
    if not isinstance(y, da.Array):
        return weights_of(labels.encode(y, known), weight, known)
    if y.ndim != 1:
        raise DataError(f"y has {y.ndim} dimensions: expected one label a cell")
    instead_of_x = da.zeros((len(y), 1), chunks=(y.chunks[0], 1), dtype=np.int8)  # no markers are read
    rows = Rows(instead_of_x, {"label": Column(y, known)}, in_memory=False)
    return passes.map_rows(weight_rows, rows, weight=weight, known=known)


def weight_rows(block: Block, weight: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Kernel of the lazy weights."""
    return weights_of(block.columns["label"], weight, known)


def weights_of(codes: np.ndarray, weight: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Weight by code; codes below 0 weigh nothing."""
    found = np.where(codes < 0, 0.0, weight[codes])
    lacking = np.unique(codes[np.isnan(found)])
    if lacking.size:
        names = ", ".join(str(known[code]) for code in lacking)
        raise DataError(
            f"the label(s) {names} have no weight: the model's source had no cells of them, or the sample "
            "has none; leave these rows out, or pass the labels that the model was fitted on"
        )
    return found


def _of_sample(result: xr.Dataset, sample: Any) -> xr.Dataset:
    if not isinstance(result, xr.Dataset) or "weight" not in result:
        raise DataError("result has no weights: pass the dataset that predict gave")
    names = result.indexes["sample"]
    if sample is None:
        if len(names) != 1:
            shown = ", ".join(map(str, names[:8])) + (", ..." if len(names) > 8 else "")
            raise DataError(f"the result has {len(names)} samples: choose one with sample=; it has {shown}")
        return result.isel(sample=0)
    if sample not in names:
        raise DataError(f"sample {sample!r} is not in the result{suggestion(sample, names)}")
    return result.sel(sample=sample)
