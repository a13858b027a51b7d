"""Which class proportions does an unlabelled sample have, when labels shifted?"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scaleshift.quantify.diagnosis import diagnose
    from scaleshift.quantify.league import compare
    from scaleshift.quantify.novel_cells import novelty
    from scaleshift.quantify.weights import sample_weight

__all__ = ["compare", "diagnose", "novelty", "sample_weight"]

# Imported when first used. A module called like what it offers would take its place: name it otherwise.
_HOMES = {
    "compare": "scaleshift.quantify.league",
    "diagnose": "scaleshift.quantify.diagnosis",
    "novelty": "scaleshift.quantify.novel_cells",
    "sample_weight": "scaleshift.quantify.weights",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'scaleshift.quantify' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
