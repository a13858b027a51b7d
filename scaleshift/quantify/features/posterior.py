"""What calibrated posteriors say of a row: which of some typical posteriors it is most like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from scaleshift.blocks.block import Block
from scaleshift.errors import DataError
from scaleshift.kernels.reference import to_numpy
from scaleshift.quantify.classifier.calibration import Calibration, fit_calibration
from scaleshift.quantify.classifier.cross_fit import CrossFit, allocation, cross_fit, same
from scaleshift.quantify.classifier.models import check_estimator
from scaleshift.quantify.features.base import Embedding, ExplicitEmbedding, FeatureMap, Source
from scaleshift.quantify.prototypes import Prototypes, learn_prototypes


class PosteriorFeatures(FeatureMap):
    """One-hot vectors of the prototype that a row's calibrated posterior is nearest to.

    Parameters
    ----------
    estimator : None or scikit-learn style classifier with ``predict_proba``, default None
    calibration : {"bcts", "vector", None}, default "bcts"
    cv : int or "prefit", default 5
    """

    def __init__(self, estimator: Any = None, calibration: str | None = "bcts", cv: int | str = 5):
        self.estimator = estimator
        self.calibration = calibration
        self.cv = cv

    def learn(self, source: Source) -> PosteriorEmbedding:
        """Fit the classifiers, their calibration, and the prototypes: one pass draws the rows for all."""
        check_estimator(self.estimator, ["predict_proba"])
        drawn = source.draw(allocation(source.counts))
        code = drawn["code"]
        fits = cross_fit(self.estimator, self.cv, source, source.seed, drawn)
        self._check_known(fits, source, code)
        log_posterior = fits.log_posterior_drawn(drawn)
        # The rows stand for those that the classifier has, or may be taken to have, learned from.
        weight = (fits.prior * len(code) / np.maximum(np.bincount(code, minlength=fits.n_labels), 1))[code]
        calibration = fit_calibration(self.calibration, log_posterior, code, weight)
        held = np.where(np.isfinite(calibration.bias), source.counts, 0)
        prior = held / held.sum()
        calibration = _at_prior(calibration, prior, log_posterior, weight)
        posterior = np.exp(calibration(log_posterior))
        return PosteriorEmbedding(fits, calibration, prior, learn_prototypes(posterior, code, source.seed))

    def _check_known(self, fits: CrossFit, source: Source, code: np.ndarray) -> None:
        """Refuse a classifier that came fitted and does not know a class: nothing tells its density."""
        if self.cv != "prefit":
            return
        names = source.rows.categories("label")
        lacks = [str(names[i]) for i in np.unique(code) if i not in fits.models[0].classes]
        if lacks:
            raise DataError(
                f"the classifier does not know the label(s) {', '.join(lacks)} of the source: fit it with "
                "their rows, or leave these out"
            )


def _at_prior(
    calibration: Calibration, prior: np.ndarray, log_posterior: np.ndarray, weight: np.ndarray
) -> Calibration:
    """The calibration whose posteriors are those where classes have these shares.

    The prior that posteriors imply is their own mean over the rows: densities of the classes, posterior over
    prior, then have a total of one over the source.
    """
    implied = weight @ np.exp(calibration(log_posterior)) / weight.sum()
    known = np.isfinite(calibration.bias)
    bias = calibration.bias.copy()
    bias[known] += np.log(prior[known]) - np.log(implied[known])
    return Calibration(calibration.scale, bias, calibration.floor)


@dataclass(frozen=True, repr=False)
class PosteriorEmbedding(ExplicitEmbedding):
    """Cross-fitted and calibrated classifiers, and typical posteriors of theirs."""

    fits: CrossFit
    calibration: Calibration
    prior: np.ndarray  # (n_labels,) class shares of the source, to which the posteriors belong
    prototypes: Prototypes

    @property
    def bandwidth(self) -> float:  # type: ignore[override]
        """There is none."""
        return float("nan")

    @property
    def width(self) -> int:
        """One feature a prototype."""
        return len(self.prototypes)

    @property
    def n_matching(self) -> int:  # type: ignore[override]
        """All of them."""
        return self.width

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What was learned."""
        return {name: getattr(self, name) for name in ("fits", "calibration", "prior", "prototypes")}

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return sum(part.nbytes for part in (self.fits, self.calibration, self.prior, self.prototypes))

    def same_as(self, other: Embedding) -> bool:
        """Whether states of both can be added."""
        return same(self, other)

    def features(self, means: np.ndarray) -> np.ndarray:
        """As they are."""
        return means

    def log_posterior(self, x: np.ndarray) -> np.ndarray:
        """Calibrated log posteriors of rows, where classes have the shares `prior`.

        (n, n_markers) -> (n, n_labels), -inf for classes without rows. Those in a sample follow by adding
        ``log(proportion / prior)`` and normalising.
        """
        return self.calibration(self.fits.log_posterior(x))

    def ratios(self, posterior: np.ndarray) -> np.ndarray:
        """Class densities over that of the source: (n, n_labels) -> (n, n_classes with rows)."""
        known = self.prior > 0
        return posterior[:, known] / self.prior[known]

    def source_sums(self, block: Block, groups: np.ndarray, n_groups: int) -> np.ndarray:
        """Counts of labelled rows, each by a classifier that has not seen it."""
        return self._counts(self.calibration(self.fits.log_posterior_held_out(block)), groups, n_groups)

    def target_sums(self, block: Block, groups: np.ndarray, n_groups: int) -> np.ndarray:
        """Counts of rows that no classifier has seen."""
        return self._counts(self.log_posterior(to_numpy(block.x)), groups, n_groups)

    def _counts(self, log_posterior: np.ndarray, groups: np.ndarray, n_groups: int) -> np.ndarray:
        return self.prototypes.counts(np.exp(log_posterior), groups, n_groups)
