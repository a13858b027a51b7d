"""Which few features rank a rare class best?  Sparse linear rankings, and what their AUC is."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scaleshift.auc.online.fsauc import FSAUC
    from scaleshift.auc.online.hsght import HSGHT
    from scaleshift.auc.online.solam import SOLAM
    from scaleshift.auc.online.spam import SPAM
    from scaleshift.auc.online.stoiht import StoIHT
    from scaleshift.auc.roc import roc_auc
    from scaleshift.auc.sparse_auc import SparseAUC

__all__ = ["FSAUC", "HSGHT", "SOLAM", "SPAM", "SparseAUC", "StoIHT", "roc_auc"]

# Imported when first used. A module called like what it offers would take its place: name it otherwise.
_HOMES = {
    "FSAUC": "scaleshift.auc.online.fsauc",
    "HSGHT": "scaleshift.auc.online.hsght",
    "SOLAM": "scaleshift.auc.online.solam",
    "SPAM": "scaleshift.auc.online.spam",
    "SparseAUC": "scaleshift.auc.sparse_auc",
    "StoIHT": "scaleshift.auc.online.stoiht",
    "roc_auc": "scaleshift.auc.roc",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'scaleshift.auc' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
