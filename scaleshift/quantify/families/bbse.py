"""Black box shift estimation: proportions by inverting the confusion matrix of a classifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from scaleshift import parameters
from scaleshift.blocks.block import Invalid
from scaleshift.errors import DataError
from scaleshift.quantify.base import Quantifier
from scaleshift.quantify.features import ClassifierFeatures, Embedding, ExplicitEmbedding, FeatureMap
from scaleshift.quantify.mixtures import Mixture, Resampled, gram_mixture, mean_mixture


class BBSE(Quantifier):
    """Class proportions from predicted shares and the confusion of a classifier.

    The shares of predicted classes in a sample are the columns of the source's confusion matrix, weighted by
    the sample's class proportions.

    Parameters
    ----------
    estimator : None or scikit-learn style classifier, default None
        None is logistic regression on the markers and their products.
    positive : bool, default True
        Whether the proportions are kept on the simplex (BBSE+). False is the plain inverse, whose
        proportions can be negative.
    soft : bool, default False
        Whether the proportions may sum to less than one (soft BBSE+). The same wherever the plain inverse
        has no negative proportion: a classifier gives every cell to some class, known or not.
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
    The same as `DFM` with `ClassifierFeatures(output="hard")`. Intervals take the classifier as it is.
    `p_value` is NaN: outputs as few as the classes leave no label shift to test.
    Source: Lipton, Wang and Smola (2018), "Detecting and correcting for label shift with black box
    predictors"; soft: Dussap, Blanchard and Cherief-Abdellatif (2023).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = np.concatenate([rng.normal(-2, 1, (500, 2)), rng.normal(2, 1, (500, 2))])
    >>> model = BBSE(random_state=0).fit(x, np.repeat(["a", "b"], 500))
    >>> target = np.concatenate([rng.normal(-2, 1, (900, 2)), rng.normal(2, 1, (100, 2))])
    >>> model.predict(target).proportion.round(1).values.tolist()
    [[0.9, 0.1]]
    """

    CITATION = (
        "Lipton, Wang, Smola (2018), Detecting and Correcting for Label Shift with Black Box Predictors"
    )

    def __init__(
        self,
        estimator: Any = None,
        positive: bool = True,
        soft: bool = False,
        cv: int | str = 5,
        n_bootstrap: int = 200,
        level: float = 0.95,
        resample: str | None = None,
        random_state: Any = None,
        invalid: Invalid = "raise",
    ):
        self.estimator = estimator
        self.positive = positive
        self.soft = soft
        self.cv = cv
        self.n_bootstrap = n_bootstrap
        self.level = level
        self.resample = resample
        self.random_state = random_state
        self.invalid = invalid

    @property
    def METHOD(self) -> str:  # type: ignore[override]
        """What the result calls it."""
        return f"{'soft ' if self.soft else ''}BBSE{'+' if self.positive else ''}"

    def _check(self) -> None:
        super()._check()
        parameters.check_switch("positive", self.positive)
        if self.soft and not self.positive:
            raise DataError(
                "soft=True with positive=False: the plain inverse has no unknown share; change one of both"
            )

    def _bounded(self) -> bool:
        return self.positive

    def _feature_map(self) -> FeatureMap:
        return ClassifierFeatures(self.estimator, "hard", self.cv)

    def _mixture(self, embedding: Embedding, means: np.ndarray, again: Resampled | None) -> Mixture:
        if self.positive:
            return gram_mixture(embedding, self.soft, means, again)
        assert isinstance(embedding, ExplicitEmbedding)
        return mean_mixture(embedding, PlainInverse(), means, again)


@dataclass(frozen=True)
class PlainInverse:
    """The least-squares solution of sum_i a_i mean_i = target, of any sign and sum."""

    def __call__(self, means: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """(n, n_labels, n_features), (n, n_features) -> (n, n_labels)."""
        return (np.linalg.pinv(means.swapaxes(1, 2)) @ targets[..., None])[..., 0]
