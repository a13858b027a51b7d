"""What is told of a quantifier: in words what it has learned, and beside its answers how they came about."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from scaleshift.blocks.sizes import count
from scaleshift.cells.problem import several
from scaleshift.quantify import learned, remarks
from scaleshift.quantify.baseline import Baseline
from scaleshift.quantify.flags import flag

if TYPE_CHECKING:
    from scaleshift.fitted import Facts
    from scaleshift.quantify.base import Quantifier


def source(model: Any) -> Facts:
    """Rows, samples, labels and markers that any quantifier has learned from."""
    rows = count(int(model.class_counts_.sum()), "labelled row", "labelled rows")
    samples = count(len(model.source_samples_), "sample", "samples")
    left_out = f", {count(model.n_invalid_, 'row', 'rows')} left out" if model.n_invalid_ else ""
    labels = zip(model.labels_.tolist(), model.class_counts_.tolist(), strict=True)
    return {
        "learned from": f"{rows} of {samples}{left_out}",
        "labels": {str(label): f"{n:,}" for label, n in labels},
        "markers": markers(model.markers_, model.n_features_in_),
    }


def markers(names: tuple[str, ...] | None, n: int) -> str:
    """How many, and the first names.

    Examples
    --------
    >>> markers(("CD3", "CD4"), 2), markers(None, 8)
    ('2: CD3, CD4', '8')
    """
    return f"{n}: {several(names)}" if names else str(n)


def facts(model: Quantifier) -> Facts:
    """What a quantifier has learned from its source."""
    found = source(model)
    found["features"] = repr(model.embedding_)
    if np.isfinite(model.delta_min_):
        found["told apart"] = f"delta_min {model.delta_min_:.2g} (0: not at all)"
    sets = learned.traded(model.confounded_, model.labels_, model.soft)
    if sets:
        found["not told apart"] = "; ".join(" and ".join(map(str, names)) for names in sets)
    return {**found, "seed": str(model.seed_)}


def flags(
    model: Quantifier, answers: dict[str, np.ndarray], unknown: np.ndarray, shares: np.ndarray
) -> list[str]:
    """What makes each sample's answer doubtful."""
    usual = Baseline(model.unknown_baseline_, model.misfit_baseline_)
    always = remarks.source_reasons(model.labels_, model.class_counts_)
    own = remarks.sample_reasons(answers, unknown, usual)
    names = [*model.labels_[model.class_counts_ > 0], learned.unknown_name(model.labels_)]
    sets = learned.traded(model.confounded_, model.labels_, model.soft)
    of_labels = remarks.label_reasons(names, sets, shares, answers["n_cells"])
    return [flag([*mine, *theirs, *always]) for mine, theirs in zip(own, of_labels, strict=True)]


def attributes(model: Quantifier) -> dict[str, Any]:
    """Attributes of a result."""
    return {
        "method": model.METHOD,
        "citation": model.CITATION,
        "parameters": json.dumps(model.get_params(), default=str),
        "seed": model.seed_,
        "bandwidth": model.bandwidth_,
        "delta_min": model.delta_min_,
        "lambda_min": model.lambda_min_,
        "misfit_baseline": model.misfit_baseline_,
        "resampled": learned.resampled(model.n_bootstrap, model.resample, model.source_),
        "source_samples": json.dumps(model.source_samples_),
    }
