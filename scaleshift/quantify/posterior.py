"""To which class does one cell of a shifted sample belong?  Posteriors under the sample's proportions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from sklearn.utils.validation import check_is_fitted

from scaleshift.blocks import passes
from scaleshift.blocks.block import Block
from scaleshift.errors import DataError
from scaleshift.quantify.learned import unknown_name
from scaleshift.quantify.scores import UNKNOWN_DENSITY, ClassScores, class_scores, posteriors, usual_density


def posterior(model: Any, X: Any, proportion: xr.Dataset | None = None, sample: Any = None) -> xr.DataArray:
    """Probability of each class for every cell of unlabelled samples: see `scaleshift.DFM.posterior`."""
    check_is_fitted(model, "source_")
    if proportion is None:
        proportion = model.predict(X, sample)
    rows = model._rows(X, sample).only("sample")
    scores = class_scores(model)
    prior, unknown_density = _prior(model, scores, proportion, rows.categories("sample"))
    names = model.labels_.tolist()
    if unknown_density is not None:
        names.append(unknown_name(model.labels_))
    parameters = {"scores": scores, "prior": prior, "unknown_density": unknown_density}
    found = passes.map_rows(posterior_rows, rows, len(names), **parameters)
    return by_cell(found, names)


def by_cell(found: Any, names: list[Any]) -> xr.DataArray:
    """Posteriors as they are handed out: (cell, label), described."""
    attributes = {
        "long_name": "posterior",
        "units": "1",
        "description": "probability that the cell belongs to the class, under its sample's proportions",
    }
    label = np.array(names) if len({type(name) for name in names}) == 1 else np.array(names, dtype=object)
    return xr.DataArray(found, {"label": label}, ("cell", "label"), name="posterior", attrs=attributes)


def posterior_rows(
    block: Block, scores: ClassScores, prior: np.ndarray, unknown_density: np.ndarray | None
) -> np.ndarray:
    """Kernel of the pass: posteriors under the proportions of each row's sample."""
    sample = block.columns["sample"]
    density = scores(block.x)
    if unknown_density is not None:
        density = np.column_stack([density, unknown_density[sample]])
    return posteriors(density, prior[sample], scores.power)


def _prior(
    model: Any, scores: ClassScores, result: xr.Dataset, samples: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """Proportions of each sample, (n_samples, n_labels); with unknown cells one more, and their density.

    Of the unknown population nothing is known but its share: the same density, (n_samples,), everywhere.
    """
    found, share = of_samples(result, samples, model.labels_)
    if not model.soft or scores.typical is None:
        return share, None
    prior = np.column_stack([share, np.nan_to_num(found["unknown"].values)])
    return prior, UNKNOWN_DENSITY * usual_density(share, scores.typical)


def of_samples(result: xr.Dataset, samples: np.ndarray, labels: np.ndarray) -> tuple[xr.Dataset, np.ndarray]:
    """What was predicted for some samples, and their proportions, (n_samples, n_labels)."""
    if not isinstance(result, xr.Dataset) or not {"proportion", "unknown"} <= set(result):
        raise DataError(
            f"proportion is of type {type(result).__name__}, without proportions and unknown shares: pass "
            "what predict gave for X, or None, which predicts first"
        )
    missing = [str(name) for name in samples if name not in result.indexes["sample"]]
    if missing:
        raise DataError(
            f"the proportions lack the sample(s) {', '.join(missing[:8])}: pass what predict gave for X, or "
            "proportion=None, which predicts first"
        )
    lacking = [str(name) for name in labels if name not in result.indexes["label"]]
    if lacking:
        raise DataError(f"the proportions lack the label(s) {', '.join(lacking)}: they are of another model")
    # By position: xarray takes a list of bools for a mask.
    found = result.isel(sample=result.indexes["sample"].get_indexer(pd.Index(samples)))
    share = found["proportion"].isel(label=result.indexes["label"].get_indexer(pd.Index(labels)))
    return found, np.maximum(np.nan_to_num(share.values), 0)
