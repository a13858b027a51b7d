"""What is in one FCS file? Names, keywords and spillover at once, slices of its events when asked."""

from scaleshift.cells.fcs.file import FcsFile
from scaleshift.cells.fcs.reading import list_data_sets, read_fcs

__all__ = ["FcsFile", "list_data_sets", "read_fcs"]
