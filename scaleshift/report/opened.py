"""How is a result shown that was opened from a store?  As when it was made: read, in order, text as text."""

from __future__ import annotations

import json
from typing import Any

import xarray as xr

ORDER = "variables"  # attribute: names of the variables in order, which a folder does not keep


def as_made(result: Any) -> Any:
    """A dataset in memory, its variables in the order in which they were written; other results as they are.

    Text that is of numpy's type of variable length, as Zarr gives it, is of objects: little else can handle
    it yet.

    Examples
    --------
    >>> opened = xr.Dataset({"low": 1, "error": 2}, attrs={ORDER: '["error", "low"]', "seed": 0})
    >>> list(as_made(opened)), as_made(opened).attrs
    (['error', 'low'], {'seed': 0})
    """
    if not isinstance(result, xr.Dataset):
        return result
    found = result.compute()
    order = {name: i for i, name in enumerate(_names(found.attrs.pop(ORDER, "[]")))}
    names = sorted(found.variables, key=lambda name: order.get(str(name), len(order)))
    coordinates = {name: _plain(found.variables[name]) for name in names if name in found.coords}
    data = {name: _plain(found.variables[name]) for name in names if name not in found.coords}
    return xr.Dataset(data, coordinates, found.attrs)


def _plain(values: xr.Variable) -> xr.Variable:
    return values.astype(object) if values.dtype.kind == "T" else values


def _names(text: Any) -> list[str]:
    try:
        return [str(name) for name in json.loads(text)]
    except (ValueError, TypeError, RecursionError):
        return []
