"""A study comes in: files, tables and AnnData objects; in memory, or as one Zarr store on disk."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scaleshift.cells import fcs
    from scaleshift.cells.arrays import as_cells
    from scaleshift.cells.intake.ingest import check, ingest
    from scaleshift.cells.labels.label import label_cells
    from scaleshift.cells.raw import raw_events
    from scaleshift.cells.store import open_cells
    from scaleshift.cells.treatment.scaling import scale, unscale
    from scaleshift.cells.write import append_cells, write_cells

__all__ = [
    "append_cells",
    "as_cells",
    "check",
    "fcs",
    "ingest",
    "label_cells",
    "open_cells",
    "raw_events",
    "scale",
    "unscale",
    "write_cells",
]

# Imported when first used: who asks what a study holds does not wait for what writes one.
_HOMES = {
    "append_cells": "scaleshift.cells.write",
    "as_cells": "scaleshift.cells.arrays",
    "check": "scaleshift.cells.intake.ingest",
    "ingest": "scaleshift.cells.intake.ingest",
    "label_cells": "scaleshift.cells.labels.label",
    "open_cells": "scaleshift.cells.store",
    "raw_events": "scaleshift.cells.raw",
    "scale": "scaleshift.cells.treatment.scaling",
    "unscale": "scaleshift.cells.treatment.scaling",
    "write_cells": "scaleshift.cells.write",
}


def __getattr__(name: str) -> Any:
    if name == "fcs":
        return importlib.import_module("scaleshift.cells.fcs")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'scaleshift.cells' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
