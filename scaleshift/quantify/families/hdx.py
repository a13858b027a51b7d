"""HDx: the mixture whose histograms of the markers come nearest, by Hellinger distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from scaleshift.blocks.block import Invalid
from scaleshift.quantify.base import Quantifier
from scaleshift.quantify.features import Embedding, ExplicitEmbedding, FeatureMap
from scaleshift.quantify.features.histograms import MarkerHistograms, checked_bins
from scaleshift.quantify.mixtures import MeanMixture, Resampled, mean_mixture
from scaleshift.solve.histograms import HELLINGER, nearest_mixture


class HDx(Quantifier):
    """Class proportions by matching a histogram of every marker; no classifier.

    The proportions minimise the mean over markers of the Hellinger distance between the sample's histogram
    and the mixture of the classes' histograms.

    Parameters
    ----------
    n_bins : int, default 20
        Of every marker, equally wide between the .001 and .999 quantiles of at most about 20 000 rows of the
        source, drawn by class; the outer two are open, so that every row falls into a bin.
    n_bootstrap : int, default 200
        Replicates behind the intervals. 0: no folds, no intervals and no test.
    level : float, default 0.95
        Of the intervals.
    resample : None, "cells" or "samples"
        What of the source the replicates draw again. None: samples where it has 5 or more, else cells.
    random_state : None, int or numpy.random.Generator
    invalid : {"raise", "drop"}, default "raise"
        What to do with rows that hold NaN or infinite values.

    Notes
    -----
    Each marker is looked at alone: classes that only combinations of markers tell apart are confounded. The
    scale of the markers does not matter. One pass over the source places the bins, one more fills them. The
    literature takes the median over several numbers of bins in place of one. Source: Gonzalez-Castro,
    Alaiz-Rodriguez and Alegre (2013), "Class distribution estimation based on the Hellinger distance".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = np.concatenate([rng.normal(-2, 1, (500, 2)), rng.normal(2, 1, (500, 2))])
    >>> model = HDx(random_state=0).fit(x, np.repeat(["a", "b"], 500))
    >>> target = np.concatenate([rng.normal(-2, 1, (900, 2)), rng.normal(2, 1, (100, 2))])
    >>> model.predict(target).proportion.round(1).values.tolist()
    [[0.9, 0.1]]
    """

    METHOD = "HDx"
    CITATION = (
        "Gonzalez-Castro, Alaiz-Rodriguez, Alegre (2013), Class Distribution Estimation Based on the "
        "Hellinger Distance"
    )

    def __init__(
        self,
        n_bins: int = 20,
        n_bootstrap: int = 200,
        level: float = 0.95,
        resample: str | None = None,
        random_state: Any = None,
        invalid: Invalid = "raise",
    ):
        self.n_bins = n_bins
        self.n_bootstrap = n_bootstrap
        self.level = level
        self.resample = resample
        self.random_state = random_state
        self.invalid = invalid

    def _check(self) -> None:
        super()._check()
        checked_bins(self.n_bins)

    def _feature_map(self) -> FeatureMap:
        return MarkerHistograms(self.n_bins)

    def _mixture(self, embedding: Embedding, means: np.ndarray, again: Resampled | None) -> MeanMixture:
        assert isinstance(embedding, ExplicitEmbedding)
        return mean_mixture(embedding, NearestInHellinger(self.n_features_in_), means, again)


@dataclass(frozen=True)
class NearestInHellinger:
    """The mixture with the least mean Hellinger distance."""

    n_histograms: int

    def __call__(self, means: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """(n, n_labels, n_features), (n, n_features) -> (n, n_labels)."""
        n, c, _ = means.shape
        histograms = means.reshape(n, c, self.n_histograms, -1)
        return nearest_mixture(HELLINGER, histograms, targets.reshape(n, self.n_histograms, -1))
