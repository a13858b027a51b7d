"""Classify and count: what a classifier predicts in a sample, as it is or adjusted for its errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from scaleshift import parameters
from scaleshift.blocks.block import Invalid
from scaleshift.quantify.base import Quantifier
from scaleshift.quantify.classifier.models import check_estimator
from scaleshift.quantify.families.bbse import PlainInverse
from scaleshift.quantify.features import ClassifierFeatures, Embedding, ExplicitEmbedding, FeatureMap
from scaleshift.quantify.mixtures import MeanMixture, Resampled, mean_mixture


class ClassifyAndCount(Quantifier):
    """Class proportions as a classifier predicts them: of the cells, the share given to each class.

    Biased under label shift, towards the source's proportions: the baseline that other methods must beat.

    Parameters
    ----------
    estimator : None or scikit-learn style classifier, default None
        None is logistic regression on the markers and their products.
    probabilistic : bool, default False
        Count each cell's class probabilities (PCC) in place of the class that it is predicted to be (CC).
    cv : int or "prefit", default 5
        Parts of the source for cross-fitting; "prefit" for an estimator fitted on other rows.
    n_bootstrap : int, default 200
        Replicates behind the intervals. 0: no folds, no intervals and no test.
    level : float, default 0.95
        Of the intervals, which know the noise of the sample's cells and nothing of the bias.
    resample : None, "cells" or "samples"
        What of the source the replicates draw again. None: samples where it has 5 or more, else cells.
    random_state : None, int or numpy.random.Generator
    invalid : {"raise", "drop"}, default "raise"
        What to do with rows that hold NaN or infinite values.

    Notes
    -----
    A classifier given with ``cv="prefit"`` may know a label of which the source has no cells; what it counts
    there is in no proportion. `p_value` is NaN: outputs as few as the classes leave no label shift to test.

    Source: Forman (2008), "Quantifying counts and costs via classification"; probabilistic: Bella, Ferri,
    Hernandez-Orallo and Ramirez-Quintana (2010), "Quantification via probability estimators".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = np.concatenate([rng.normal(-2, 1, (500, 2)), rng.normal(2, 1, (500, 2))])
    >>> model = ClassifyAndCount(random_state=0).fit(x, np.repeat(["a", "b"], 500))
    >>> target = np.concatenate([rng.normal(-2, 1, (900, 2)), rng.normal(2, 1, (100, 2))])
    >>> model.predict(target).proportion.round(1).values.tolist()
    [[0.9, 0.1]]
    """

    CITATION = "Forman (2008), Quantifying Counts and Costs via Classification"

    def __init__(
        self,
        estimator: Any = None,
        probabilistic: bool = False,
        cv: int | str = 5,
        n_bootstrap: int = 200,
        level: float = 0.95,
        resample: str | None = None,
        random_state: Any = None,
        invalid: Invalid = "raise",
    ):
        self.estimator = estimator
        self.probabilistic = probabilistic
        self.cv = cv
        self.n_bootstrap = n_bootstrap
        self.level = level
        self.resample = resample
        self.random_state = random_state
        self.invalid = invalid

    @property
    def METHOD(self) -> str:  # type: ignore[override]
        """What the result calls it."""
        return f"{'probabilistic ' if self.probabilistic else ''}classify and count"

    def _check(self) -> None:
        super()._check()
        parameters.check_switch("probabilistic", self.probabilistic)
        check_estimator(self.estimator, ("predict_proba",) if self.probabilistic else ())

    def _feature_map(self) -> FeatureMap:
        return ClassifierFeatures(self.estimator, "proba" if self.probabilistic else "hard", self.cv)

    def _mixture(self, embedding: Embedding, means: np.ndarray, again: Resampled | None) -> MeanMixture:
        assert isinstance(embedding, ExplicitEmbedding)
        return mean_mixture(embedding, Counted(np.flatnonzero(self.class_counts_)), means, again)


class AdjustedCount(ClassifyAndCount):
    """Class proportions from predicted shares, corrected by the errors that the classifier makes.

    The shares of predicted classes are solved for the proportions by the inverse of the confusion matrix
    (ACC), or of the mean probabilities of each class (PACC); what is negative is then cut to zero, and the
    rest divided by its sum.

    Parameters
    ----------
    estimator : None or scikit-learn style classifier, default None
        None is logistic regression on the markers and their products.
    probabilistic : bool, default False
        Class probabilities (PACC) in place of predicted classes (ACC).
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
    `BBSE` answers the same question with the same confusion: where the inverse has no negative proportion,
    both give it. Elsewhere `BBSE` takes the point of the simplex whose predicted shares come nearest to the
    sample's, and ACC does not: cutting and rescaling also moves the proportions that were not negative, all
    by one factor. Confusion that has no inverse is inverted as far as it goes (pseudo-inverse). `p_value` is
    NaN: outputs as few as the classes leave no label shift to test.

    Source: Forman (2008), "Quantifying counts and costs via classification"; probabilistic: Bella, Ferri,
    Hernandez-Orallo and Ramirez-Quintana (2010), "Quantification via probability estimators".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = np.concatenate([rng.normal(-1, 1, (500, 2)), rng.normal(1, 1, (500, 2))])
    >>> model = AdjustedCount(random_state=0).fit(x, np.repeat(["a", "b"], 500))
    >>> target = np.concatenate([rng.normal(-1, 1, (900, 2)), rng.normal(1, 1, (100, 2))])
    >>> model.predict(target).proportion.round(1).values.tolist()
    [[0.9, 0.1]]
    """

    @property
    def METHOD(self) -> str:  # type: ignore[override]
        """What the result calls it."""
        return f"{'probabilistic ' if self.probabilistic else ''}adjusted count"

    def _mixture(self, embedding: Embedding, means: np.ndarray, again: Resampled | None) -> MeanMixture:
        assert isinstance(embedding, ExplicitEmbedding)
        return mean_mixture(embedding, ClippedInverse(), means, again)


@dataclass(frozen=True)
class Counted:
    """The predicted shares as they are."""

    present: np.ndarray  # (n_labels,) which of the features are classes with rows

    def __call__(self, means: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """(n, n_labels, n_features), (n, n_features) -> (n, n_labels)."""
        return targets[:, self.present]


@dataclass(frozen=True)
class ClippedInverse:
    """The plain inverse, cut to [0, 1] and divided by its sum."""

    def __call__(self, means: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """(n, n_labels, n_features), (n, n_features) -> (n, n_labels)."""
        cut = np.clip(PlainInverse()(means, targets), 0, 1)
        total = cut.sum(axis=1, keepdims=True)
        # Nothing is left where confusion has no inverse and the sample is predicted as no class ever was.
        return np.where(total > 0, cut / np.where(total > 0, total, 1), 1 / cut.shape[1])
