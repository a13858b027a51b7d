"""How does a result get into an AnnData object, and back?  As plain arrays that .h5ad and .zarr both hold."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from scaleshift.errors import DataError, one_line
from scaleshift.report.kinds import kind_of
from scaleshift.report.opened import as_made

HEADER = "scaleshift"  # the key of all that is no array, as JSON
SCHEMA = "scaleshift.result/1"
NUMBERS = "biuf"  # kinds of arrays that are written as they are
TIMES = "mM"
TYPES = NUMBERS + TIMES + "U"  # that numpy names in a text; others come back as objects
LONGEST_KEY = 80  # characters
LARGEST = 2**31  # bytes of an array: a forged header tells any type


def to_uns(result: Any) -> dict[str, Any]:
    """A result as plain arrays and text, for ``adata.uns``: AnnData writes them to .h5ad and .zarr.

    Parameters
    ----------
    result : xarray.Dataset, or the pandas.DataFrame of `compare_gated`
        What any method of the library answers. One that was opened from a store is read.

    Returns
    -------
    dict of str to numpy.ndarray or str
        Each variable and coordinate under its name, with "_" for what a store's names cannot hold. Under
        "scaleshift" stand, as JSON, dimensions, types and attributes. Arrays that hold missing or mixed
        values, or text that HDF5 cannot hold, are text of JSON, one an element.

    Raises
    ------
    DataError
        If it is no result, or one that is no dataset, such as a plan.

    See Also
    --------
    from_uns : The way back.

    Examples
    --------
    >>> import scaleshift as ss
    >>> from types import SimpleNamespace
    >>> result = ss.roc_auc(["B", "T", "T", "B"], [0.1, 0.4, 0.8, 0.4])
    >>> adata = SimpleNamespace(uns={})  # stands for an AnnData object
    >>> adata.uns["auc"] = ss.report.to_uns(result)
    >>> adata.uns["auc"]["auc"].item()
    0.875
    >>> ss.report.from_uns(adata.uns["auc"]).identical(result)
    True
    """
    kind = kind_of(result)
    if isinstance(result, pd.DataFrame):
        header: dict[str, Any] = {
            "frame": [str(name) for name in result],
            "extension": _extension_types(result),
        }
        result = _of_frame(result)
    elif isinstance(result, xr.Dataset):
        result, header = as_made(result), {}
    else:
        raise DataError(
            f"a result of {kind.made_by} is no dataset, and AnnData has no place for it: keep "
            "str(scaleshift.report.text(result)), or scaleshift.report.table(result)"
        )
    arrays: dict[str, Any] = {}
    variables = []
    for name, variable in result.variables.items():
        key, values = _key(str(name), arrays), np.asarray(variable.values)
        arrays[key], form = _plain(values)
        dtype = values.dtype.str if values.dtype.kind in TYPES else "|O"
        about = {"name": name, "key": key, "coordinate": name in result.coords, "form": form, "dtype": dtype}
        shape = {"dims": list(variable.dims), "shape": list(values.shape)}
        variables.append({**about, **shape, "attrs": _jsonable(variable.attrs)})
    header |= {"schema": SCHEMA, "kind": kind.name, "variables": variables}
    header["attrs"] = _jsonable(result.attrs)
    return {HEADER: json.dumps(header), **arrays}


def from_uns(mapping: Mapping[str, Any]) -> Any:
    """A result that `to_uns` has put into ``adata.uns``: `table`, `text` and `plot` take it.

    Parameters
    ----------
    mapping : mapping
        As `to_uns` gave it, or as AnnData reads it from .h5ad or .zarr.

    Returns
    -------
    xarray.Dataset
        As it went in: values, types, coordinates and attributes; tuples in attributes are lists. What
        `compare_gated` gives comes back as a pandas.DataFrame.

    Raises
    ------
    DataError
        If `to_uns` did not make it, an array is missing or has another shape.

    See Also
    --------
    to_uns

    Examples
    --------
    >>> import scaleshift as ss
    >>> result = ss.roc_auc(["B", "T", "T", "B"], [0.1, 0.4, 0.8, 0.4])
    >>> print(ss.report.from_uns(ss.report.to_uns(result)).attrs["positive"])
    T
    """
    header = _header(mapping)
    try:
        return _result(header, mapping)
    except DataError:
        raise
    except Exception as error:  # a header from elsewhere may tell anything
        raise DataError(
            f"this is not what to_uns made ({type(error).__name__}: {one_line(error)}): put it there anew"
        ) from error


def _result(header: Mapping[str, Any], mapping: Mapping[str, Any]) -> Any:
    """The dataset, or data frame, that a header tells of."""
    variables: dict[Any, Any] = {}
    coordinates: dict[Any, Any] = {}
    for told in header["variables"]:
        if told["key"] not in mapping:
            raise DataError(
                f"the variable {told['name']!r} is missing: its array {told['key']!r} is not there"
            )
        variable = (told["dims"], _values(mapping[told["key"]], told), told["attrs"])
        (coordinates if told["coordinate"] else variables)[told["name"]] = variable
    result = xr.Dataset(variables, coordinates, header["attrs"])
    return _as_frame(result, header) if "frame" in header else result


# Arrays ------------------------------------------------------------------------------------------------


def _plain(values: np.ndarray) -> tuple[Any, str]:
    """An array that both stores hold, of one dimension at least, and how it is to be read again."""
    flat = values.ravel()
    if flat.dtype.kind in NUMBERS:
        return flat.reshape(values.shape or 1), "number"
    if flat.dtype.kind in TIMES:
        return flat.view(np.int64).reshape(values.shape or 1), "time"
    items = flat.tolist()
    if all(isinstance(item, str) and _is_storable(item) for item in items) and items:
        return np.array(items, object).reshape(values.shape or 1), "text"
    return json.dumps([_item(item) for item in items]), "json"


def _values(stored: Any, told: Mapping[str, Any]) -> np.ndarray:
    """The array as it was."""
    shape, dtype = tuple(told["shape"]), np.dtype(told["dtype"])
    if told["form"] == "json":
        items = json.loads(str(stored))
        found = np.empty(len(items), object)
        found[:] = [_from_item(item) for item in items]
    else:
        found = np.asarray(stored).ravel()
    if found.size != np.prod(shape, dtype=int):
        raise DataError(f"the variable {told['name']!r} has {found.size} values, expected {list(shape)}")
    if dtype.kind not in (*TYPES, "O") or dtype.itemsize * found.size > LARGEST:
        raise DataError(f"the variable {told['name']!r} has the type {told['dtype']!r}, which none has")
    if told["form"] == "time":
        return found.astype(np.int64).view(dtype).reshape(shape)
    if told["form"] == "text":
        found = np.array([str(item) for item in found.tolist()], object)  # Zarr's text has a type of its own
    return found.astype(dtype).reshape(shape)


def _is_storable(text: str) -> bool:
    """Whether HDF5 and Zarr give a text back: it holds neither NUL nor half of a pair of characters."""
    return re.search("[\0\ud800-\udfff]", text) is None


def _item(item: Any) -> Any:
    """One element as JSON; what JSON has no word for gets a name."""
    if item is pd.NA:
        return {"is": "NA"}
    if item is pd.NaT:
        return {"is": "NaT"}
    if isinstance(item, pd.Timestamp):
        return {"is": "time", "at": item.isoformat()}
    if isinstance(item, np.generic):
        return item.item()
    return item if isinstance(item, str | bool | int | float | None) else {"is": "text", "at": str(item)}


def _from_item(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    named = {"NA": pd.NA, "NaT": pd.NaT, "text": item.get("at")}
    return pd.Timestamp(item["at"]) if item["is"] == "time" else named[item["is"]]


# Names and attributes ----------------------------------------------------------------------------------


def _key(name: str, taken: Iterable[str]) -> str:
    """A name that a group of HDF5 and a folder of Zarr may have, and no other variable has."""
    key = re.sub(r"[^\w .+-]", "_", name)[:LONGEST_KEY].strip(" ._") or "variable"
    used = {other.casefold() for other in (*taken, HEADER)}
    while key.casefold() in used:
        key += "_"
    return key


def _jsonable(value: Any) -> Any:
    """Attributes as JSON: arrays as lists, what JSON has no word for as text."""
    if isinstance(value, Mapping):
        return {str(name): _jsonable(item) for name, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_jsonable(item) for item in (value.tolist() if isinstance(value, np.ndarray) else value)]
    if isinstance(value, np.generic):
        return _jsonable(value.item())
    return value if isinstance(value, str | bool | int | float | None) else str(value)


def _header(mapping: Any) -> dict[str, Any]:
    """What is told of the arrays."""
    try:
        header = json.loads(str(mapping[HEADER]))
        schema = header["schema"]
    except (KeyError, TypeError, ValueError, IndexError, RecursionError):
        raise DataError(
            "this is no result from an AnnData object: pass adata.uns[NAME], where "
            "scaleshift.report.to_uns(result) was put"
        ) from None
    if schema != SCHEMA:
        raise DataError(
            f"the result has the schema {schema!r}, this version reads {SCHEMA!r}: update scaleshift"
        )
    return dict(header)


# Data frames -------------------------------------------------------------------------------------------


def _extension_types(frame: pd.DataFrame) -> dict[str, str]:
    """Columns of types that numpy does not have."""
    return {str(name): str(kind) for name, kind in frame.dtypes.items() if not isinstance(kind, np.dtype)}


def _of_frame(frame: pd.DataFrame) -> xr.Dataset:
    """Columns as variables over rows."""
    columns = {str(name): ("row", np.asarray(frame[name])) for name in frame}
    return xr.Dataset(columns, attrs=dict(frame.attrs))


def _as_frame(result: xr.Dataset, header: Mapping[str, Any]) -> pd.DataFrame:
    frame = pd.DataFrame({name: result[name].values for name in header["frame"]})
    return frame.astype(header["extension"])
