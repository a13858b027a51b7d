"""How are the markers of each sample brought to a common scale? By its own location and scale."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import xarray as xr

from scaleshift.blocks import passes
from scaleshift.blocks.block import Block
from scaleshift.blocks.rows import as_rows
from scaleshift.cells.schema import CELL, MARKER, SAMPLE, SAMPLE_CODE, SCALING, X, check_cells
from scaleshift.cells.treatment.location_scale import Method, check_method, sample_location_scale
from scaleshift.errors import DataError
from scaleshift.kernels.reference import to_numpy

LOCATION, SCALE = SCALING
TILE = 8_192  # rows that are held in float64 at once


def scale_rows(values: np.ndarray, location: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """(values - location) / scale, in float32.

    Parameters
    ----------
    values : numpy.ndarray, shape (n, n_markers)
    location, scale : numpy.ndarray, shape (n_markers,) or (n, n_markers)

    Returns
    -------
    numpy.ndarray of float32, shape (n, n_markers)

    Examples
    --------
    >>> scale_rows(np.array([[5.0, 7.0]]), np.array([1.0, 7.0]), np.array([2.0, 1.0])).tolist()
    [[2.0, 0.0]]
    """
    return ((values - location) / scale).astype(np.float32)


def unscale_rows(values: np.ndarray, location: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Values * scale + location, in float32: the inverse of `scale_rows`.

    Examples
    --------
    >>> unscale_rows(np.array([[2.0, 0.0]]), np.array([1.0, 7.0]), np.array([2.0, 1.0])).tolist()
    [[5.0, 7.0]]
    """
    return (values * scale + location).astype(np.float32)


# Cells -------------------------------------------------------------------------------------------------


def scale(cells: xr.Dataset, method: Method = "robust") -> xr.Dataset:
    """Scale each sample's markers by its own location and scale: one pass over the cells.

    Samples of different centres and days differ in intensity; what this takes away no longer looks like
    another composition. So does a difference in composition that moves the quantiles or the mean.

    Parameters
    ----------
    cells : xarray.Dataset
        As `as_cells` or `open_cells` make it.
    method : {"robust", "z"}, default "robust"
        "robust": the 1 % quantile becomes 0, the 99 % quantile 1. "z": mean 0, standard deviation 1.

    Returns
    -------
    xarray.Dataset
        The same cells, X as float32 and lazy where it was. New variables `scaling_location` and
        `scaling_scale` (sample, marker); ``attrs["scaling"]`` is the method. Cells with NaN or infinite
        values do not count, and become NaN in all markers. Cells that are scaled like this already are
        returned as they are.

    Raises
    ------
    DataError
        If the method is not known, or the cells are scaled already in another way.

    Notes
    -----
    Quantiles of a sample of more than 4 096 cells are those of 4 096 cells drawn at random, the same for any
    chunks. Samples whose cells are contiguous are done as soon as their last block is read.

    Examples
    --------
    >>> from scaleshift.cells import as_cells
    >>> cells = as_cells([[1.0], [3.0], [10.0], [30.0]], sample=["a", "a", "b", "b"])
    >>> scale(cells, "z")["X"].values.ravel().tolist()
    [-1.0, 1.0, -1.0, 1.0]
    """
    check_cells(cells)
    check_method(method)
    done = cells.attrs.get("scaling")
    if done == method:
        return cells
    if done is not None:
        raise DataError(
            f"the cells are scaled already, by {done!r}, and {method!r} is asked for: unscale(cells) gives "
            "them as they were"
        )
    location, scale_ = sample_location_scale(cells, method)
    scaled = _mapped(cells, scale_rows, location, scale_).assign_attrs(scaling=method)
    scaled[LOCATION] = (SAMPLE, MARKER), location, {"long_name": "taken from each marker of the sample"}
    scaled[SCALE] = (SAMPLE, MARKER), scale_, {"long_name": "what each marker of the sample is divided by"}
    return scaled


def unscale(cells: xr.Dataset) -> xr.Dataset:
    """Cells as they were before `scale`, lazily where X is lazy.

    Raises
    ------
    DataError
        If the cells are not scaled.

    Examples
    --------
    >>> from scaleshift.cells import as_cells
    >>> cells = as_cells([[1.0], [3.0], [10.0], [30.0]], sample=["a", "a", "b", "b"])
    >>> unscale(scale(cells))["X"].values.ravel().tolist()
    [1.0, 3.0, 10.0, 30.0]
    """
    check_cells(cells)
    if LOCATION not in cells or SCALE not in cells:
        raise DataError("the cells have no scaling_location and scaling_scale: open the cells as they were")
    location, scale_ = (cells[name].transpose(SAMPLE, MARKER).values for name in (LOCATION, SCALE))
    back = _mapped(cells, unscale_rows, location, scale_).drop_vars([LOCATION, SCALE])
    back.attrs = {name: value for name, value in cells.attrs.items() if name != "scaling"}
    return back


def _mapped(cells: xr.Dataset, function: Any, location: np.ndarray, scale_: np.ndarray) -> xr.Dataset:
    """The cells with another X: `function` of each row, and of its sample's location and scale."""
    parameters = {"function": function, "location": location, "scale": scale_}
    values: Any
    if isinstance(cells[X].data, da.Array):
        rows = as_rows(cells, invalid="drop").only(SAMPLE)
        values = passes.map_rows(_map_block, rows, location.shape[1], dtype=np.float32, **parameters)
    else:
        values = _map_values(to_numpy(cells[X].data), to_numpy(cells[SAMPLE_CODE].values), **parameters)
    return cells.assign({X: ((CELL, MARKER), values, cells[X].attrs)})


def _map_block(block: Block, **parameters: Any) -> np.ndarray:
    return _map_values(to_numpy(block.x), block.columns[SAMPLE], **parameters)


def _map_values(
    values: np.ndarray, code: np.ndarray, function: Any, location: np.ndarray, scale: np.ndarray
) -> np.ndarray:
    """Rows that are not finite become NaN, as they do where X is lazy."""
    result = np.empty(values.shape, np.float32)
    with np.errstate(invalid="ignore"):
        for first in range(0, len(values), TILE):
            rows = slice(first, first + TILE)
            result[rows] = function(values[rows], location[code[rows]], scale[code[rows]])
            result[rows][~np.isfinite(values[rows]).all(axis=1)] = np.nan
    return result
