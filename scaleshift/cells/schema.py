"""What does a cells dataset look like? Its dimensions and variables, how one is put together, its checks."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from scaleshift.blocks.labels import CODE, check_fingerprint, fingerprint
from scaleshift.errors import SchemaError

CELL, MARKER, SAMPLE, LABEL = "cell", "marker", "sample", "label"
X, SAMPLE_CODE, LABEL_CODE = "X", "sample_code", "label_code"
DIMENSIONS: dict[str, tuple[str, ...]] = {X: (CELL, MARKER), SAMPLE_CODE: (CELL,), LABEL_CODE: (CELL,)}
LONG_NAMES = {
    X: "marker intensity of each cell",
    SAMPLE_CODE: "position of the cell's sample in `sample`",
    LABEL_CODE: "position of the cell's label in `label`, -1 = unlabelled",
    MARKER: "marker",
    SAMPLE: "sample",
    LABEL: "label",
}
UNLABELLED = -1
MAX_NAMES, MAX_CHUNKS = 2**24, 2**20  # of a study: each is looped over, whatever a forged store says
FEATURE = "feature"  # coordinate on marker: is this column used, or only kept?
SCALING = ("scaling_location", "scaling_scale")  # variables (sample, marker) of scaled samples
# No column of sample metadata is called so: names of the layout, and of what a study knows of its markers.
RESERVED = frozenset((*LONG_NAMES, CELL, *SCALING, FEATURE, "channel", "kind", "marker_class"))


def cells_dataset(
    intensity: Any,
    sample_code: Any,
    label_code: Any,
    *,
    marker: Any,
    sample: Any,
    label: Any,
    metadata: Mapping[str, Any] | None = None,
    attrs: Mapping[Hashable, Any] | None = None,
) -> xr.Dataset:
    """Put the arrays of a study together as the one dataset layout; every array is kept as it is.

    Parameters
    ----------
    intensity : array, shape (n_cells, n_markers)
    sample_code, label_code : array of int32, shape (n_cells,)
    marker, sample, label : array
        Names: shapes (n_markers,), (n_samples,), (n_labels,).
    metadata : mapping, optional
        Column name to values, shape (n_samples,): become coordinates on `sample`.
    attrs : mapping, optional
        Attributes of the dataset.

    Returns
    -------
    xarray.Dataset

    Raises
    ------
    SchemaError
        If a metadata column has a name that is reserved for the layout.

    Examples
    --------
    >>> cells = cells_dataset(np.zeros((2, 1)), np.zeros(2, CODE), np.array([0, -1], CODE),
    ...                       marker=["CD3"], sample=["s1"], label=["T"], metadata={"day": [4]})
    >>> cells["X"].dims, cells["day"].item()
    (('cell', 'marker'), 4)
    """
    _refuse_reserved(metadata or {})
    data = {X: intensity, SAMPLE_CODE: sample_code, LABEL_CODE: label_code}
    names = {MARKER: marker, SAMPLE: sample, LABEL: label}
    coords: dict[str, Any] = {k: (k, v, {"long_name": LONG_NAMES[k]}) for k, v in names.items()}
    coords |= {k: (SAMPLE, v, {"long_name": k}) for k, v in (metadata or {}).items()}
    variables = {k: (DIMENSIONS[k], v, {"long_name": LONG_NAMES[k]}) for k, v in data.items()}
    cells = xr.Dataset(variables, coords, dict(attrs or {}))
    for code, names_ in ((SAMPLE_CODE, SAMPLE), (LABEL_CODE, LABEL)):
        cells[code].attrs["categories"] = fingerprint(cells[names_].values)
    return cells


def check_cells(cells: xr.Dataset) -> None:
    """Check that a dataset has the cells layout.

    Codes are compared with the categories where they are in memory; lazy ones are checked where they
    are read.

    Parameters
    ----------
    cells : xarray.Dataset
        As `open_cells` and `as_cells` make it.

    Raises
    ------
    SchemaError
        If it is no dataset, lacks a variable or a coordinate, has other dimensions or dtypes, names
        something twice, has sample metadata with a reserved name, or codes outside the categories.

    Examples
    --------
    >>> check_cells(xr.Dataset({"X": ("cell", [1.0])}))
    Traceback (most recent call last):
        ...
    scaleshift.errors.SchemaError: cells: X has dimensions ('cell',), expected ('cell', 'marker')
    """
    if not isinstance(cells, xr.Dataset):
        raise SchemaError(f"cells is a {type(cells).__name__}, expected an xarray.Dataset: use as_cells")
    for name, dims in DIMENSIONS.items():
        if name not in cells.variables:
            raise SchemaError(f"cells has no variable {name!r}: make it with open_cells or as_cells")
        if cells[name].dims != dims:
            raise SchemaError(f"cells: {name} has dimensions {cells[name].dims}, expected {dims}")
    for name in (MARKER, SAMPLE, LABEL):
        _check_names(cells, name)
    _refuse_reserved(name for name, c in cells.coords.items() if c.dims == (SAMPLE,) and name != SAMPLE)
    if cells[X].dtype not in (np.float32, np.float64):
        raise SchemaError(f"cells: X is {cells[X].dtype}, expected float32 or float64")
    if cells.attrs.get("scaling") is not None and not set(SCALING) <= set(cells.variables):
        raise SchemaError(
            f"cells were scaled, but {SCALING[0]} or {SCALING[1]} is missing: keep both variables"
        )
    _check_codes(cells, SAMPLE_CODE, SAMPLE, 0)
    _check_codes(cells, LABEL_CODE, LABEL, UNLABELLED)


def _refuse_reserved(columns: Iterable[Hashable]) -> None:
    for name in columns:
        if name in RESERVED:
            raise SchemaError(f"sample metadata has a column {name!r}, a name of the layout: rename it")


def _check_names(cells: xr.Dataset, name: str) -> None:
    if name not in cells.indexes:
        raise SchemaError(f"cells has no coordinate {name!r}: make it with open_cells or as_cells")
    repeated = cells.indexes[name][cells.indexes[name].duplicated()]
    if len(repeated):
        raise SchemaError(f"cells: {name} {repeated[0]!r} stands twice: rename one, names must be unique")
    if name == MARKER and not all(isinstance(m, str) for m in cells.indexes[MARKER]):
        raise SchemaError("cells: markers must be text; convert them with str")


def _check_codes(cells: xr.Dataset, name: str, of: str, lowest: int) -> None:
    codes = cells[name]
    check_fingerprint(codes.attrs, cells[of].values, of)
    if codes.dtype != CODE:
        raise SchemaError(f"cells: {name} is {codes.dtype}, expected {CODE}")
    if isinstance(codes.data, np.ndarray) and codes.size:
        check_code_range(codes.data, lowest, cells.sizes[of], f"cells: {name}")


def check_code_range(codes: np.ndarray, lowest: int, n_categories: int, place: str) -> None:
    """Raise SchemaError, starting with `place`, where a code is below `lowest` or names no category."""
    if codes.size and (codes.min() < lowest or codes.max() >= n_categories):
        bad = int(codes.min()) if codes.min() < lowest else int(codes.max())
        raise SchemaError(f"{place} holds {bad}, expected {lowest} to {n_categories - 1}")


def text_index(names: Any) -> np.ndarray:
    """Names as a text array; of length 0 too, where numpy would make floats."""
    return np.array([str(n) for n in pd.Index(names)], dtype=np.str_)


def check_names_size(n_values: int, n_chunks: int, place: str) -> None:
    """Raise SchemaError for an array of more names than there can be: they are read at once.

    Examples
    --------
    >>> check_names_size(40, 1, "study.zarr: var/_index")
    """
    if n_values > MAX_NAMES or n_chunks > MAX_CHUNKS:
        raise SchemaError(
            f"{place} would hold {n_values} values in {n_chunks} chunks, expected at most {MAX_NAMES} in "
            f"{MAX_CHUNKS}: the store is damaged or forged"
        )


def check_sizes(counts: Sequence[Any], chunk: int, place: str) -> None:
    """Raise SchemaError for numbers of cells that are none, or cells in more chunks than can be worked on.

    Examples
    --------
    >>> check_sizes([1000, 2000], 512, "study.zarr")
    """
    if not all(type(count) is int and count >= 0 for count in counts):
        raise SchemaError(
            f"{place}: uns/scaleshift tells numbers of cells that are none: the store is damaged or forged"
        )
    if chunk < 1 or sum(counts) / chunk > MAX_CHUNKS:
        raise SchemaError(
            f"{place}: X would be {sum(counts)} cells in chunks of {chunk}, expected chunks of at least one "
            f"cell, and at most {MAX_CHUNKS} of them"
        )
