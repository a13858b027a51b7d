"""Which few features rank a rare class best?  Sparse linear rankings, and what their AUC is."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scaleshift.auc.roc import roc_auc
    from scaleshift.auc.sparse_auc import SparseAUC

__all__ = ["SparseAUC", "roc_auc"]

# Imported when first used. A module called like what it offers would take its place: name it otherwise.
_HOMES = {"SparseAUC": "scaleshift.auc.sparse_auc", "roc_auc": "scaleshift.auc.roc"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'scaleshift.auc' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
