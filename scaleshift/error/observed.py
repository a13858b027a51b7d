"""What is a model's error where outcomes are known after all?  Counted, to hold the expected one against."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from scaleshift.blocks import passes
from scaleshift.blocks.block import Block
from scaleshift.error.family import Family
from scaleshift.error.job import labelled
from scaleshift.error.losses import Loss, observed_loss
from scaleshift.kernels.reference import to_numpy


def observed(model: Any, X: Any, y: Any) -> xr.Dataset:
    """Mean loss of the model of all rows, and its standard error: one pass.

    Parameters
    ----------
    model : PredictionError
        Fitted.
    X : array-like, shape (m, n_features), or a cells dataset
    y : array-like, shape (m,), or None
        Numbers or labels. Labels that the model does not know have the probability 0.

    Returns
    -------
    xarray.Dataset
        error, error_se, n_rows: NaN, NaN and 0 where no outcome is known.
    """
    classes, loss = model.classes_, model.settings_.loss
    rows = labelled(model, X, y).matched(model.markers_, model.n_features_in_, model.treatment_)
    every, code = None, None
    if classes is not None:
        known, here = classes.tolist(), rows.categories("label").tolist()
        extra = [label for label in here if label not in known]
        code = np.array([[*known, *extra].index(label) for label in here], np.int64)
        every = np.array([*known, *extra], classes.dtype if not extra else None)
    layout: dict[str, tuple[int, ...]] = {"n": (), "loss": (), "square": ()}
    told = passes.total(
        observed_leaf, rows, layout, family=model.family_, loss=loss, classes=every, code=code
    )
    n = float(told["n"])
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = told["loss"] / n
        error_se = np.sqrt(np.maximum(told["square"] / n - mean**2, 0) / n)
    found = xr.Dataset({"error": ((), mean), "error_se": ((), error_se), "n_rows": ((), int(n))})
    found["error"].attrs = {
        "long_name": "observed loss",
        "description": "mean over rows whose outcome is known",
    }
    found["error_se"].attrs = {"long_name": "standard error", "description": "as if rows were independent"}
    found["n_rows"].attrs = {"long_name": "rows", "description": "whose outcome is known"}
    return found


def observed_leaf(
    block: Block, family: Family, loss: Loss, classes: np.ndarray | None, code: np.ndarray | None
) -> dict[str, Any]:
    """Sums of one block."""
    if code is None:
        y = np.asarray(block.columns["outcome"], np.float64)
        known = block.valid & np.isfinite(y)
    else:
        label = block.columns["label"]
        known = block.valid & (label >= 0)
        y = code[label]
    if not known.any():
        return {"n": 0, "loss": 0.0, "square": 0.0}
    prediction = family.predict(to_numpy(block.x)[known].astype(np.float64))
    if classes is not None:
        more = np.zeros((len(prediction), len(classes) - prediction.shape[1]))
        prediction = np.concatenate([prediction, more], axis=1)
    losses = observed_loss(loss, y[known], prediction, classes)
    return {"n": known.sum(), "loss": losses.sum(), "square": (losses**2).sum()}
