"""How are the markers of each sample brought to a common scale? By its own location and scale."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
import xarray as xr

from scaleshift.blocks import passes
from scaleshift.blocks.block import Block
from scaleshift.blocks.labels import suggestion
from scaleshift.blocks.rows import as_rows
from scaleshift.cells.schema import CELL, MARKER, SAMPLE, SAMPLE_CODE, X, check_cells
from scaleshift.cells.spread import METHODS, Method, check_method, location_scale, sample_location_scale
from scaleshift.errors import DataError, SchemaError
from scaleshift.kernels.reference import to_numpy

LOCATION, SCALE = "scaling_location", "scaling_scale"  # variables (sample, marker) of scaled cells
__all__ = ["Scaling", "location_scale", "scale", "scale_rows", "scaling_record", "unscale", "unscale_rows"]

TILE = 8_192  # rows that are held in float64 at once


@dataclass(frozen=True, eq=False)
class Scaling:
    """What was taken from each sample's markers, and what they were divided by.

    Attributes
    ----------
    method : "robust" or "z"
    location, scale : numpy.ndarray of float64, shape (n_samples, n_markers)
        0 and 1 where a sample has no cells or a marker was left as it is.
    """

    method: Method
    location: np.ndarray
    scale: np.ndarray

    def to_json(self) -> dict[str, Any]:
        """As a JSON value; `from_json` reads it."""
        return {"method": self.method, "location": self.location.tolist(), "scale": self.scale.tolist()}

    @classmethod
    def from_json(cls, value: Any) -> Scaling:
        """The scaling of a JSON value.

        Raises
        ------
        SchemaError
            If it was not made by `to_json`.

        Examples
        --------
        >>> Scaling.from_json({"method": "z", "location": [[2.0]], "scale": [[3.0]]}).scale.tolist()
        [[3.0]]
        """
        try:
            location, scale_ = (np.array(value[name], np.float64) for name in ("location", "scale"))
            known = value["method"] in METHODS and location.ndim == 2 and location.shape == scale_.shape
        except (KeyError, TypeError, ValueError) as error:
            raise SchemaError(f"a stored scaling cannot be read: {error}") from error
        if not known:
            raise SchemaError(
                f"a stored scaling has the method {value['method']!r} and arrays of shape {location.shape} "
                f"and {scale_.shape}: expected {' or '.join(METHODS)}, and two tables (sample, marker)"
            )
        return cls(value["method"], location, scale_)


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


def scale(cells: xr.Dataset, method: Method = "robust", features: Iterable[str] | None = None) -> xr.Dataset:
    """Scale each sample's markers by its own location and scale: one pass over the cells.

    Samples of different centres and days differ in intensity; what this takes away no longer looks like
    another composition. So does a difference in composition that moves the quantiles or the mean.

    Parameters
    ----------
    cells : xarray.Dataset
        As `as_cells` or `open_cells` make it.
    method : {"robust", "z"}, default "robust"
        "robust": the 1 % quantile becomes 0, the 99 % quantile 1. "z": mean 0, standard deviation 1.
    features : iterable of str, optional
        Markers to scale; others stay as they are. Default: all.

    Returns
    -------
    xarray.Dataset
        The same cells, X as float32 and lazy where it was. New variables `scaling_location` and
        `scaling_scale` (sample, marker), which a store does not keep; ``attrs["scaling"]`` is the method,
        and stands in ``attrs["transform"]`` too, which a store does keep. Cells with NaN or infinite
        values do not count, and become NaN in all markers. Cells that are scaled like this already are
        returned as they are.

    Raises
    ------
    DataError
        If the method or a marker is not known, or the cells are scaled already in another way.

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
    names = cells[MARKER].values.tolist()
    record = {"method": method, "markers": None if features is None else sorted(_known(features, names))}
    done = scaling_record(cells)
    if done is not None:
        if done == record:
            return cells
        raise DataError(
            f"the cells are scaled already, by {_said(done)}, and {_said(record)} is asked for: scale the "
            "cells as they were, which unscale(cells) gives if they were not stored since"
        )
    location, scale_ = sample_location_scale(cells, method)
    if record["markers"] is not None:
        others = ~np.isin(names, record["markers"])
        location[:, others], scale_[:, others] = 0, 1
    before = cells.attrs.get("transform")
    transform = dict(before) if isinstance(before, Mapping) else {} if before is None else {"text": before}
    return (
        _mapped(cells, scale_rows, location, scale_)
        .assign(
            {
                LOCATION: ((SAMPLE, MARKER), location, {"long_name": "taken from each marker of the sample"}),
                SCALE: (
                    (SAMPLE, MARKER),
                    scale_,
                    {"long_name": "each marker of the sample is divided by it"},
                ),
            }
        )
        .assign_attrs(scaling=method, transform={**transform, "scaling": record})
    )


def unscale(cells: xr.Dataset) -> xr.Dataset:
    """Cells as they were before `scale`, lazily where X is lazy.

    Raises
    ------
    DataError
        If the cells are not scaled, or were stored since: a store does not keep what was taken away.

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
    rest = {name: value for name, value in cells.attrs["transform"].items() if name != "scaling"}
    if rest:
        back.attrs["transform"] = rest["text"] if set(rest) == {"text"} else rest
    else:
        del back.attrs["transform"]
    return back


def scaling_record(cells: xr.Dataset) -> dict[str, Any] | None:
    """How the cells are scaled: method, and markers or None for all; None if they are not."""
    transform = cells.attrs.get("transform")
    return transform.get("scaling") if isinstance(transform, Mapping) else None


def _known(features: Iterable[str], names: list[str]) -> list[str]:
    if isinstance(features, str):
        raise DataError(f"features={features!r} is one name: give a list, [{features!r}]")
    features = list(features)
    for name in features:
        if name not in names:
            raise DataError(f"features: there is no marker {name!r}{suggestion(name, names)}")
    return features


def _said(record: Mapping[str, Any]) -> str:
    return f"{record['method']!r}" + (f" for {', '.join(record['markers'])}" if record["markers"] else "")


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
