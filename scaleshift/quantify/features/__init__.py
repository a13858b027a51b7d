"""Feature maps by name: what a sample's embedding is the mean of."""

from __future__ import annotations

from typing import Any

from scaleshift.errors import DataError
from scaleshift.quantify.features.base import Embedding, ExplicitEmbedding, FeatureMap, Learned, Source
from scaleshift.quantify.features.classifier import ClassifierFeatures
from scaleshift.quantify.features.energy import EnergyKernel
from scaleshift.quantify.features.exact import ExactKernel, GaussianKernel
from scaleshift.quantify.features.fourier import FourierFeatures
from scaleshift.quantify.features.landmarks import LandmarkFeatures
from scaleshift.quantify.features.sliced import SlicedEnergy
from scaleshift.quantify.features.user import UserFeatures, missing_methods
from scaleshift.spelling import meant

MAPS: dict[str, type[FeatureMap]] = {
    "fourier": FourierFeatures,
    "landmarks": LandmarkFeatures,
    "gaussian": GaussianKernel,
    "energy": EnergyKernel,
    "sliced-energy": SlicedEnergy,
    "classifier": ClassifierFeatures,
}

__all__ = [
    "ClassifierFeatures",
    "Embedding",
    "EnergyKernel",
    "ExactKernel",
    "ExplicitEmbedding",
    "FeatureMap",
    "FourierFeatures",
    "GaussianKernel",
    "LandmarkFeatures",
    "SlicedEnergy",
    "Source",
    "UserFeatures",
    "feature_map",
]


def feature_map(features: Any) -> FeatureMap:
    """A map given by name, the map object itself, what another model learned, or what transforms."""
    if isinstance(features, Embedding):
        return Learned(features)
    if isinstance(features, FeatureMap):
        return features
    if isinstance(features, str) and features in MAPS:
        return MAPS[features]()
    expected = (
        f"expected a feature map, a model's embedding_ or one of {', '.join(MAPS)}; or an object with "
        "fit(X, y) and transform(X)"
    )
    if isinstance(features, type):
        raise DataError(f"features is the class {features.__name__}, not an object of it: {expected}")
    missing = missing_methods(features)
    if not missing:
        return UserFeatures(features)
    if len(missing) == 1:
        kind, hint = type(features).__name__, ""
        if callable(getattr(features, "predict", None)):
            hint = f"ClassifierFeatures({kind}()) for what a classifier says; or "
        raise DataError(f"features is an object of {kind}, which has no {missing[0]}: {hint}{expected}")
    hint = meant(features, MAPS) if isinstance(features, str) else ""
    raise DataError(f"features={features!r}: {expected}{hint}")
