"""What do samples without unknown cells look like to the model?  Each source sample matched by the others.

Samples differ from each other by more than the noise of their cells. How much unknown share and misfit a
labelled sample shows when the model was learned from the others is what a new sample must exceed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scaleshift.quantify.features import Embedding, ExplicitEmbedding
from scaleshift.quantify.source import SourceState
from scaleshift.solve.simplex import simplex_least_squares

DEFAULT = 0.05  # of both, where the source is one sample
QUANTILE = 0.95
LEAST = 0.01  # of both: where source samples agree to the noise of their cells
FEW_CELLS = 50  # a smaller sample says nothing


class Baseline(NamedTuple):
    """What is usual for samples of known classes only."""

    unknown: float
    misfit: float


def baseline(source: SourceState, embedding: Embedding) -> Baseline:
    """The 95 % quantiles of unknown share and misfit, each source sample left out in turn.

    Of a left-out sample the labelled cells count whose class the other samples have too. .01 at least; .05
    where there are no two samples, and for the exact kernel, which keeps no embedding by sample.
    """
    found = []
    if isinstance(embedding, ExplicitEmbedding):
        sums = embedding.features(source.part_sums)  # (n_labels, n_parts, n_features)
        found = [_left_out(part, sums, source.part_counts, embedding.n_matching) for part in _usable(source)]
    found = [values for values in found if np.isfinite(values).all()]
    if not found:
        return Baseline(DEFAULT, DEFAULT)
    unknown, misfit = np.maximum(np.quantile(np.array(found), QUANTILE, axis=0), LEAST)
    return Baseline(float(unknown), float(misfit))


def _usable(source: SourceState) -> np.ndarray:
    """Parts with cells enough, if there are two."""
    parts = np.flatnonzero(source.part_counts.sum(axis=0) >= FEW_CELLS)
    return parts if parts.size > 1 else parts[:0]


def _left_out(part: int, sums: np.ndarray, counts: np.ndarray, n_matching: int) -> tuple[float, float]:
    """Unknown share and misfit of one sample, matched by all others."""
    rest, n_rest = sums.sum(axis=1) - sums[:, part], counts.sum(axis=1) - counts[:, part]
    known = n_rest > 0.5
    n = counts[known, part].sum()
    if n < FEW_CELLS:
        return np.nan, np.nan
    means = rest[known] / n_rest[known, None]
    target = sums[known, part].sum(axis=0) / n
    matched = means[:, :n_matching]
    soft = simplex_least_squares(matched @ matched.T, matched @ target[:n_matching], soft=True)
    residual = target - simplex_least_squares(means @ means.T, means @ target) @ means
    return 1 - soft.sum(), float(np.sqrt(residual @ residual / (target @ target)))
