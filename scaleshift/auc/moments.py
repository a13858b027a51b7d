"""What do all linear rankings of some rows need to know?  Moments of every class, in random buckets.

One pass sums them about one centre. From them come, without the rows: every split of the buckets into
training and held-out parts, every contrast of classes, every number of features.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from scaleshift.blocks import passes
from scaleshift.blocks.block import Block, Rows
from scaleshift.blocks.buckets import Buckets
from scaleshift.blocks.rows import first_rows
from scaleshift.blocks.statistics import Layout
from scaleshift.errors import DataError
from scaleshift.kernels import dispatch

CENTRE_ROWS = 1_000  # whose mean is the centre of the sums

MOST_SQUARES = 1e300  # sum of squares of a feature
HEAVIEST = 1e100  # weight, whose products with others and with squares of X stay in the range of float64
ROUNDING = 1e-11  # of the squared distance to the centre: a variance below is none, told from squares alone


@dataclass(frozen=True)
class ClassMoments:
    """Sums of rows about a centre, by class and bucket."""

    centre: np.ndarray  # (p,)
    count: np.ndarray  # (n_classes, n_buckets) rows
    weight: np.ndarray  # (n_classes, n_buckets) sums of their weights
    sum: np.ndarray  # (n_classes, n_buckets, p) of weight (x - centre)
    scatter: np.ndarray  # (n_classes, n_buckets, p, p) of weight (x - centre)(x - centre)'; (..., p): squares

    @property
    def n_buckets(self) -> int:
        """Random parts of every class."""
        return self.count.shape[1]

    def about(self, centre: np.ndarray) -> ClassMoments:
        """The same moments about another centre (Chan, Golub, LeVeque 1979)."""
        moved = self.centre - centre  # (p,)
        weight = self.weight[..., None]
        if self.scatter.ndim == self.sum.ndim:  # squares alone
            scatter = self.scatter + 2 * self.sum * moved + weight * moved**2
        else:
            scatter, outer = self.scatter.copy(), np.outer(moved, moved)
            for part in np.ndindex(self.count.shape):  # one after the other: they are large
                cross = np.outer(self.sum[part], moved)
                scatter[part] += cross
                scatter[part] += cross.T
                scatter[part] += self.weight[part] * outer
        return replace(self, centre=centre, sum=self.sum + weight * moved, scatter=scatter)

    def __add__(self, other: ClassMoments) -> ClassMoments:
        """Moments of the rows of both, of the same classes."""
        if other.centre.shape != self.centre.shape or other.count.shape != self.count.shape:
            raise DataError(
                f"moments of {self.count.shape} classes and buckets of {self.centre.size} features cannot "
                f"be added to those of {other.count.shape} of {other.centre.size}"
            )
        other = other.about(self.centre)
        return ClassMoments(
            self.centre,
            self.count + other.count,
            self.weight + other.weight,
            self.sum + other.sum,
            np.add(self.scatter, other.scatter, out=other.scatter),  # a copy of our own: of 100s of MB
        )


@dataclass(frozen=True)
class Contrast:
    """What a ranking of positives over negatives is made of."""

    count: np.ndarray  # (2,) rows, of negatives, of positives
    weight: np.ndarray  # (2,) sums of their weights
    mean: np.ndarray  # (2, p)
    covariance: np.ndarray  # (2, p, p) biased, or (2, p): variances alone

    @property
    def delta(self) -> np.ndarray:
        """Mean of the positives less that of the negatives: (p,)."""
        return self.mean[1] - self.mean[0]

    @functools.cached_property  # asked for by every shrinkage and size
    def within(self) -> np.ndarray:
        """W, the sum of both covariances: (p, p), or its diagonal."""
        return self.covariance[0] + self.covariance[1]

    def unbiased(self) -> Contrast:
        """The same with covariances of n - 1 in place of n: what few held-out rows would show too small.

        One row shows no spread: that of the other class takes its place; NaN where both are one row.
        """
        n = np.maximum(self.count, self.weight)  # a weight of 2 is a row that is there twice
        covariance = [
            part * (own / (own - 1)) for part, own in zip(self.covariance, n, strict=True) if own > 1
        ]
        if not covariance:
            return replace(self, covariance=np.full_like(self.covariance, np.nan))
        return replace(self, covariance=np.stack([covariance[0], covariance[-1]]))

    @property
    def variances(self) -> np.ndarray:
        """Of each class: (2, p)."""
        return self.covariance if self.covariance.ndim == 2 else np.einsum("cpp->cp", self.covariance).copy()

    @property
    def variance(self) -> np.ndarray:
        """Diagonal of W: (p,)."""
        within = self.within
        return np.diagonal(within) if within.ndim == 2 else within


def contrast(
    moments: ClassMoments, sign: np.ndarray, buckets: Sequence[int] | np.ndarray | None = None
) -> Contrast:
    """Positives against negatives, of all buckets or of some.

    Parameters
    ----------
    moments : ClassMoments
    sign : numpy.ndarray of int, shape (n_classes,)
        +1, -1, or 0 for classes that are left out.
    buckets : sequence of int, optional
    """
    chosen = np.arange(moments.n_buckets) if buckets is None else np.asarray(buckets)
    parts = [_part(moments, np.flatnonzero(sign == side), chosen) for side in (-1, 1)]
    return Contrast(*(np.stack(values) for values in zip(*parts, strict=True)))


def _part(moments: ClassMoments, classes: np.ndarray, buckets: np.ndarray) -> tuple[np.ndarray, ...]:
    """Rows, weight, mean and covariance of some classes in some buckets, as of one class."""
    count, weight = (values[np.ix_(classes, buckets)].sum() for values in (moments.count, moments.weight))
    first, second = np.zeros_like(moments.sum[0, 0]), np.zeros_like(moments.scatter[0, 0])
    for c in classes:
        for b in buckets:
            first += moments.sum[c, b]
            second += moments.scatter[c, b]
    with np.errstate(invalid="ignore"):  # without rows: NaN
        mean = first / weight
        second /= weight
    if second.ndim == 1:
        second -= mean * mean
        second[second <= ROUNDING * mean * mean] = 0
    else:
        second -= np.outer(mean, mean)
    return np.asarray(count), np.asarray(weight), moments.centre + mean, second


def class_moments(rows: Rows, buckets: Buckets | None, *, weighted: bool = False) -> ClassMoments:
    """Moments of every label in every bucket: one pass, and a look at the first rows.

    Parameters
    ----------
    rows : Rows
        With a column "label", and with "weight" where they are `weighted`.
    buckets : Buckets or None
        Their parts; None: one.
    weighted : bool, default False
    """
    n_classes, n_buckets = len(rows.categories("label")), buckets.n if buckets else 1
    p, groups = rows.n_markers, n_classes * n_buckets
    few = first_rows(rows, CENTRE_ROWS)
    centre = few.mean(axis=0, dtype=np.float64) if len(few) else np.zeros(p)
    layout = layout_of_moments(groups, p)
    found = passes.total(
        scatter_of_block, rows, layout, buckets=buckets, n_classes=n_classes, centre=centre, weighted=weighted
    )
    shaped = {name: values.reshape(n_classes, n_buckets, *values.shape[1:]) for name, values in found.items()}
    return ClassMoments(centre, **shaped)


def usable(found: ClassMoments, signs: Sequence[np.ndarray], fewest: int = 1) -> ClassMoments:
    """The same moments, if something can be learned from them.

    Raises
    ------
    DataError
        If a side of a contrast has fewer rows than these, as dropped ones are known by now; or squares of a
        feature are beyond float64.
    """
    by_class = found.count.sum(axis=1)
    for sign in signs:
        for side, name in ((1, "positive"), (-1, "negative")):
            if by_class[sign == side].sum() < fewest:
                raise DataError(
                    f"of the {name} rows {by_class[sign == side].sum():g} are finite, {fewest} are needed: "
                    "mend the values that are NaN or infinite, or give cv=None"
                )
    squares = found.scatter if found.scatter.ndim == 3 else np.einsum("cbpp->cbp", found.scatter)
    large = np.flatnonzero(~(squares.sum(axis=(0, 1)) < MOST_SQUARES))
    if large.size:
        raise DataError(
            f"the values of {large.size} column(s), first {large[0]}, are too large: their squares are "
            "beyond float64; divide them, X[:, column] / 1e100, or leave the columns out"
        )
    small = np.flatnonzero(_vanished(found, squares))
    if small.size:
        raise DataError(
            f"the values of {small.size} column(s), first {small[0]}, are too small: their squares are none "
            "in float32; pass X.astype('float64'), or multiply them, X[:, column] * 1e20"
        )
    return found


def _vanished(found: ClassMoments, squares: np.ndarray) -> np.ndarray:
    """Features whose squares are less than their means allow, (p,): float32 products were too small."""
    mean = found.sum / np.where(found.weight > 0, found.weight, 1)[..., None]
    less = squares < (1 - 1e-3) * found.weight[..., None] * mean**2
    return np.asarray((less & (np.abs(mean) > 1e-10 * np.abs(found.centre))).any(axis=(0, 1)))


def layout_of_moments(groups: int, p: int) -> Layout:
    """Shapes of what one block gives."""
    return {"count": (groups,), "weight": (groups,), "sum": (groups, p), "scatter": (groups, p, p)}


def scatter_of_block(
    block: Block, buckets: Buckets | None, n_classes: int, centre: np.ndarray, weighted: bool
) -> dict[str, Any]:
    """Sums of one block, by class and bucket."""
    weight = weights(block) if weighted else None
    groups, n_groups = bucketed(block, buckets, n_classes, weight)
    with np.errstate(over="ignore", invalid="ignore"):  # `usable` tells
        return dispatch.scatter_sums(block.x, groups, n_groups, centre, weight)


def bucketed(
    block: Block, buckets: Buckets | None, n_classes: int, weight: np.ndarray | None
) -> tuple[np.ndarray, int]:
    """Code of each row's class and bucket, and how many there are; -1 of rows without class or weight."""
    codes = block.codes("label").astype(np.int64)  # few labels are bytes, their buckets are not
    if weight is not None:
        codes = np.where(weight > 0, codes, -1)
    if buckets is None:
        return codes, n_classes
    return np.where(codes < 0, -1, codes * buckets.n + buckets(block)), n_classes * buckets.n


def weights(block: Block) -> np.ndarray:
    """What each row of a block counts.

    Raises
    ------
    DataError
        If a weight is negative, not finite, or too small or large to be squared; says which.
    """
    found = np.asarray(block.columns["weight"], np.float64)
    odd = np.flatnonzero(~((found == 0) | ((found >= 1 / HEAVIEST) & (found <= HEAVIEST))))
    if odd.size:
        raise DataError(
            f"sample_weight of row {block.start + odd[0]} is {found[odd[0]]:g}: expected a number from 0, "
            f"and none beyond {1 / HEAVIEST:g} to {HEAVIEST:g}: divide all by their mean"
        )
    return found
