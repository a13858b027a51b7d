"""A study comes in: files, tables and AnnData objects; in memory, or as one Zarr store on disk."""

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
    "ingest",
    "label_cells",
    "open_cells",
    "raw_events",
    "scale",
    "unscale",
    "write_cells",
]
