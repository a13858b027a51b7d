"""What do rows that a model has not seen say of it?  Squared errors by fold, from sums; the best penalty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scaleshift.error.gaussian.design import Design
from scaleshift.error.gaussian.procedures import Procedure
from scaleshift.error.gaussian.sums import Outcomes

N_ALPHAS = 100
MOST_NUMBERS = 20_000_000  # weights of paths that are held at a time


@dataclass(frozen=True)
class PenaltyCurve:
    """Held-out error of the source by penalty."""

    alpha: np.ndarray  # (L,) descending
    error: np.ndarray  # (L,)
    error_se: np.ndarray  # (L,) standard error, from the spread between folds

    @property
    def best(self) -> float:
        """The penalty with the smallest error, the largest of several."""
        return float(self.alpha[self.error.argmin()])

    @property
    def one_se(self) -> float:
        """The largest penalty whose error is within one standard error of the smallest."""
        best = self.error.argmin()
        return float(self.alpha[np.flatnonzero(self.error <= self.error[best] + self.error_se[best])[0]])


def choose_alpha(design: Design, procedure: Procedure, outcomes: Outcomes) -> tuple[np.ndarray, PenaltyCurve]:
    """Penalty of the smallest held-out error for each outcome, (C,), and the curve of the first."""
    width = N_ALPHAS * design.gram.shape[-1]
    step = max(1, MOST_NUMBERS // width)
    parts = [
        _choose(design, procedure, outcomes[start : start + step]) for start in range(0, outcomes.size, step)
    ]
    return np.concatenate([alpha for alpha, _ in parts]), parts[0][1]


def _choose(design: Design, procedure: Procedure, outcomes: Outcomes) -> tuple[np.ndarray, PenaltyCurve]:
    total = outcomes.cross.sum(axis=0)
    alphas = procedure.alphas(design.whole, total, N_ALPHAS)  # (C, L)
    errors = np.empty((len(design.folds), *alphas.shape))
    for number, (fold, part) in enumerate(zip(design.folds, design.training, strict=True)):
        theta = procedure.path(part, total - outcomes.cross[fold], alphas)  # (C, L, q)
        errors[number] = squared_errors(theta, design.gram[fold], outcomes, fold)
    n = design.n_by_fold[design.folds]
    chosen = errors.sum(axis=0).argmin(axis=1)
    mean, se = mean_and_error(errors[:, 0], n)
    return alphas[np.arange(len(alphas)), chosen], PenaltyCurve(alphas[0], mean, se)


def squared_errors(theta: np.ndarray, gram: np.ndarray, outcomes: Outcomes, fold: int) -> np.ndarray:
    """Sum of squared errors of models, (C, L, q), on a fold: (C, L)."""
    cross, square = outcomes.cross[fold].T[:, :, None], outcomes.square[fold][:, None]
    found = square - 2 * (theta @ cross)[..., 0] + np.einsum("clq,clq->cl", theta @ gram, theta)
    return np.maximum(found, 0)


def mean_and_error(errors: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean over rows of sums by fold, (K, ...), and its standard error from the folds, weighted by rows."""
    weight = (n / n.sum()).reshape(-1, *(1,) * (errors.ndim - 1))
    mean = errors.sum(axis=0) / n.sum()
    by_fold = errors / n.reshape(weight.shape)
    spread = (weight * (by_fold - mean) ** 2).sum(axis=0)
    return mean, np.sqrt(spread / max(len(n) - 1, 1))


def fold_models(
    design: Design,
    procedure: Procedure,
    outcomes: Outcomes,
    alpha: np.ndarray,
    start: np.ndarray | None = None,
) -> np.ndarray:
    """Models that were learned without each fold, (number of folds with rows, q, C)."""
    total = outcomes.cross.sum(axis=0)
    found = np.empty((len(design.folds), *total.shape))
    for number, (fold, part) in enumerate(zip(design.folds, design.training, strict=True)):
        found[number] = procedure.fit(part, total - outcomes.cross[fold], alpha, start)
    return found


def held_out_errors(design: Design, outcomes: Outcomes, models: np.ndarray) -> np.ndarray:
    """Sums of squared errors of `fold_models` on the folds they have not seen: (folds, C)."""
    return np.stack(
        [
            squared_errors(model.T[:, None], design.gram[fold], outcomes, fold)[:, 0]
            for model, fold in zip(models, design.folds, strict=True)
        ]
    )
