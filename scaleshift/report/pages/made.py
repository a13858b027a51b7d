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
    """
    by_name: dict[str, list[str]] = {}
    if isinstance(result, xr.Dataset):
        for name, value in about.made(result):
            by_name.setdefault(str(name), []).append("" if value is None else str(value))
    entries = [(name, ", ".join(values)) for name, values in by_name.items()]
    told = Pairs(entries) if entries else Words(["The result says nothing of how it was made."])
    return Section("Method, parameters and seeds", [told], folded=True)
