"""Were these cells transformed and scaled as those that a model has learned from?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import xarray as xr

from scaleshift.errors import DataError

Treatment = Mapping[str, Any]


def treatment_of(X: Any) -> Treatment | None:
    """What a cells dataset says of its transform and scaling; None for arrays, which say nothing.

    Examples
    --------
    >>> treatment_of(xr.Dataset(attrs={"transform": "arcsinh(x / 5)"}))
    {'transform': 'arcsinh(x / 5)', 'scaling': None}
    """
    if not isinstance(X, xr.Dataset):
        return None
    return {name: X.attrs.get(name) for name in ("transform", "scaling")}


def check_treatment(learned: Treatment | None, given: Treatment | None, markers: Any) -> None:
    """Raise DataError where cells were treated otherwise than those that a model has learned from.

    A transform that one of the two does not tell is passed over; samples that are not scaled are known not
    to be.

    Examples
    --------
    >>> check_treatment({"scaling": "z", "transform": None}, {"scaling": None, "transform": None}, None)
    Traceback (most recent call last):
        ...
    scaleshift.errors.DataError: scaling of the cells is None, of the cells learned from 'z': treat both alike
    """
    if learned is None or given is None:
        return
    for name in ("transform", "scaling"):
        a, b = _of_markers(learned.get(name), markers), _of_markers(given.get(name), markers)
        known = name == "scaling" or (a is not None and b is not None)
        if known and json.dumps(a, sort_keys=True) != json.dumps(b, sort_keys=True):
            raise DataError(
                f"{name} of the cells is {_short(b)}, of the cells learned from {_short(a)}: treat both alike"
            )


def _of_markers(value: Any, markers: Any) -> Any:
    """The part of a record by marker that is about these markers."""
    by_marker = value.get("markers") if isinstance(value, Mapping) else None
    if not isinstance(by_marker, Mapping) or markers is None:
        return value
    return {name: by_marker.get(name) for name in markers}


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."
