"""DyS: the mixture whose histograms of a classifier's scores come nearest, by Topsoe's distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from scaleshift.blocks.block import Invalid
from scaleshift.quantify.base import Quantifier
from scaleshift.quantify.classifier.models import check_estimator
from scaleshift.quantify.features import Embedding, ExplicitEmbedding, FeatureMap
from scaleshift.quantify.features.histograms import ScoreHistograms, checked_bins
from scaleshift.quantify.mixtures import MeanMixture, Resampled, mean_mixture
from scaleshift.solve.histograms import TOPSOE, nearest_mixture


class DyS(Quantifier):
    """Class proportions by matching histograms of what a classifier gives as probability of each class.

    The proportions minimise Topsoe's distance between the sample's histogram of scores and the mixture of
    the classes' histograms, summed over the scores of all classes.

    Parameters
    ----------
    estimator : None or scikit-learn style classifier, default None
        None is logistic regression on the markers and their products. It needs `predict_proba`.
    n_bins : int, default 8
        Of [0, 1], equally wide.
    cv : int or "prefit", default 5
        Parts of the source for cross-fitting; "prefit" for an estimator fitted on other rows.
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
    With two classes this is DyS: the second score is one less the first, whose histogram it mirrors. (A score
    on an edge between bins counts to both sides, once by each class.) With more it is what QuaPy calls DMy.
    Source: Maletzke, dos Reis, Cherman and Batista (2019), "DyS: a framework for mixture models in
    quantification".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = np.concatenate([rng.normal(-2, 1, (500, 2)), rng.normal(2, 1, (500, 2))])
    >>> model = DyS(random_state=0).fit(x, np.repeat(["a", "b"], 500))
    >>> target = np.concatenate([rng.normal(-2, 1, (900, 2)), rng.normal(2, 1, (100, 2))])
    >>> model.predict(target).proportion.round(1).values.tolist()
    [[0.9, 0.1]]
    """

    METHOD = "DyS"
    CITATION = (
        "Maletzke, dos Reis, Cherman, Batista (2019), DyS: a Framework for Mixture Models in Quantification"
    )

    def __init__(
        self,
        estimator: Any = None,
        n_bins: int = 8,
        cv: int | str = 5,
        n_bootstrap: int = 200,
        level: float = 0.95,
        resample: str | None = None,
        random_state: Any = None,
        invalid: Invalid = "raise",
    ):
        self.estimator = estimator
        self.n_bins = n_bins
        self.cv = cv
        self.n_bootstrap = n_bootstrap
        self.level = level
        self.resample = resample
        self.random_state = random_state
        self.invalid = invalid

    def _check(self) -> None:
        super()._check()
        checked_bins(self.n_bins)
        check_estimator(self.estimator, ("predict_proba",))

    def _feature_map(self) -> FeatureMap:
        return ScoreHistograms(self.estimator, self.n_bins, self.cv)

    def _mixture(self, embedding: Embedding, means: np.ndarray, again: Resampled | None) -> MeanMixture:
        assert isinstance(embedding, ExplicitEmbedding)
        return mean_mixture(embedding, NearestInTopsoe(len(self.labels_)), means, again)


@dataclass(frozen=True)
class NearestInTopsoe:
    """The mixture with the least sum of Topsoe's distances."""

    n_histograms: int

    def __call__(self, means: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """(n, n_labels, n_features), (n, n_features) -> (n, n_labels)."""
        n, c, _ = means.shape
        histograms = means.reshape(n, c, self.n_histograms, -1)
        return nearest_mixture(TOPSOE, histograms, targets.reshape(n, self.n_histograms, -1))
