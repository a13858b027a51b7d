"""How do I show a result? As a table, a workbook, in the terminal, as a plot; beside the gates."""

from scaleshift.report.auc import auc_path_table, auc_table, auc_text
from scaleshift.report.auc_picture import auc_plot
from scaleshift.report.error import error_table, error_text
from scaleshift.report.error_picture import error_plot
from scaleshift.report.front import plot, table, text
from scaleshift.report.gated import GatedSummary, compare_gated, summarize_gated
from scaleshift.report.pages.page import page
from scaleshift.report.proportion_intervals import interval_plot
from scaleshift.report.ranking import league, league_text
from scaleshift.report.slices import slice_plot, slice_table, slice_text

__all__ = [
    "GatedSummary",
    "auc_path_table",
    "auc_plot",
    "auc_table",
    "auc_text",
    "compare_gated",
    "error_plot",
    "error_table",
    "error_text",
    "interval_plot",
    "league",
    "league_text",
    "page",
    "plot",
    "slice_plot",
    "slice_table",
    "slice_text",
    "summarize_gated",
    "table",
    "text",
]
