"""What follows from the source's sums?  How well classes are told apart, and the matcher for new samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from scaleshift.blocks.invalid import NO_SOURCE
from scaleshift.blocks.treatment import check_treatment
from scaleshift.errors import DataError
from scaleshift.quantify import geometry
from scaleshift.quantify.baseline import baseline
from scaleshift.quantify.features import Embedding, ExplicitEmbedding
from scaleshift.quantify.matching import Matcher
from scaleshift.quantify.mixtures import Mixture, Resampled, redrawn
from scaleshift.quantify.shift_test import shift_test
from scaleshift.quantify.source import SourceState

ENOUGH_SAMPLES = 5  # of the source, to draw samples in place of cells


def attributes(source: SourceState, embedding: Embedding, soft: bool) -> dict[str, Any]:
    """Fitted attributes of a quantifier, as its class documents them."""
    counts = source.class_counts
    present = counts > 0
    if not present.any():
        raise DataError(NO_SOURCE)
    means = source.means[present]
    found = embedding.gram(means)
    if not np.isfinite(found).all():
        raise DataError("the class embeddings overflow: bring the markers to a scale near 1")
    gram = np.full((len(counts), len(counts)), np.nan)
    gram[np.ix_(present, present)] = found
    several = counts[present] > 1  # one cell has no debiased norm
    n = counts[present][several]
    own = embedding.self_products(means)[several]
    clean = geometry.debiased(found[np.ix_(several, several)], n, own)
    usual = baseline(source, embedding)
    names = source.labels[present][several].tolist()
    unknown = unknown_name(source.labels) if soft else None
    return {
        "labels_": source.labels,
        "class_counts_": counts,
        "source_samples_": list(source.samples),
        "n_invalid_": int(source.n_invalid.sum()),
        "gram_": gram,
        "delta_min_": geometry.delta_min(clean),
        "lambda_min_": geometry.lambda_min(clean),
        "delta_min_plain_": geometry.delta_min(found),
        "lambda_min_plain_": geometry.lambda_min(found),
        "confounded_": _confounded(clean, n, names, own, unknown),
        "unknown_baseline_": usual.unknown,
        "misfit_baseline_": usual.misfit,
    }


def _confounded(
    gram: np.ndarray, counts: np.ndarray, names: list[Any], own: np.ndarray, unknown: str | None
) -> list[list[Any]]:
    """Names of the classes of each set that cannot be told apart; `unknown` is the zero vector."""
    if unknown is not None:
        gram, counts, own = np.pad(gram, (0, 1)), np.append(counts, np.inf), np.append(own, 0)
        names = [*names, unknown]
    return [[names[i] for i in found] for found in geometry.confounded(gram, counts, own)]


def unknown_name(labels: Iterable[Any]) -> str:
    """What the zero vector is called in a set of classes: unlike any of these."""
    return "unknown cells" if "unknown" in [str(label) for label in labels] else "unknown"


def traded(sets: list[list[Any]], labels: np.ndarray, soft: bool) -> list[list[Any]]:
    """Those of the confounded sets that trade shares: hard matching has no unknown share.

    Examples
    --------
    >>> traded([["a", "b", "unknown"], ["c", "unknown"]], np.array(["a", "b", "c"]), soft=False)
    [['a', 'b']]
    """
    if soft:
        return sets
    unknown = unknown_name(labels)
    hard = [[name for name in found if name != unknown] for found in sets]
    return [found for found in hard if len(found) > 1]


def check_fitted(model: Any, what: str) -> None:
    """Refuse for `what` a model that is not fitted, or has no class embeddings.

    Raises
    ------
    sklearn.exceptions.NotFittedError
    DataError
    """
    if not hasattr(model, "_feature_map"):
        raise DataError(f"{what} needs a DFM: {type(model).__name__} has no embeddings of its classes")
    check_is_fitted(model, "source_")


def draws_samples(resample: str | None, source: SourceState) -> bool:
    """Whether the intervals come from drawing source samples; else from drawing cells."""
    n = source.part_counts.shape[1]
    if resample == "samples" and n < 2:
        raise DataError(
            "resample='samples' needs a source of several samples with labels, this one has "
            f"{max(n, 1)}: pass sample, or resample='cells'"
        )
    return resample == "samples" or (resample is None and n >= ENOUGH_SAMPLES)


def resampled(n_bootstrap: int, resample: str | None, source: SourceState) -> str:
    """What of the source the intervals draw again: "samples", "cells", or "none" where there are none."""
    if not n_bootstrap or source.counts.shape[1] == 1:
        return "none"
    return "samples" if draws_samples(resample, source) else "cells"


def check_mergeable(a: Any, b: Any) -> None:
    """Raise a DataError unless the states of two fitted quantifiers can be added."""
    if not isinstance(a.embedding_, ExplicitEmbedding):
        raise DataError(
            "models of an exact kernel cannot be merged: use 'landmarks', 'fourier' or 'sliced-energy'"
        )
    if not a.embedding_.same_as(b.embedding_):
        raise DataError(
            "the models have different feature maps: fit the other one with features=model.embedding_"
        )
    if a.markers_ != b.markers_:
        raise DataError(
            f"the models have different markers, {a.markers_} and {b.markers_}: fit both on the same"
        )
    check_treatment(a.treatment_, b.treatment_, a.markers_)
    if a.source_.counts.shape[1] != b.source_.counts.shape[1]:
        raise DataError("one model has folds, the other not: fit both with n_bootstrap > 0, or both with 0")


def matcher(
    source: SourceState,
    embedding: Embedding,
    mixture: Callable[[Embedding, np.ndarray, Resampled | None], Mixture],
    *,
    sets: list[list[Any]],
    n_bootstrap: int,
    level: float,
    resample: str | None,
    seed: int,
    bounded: bool = True,
) -> Matcher:
    """What answers for the samples, of the classes that have rows."""
    present = source.class_counts > 0
    means = source.means[present]
    names = [*source.labels[present].tolist(), unknown_name(source.labels)]
    again = test = None
    if isinstance(embedding, ExplicitEmbedding):
        sums, counts = source.sums[present], source.counts[present]
        if not n_bootstrap:  # folds that the source has all the same are not used
            sums, counts = sums.sum(axis=1, keepdims=True), counts.sum(axis=1, keepdims=True)
        test = shift_test(embedding.features(means), embedding.features(sums), counts, seed)
        if n_bootstrap:
            if draws_samples(resample, source):
                sums, counts = source.by_sample()
                sums, counts = sums[present], counts[present]
            again = redrawn(embedding, sums, counts, n_bootstrap, seed)
    in_sets = np.array([[name in found for name in names] for found in sets], bool)
    return Matcher(
        embedding,
        mixture(embedding, means, again),
        in_sets.reshape(len(sets), len(names)),
        level,
        seed,
        test,
        bounded,
    )
