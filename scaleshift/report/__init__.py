"""How do I show a result? As a table, a workbook, in the terminal, as a plot, as a page; beside the gates."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scaleshift.report.auc import auc_text
    from scaleshift.report.auc_picture import auc_plot
    from scaleshift.report.auc_rows import auc_path_table, auc_table
    from scaleshift.report.error import error_table, error_text
    from scaleshift.report.error_picture import error_plot
    from scaleshift.report.front import plot, table, text
    from scaleshift.report.gated import GatedSummary, compare_gated, summarize_gated
    from scaleshift.report.pages.page import page
    from scaleshift.report.proportion_intervals import interval_plot
    from scaleshift.report.ranking import league, league_text
    from scaleshift.report.slices import slice_plot, slice_table, slice_text
    from scaleshift.report.uns import from_uns, to_uns

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
    "from_uns",
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
    "to_uns",
]

# Imported when first used. A module called like what it offers would take its place: name it otherwise.
_HOMES = {
    "GatedSummary": "scaleshift.report.gated",
    "auc_path_table": "scaleshift.report.auc_rows",
    "auc_plot": "scaleshift.report.auc_picture",
    "auc_table": "scaleshift.report.auc_rows",
    "auc_text": "scaleshift.report.auc",
    "compare_gated": "scaleshift.report.gated",
    "error_plot": "scaleshift.report.error_picture",
    "error_table": "scaleshift.report.error",
    "error_text": "scaleshift.report.error",
    "from_uns": "scaleshift.report.uns",
    "interval_plot": "scaleshift.report.proportion_intervals",
    "league": "scaleshift.report.ranking",
    "league_text": "scaleshift.report.ranking",
    "page": "scaleshift.report.pages.page",
    "plot": "scaleshift.report.front",
    "slice_plot": "scaleshift.report.slices",
    "slice_table": "scaleshift.report.slices",
    "slice_text": "scaleshift.report.slices",
    "summarize_gated": "scaleshift.report.gated",
    "table": "scaleshift.report.front",
    "text": "scaleshift.report.front",
    "to_uns": "scaleshift.report.uns",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'scaleshift.report' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
