"""Maximum likelihood label shift: the proportions under which a sample's rows are most likely."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import xarray as xr

from scaleshift import parameters
from scaleshift.blocks.block import Invalid, Rows
from scaleshift.blocks.planner import Planner
from scaleshift.quantify.base import Quantifier
from scaleshift.quantify.classifier.calibration import KINDS
from scaleshift.quantify.features import Embedding, FeatureMap
from scaleshift.quantify.features.posterior import PosteriorEmbedding, PosteriorFeatures
from scaleshift.quantify.likelihood import (
    exact_proportions,
    likelihood_mixture,
    likelihood_pass,
    likelihood_sums,
)
from scaleshift.quantify.matching import Matcher
from scaleshift.quantify.mixtures import Mixture, Resampled

USUAL_PASSES = 2  # beside the first

# What the result says of its further variables.
LOG_LIKELIHOOD = {
    "long_name": "log-likelihood of a row",
    "units": "nat",
    "description": "mean over the sample's rows, relative to the source's proportions, of the best "
    "proportions after each pass over all rows",
}
CONVERGED = {"long_name": "converged", "description": "whether the last step promised less than tol"}


class MLLS(Quantifier):
    """Class proportions of the highest likelihood, from a classifier's calibrated posteriors.

    What the EM algorithm of Saerens and others converges to, found in a few passes: one counts the rows near
    each of up to 256 typical posteriors and solves for these; each further one is a step of Newton's method
    on all rows, usually two.

    Parameters
    ----------
    estimator : None or scikit-learn style classifier with ``predict_proba``, default None
        None is logistic regression on the markers and their products.
    calibration : {"bcts", "vector", None}, default "bcts"
        Bias-corrected temperature scaling, softmax(logits / T + b), or vector scaling, softmax(w logits + b),
        fitted on source rows that the classifier has not seen. None takes the posteriors as they are.
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
    tol : float, default 1e-8
        A sample is done once a step promises less than that of log-likelihood a row. That step is taken.
    max_iter : int, default 30
        Passes over all rows beside the first, at most. 0: the solution on typical posteriors.

    Notes
    -----
    The prior that is divided out of the posteriors is their mean over the source's rows that were learned
    from, each by a classifier that has not seen it. Class densities are then densities, and a target like the
    source gets that mean. After calibration, which has a bias for each class, it is the class shares, also
    where rare classes were drawn more often; without it, only as far as the classifier has no bias.

    A sample's solution may lie at the boundary: shares are zero exactly then. The result has two more
    variables: `log_likelihood` (sample, iteration), mean log-likelihood of a row, relative to the source's
    proportions, of the best proportions after each pass over all rows, which never falls; `converged`
    (sample). Of states that `embed` gave, proportions are those on typical posteriors.

    Intervals take the classifier and its calibration as they are; they come from typical posteriors, and are
    moved to the exact estimate. `distance`, `misfit` and `p_value` compare how many rows are near each of
    these.

    Source: Saerens, Latinne and Decaestecker (2002), "Adjusting the outputs of a classifier to new a priori
    probabilities: a simple procedure"; Alexandari, Kundaje and Shrikumar (2020), "Maximum likelihood with
    bias-corrected calibration is hard-to-beat at label shift adaptation".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = np.concatenate([rng.normal(-2, 1, (500, 2)), rng.normal(2, 1, (500, 2))])
    >>> model = MLLS(random_state=0).fit(x, np.repeat(["a", "b"], 500))
    >>> target = np.concatenate([rng.normal(-2, 1, (900, 2)), rng.normal(2, 1, (100, 2))])
    >>> model.predict(target).proportion.round(2).values.tolist()
    [[0.9, 0.1]]
    """

    METHOD = "MLLS"
    CITATION = (
        "Saerens, Latinne, Decaestecker (2002), Adjusting the Outputs of a Classifier to New a Priori "
        "Probabilities; Alexandari, Kundaje, Shrikumar (2020), Maximum Likelihood with Bias-Corrected "
        "Calibration is Hard-To-Beat at Label Shift Adaptation"
    )

    def __init__(
        self,
        estimator: Any = None,
        calibration: str | None = "bcts",
        cv: int | str = 5,
        n_bootstrap: int = 200,
        level: float = 0.95,
        resample: str | None = None,
        random_state: Any = None,
        invalid: Invalid = "raise",
        tol: float = 1e-8,
        max_iter: int = 30,
    ):
        self.estimator = estimator
        self.calibration = calibration
        self.cv = cv
        self.n_bootstrap = n_bootstrap
        self.level = level
        self.resample = resample
        self.random_state = random_state
        self.invalid = invalid
        self.tol = tol
        self.max_iter = max_iter

    def _check(self) -> None:
        super()._check()
        kinds = "'bcts', 'vector' or None"
        parameters.check("calibration", self.calibration, lambda v: v in KINDS, kinds)
        parameters.check("tol", self.tol, lambda v: v > 0, "a number above 0")
        whole = "a number of passes from 0"
        parameters.check(
            "max_iter", self.max_iter, lambda v: isinstance(v, int | np.integer) and v >= 0, whole
        )

    def _feature_map(self) -> FeatureMap:
        return PosteriorFeatures(self.estimator, self.calibration, self.cv)

    def _mixture(self, embedding: Embedding, means: np.ndarray, again: Resampled | None) -> Mixture:
        assert isinstance(embedding, PosteriorEmbedding)
        return likelihood_mixture(embedding, means, again)

    def _matcher(self) -> Matcher:
        # Ends of intervals are clipped once they have moved to the exact estimates.
        return dataclasses.replace(super()._matcher(), bounded=False)

    def _improved(
        self, rows: Rows, matcher: Matcher, answers: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        filled = np.flatnonzero(answers["n_cells"])
        c = matcher.mixture.n_labels
        found = exact_proportions(
            rows,
            self.embedding_,
            answers["key"][filled],
            answers["share"][filled, :c],
            tol=self.tol,
            max_iter=self.max_iter,
        )
        share = answers["share"].copy()
        share[filled] = matcher.shares(found.proportions)
        moved = share - answers["share"]
        trace = np.full((len(share), found.log_likelihood.shape[1]), np.nan)
        trace[filled] = found.log_likelihood
        converged = np.ones(len(share), bool)
        converged[filled] = found.converged
        ends = {name: answers[name] + moved for name in ("low", "high")}
        return {**answers, "share": share, **ends, "log_likelihood": trace, "converged": converged}

    def _dataset(self, samples: np.ndarray, answers: dict[str, np.ndarray]) -> xr.Dataset:
        ends = {name: np.clip(answers[name], 0, 1) for name in ("low", "high")}
        result = super()._dataset(samples, {**answers, **ends})
        if "log_likelihood" not in answers:
            return result
        trace = np.full((len(samples), answers["log_likelihood"].shape[1]), np.nan)
        trace[answers["key"]] = answers["log_likelihood"]
        converged = np.ones(len(samples), bool)
        converged[answers["key"]] = answers["converged"]
        return result.assign(
            log_likelihood=(("sample", "iteration"), trace, LOG_LIKELIHOOD),
            converged=("sample", converged, CONVERGED),
        ).assign_attrs(n_passes=1 + trace.shape[1])

    def _plan_more(self, planner: Planner, rows: Rows) -> None:
        c = int((self.class_counts_ > 0).sum())
        n = len(rows.categories("sample"))
        layout, parameters = likelihood_pass(self.embedding_, np.arange(n), np.full((n, c), 1 / c))
        for number in range(min(USUAL_PASSES, self.max_iter)):
            what = f"likelihood of all rows, {number + 1} of {USUAL_PASSES} usually, up to {self.max_iter}"
            planner.total(what, rows.only("sample"), likelihood_sums, layout, keyed="sample", **parameters)
