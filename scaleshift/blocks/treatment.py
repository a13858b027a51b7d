"""Were these cells transformed and scaled as those that a model has learned from?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import xarray as xr

from scaleshift.errors import DataError

Treatment = Mapping[str, Any]
TREATMENTS = ("transform", "compensation", "scaling")  # attributes: what was done to the intensities
WAYS_OUT = {
    "transform": "import both with the same transform",
    "compensation": "import both with their matrices, or both without",
    "scaling": "scale both or none",
}


def treatment_of(X: Any) -> Treatment | None:
    """What a cells dataset says was done to its intensities; None for arrays, which say nothing.

    Examples
    --------
    >>> treatment_of(xr.Dataset(attrs={"transform": "arcsinh(x / 5)"}))
    {'transform': 'arcsinh(x / 5)', 'compensation': None, 'scaling': None}
    """
    if not isinstance(X, xr.Dataset):
        return None
    return {name: X.attrs.get(name) for name in TREATMENTS}


def check_treatment(learned: Treatment | None, given: Treatment | None, markers: Any) -> None:
    """Raise DataError where cells were treated otherwise than those that a model has learned from.

    A transform or compensation that one of the two does not tell is passed over; samples that are not scaled
    are known not to be.

    Examples
    --------
    >>> check_treatment({"scaling": "z"}, {"scaling": None}, None)
    Traceback (most recent call last):
        ...
    scaleshift.errors.DataError: scaling of these cells is none, of those learned from 'z': scale both or none
    """
    if learned is None or given is None:
        return
    for name in TREATMENTS:
        a, b = _of_markers(learned.get(name), markers), _of_markers(given.get(name), markers)
        known = name == "scaling" or (a is not None and b is not None)
        if known and not _equal(a, b):
            marker, a, b = _first_difference(a, b)
            raise DataError(
                f"{name}{marker} of these cells is {_short(b)}, of those learned from {_short(a)}: "
                f"{WAYS_OUT[name]}"
            )


def _of_markers(value: Any, markers: Any) -> Any:
    """The part of a record by marker that is about these markers."""
    by_marker = value.get("markers") if isinstance(value, Mapping) else None
    if not isinstance(by_marker, Mapping) or markers is None:
        return value
    return {name: by_marker.get(name) for name in markers}


def _first_difference(a: Any, b: Any) -> tuple[str, Any, Any]:
    """Where records by marker differ first, else the records themselves."""
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return next((f" of {key}", a[key], b[key]) for key in a if not _equal(a[key], b[key]))
    return "", a, b


def _equal(a: Any, b: Any) -> bool:
    return json.dumps(a, sort_keys=True, default=str) == json.dumps(b, sort_keys=True, default=str)


def _short(value: Any) -> str:
    text = "none" if value is None else repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."
