"""A study comes in: arrays, tables and AnnData objects in memory, one Zarr store on disk."""

from scaleshift.cells.arrays import as_cells
from scaleshift.cells.store import open_cells
from scaleshift.cells.write import append_cells, write_cells

__all__ = ["append_cells", "as_cells", "open_cells", "write_cells"]
