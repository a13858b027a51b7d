"""Regularised learning under label shift: importance weights that are kept near one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from scaleshift import parameters
from scaleshift.blocks.block import Invalid
from scaleshift.quantify.base import Quantifier
from scaleshift.quantify.classifier.models import check_estimator
from scaleshift.quantify.features import ClassifierFeatures, Embedding, ExplicitEmbedding, FeatureMap
from scaleshift.quantify.mixtures import MeanMixture, Resampled, mean_mixture
from scaleshift.solve.regularised import regularised_mixture


class RLLS(Quantifier):
    """Class proportions from importance weights 1 + gamma theta, theta as small as the confusion permits.

    theta minimises ||C theta - b|| + Delta ||theta||, with C_ij the share of source cells that are of class j
    and predicted to be of class i, and b the predicted shares of the sample less those of the source. The
    proportions are the weights times the source's class shares, divided by their sum.

    Parameters
    ----------
    estimator : None or scikit-learn style classifier, default None
        None is logistic regression on the markers and their products.
    probabilistic : bool, default False
        Class probabilities in place of predicted classes.
    alpha : float, default 0.01
        Delta is `alpha` times 3 (2 L / 3n + sqrt(2 L / n)), L = log(2c / `delta`), with n labelled cells of c
        classes: the bound of the error of C that holds with probability 1 - `delta`. 1 is what the theory
        takes, 0 no regularisation; the default is that of the authors' code.
    delta : float, default 0.05
    gamma : float, default 1
        How much of theta to believe, from 0 to 1. The theory takes 0 where a sample is very small.
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
    theta >= -1, as no weight is negative. The result's `weight` is 1 + gamma theta up to the factor that
    makes the proportions sum to one. Proportions are drawn towards those of the source, by more the fewer
    labelled cells there are; the intervals do not know of that bias. `p_value` is NaN: outputs as few as the
    classes leave no label shift to test. Source: Azizzadenesheli, Liu, Yang and Anandkumar (2019),
    "Regularized learning for domain adaptation under label shifts".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = np.concatenate([rng.normal(-2, 1, (500, 2)), rng.normal(2, 1, (500, 2))])
    >>> model = RLLS(random_state=0).fit(x, np.repeat(["a", "b"], 500))
    >>> target = np.concatenate([rng.normal(-2, 1, (900, 2)), rng.normal(2, 1, (100, 2))])
    >>> model.predict(target).proportion.round(1).values.tolist()
    [[0.9, 0.1]]
    """

    METHOD = "regularised learning under label shift"
    CITATION = (
        "Azizzadenesheli, Liu, Yang, Anandkumar (2019), Regularized Learning for Domain Adaptation under "
        "Label Shifts"
    )

    def __init__(
        self,
        estimator: Any = None,
        probabilistic: bool = False,
        alpha: float = 0.01,
        delta: float = 0.05,
        gamma: float = 1.0,
        cv: int | str = 5,
        n_bootstrap: int = 200,
        level: float = 0.95,
        resample: str | None = None,
        random_state: Any = None,
        invalid: Invalid = "raise",
    ):
        self.estimator = estimator
        self.probabilistic = probabilistic
        self.alpha = alpha
        self.delta = delta
        self.gamma = gamma
        self.cv = cv
        self.n_bootstrap = n_bootstrap
        self.level = level
        self.resample = resample
        self.random_state = random_state
        self.invalid = invalid

    def _check(self) -> None:
        super()._check()
        parameters.check_switch("probabilistic", self.probabilistic)
        check_estimator(self.estimator, ("predict_proba",) if self.probabilistic else ())
        parameters.check("alpha", self.alpha, lambda v: 0 <= v < np.inf, "a number from 0")
        parameters.check("delta", self.delta, lambda v: 0 < v < 1, "a number between 0 and 1")
        parameters.check("gamma", self.gamma, lambda v: 0 <= v <= 1, "a number from 0 to 1")

    def _feature_map(self) -> FeatureMap:
        return ClassifierFeatures(self.estimator, "proba" if self.probabilistic else "hard", self.cv)

    def _mixture(self, embedding: Embedding, means: np.ndarray, again: Resampled | None) -> MeanMixture:
        assert isinstance(embedding, ExplicitEmbedding)
        counts = self.class_counts_[self.class_counts_ > 0]
        penalty = self.alpha * confusion_error(int(counts.sum()), len(counts), self.delta)
        solver = RegularisedWeights(counts / counts.sum(), penalty, self.gamma)
        return mean_mixture(embedding, solver, means, again)


def confusion_error(n: int, c: int, delta: float) -> float:
    """Bound of the error of a joint confusion matrix of `c` classes from `n` rows, in operator norm.

    Examples
    --------
    >>> round(confusion_error(10_000, 5, 0.05), 4)
    0.0987
    """
    log = np.log(2 * c / delta)
    return float(3 * (2 * log / (3 * n) + np.sqrt(2 * log / n)))


@dataclass(frozen=True)
class RegularisedWeights:
    """Proportions by importance weights near one."""

    share: np.ndarray  # (n_labels,) of the source; the same in all replicates
    penalty: float
    gamma: float

    def __call__(self, means: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """(n, n_labels, n_features), (n, n_features) -> (n, n_labels)."""
        whole = regularised_mixture(means, targets, self.share, self.penalty)
        believed = (1 - self.gamma) * self.share + self.gamma * whole
        return believed / believed.sum(axis=1, keepdims=True)
