"""What does a linear model tell of targets, without the rows it was learned from?  `GaussianFamily`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from scaleshift.blocks.blas import one_thread
from scaleshift.blocks.block import Rows
from scaleshift.error.family import Answer, Sums
from scaleshift.error.gaussian.answers import METHODS, answer
from scaleshift.error.gaussian.choosing import PenaltyCurve
from scaleshift.error.gaussian.closed import ClosedForm
from scaleshift.error.gaussian.clusters import NoiseVariance
from scaleshift.error.gaussian.design import CentredPart
from scaleshift.error.gaussian.nested import OuterReplicates, Scatter, scatter
from scaleshift.error.gaussian.procedures import PROCEDURES
from scaleshift.error.gaussian.spread import RefitSpread, drawn_errors, squares
from scaleshift.error.gaussian.sums import mean_products, target_sums

FEW_LEFT = 0.1  # share of rows beyond the degrees of freedom, below which a variance is doubtful


@dataclass(frozen=True)
class GaussianFamily:
    """A linear model, and how its refits to other outcomes of the source's rows scatter.

    Models are vectors of z = (1, x - centre), (q,) = (1 + p,), for outcomes less `middle`.
    """

    model: str
    methods: tuple[str, ...]
    generator_name: str
    level: float
    seed: int
    grouped: bool
    n: float  # rows
    n_folds: int  # 0: no cross-validation
    n_invalid: int
    centre: np.ndarray  # (p,)
    middle: float
    theta: np.ndarray  # (q,) the model
    fold_theta: np.ndarray  # (K, q) without each fold
    generator: np.ndarray  # (q,) from which replicates are drawn
    share: float  # of least squares on the support in a blended generator
    alpha: float
    curve: PenaltyCurve | None  # held-out error by penalty, where it was chosen
    freedom: float  # degrees of freedom of the model
    rss: float
    noise: NoiseVariance  # about the generator
    err_in: float  # in-sample error by degrees of freedom
    gram: np.ndarray  # (q, q) Z'Z
    part: CentredPart
    spread: RefitSpread
    closed: ClosedForm
    outer: OuterReplicates | None
    cv_error: float
    cv_error_se: float

    @property
    def coef(self) -> np.ndarray:
        """Weights, (p,)."""
        return self.theta[1:]

    @property
    def sigma2(self) -> float:
        """Variance of the noise, of all its parts."""
        return self.noise.total

    @property
    def intercept(self) -> float:
        """Prediction where all features are 0."""
        return self.middle + float(self.theta[0] - self.centre @ self.theta[1:])

    @property
    def generator_intercept(self) -> float:
        """Mean outcome of the generator where all features are 0."""
        return self.middle + float(self.generator[0] - self.centre @ self.generator[1:])

    @property
    def error_in_sample(self) -> Mapping[str, float]:
        """At the source's covariates: "direct" by replicates, "decomposed" by degrees of freedom."""
        at_source = self.noise.total + float(np.vdot(self.gram / self.n, self.spread.matrix))
        return {"direct": at_source, "decomposed": self.err_in}

    @property
    def in_b(self) -> np.ndarray:
        """In-sample error of each replicate, outcome noise integrated out, (B,)."""
        return self.spread.in_b

    @property
    def few_left(self) -> str:
        """Where few rows beyond the degrees of freedom tell the variance of noise: so, in words; else ""."""
        left = self.n - self.freedom
        if not left < FEW_LEFT * self.n:
            return ""
        told = f"{self.freedom:.3g} degrees of freedom leave {left:.3g} of {self.n:g} rows"
        return f"{told} for the variance of noise"

    @functools.cached_property  # not a field: it is not saved, but made again
    def scatter(self) -> Scatter:
        """Inner replicates of all outer ones: on the first question for an interval or a correction."""
        assert self.outer is not None
        with one_thread():
            return scatter(self.outer, self.part, self.gram, PROCEDURES[self.model], self.seed)

    @functools.cached_property
    def hat(self) -> np.ndarray:
        """A with theta = A Z'y, of the fit as it came out, (q, q)."""
        return PROCEDURES[self.model].hat(self.part, self.theta, self.alpha)

    def target_sums(self, targets: Mapping[str, Rows], noise: bool) -> dict[str, Sums]:
        """Sums of each target: one pass each."""
        return {name: target_sums(rows, self.centre, noise) for name, rows in targets.items()}

    def answers(self, sums: Sums) -> dict[str, Answer]:
        """Error of one target by each method of the settings that is answered here."""
        return {name: answer(self, name, sums) for name in self.methods if name in METHODS}

    def err_b(self, sums: Sums) -> np.ndarray:
        """Error of each replicate on one target, outcome noise integrated out, (B,)."""
        return self.noise.total + squares(self.spread.differences, mean_products(sums))

    def drawn_err_b(self, sums: Sums) -> np.ndarray:
        """The same with outcomes of the target that were drawn, (B,); empty without their noise."""
        differences = self.spread.differences
        if "noise" not in sums or not len(differences):
            return np.empty(0)
        return drawn_errors(
            differences,
            mean_products(sums),
            self.noise,
            sums["noise"],
            sums["noise_square"],
            float(sums["n"]),
        )

    def held_out(self, x: np.ndarray, fold: np.ndarray) -> np.ndarray:
        """Predictions of models that were learned without a row's fold, (n,)."""
        models = np.concatenate([self.fold_theta, self.theta[None]])
        number = np.where((fold >= 0) & (fold < len(self.fold_theta)), fold, len(self.fold_theta))
        found = np.empty(len(x))
        for k in np.unique(number):
            here = number == k
            found[here] = self._predicted(x[here], models[k])
        return found

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Predictions of the model of all rows, (n,)."""
        return self._predicted(x, self.theta)

    def extrapolation(self, x: np.ndarray) -> np.ndarray:
        """Variance of a row's prediction in units of its noise: z'Mz / variance of noise, (n,)."""
        return squares(self._z(x), self.spread.matrix) / self.noise.total

    def leverage(self, x: np.ndarray) -> np.ndarray:
        """Diagonal of the hat matrix at rows of the source, (n,); of a lasso that of its chosen features."""
        return np.clip(squares(self._z(x), self.hat), 0, 1)

    def by_feature(self, sums: Sums) -> np.ndarray:
        """What each feature adds to the excess error of a target, (U M)_jj, (p,).

        Features count about the source's mean. What is left of the excess error is that of the intercept,
        (U M)_00 = M_00 + sum_j mean_j M_j0, with the means of the target: what a row at the source's mean
        has, and the intercept's share of what it has in common with the features.
        """
        found: np.ndarray = np.einsum("jk,kj->j", mean_products(sums), self.spread.matrix)
        return found[1:]

    def remarks(self, sums: Sums) -> list[str]:
        """What makes answers for one target doubtful."""
        found = [self.few_left] if self.few_left else []
        if not float(sums["n"]) > 0:
            return [*found, "the target has no row that is finite"]
        more = mean_products(sums) - self.gram / self.n
        if self.err_in + float(np.vdot(more, self.spread.matrix)) < 0:
            found.append("the decomposed error is negative: its parts are far apart")
        return found

    def _z(self, x: np.ndarray) -> np.ndarray:
        return np.concatenate([np.ones((len(x), 1)), x - self.centre], axis=1)

    def _predicted(self, x: np.ndarray, theta: np.ndarray) -> np.ndarray:
        return np.asarray(x, np.float64) @ theta[1:] + (self.middle + theta[0] - self.centre @ theta[1:])
