"""What does each variable of a description mean?  Its dimensions, name, units and description."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

import scaleshift

SLICE = ("slice",)
Variables = Mapping[str, tuple[tuple[str, ...], str, str, str]]  # dimensions, long_name, units, description


def dataset(
    variables: Variables, values: Mapping[str, Any], coords: Mapping[str, Any], attributes: Mapping[str, Any]
) -> xr.Dataset:
    """Variables that have values, each with what it means, and the coordinates that these have."""
    data = {}
    for name, (dims, long_name, units, description) in variables.items():
        if name in values:
            attrs = {"long_name": long_name, "description": description}
            data[name] = (dims, np.asarray(values[name]), {"units": units, **attrs} if units else attrs)
    used = {d for dims, *_ in data.values() for d in dims}
    kept = {name: value for name, value in coords.items() if name in used}
    return xr.Dataset(data, kept, {"scaleshift_version": scaleshift.__version__, **attributes})


VARIABLES: Variables = {
    "size": (SLICE, "rows", "rows", "weighted rows that belong to the slice, by their embeddings alone"),
    "share": (SLICE, "share of the rows", "1", "weighted, of the judging rows; of all where none judge"),
    "error_rate": (SLICE, "share of errors", "1", "of the judging rows; NaN without targets or predictions"),
    "error_low": (SLICE, "lower end of the interval", "1", "Wilson interval of the share of errors"),
    "error_high": (SLICE, "upper end of the interval", "1", "Wilson interval of the share of errors"),
    "error_rate_rest": (
        SLICE,
        "share of errors elsewhere",
        "1",
        "of the judging rows of no slice",
    ),
    "excess_errors": (
        SLICE,
        "errors beyond the expected",
        "rows",
        "(error rate - overall error rate) times all rows of the slice",
    ),
    "loss": (SLICE, "mean loss", "1", "of the judging rows"),
    "loss_gap": (
        SLICE,
        "loss beyond the rest's",
        "1",
        "mean loss minus that of the rows of no slice",
    ),
    "p_value": (
        SLICE,
        "p-value",
        "1",
        "one-sided, of the slice being worse than the rest, on judging rows, each counted once: Fisher's "
        "exact test of errors, which is conservative, or Welch's t-test of losses; NaN where nothing can "
        "be tested",
    ),
    "q_value": (SLICE, "false discovery rate", "1", "p-values adjusted by Benjamini and Hochberg"),
    "judging_rows": (SLICE, "rows that judge", "rows", "rows of the slice that were not used to find it"),
    "judging_share": (SLICE, "share of the judging rows", "1", "weighted"),
    "confusion": (
        ("slice", "label", "predicted"),
        "confusion matrix",
        "rows",
        "weighted judging rows by label and predicted label",
    ),
    "difference": (
        ("slice", "feature"),
        "standardised difference",
        "1",
        "mean minus that of the rows outside, over the root of the mean of both variances; of all rows",
    ),
    "overlap": (
        ("slice", "other_slice"),
        "shared rows",
        "1",
        "share of the slice's rows that the other has too",
    ),
    "same_rows_as": (
        SLICE,
        "same rows as",
        "",
        "first slice that has most of its rows; itself where none has",
    ),
    "exemplar": (
        ("slice", "rank"),
        "most typical rows",
        "",
        "absolute numbers of rows, -1 where there are fewer",
    ),
    "component": (SLICE, "component of the mixture", "", "number of the slice's component"),
    "rule": (
        SLICE,
        "rule on metadata",
        "",
        "finds the slice best of all of two questions; empty where none does",
    ),
    "rule_precision": (
        SLICE,
        "precision of the rule",
        "1",
        "share of its rows in the slice; on rows of its own",
    ),
    "rule_coverage": (SLICE, "coverage of the rule", "1", "share of the slice's rows that it finds"),
    "phrase": (("slice", "phrase_rank"), "phrases", "", "those that the slice agrees with best, best first"),
    "phrase_score": (
        ("slice", "phrase_rank"),
        "agreement",
        "1",
        "cosine of the phrase and the slice's mean minus the overall mean, in the space of the embeddings",
    ),
    "overall_error_rate": ((), "share of errors of all judging rows", "1", ""),
    "overall_loss": ((), "mean loss of all judging rows", "1", ""),
    "n_rows": ((), "all rows", "rows", "that have a weight"),
    "n_effective": (
        (),
        "judging rows, effectively",
        "rows",
        "what all judging rows count for, by their weights",
    ),
    "flag": (SLICE, "reasons for caution", "", "joined by '; '; empty if none"),
    "words": (SLICE, "in words", "", "one sentence a slice"),
}
