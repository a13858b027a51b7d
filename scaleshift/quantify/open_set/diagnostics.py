"""How far can the answers for a sample be trusted?  Variables beside the proportions, and flags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from scaleshift.quantify.flags import reason
from scaleshift.quantify.remarks import per_cent

SAMPLE, LABEL = ("sample",), ("sample", "label")
DOUBTFUL, USELESS = 0.1, 0.2  # disagreement: mean L1 error .17 up to .1, .36 up to .2

#: name -> (dimensions, long_name, description)
VARIABLES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "disagreement": (
        SAMPLE,
        "disagreement of two estimators",
        "L1 distance between classify-and-count and expectation-maximisation, of all cells: the best single "
        "index of reliability. Below .05 the mean L1 error was .06, above .2 the proportions are of no use",
    ),
    "novel": (
        SAMPLE,
        "share of novel cells",
        "share of cells unlike every class of the source, ungated cells included, after the classes were "
        "aligned; a lower bound. It counts as unknown where it is above the attribute gate",
    ),
    "novel_unaligned": (
        SAMPLE,
        "share of novel cells before alignment",
        "large here and small after alignment: batch shift; equal: contamination",
    ),
    "flag_rate": (LABEL, "novel cells by predicted class", "share of the cells predicted to be of the class"),
    "expected_flag_rate": (LABEL, "the same in the source", "of held-out cells"),
    "shift": (
        ("sample", "label", "marker"),
        "shift of the class",
        "by how much the class was found moved, in standard deviations within the class",
    ),
}


def with_diagnostics(result: xr.Dataset, values: Mapping[str, np.ndarray], markers: Any) -> xr.Dataset:
    """The result with the variables above; markers without names are numbered."""
    n_markers = values["shift"].shape[2]
    names = list(range(n_markers)) if markers is None else list(markers)
    told = {
        name: (dims, values[name], {"long_name": long_name, "units": "1", "description": description})
        for name, (dims, long_name, description) in VARIABLES.items()
    }
    return result.assign(told).assign_coords(marker=names)


def reasons(disagreement: np.ndarray, novel: np.ndarray, gate: float) -> list[list[str]]:
    """What these numbers say of each sample; empty texts are no reasons."""
    return [[_doubt(apart), _strange(share, gate)] for apart, share in zip(disagreement, novel, strict=True)]


def _doubt(apart: float) -> str:
    code = "D" if apart > USELESS else "M" if apart > DOUBTFUL else ""
    detail = f"the estimators' shares differ by {100 * apart:.0f} percentage points in all"
    return reason(code, detail) if code else ""


def _strange(share: float, gate: float) -> str:
    usual = f"usual up to {per_cent(gate)}"
    if share > gate:
        return reason("N", f"at least {per_cent(share)}, {usual}")
    return reason("K", f"{per_cent(share)}, {usual}") if share > gate / 2 else ""
