"""Feature maps by name: what a sample's embedding is the mean of."""

from __future__ import annotations

from typing import Any

from scaleshift.errors import DataError
from scaleshift.quantify.features.base import Embedding, ExplicitEmbedding, FeatureMap, Learned, Source
from scaleshift.quantify.features.classifier import ClassifierFeatures
from scaleshift.quantify.features.fourier import FourierFeatures
from scaleshift.quantify.features.gaussian import GaussianKernel
from scaleshift.quantify.features.landmarks import LandmarkFeatures

MAPS: dict[str, type[FeatureMap]] = {
    "fourier": FourierFeatures,
    "landmarks": LandmarkFeatures,
    "gaussian": GaussianKernel,
    "classifier": ClassifierFeatures,
}

__all__ = [
    "ClassifierFeatures",
    "Embedding",
    "ExplicitEmbedding",
    "FeatureMap",
    "FourierFeatures",
    "GaussianKernel",
    "LandmarkFeatures",
    "Source",
    "feature_map",
]


def feature_map(features: Any) -> FeatureMap:
    """A map given by name, the map object itself, or what another model learned."""
    if isinstance(features, Embedding):
        return Learned(features)
    if isinstance(features, FeatureMap):
        return features
    if not isinstance(features, str) or features not in MAPS:
        raise DataError(
            f"features={features!r}: expected a feature map, a model's embedding_ or one of {', '.join(MAPS)}"
        )
    return MAPS[features]()
