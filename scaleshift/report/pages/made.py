"""How was a result made?  The last section of a page, folded: method, citation, parameters, seeds."""

from __future__ import annotations

from typing import Any

import xarray as xr

from scaleshift.report import about
from scaleshift.report.pages.parts import Pairs, Section, Words


def made(result: Any) -> Section:
    """Attributes of a result, those of one name in one row.

    Parameters
    ----------
    result : object
        Of any kind of `scaleshift.report.kinds`; one that is no dataset has no attributes.

    Examples
    --------
    >>> attrs = {"method": "Domino", "parameters": '{"n_slices": 5, "tol": null}', "features": '["a", "b"]'}
    >>> made(xr.Dataset(attrs=attrs)).parts[0].entries
    [('feature', 'a, b'), ('method', 'Domino'), ('parameter n_slices', '5')]
    >>> made(xr.Dataset(attrs={"leave_one_out": '{"direct": [0.05944517815107094, 0.1]}'})).parts[0].entries
    [('leave_one_out', 'direct: 0.05945, 0.1')]
    """
    by_name: dict[str, list[str]] = {}
    if isinstance(result, xr.Dataset):
        for name, value in about.made(result):
            if value is not None:
                by_name.setdefault(str(name), []).append(_shown(value))
    entries = [(name, ", ".join(values)) for name, values in by_name.items()]
    told = Pairs(entries) if entries else Words(["The result says nothing of how it was made."])
    return Section("Method, parameters and seeds", [told], folded=True)


def _shown(value: Any) -> str:
    """Numbers with the digits that say something, and what is kept as JSON without its marks."""
    told = about.from_json(value) if isinstance(value, str) and value[:1] in ("[", "{") else value
    if isinstance(told, dict):
        return "; ".join(f"{name}: {_listed(one)}" for name, one in told.items())
    return str(value) if told is None else _listed(told)


def _listed(told: Any) -> str:
    return ", ".join(map(_number, told)) if isinstance(told, list) else _number(told)


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
