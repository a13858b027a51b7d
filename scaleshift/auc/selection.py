"""How many features, and how much shrinkage?  What ranks held-out buckets best, told from their moments.

Training moments are those of all buckets less the held-out ones, so that no further pass is needed. What a
ranking would attain on held-out rows is the binormal AUC of their moments: a proxy that chooses, and is not
reported as the AUC.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scaleshift.auc.evidence import Evidence
from scaleshift.auc.moments import Contrast
from scaleshift.auc.ranking import binormal_auc, debiased, products, sparse_path


@dataclass(frozen=True)
class Options:
    """What a path of rankings is told, beside its data."""

    sizes: tuple[int, ...]  # numbers of features, ascending
    alphas: tuple[float, ...]  # shrinkage, ascending
    scale: bool = True
    positive: bool = False
    debias: bool = False

    def path(
        self, found: Contrast, alpha: float, among: np.ndarray | None, size: int | None = None
    ) -> np.ndarray:
        """Rankings of all sizes, or of one: (n_sizes, p)."""
        sizes = self.sizes if size is None else (size,)
        how = {"scale": self.scale, "positive": self.positive}
        path = sparse_path(found, sizes, alpha=alpha, among=among, **how)
        return debiased(found, path, **how) if self.debias else path


@dataclass(frozen=True)
class HeldOut:
    """What the rankings of every fold do on the buckets that it leaves out."""

    weights: np.ndarray  # (n_folds, n_alphas, n_sizes, p) of the candidates
    gap: np.ndarray  # (n_folds, n_alphas, n_sizes) w'delta; w is in units of the scores' training spread
    spread: np.ndarray  # the same of w'Ww

    @property
    def known(self) -> np.ndarray:
        """Folds that say something, (n_folds,) bool: one may lack a class."""
        return np.isfinite(self.gap[:, 0, 0] + self.spread[:, 0, 0])

    def pooled(self, left_out: int | None = None) -> np.ndarray:
        """Binormal AUC of the folds together, (n_alphas, n_sizes); without one of them.

        Gaps and spreads are averaged before they are divided: those of a few rows are too noisy alone.
        """
        folds = np.ones(len(self.gap), bool)
        folds[[] if left_out is None else left_out] = False
        folds &= self.known
        if not folds.any():
            return np.full(self.gap.shape[1:], np.nan)
        return binormal_auc(self.gap[folds].mean(axis=0), self.spread[folds].mean(axis=0))


def divided(n_buckets: int, n_folds: int) -> list[list[int]]:
    """Buckets that each fold leaves out.

    Examples
    --------
    >>> divided(4, 2)
    [[0, 1], [2, 3]]
    """
    return [part.tolist() for part in np.array_split(np.arange(n_buckets), n_folds)]


def cross_validated(
    evidence: Evidence, sign: np.ndarray, folds: Sequence[Sequence[int]], options: Options
) -> HeldOut:
    """Paths of the buckets outside every fold, and what they do inside it."""
    every = range(evidence.moments.n_buckets)
    shape = len(folds), len(options.alphas), len(options.sizes)
    weights = np.zeros((*shape, len(evidence.candidates)))
    gap, spread = np.zeros(shape), np.zeros(shape)
    for fold, out in enumerate(folds):
        inside = [bucket for bucket in every if bucket not in out]
        training, held_out = evidence.contrast(sign, inside), evidence.contrast(sign, out)
        among = evidence.among(sign, inside)
        for i, alpha in enumerate(options.alphas):
            path = options.path(training, alpha, among)
            _, own = products(training, path)
            path /= np.sqrt(np.where(own > 0, own, 1))[:, None]
            weights[fold, i] = path
            gap[fold, i], spread[fold, i] = products(held_out.unbiased(), path)
        if not training.weight.all():
            gap[fold] = np.nan  # nothing was learned
    return HeldOut(weights, gap, spread)


def best(
    found: HeldOut, rule: str, *, only: int | None = None, left_out: int | None = None
) -> tuple[int, int]:
    """Places of the shrinkage and the size that a rule chooses.

    Parameters
    ----------
    found : HeldOut
    rule : {"best", "one_se"}
        The highest held-out AUC; or the fewest features whose is not lower by more than one standard error of
        the highest (Breiman, Friedman, Olshen, Stone 1984), with the shrinkage that is best for as many.
    only : int, optional
        Place of the one size in question.
    left_out : int, optional
        A fold that has no say.
    """
    auc = np.nan_to_num(found.pooled(left_out), nan=-1)
    if only is not None:
        return int(auc[:, only].argmax()), only
    alpha, size = np.unravel_index(auc.argmax(), auc.shape)
    if rule == "one_se":
        enough = auc >= auc[alpha, size] - standard_error(found, int(alpha), int(size), left_out)
        size = np.flatnonzero(enough.any(axis=0))[0]
        alpha = np.where(enough[:, size], auc[:, size], -np.inf).argmax()
    return int(alpha), int(size)


def standard_error(found: HeldOut, alpha: int, size: int, left_out: int | None = None) -> float:
    """Jackknife standard error of the pooled held-out AUC, over folds."""
    gap, spread = found.gap[:, alpha, size], found.spread[:, alpha, size]
    folds = [fold for fold in np.flatnonzero(found.known).tolist() if fold != left_out]
    if len(folds) < 2:
        return 0.0
    others = [[fold for fold in folds if fold != without] for without in folds]
    auc = [binormal_auc(gap[some].mean(), spread[some].mean()) for some in others]
    return float(np.sqrt((len(folds) - 1) / len(folds) * np.square(auc - np.mean(auc)).sum()))
