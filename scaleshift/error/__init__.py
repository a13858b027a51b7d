"""How wrong will a model be on a shifted target, without its labels?"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scaleshift.error.comparators.confidence import average_confidence, difference_of_confidence
    from scaleshift.error.comparators.projection import projection_norm
    from scaleshift.error.comparators.thresholding import average_thresholded_confidence
    from scaleshift.error.comparators.weighting import importance_weighted, importance_weights
    from scaleshift.error.prediction_error import PredictionError
    from scaleshift.error.priors import prior_corrected

__all__ = [
    "PredictionError",
    "average_confidence",
    "average_thresholded_confidence",
    "difference_of_confidence",
    "importance_weighted",
    "importance_weights",
    "prior_corrected",
    "projection_norm",
]

# Imported when first used. A module called like what it offers would take its place: name it otherwise.
_HOMES = {
    "PredictionError": "scaleshift.error.prediction_error",
    "average_confidence": "scaleshift.error.comparators.confidence",
    "average_thresholded_confidence": "scaleshift.error.comparators.thresholding",
    "difference_of_confidence": "scaleshift.error.comparators.confidence",
    "importance_weighted": "scaleshift.error.comparators.weighting",
    "importance_weights": "scaleshift.error.comparators.weighting",
    "prior_corrected": "scaleshift.error.priors",
    "projection_norm": "scaleshift.error.comparators.projection",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'scaleshift.error' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
