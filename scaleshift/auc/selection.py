"""How many features, and how much shrinkage?  What ranks held-out buckets best, told from their moments.

Training moments are those of all buckets less the held-out ones, so that no further pass is needed. What a
ranking would attain on held-out rows is the binormal AUC of their moments: a proxy that chooses, and is not
reported as the AUC.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import correlate1d

from scaleshift.auc.evidence import Evidence
from scaleshift.auc.moments import Contrast
from scaleshift.auc.ranking import Search, binormal_auc, debiased, products, sparse_path
from scaleshift.solve.best_subset import best_subsets, forward_subsets


@dataclass(frozen=True)
class Options:
    """What a path of rankings is told, beside its data."""

    sizes: tuple[int, ...]  # numbers of features, ascending
    alphas: tuple[float, ...]  # shrinkage, ascending
    scale: bool = True
    positive: bool = False
    debias: bool = False

    def path(
        self,
        found: Contrast,
        alpha: float,
        among: np.ndarray | None,
        size: int | None = None,
        search: Search = best_subsets,
    ) -> np.ndarray:
        """Rankings of all sizes, or of one: (n_sizes, p)."""
        sizes = self.sizes if size is None else (size,)
        how = {"scale": self.scale, "positive": self.positive}
        path = sparse_path(found, sizes, alpha=alpha, among=among, search=search, **how)
        return debiased(found, path, **how) if self.debias else path


@dataclass(frozen=True)
class HeldOut:
    """What the rankings of every fold do on the buckets that it leaves out."""

    gap: np.ndarray  # (n_folds, n_alphas, n_sizes) w'delta; w is in units of the scores' training spread
    spread: np.ndarray  # the same of w'Ww
    out: Sequence[Sequence[int]]  # the buckets that each fold leaves out
    weights: np.ndarray | None = None  # (n_folds, n_alphas, n_sizes, p) of the candidates

    @property
    def known(self) -> np.ndarray:
        """Folds that say something, (n_folds,) bool: one may lack a class."""
        return np.isfinite(self.gap[:, 0, 0] + self.spread[:, 0, 0])

    def pooled(self, left_out: Sequence[int] = ()) -> np.ndarray:
        """Binormal AUC of the folds together, (n_alphas, n_sizes); without those of some buckets.

        Gaps and spreads are averaged before they are divided: those of a few rows are too noisy alone.
        """
        folds = self.known & [not set(out) & set(left_out) for out in self.out]
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


def re_paired(n_folds: int, n_times: int) -> list[list[int]]:
    """The same for two buckets a fold, paired in other ways: several folds that leave each bucket out.

    Which rows are left out together is chance, and the choice with few rows depends on it.

    Examples
    --------
    >>> re_paired(3, 2)
    [[0, 3], [2, 5], [4, 1], [0, 5], [2, 1], [4, 3]]
    """
    shifts = range(3, 2 * min(n_times + 1, n_folds), 2)  # 1 is that of `divided`
    return [
        [first, (first + shift) % (2 * n_folds)] for shift in shifts for first in range(0, 2 * n_folds, 2)
    ]


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
        training, held_out = evidence.contrast(sign, inside), evidence.contrast(sign, out).unbiased()
        among = evidence.among(sign, inside)
        for i, alpha in enumerate(options.alphas):
            path = weights[fold, i] = in_units(training, options.path(training, alpha, among))
            gap[fold, i], spread[fold, i] = products(held_out, path)
        if not training.weight.all():
            gap[fold] = np.nan  # nothing was learned
    return HeldOut(gap, spread, folds, weights)


def nested(
    evidence: Evidence, sign: np.ndarray, folds: Sequence[Sequence[int]], options: Options
) -> list[HeldOut]:
    """For every fold, what rankings that never saw it do on each of the others: to choose by without its say.

    Each leaves two folds out, so that every pair serves both. Forward steps alone are taken: what is chosen
    are a size and a shrinkage, not features.
    """
    every = range(evidence.moments.n_buckets)
    shape = len(folds), len(folds), len(options.alphas), len(options.sizes)
    gap, spread = np.full(shape, np.nan), np.full(shape, np.nan)
    held_out = [evidence.contrast(sign, out).unbiased() for out in folds]
    for f, g in itertools.combinations(range(len(folds)), 2):
        inside = [bucket for bucket in every if bucket not in (*folds[f], *folds[g])]
        training, among = evidence.contrast(sign, inside), evidence.among(sign, inside)
        for i, alpha in enumerate(options.alphas):
            path = in_units(training, options.path(training, alpha, among, search=forward_subsets))
            gap[f, g, i], spread[f, g, i] = products(held_out[g], path)
            gap[g, f, i], spread[g, f, i] = products(held_out[f], path)
        if not training.weight.all():
            gap[f, g] = gap[g, f] = np.nan
    return [HeldOut(gap[f], spread[f], folds) for f in range(len(folds))]


def in_units(found: Contrast, path: np.ndarray) -> np.ndarray:
    """The same rankings, in units of the spread of their scores."""
    _, own = products(found, path)
    return path / np.sqrt(np.where(own > 0, own, 1))[:, None]


def best(
    found: HeldOut, rule: str, *, only: int | None = None, left_out: Sequence[int] = ()
) -> tuple[int, int]:
    """Places of the shrinkage and the size that a rule chooses.

    Parameters
    ----------
    found : HeldOut
    rule : {"best", "one_se"}
        The highest held-out AUC, averaged with those of the neighbours; or the fewest features whose is not
        lower by more than one standard error of the highest (Breiman, Friedman, Olshen, Stone 1984), with the
        shrinkage that is best for as many.
    only : int, optional
        Place of the one size in question.
    left_out : sequence of int, optional
        Buckets that have no say.
    """
    auc = np.nan_to_num(found.pooled(left_out), nan=-1)
    if only is not None:
        return int(auc[:, only].argmax()), only
    alpha, size = np.unravel_index((smoothed(auc) if rule == "best" else auc).argmax(), auc.shape)
    if rule == "one_se":
        enough = auc >= auc[alpha, size] - standard_error(found, int(alpha), int(size), left_out)
        size = np.flatnonzero(enough.any(axis=0))[0]
        alpha = np.where(enough[:, size], auc[:, size], -np.inf).argmax()
    return int(alpha), int(size)


def smoothed(auc: np.ndarray) -> np.ndarray:
    """Averages with both neighbours in shrinkage and size, weighed 1, 2, 1: a peak of chance stands alone.

    Examples
    --------
    >>> int(smoothed(np.array([[0.5, 0.9, 0.5, 0.8, 0.8, 0.8]])).argmax())
    4
    """
    for axis in (0, 1):
        auc = correlate1d(auc, [0.25, 0.5, 0.25], axis=axis, mode="nearest")
    return auc


def standard_error(found: HeldOut, alpha: int, size: int, left_out: Sequence[int] = ()) -> float:
    """Jackknife standard error of the pooled held-out AUC: without each bucket and its folds."""
    out = [part for part, known in zip(found.out, found.known, strict=True) if known]
    buckets = sorted({bucket for part in out for bucket in part} - set(left_out))
    if not buckets:
        return 0.0
    n_folds = len(buckets) / np.mean([len(part) for part in out])  # of one way to leave each out once
    auc = np.array([found.pooled([*left_out, bucket])[alpha, size] for bucket in buckets])
    if n_folds < 2 or not np.isfinite(auc).all():
        return 0.0
    return float(np.sqrt((1 - 1 / n_folds) * n_folds * auc.var()))
