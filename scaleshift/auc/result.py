"""What was found, as datasets: rankings by number of features, and the features of the one chosen."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from scaleshift.auc.fitting import LearnedRanking

CITATION = "Stochastic Hard Thresholding Algorithms for AUC Maximization, ICDM 2020"
PATH = {
    "coef": ("weight", "of each feature, in reciprocal units of X"),
    "objective": ("F", "mean over all pairs of (1 - w'(x+ - x-))^2, of the training rows"),
    "auc": ("held-out AUC", "mean over folds, of rows that the fold's ranking has not seen"),
    "auc_se": ("standard error of auc", "over folds"),
    "auc_bound": ("bound", "auc is off the exact one by this at most: rows are counted in narrow bins"),
    "auc_binormal": ("binormal AUC", "of normal scores with the moments of the training rows; a proxy"),
}
FEATURES = {
    "coef": ("weight", "in reciprocal units of X; 0 of features that are not chosen"),
    "coef_scaled": ("scaled weight", "for a change by one standard deviation within the classes"),
    "selected": ("selected", "whether the feature is in the ranking"),
    "stability": ("stability", "share of halves of the rows whose ranking of as many features has it"),
    "auc_alone": (
        "AUC alone",
        "of the feature by itself, below 0.5 where positives are lower; counted on rows of features in the "
        "ranking, of others as if they were normal in both classes",
    ),
    "mean_positive": ("mean of positives", "in units of X"),
    "mean_negative": ("mean of negatives", "in units of X"),
    "weight_positive": ("positives", "rows that were learned from, or the sum of their weights"),
    "weight_negative": ("negatives", "rows that were learned from, or the sum of their weights"),
}


def path_dataset(
    learned: Sequence[LearnedRanking], names: Sequence[str], features: Any, kind: str
) -> xr.Dataset:
    """Rankings by number of features; of several contrasts with a dimension for them."""
    parts = []
    for one in learned:
        values = {name: (("k", "feature") if name == "coef" else "k", _of_path(one, name)) for name in PATH}
        part = xr.Dataset(values, coords={"k": one.sizes, "feature": features})
        parts.append(part.assign(selected=("k", one.sizes == one.sizes[one.size]), alpha=one.alpha))
    found = _joined(parts, names, kind)
    for name, (long_name, description) in PATH.items():
        found[name].attrs = {"long_name": long_name, "description": description}
    return found


def _of_path(one: LearnedRanking, name: str) -> np.ndarray:
    return one.path if name == "coef" else getattr(one, name)


def features_dataset(
    learned: Sequence[LearnedRanking], names: Sequence[str], features: Any, kind: str
) -> xr.Dataset:
    """What each feature does in the chosen ranking, and by itself."""
    parts = []
    for one in learned:
        # The variance that is told is the sum of both classes': their mean has one standard deviation.
        deviation = np.where(np.isfinite(one.deviation), one.deviation, 0) / np.sqrt(2)
        values = {
            "coef": one.coef,
            "coef_scaled": one.coef * deviation,
            "selected": one.coef != 0,
            "stability": one.stability,
            "auc_alone": one.alone,
            "mean_positive": one.mean[1],
            "mean_negative": one.mean[0],
        }
        part = xr.Dataset({name: ("feature", array) for name, array in values.items()})
        scalars = {
            "k": one.sizes[one.size],
            "alpha": one.alpha,
            "auc": one.cv_auc,
            "auc_se": one.cv_auc_se,
            "auc_bound": one.auc_bound[one.size],
            "auc_binormal": one.auc_binormal[one.size],
            "objective": one.objective[one.size],
            "intercept": one.intercept,
            "weight_positive": one.weight[1],
            "weight_negative": one.weight[0],
        }
        parts.append(part.assign(scalars).assign_coords(feature=features))
    found = _joined(parts, names, kind)
    for name, (long_name, description) in FEATURES.items():
        found[name].attrs = {"long_name": long_name, "description": description}
    found["auc"].attrs = {
        "long_name": "held-out AUC",
        "description": "mean over folds of the ranking that is chosen without the fold's rows; NaN without "
        "cross-validation",
    }
    return found


def _joined(parts: list[xr.Dataset], names: Sequence[str], kind: str) -> xr.Dataset:
    if kind == "binary":
        return parts[0]
    contrast = xr.DataArray(list(names), dims="contrast", name="contrast")
    return xr.concat(parts, contrast, join="outer", combine_attrs="drop")


def attributes(parameters: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Version, citation, parameters and seed of a result."""
    from scaleshift import __version__

    plain = {
        name: value if isinstance(value, str | None) else repr(value) for name, value in parameters.items()
    }
    return {
        "scaleshift_version": __version__,
        "method": "SparseAUC",
        "citation": CITATION,
        "parameters": json.dumps(plain),
        **more,
    }
