"""What is told of the default procedure: in words what it has learned, and how its answers came about."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from scaleshift.blocks.sizes import count
from scaleshift.quantify import remarks
from scaleshift.quantify.baseline import Baseline
from scaleshift.quantify.flags import flag
from scaleshift.quantify.open_set import diagnostics
from scaleshift.quantify.telling import source

if TYPE_CHECKING:
    from scaleshift.fitted import Facts
    from scaleshift.quantify.open_set.open_set import OpenSetQuantifier

NO_BASELINE = Baseline(np.nan, np.nan)  # what is usual is judged here otherwise
CITATION = "scaleshift's default procedure: rejection, class alignment and the median of three estimators"


def facts(model: OpenSetQuantifier) -> Facts:
    """What it has learned from its source."""
    found = source(model)
    if model.n_unknown_:
        found["of no known class"] = f"{count(model.n_unknown_, 'row', 'rows')}, learned as one more class"
    found["estimator"] = model.estimator_
    errors = model.leave_one_out_[model.estimator_]
    if errors:
        found["errors"] = f"{min(errors):.2g} to {max(errors):.2g} (L1) on labelled samples left out in turn"
    if model.unknown:
        found["unknown"] = f"told where more than {model.gate_:.2g} of a sample's cells are like no class"
    return {**found, "seed": str(model.seed_)}


def flags(
    model: OpenSetQuantifier,
    numbers: dict[str, np.ndarray],
    told: dict[str, np.ndarray],
    shares: np.ndarray,
) -> list[str]:
    """What makes each sample's answer doubtful."""
    always = remarks.source_reasons(model.labels_, model.class_counts_)
    nothing = np.full(len(shares), np.nan)
    own = remarks.sample_reasons(
        {**numbers, "p_value": nothing, "misfit": nothing}, np.full((len(shares), 3), np.nan), NO_BASELINE
    )
    doubts = diagnostics.reasons(told["disagreement"], told["novel"], model.gate_)
    names = [*model.labels_[model.class_counts_ > 0], "unknown"]
    of_labels = remarks.label_reasons(names, [], shares, numbers["n_cells"])
    each = zip(own, doubts, of_labels, strict=True)
    return [flag([*mine, *doubt, *theirs, *always]) for mine, doubt, theirs in each]


def attributes(model: OpenSetQuantifier) -> dict[str, Any]:
    """Attributes of a result."""
    return {
        "method": "open-set quantification",
        "citation": CITATION,
        "parameters": json.dumps(model.get_params(), default=str),
        "seed": model.seed_,
        "estimator": model.estimator_,
        "gate": model.gate_ if model.unknown else np.nan,
        "leave_one_out": json.dumps(model.leave_one_out_),
        "resampled": "cells" if model.n_bootstrap and len(model.counts_.predicted) > 1 else "none",
        "source_samples": json.dumps(model.source_samples_),
    }
