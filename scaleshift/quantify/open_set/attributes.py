"""What is known after a fit?  Attributes, as the estimator's class documents them."""

from __future__ import annotations

from typing import Any

import numpy as np

from scaleshift.blocks.invalid import NO_SOURCE
from scaleshift.errors import DataError
from scaleshift.quantify.open_set.answers import Counts
from scaleshift.quantify.open_set.estimators import NAMES
from scaleshift.quantify.open_set.learning import Learned
from scaleshift.quantify.open_set.selection import Selection


def classes(labels: np.ndarray, learned: Learned, counts: Counts) -> dict[str, Any]:
    """Labels of the result, and their cells."""
    strata, by_class = learned.strata, counts.predicted.sum(axis=(0, 2)).astype(np.int64)
    class_of = strata.class_of[:-1]
    by_label = np.where(class_of >= 0, by_class[class_of], 0)
    known = (class_of < 0) | (class_of != strata.unknown)
    if not by_label[known].any():
        raise DataError(NO_SOURCE)
    return {
        "source_labels_": labels,
        "labels_": labels[known],
        "class_counts_": by_label[known],
        "n_unknown_": int(by_class[strata.unknown]) if strata.unknown >= 0 else 0,
    }


def selected(selection: Selection) -> dict[str, Any]:
    """Which estimator answers, and what the labelled samples say of all of them."""
    return {
        "estimator_": NAMES[selection.estimator],
        "gate_": selection.gate,
        "leave_one_out_": dict(zip(NAMES.values(), selection.errors.T.tolist(), strict=True)),
    }
