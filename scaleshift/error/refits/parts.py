"""What do the fits to the real outcomes tell?  A task a fold, and one of all rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from scaleshift.blocks.block import Block
from scaleshift.blocks.buckets import Buckets
from scaleshift.error.losses import Loss, observed_loss
from scaleshift.error.refits.estimators import fitted, settled
from scaleshift.error.refits.worlds import deviances, few_residuals

ALL = -1  # key of the fit to all rows


def outcome_of(block: Block) -> tuple[np.ndarray, np.ndarray]:
    """Outcomes of a block's rows, and which have one."""
    if "outcome" in block.columns:
        y = np.asarray(block.columns["outcome"], np.float64)
        return y, np.isfinite(y)
    y = block.columns["label"].astype(np.int64)
    return y, y >= 0


def divided(name: str, block: Block, buckets: Buckets | None) -> Block:
    """Rows that have an outcome, with their fold."""
    y, known = outcome_of(block)
    fold = np.zeros(len(y), np.int64) if buckets is None else np.asarray(buckets(block), np.int64)
    return block._replace(columns={"y": y, "fold": fold}, valid=block.valid & known)


def fit_part(
    tables: dict[str, dict[str, np.ndarray]],
    key: int,
    estimator: Any,
    classes: np.ndarray | None,
    loss: Loss,
) -> dict[str, np.ndarray]:
    """Fit without a fold and ask the fold; or fit to all rows, and ask these."""
    table = tables["source"]
    x, y, asked = table["x"], table["y"], np.ones(len(table["y"]), bool)
    outcomes = y if classes is None else classes[y]
    if key == ALL:
        model = fitted(estimator, x, outcomes)
    else:
        asked = table["fold"] == key
        model = fitted(estimator, x[~asked], outcomes[~asked])
    prediction = settled(model, classes)(x[asked])
    losses = observed_loss(loss, y[asked], prediction, classes)
    held = np.empty((), object)
    held[()] = model
    found = {"model": held, "n": np.array(len(losses)), "loss": np.array(losses.sum())}
    if classes is not None and key == ALL:  # temperatures are of rows held out
        return found
    if classes is not None:
        return {**found, "deviances": deviances(prediction, y[asked])}
    return {**found, "residuals": few_residuals(y[asked] - prediction)}
