"""To which class does one cell of a shifted sample belong?  Posteriors under the sample's proportions."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from sklearn.utils.validation import check_is_fitted

from scaleshift.blocks import passes
from scaleshift.blocks.block import Block
from scaleshift.errors import DataError
from scaleshift.quantify.learned import unknown_name
from scaleshift.quantify.scores import UNKNOWN_DENSITY, ClassScores, class_scores


def posterior(model: Any, X: Any, proportion: xr.Dataset | None = None, sample: Any = None) -> xr.DataArray:
    """Probability of each class for every cell of unlabelled samples: see `scaleshift.DFM.posterior`."""
    check_is_fitted(model, "source_")
    if proportion is None:
        proportion = model.predict(X, sample)
    rows = model._rows(X, sample).only("sample")
    scores = class_scores(model)
    prior = _prior(model, scores, proportion, rows.categories("sample"))
    names = model.labels_.tolist()
    if prior.shape[1] > len(names):
        names.append(unknown_name(model.labels_))
    found = passes.map_rows(posterior_rows, rows, len(names), scores=scores, prior=prior)
    attributes = {
        "long_name": "posterior",
        "units": "1",
        "description": "probability that the cell belongs to the class, under its sample's proportions",
    }
    label = np.array(names) if len({type(name) for name in names}) == 1 else np.array(names, dtype=object)
    return xr.DataArray(found, dims=("cell", "label"), coords={"label": label}, attrs=attributes)


def posterior_rows(block: Block, scores: ClassScores, prior: np.ndarray) -> np.ndarray:
    """Kernel of the posteriors: prior times density, made to add up to one.

    A cell where nothing has any density tells nothing: its posterior is the prior.
    """
    joint = prior[block.columns["sample"]]
    density = scores(block.x)
    total = (joint[:, : density.shape[1]] * density).sum(axis=1) + joint[:, density.shape[1] :].sum(axis=1)
    told = total > 0
    joint[told, : density.shape[1]] *= density[told]
    sums = joint.sum(axis=1, keepdims=True)
    return np.divide(joint, sums, out=np.full_like(joint, np.nan), where=sums > 0)


def _prior(model: Any, scores: ClassScores, result: xr.Dataset, samples: np.ndarray) -> np.ndarray:
    """What the densities of a sample's cells are multiplied with, (n_samples, n_labels or one more).

    Of the unknown population nothing is known but its share: the last column is the share times a density
    that is the same everywhere.
    """
    missing = [str(name) for name in samples if name not in result.indexes["sample"]]
    if missing:
        raise DataError(
            f"the proportions lack the sample(s) {', '.join(missing[:8])}: pass what predict gave for X, or "
            "proportion=None, which predicts first"
        )
    lacking = [str(name) for name in model.labels_ if name not in result.indexes["label"]]
    if lacking:
        raise DataError(f"the proportions lack the label(s) {', '.join(lacking)}: they are of another model")
    found = result.sel(sample=samples)
    share = np.maximum(np.nan_to_num(found["proportion"].sel(label=model.labels_).values), 0)
    if not getattr(model, "soft", False) or scores.typical is None:
        return share
    unknown, known = found["unknown"].values, share.sum(axis=1)
    usual = np.divide(share @ scores.typical, known, out=np.ones(len(known)), where=known > 0)
    return np.column_stack([share, UNKNOWN_DENSITY * usual * np.nan_to_num(unknown)])
