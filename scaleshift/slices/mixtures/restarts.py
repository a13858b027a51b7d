"""Which mixture fits a sample best?  The best of several that k-means clusters make, climbed in memory."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from scaleshift.blocks import noise
from scaleshift.blocks.block import Block
from scaleshift.kernels.mixture import responsibility_sums
from scaleshift.slices.mixtures.expectation import Fit, Settings, climb, renewed
from scaleshift.slices.mixtures.mixture import maximise
from scaleshift.slices.outcomes import Kind
from scaleshift.slices.prepared import outcomes_of
from scaleshift.slices.sampling import Sample
from scaleshift.slices.survey import MANY_LABELS

# Restarts cluster embeddings alone, or with outcomes as further columns, in units of the embeddings' spread.
OUTCOME_SCALES = (0.0, 1.0, 0.0, 1.0)
KMEANS_STEPS = 20


def fit_sample(
    sample: Sample, kind: Kind, sizes: list[int], covariance_type: str, settings: Settings, seed: int
) -> list[Fit]:
    """The best of several restarts for each number of components, as starts for all rows.

    Restarts of one size climb in the same calls.
    """
    best = []
    for size in sizes:
        starts = [
            _clustered(sample, kind, size, covariance_type, settings.reg_covar, scale, seed + number)
            for number, scale in enumerate(OUTCOME_SCALES)
        ]
        fits = climb(sample.kept, kind, starts, settings)
        best.append(renewed(max(fits, key=lambda fit: fit.lower_bound)))
    return best


def _clustered(
    sample: Sample, kind: Kind, size: int, covariance_type: str, reg_covar: float, scale: float, seed: int
) -> Fit:
    """The mixture that k-means clusters make."""
    block = sample.block
    generator = noise.generator(seed, "restart")
    features = [block.x.astype(np.float64)]
    if scale:
        spread = scale * (np.sqrt(features[0].var(axis=0).sum()) or 1.0)  # of equal embeddings any will do
        features += [spread * part for part in _outcome_features(block, kind)]
    x, random_state = np.concatenate(features, axis=1), int(generator.integers(2**31))
    found = clustered(x, sample.weight, size, max_iter=KMEANS_STEPS, random_state=random_state)
    one_hot = (found.labels_[:, None] == np.arange(size)).astype(np.float64)
    sums = responsibility_sums(block.x, outcomes_of(block, kind), one_hot, covariance_type)
    return Fit(maximise(sums, covariance_type, [size], reg_covar)[0])


def clustered(x: np.ndarray, weight: np.ndarray, size: int, **parameters: Any) -> KMeans:
    """Clusters of rows; some are empty where fewer rows differ, which is no reason to warn."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Number of distinct clusters", ConvergenceWarning)
        return KMeans(size, n_init=1, **parameters).fit(x, sample_weight=weight)


def _outcome_features(block: Block, kind: Kind) -> list[np.ndarray]:
    """Labels and predictions as columns; of many labels the errors alone."""
    if kind.n_labels > MANY_LABELS:
        return [block.columns["extra"][:, :1]]
    labels = (block.columns["label"][:, None] == np.arange(kind.n_labels)).astype(np.float64)
    return [labels, *([block.columns["prediction"]] if "prediction" in block.columns else [])]
