"""What is wrong with a sample?  Markers that moved, classes moved back, where its unknown cells are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

import scaleshift
from scaleshift.blocks import blas, passes
from scaleshift.blocks.block import Rows
from scaleshift.errors import DataError
from scaleshift.quantify.alignment import Aligned, KnownClasses, align, known_classes, unknown_weights
from scaleshift.quantify.features import ExplicitEmbedding
from scaleshift.quantify.learned import check_fitted
from scaleshift.quantify.result import described

DRAWN = 2_000  # cells of a sample
SAMPLES_AT_A_TIME = 200  # drawn in one pass: the driver holds 400 000 cells at most
FEW = 50  # cells: fewer tell nothing
LIMIT = 0.05  # of misfit and unknown share: more than that is wrong
EXPLAINED = 0.35  # of the misfit left: the moves explain the rest
MOVED = 0.4  # within-class sd, of one marker: the sample is shifted
SHOWN = 3  # names of markers

SAMPLE, MARKER, LABEL = ("sample",), ("sample", "marker"), ("label", "marker")

#: name -> (dimensions, long_name, description)
VARIABLES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "verdict": (SAMPLE, "what is wrong", "in words: see scaleshift.quantify.diagnose"),
    "n_cells": (SAMPLE, "cells looked at", "drawn at random from the sample"),
    "distance": (SAMPLE, "distance to the best mixture", "as predict gives it, less what noise alone adds"),
    "distance_recentred": (SAMPLE, "distance once classes are moved back", "not above distance"),
    "misfit": (SAMPLE, "relative misfit", "distance over the norm of the sample's embedding"),
    "misfit_recentred": (SAMPLE, "relative misfit once classes are moved back", "not above misfit"),
    "unknown": (SAMPLE, "unknown share", "of soft matching, whatever the model's own setting"),
    "unknown_recentred": (SAMPLE, "unknown share once classes are moved back", "of soft matching"),
    "moved": (("sample", "rank"), "markers that moved most", "their names, the farthest first"),
    "shift": (MARKER, "shift of a marker", "mean over the cells of known classes, in within-class sd"),
    "class_shift": (
        ("sample", "label", "marker"),
        "shift of a class",
        "of its cells in the sample from those in the source, in within-class sd; those of few cells are "
        "drawn towards 0; NaN where no cells were found near",
    ),
    "n_unknown": (SAMPLE, "unknown cells looked at", "sum of their weights: what unknown_profile rests on"),
    "unknown_profile": (
        MARKER,
        "mean of the unknown cells",
        "in the units of X; NaN where fewer than 5 were found",
    ),
    "class_profile": (LABEL, "mean of the class in the source", "in the units of X"),
    "class_sd": (LABEL, "within-class sd in the source", "in the units of X"),
    "class_counts": (("label",), "source cells", "what class_profile rests on"),
}
FEW_UNKNOWN = 5  # cells: fewer have no profile


def diagnose(model: Any, X: Any, sample: Any = None) -> xr.Dataset:
    """Which markers moved, is it a batch shift or an unknown population, and where are the unknown cells?

    Up to 2 000 cells of each sample are drawn. Each is given to its nearest class under the estimated
    proportions, each class is moved back to where it lies in the source, and the sample is matched again.
    What that explains is a batch shift, the rest are unknown cells.

    Parameters
    ----------
    model : DFM
        Fitted, with Fourier features or landmarks.
    X : array-like, shape (m, n_markers), or a cells dataset
        The targets, as for `predict`.
    sample : array-like, shape (m,), optional
        Which sample a row belongs to; without it an array is one sample named "all".

    Returns
    -------
    xarray.Dataset
        Dimensions (sample, label, marker, rank); every variable has a description. ``verdict`` is

        - "fits": misfit and unknown share are below 5 %.
        - "batch shift": the classes moved, which explains the unknown share, and the misfit at least in part.
        - "unknown population": cells that belong to no class, and the classes did not move.
        - "both": the classes moved (a marker by .4 within-class sd), and unknown cells remain.
        - "unclear": a misfit that is neither; a class changed its shape, or unknown cells resemble one.
        - "too few cells": fewer than 50.

    Raises
    ------
    DataError
        If the model has other features, a marker is missing, or rows are not finite (unless
        the model has ``invalid="drop"``).

    Notes
    -----
    One pass over X for each 200 samples. An unknown population that overlaps with a class looks as if that
    class had moved: read ``class_shift`` beside the verdict. `unknown_profile` weighs cells by
    max(0, 1 - sum_i a_i p_i(x) / q(x)), with kernel densities of the classes and of the sample itself once
    the classes are moved back, or by their posterior of being unknown, as in `DFM.posterior`, if more.

    Examples
    --------
    >>> from scaleshift import DFM
    >>> rng = np.random.default_rng(0)
    >>> y = rng.choice(["a", "b"], 4000)
    >>> x = np.where(y == "a", 0, 6)[:, None] + rng.normal(size=(4000, 3))
    >>> model = DFM(random_state=0).fit(x, y)
    >>> shifted = x[:1000] + np.array([0, 1, 0])
    >>> found = diagnose(model, shifted)
    >>> found.verdict.item(), found.moved.values[0, 0].item()
    ('batch shift', 'column 1')
    """
    check_fitted(model, "diagnose")
    embedding = model.embedding_
    by_classifier = hasattr(embedding, "log_posterior")
    if not isinstance(embedding, ExplicitEmbedding) or by_classifier or not embedding.is_density:
        raise DataError(
            "diagnose needs feature vectors of a kernel that is a density, which this model does not have: "
            "fit a DFM with features='landmarks' or 'fourier'"
        )
    rows = model._rows(X, sample)
    known = known_classes(model)
    result = _empty(model, rows, known)
    with blas.one_thread():
        for code, x in _draws(rows, model.seed_):
            result["n_cells"][code] = len(x)
            if len(x) >= FEW:
                for name, value in _numbers(known, align(known, x), x, model).items():
                    result[name][code] = value
    return described(_dataset(model, rows, result), X)


def _draws(rows: Rows, seed: int) -> Iterator[tuple[int, np.ndarray]]:
    """Code and drawn cells of every sample that has any: one pass for some samples at a time."""
    n_samples = len(rows.categories("sample"))
    for first in range(0, n_samples, SAMPLES_AT_A_TIME):
        wanted = np.zeros(n_samples, np.int64)
        wanted[first : first + SAMPLES_AT_A_TIME] = DRAWN
        drawn = passes.sample(rows.only("sample"), wanted, by="sample", seed=seed, stream="diagnose")
        codes, starts = np.unique(drawn["code"], return_index=True)
        for code, start, stop in zip(codes, starts, [*starts[1:], len(drawn["x"])], strict=False):
            yield int(code), drawn["x"][start:stop].astype(np.float64)


def _numbers(known: KnownClasses, found: Aligned, x: np.ndarray, model: Any) -> dict[str, Any]:
    """The variables of one sample."""
    before, after = found.before, found.after
    weight = unknown_weights(known, after)
    n_unknown = weight.sum()
    by_class = np.full((len(model.labels_), x.shape[1]), np.nan)
    by_class[model.class_counts_ > 0] = found.moved
    return {
        "verdict": verdict(found, n_unknown / len(x)),
        "distance": before.distance,
        "distance_recentred": min(after.distance, before.distance),
        "misfit": before.misfit,
        "misfit_recentred": after.misfit,
        "unknown": before.unknown,
        "unknown_recentred": after.unknown,
        "moved": np.argsort(-np.abs(found.shift), kind="stable")[:SHOWN],
        "shift": found.shift,
        "class_shift": by_class,
        "n_unknown": n_unknown,
        "unknown_profile": weight @ x / n_unknown if n_unknown >= FEW_UNKNOWN else np.nan,
    }


def verdict(found: Aligned, unknown: float) -> str:
    """What is wrong with a sample, in words; `unknown` is the mean weight of its cells as unknown ones."""
    before, after = found.before, found.after
    if max(before.misfit, before.unknown) <= LIMIT:
        return "fits"
    moved = np.abs(found.shift).max() > MOVED
    if after.unknown > LIMIT:
        return "both" if moved else "unknown population"
    if moved or after.misfit <= max(LIMIT, EXPLAINED * before.misfit):
        return "batch shift"
    return "unknown population" if unknown > LIMIT else "unclear"


def _empty(model: Any, rows: Rows, known: KnownClasses) -> dict[str, np.ndarray]:
    """The variables before any sample was looked at."""
    present, d = model.class_counts_ > 0, model.n_features_in_
    sizes = {
        "sample": len(rows.categories("sample")),
        "label": len(present),
        "marker": d,
        "rank": min(SHOWN, d),
    }
    result = {name: np.full([sizes[dim] for dim in dims], np.nan) for name, (dims, *_) in VARIABLES.items()}
    result["verdict"] = np.full(sizes["sample"], "too few cells", dtype=object)
    result["n_cells"] = np.zeros(sizes["sample"], np.int64)
    result["class_profile"][present], result["class_sd"][present] = known.centres, known.spreads
    result["class_counts"] = model.class_counts_
    return result


def _dataset(model: Any, rows: Rows, result: dict[str, np.ndarray]) -> xr.Dataset:
    """The variables with their names and descriptions."""
    markers = np.array(model.markers_ or [f"column {i}" for i in range(model.n_features_in_)], dtype=str)
    rank = result["moved"]
    told = np.isfinite(rank)
    result["moved"] = np.where(told, markers[np.where(told, rank, 0).astype(np.int64)], "")
    result["verdict"] = result["verdict"].astype(str)
    data = {}
    for name, (dims, long_name, description) in VARIABLES.items():
        data[name] = (dims, result[name], {"long_name": long_name, "description": description})
    coords = {
        "sample": rows.categories("sample"),
        "label": model.labels_,
        "marker": markers,
        "rank": np.arange(1, rank.shape[1] + 1),
    }
    attributes = {
        "scaleshift_version": scaleshift.__version__,
        "method": "class-wise re-centring",
        "parameters": json.dumps(model.get_params(), default=str),
        "seed": model.seed_,
    }
    return xr.Dataset(data, coords=coords, attrs=attributes)
