"""Feature maps by name: what a sample's embedding is the mean of."""

from __future__ import annotations

from typing import Any

from scaleshift.errors import DataError
from scaleshift.quantify.features.base import Embedding, FeatureMap, Source
from scaleshift.quantify.features.fourier import FourierFeatures
from scaleshift.quantify.features.gaussian import GaussianKernel

MAPS: dict[str, type[FeatureMap]] = {"fourier": FourierFeatures, "gaussian": GaussianKernel}

__all__ = ["Embedding", "FeatureMap", "FourierFeatures", "GaussianKernel", "Source", "feature_map"]


def feature_map(features: Any) -> FeatureMap:
    """A map given by name, or the map object itself."""
    if isinstance(features, FeatureMap):
        return features
    if not isinstance(features, str) or features not in MAPS:
        raise DataError(f"features={features!r}: expected a feature map or one of {', '.join(MAPS)}")
    return MAPS[features]()
