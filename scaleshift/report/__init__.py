"""How do I show a result? As a table, in the terminal, as a plot. Knows results only, no data."""

from scaleshift.report.plot import plot
from scaleshift.report.table import table, text

__all__ = ["plot", "table", "text"]
