"""What if rows of a group are alike?  A random intercept by group: two variances of noise, told from sums.

Noise of a row is u_group + e_row. With s_g = sum of z over a group, noise of Z'y has the covariance
var(e) G + var(u) sum_g s_g s_g', which stays one matrix a fold however many groups there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from scaleshift.blocks import passes
from scaleshift.blocks.block import Block, Rows
from scaleshift.blocks.buckets import Buckets
from scaleshift.error.gaussian.sums import SourceSums, learned
from scaleshift.errors import DataError
from scaleshift.kernels.reference import to_numpy

MOST_NUMBERS = 125_000_000  # sums of groups that are held at a time: 1 GB


@dataclass(frozen=True)
class Clusters:
    """Sums over groups of products of their sums."""

    n_groups: int
    between: np.ndarray  # (K, q, q) sum_g s_g s_g', by fold
    means: np.ndarray  # (q, q) sum_g s_g s_g' / n_g
    cross: np.ndarray  # (q,) sum_g s_g y_g / n_g, y_g the sum of its outcomes
    square: float  # sum_g y_g^2 / n_g


@dataclass(frozen=True)
class NoiseVariance:
    """Variances of a row's outcome about its mean."""

    own: float  # of each row
    shared: float  # of each group; 0 without groups

    @property
    def total(self) -> float:
        """Of a new row of a new group."""
        return self.own + self.shared


def clusters(rows: Rows, buckets: Buckets | None, source: SourceSums) -> Clusters:
    """Sum up groups: one pass by key.

    Raises
    ------
    DataError
        If a group has rows in several folds, or groups are too many to be held.
    """
    k, q = buckets.n if buckets else 1, 1 + rows.n_markers
    n_categories = len(rows.categories("group"))
    if n_categories * (k + q + 1) > MOST_NUMBERS:
        raise DataError(
            f"{n_categories} groups of {q - 1} features are more than can be held: leave groups out, or join "
            "small ones"
        )
    beside = [name for name in ("label",) if name in rows.columns]
    found = passes.total(
        _group_block,
        rows.only("outcome", "group", *beside),
        {"n": (k,), "z": (q,), "y": ()},
        keyed="group",
        buckets=buckets,
        centre=source.centre,
        middle=source.middle,
    )
    return _aggregated(found, rows)


def noise_of(
    clusters: Clusters, hat: np.ndarray, gram: np.ndarray, theta: np.ndarray, rss: float, variance: float
) -> NoiseVariance:
    """Variances by the method of moments (Henderson's third method with the hat matrix H = Z A Z').

    Residuals r = (I - H) y have E[r'r] and E[sum_g (sum of r in g)^2 / n_g] that are linear in both
    variances: exactly for least squares, where bias is 0, else as if it were 0. A negative variance
    becomes 0, and the other that of independent noise.

    Parameters
    ----------
    clusters : Clusters
    hat : numpy.ndarray, shape (q, q)
        A of the fit whose residuals are looked at.
    gram : numpy.ndarray, shape (q, q)
        Z'Z.
    theta : numpy.ndarray, shape (q,)
        That fit.
    rss : float
        Its sum of squared residuals.
    variance : float
        Of independent noise, where groups do not tell.
    """
    n, between = gram[0, 0], clusters.between.sum(axis=0)
    on_gram, on_between, on_means = hat @ gram, hat @ between, hat @ clusters.means
    twice = on_gram @ hat  # A G A
    all_by_own = n - 2 * np.trace(on_gram) + np.vdot(on_gram.T, on_gram)
    all_by_shared = n - 2 * np.trace(on_between) + np.vdot(twice, between)
    means_by_own = clusters.n_groups - 2 * np.trace(on_means) + np.vdot(twice, clusters.means)
    means_by_shared = n - 2 * np.trace(on_between) + np.vdot(on_between @ hat, clusters.means)
    means = theta @ clusters.means @ theta - 2 * theta @ clusters.cross + clusters.square
    equations = np.array([[all_by_own, all_by_shared], [means_by_own, means_by_shared]])
    alone = NoiseVariance(variance, 0.0)
    if not abs(np.linalg.det(equations)) > 1e-9 * np.abs(equations).max() ** 2:
        return alone  # groups of one row, or one group
    own, shared = np.linalg.solve(equations, [rss, means])
    return NoiseVariance(float(own), float(shared)) if shared > 0 and own > 0 else alone


def _group_block(
    block: Block,
    keys: np.ndarray,
    buckets: Buckets | None,
    centre: np.ndarray,
    middle: float,
) -> dict[str, Any]:
    """Sums of one block by the groups in it."""
    local = block.columns["group"]
    if buckets is None:
        fold, k = np.zeros(len(local), np.int64), 1
    else:
        named = block._replace(columns={**block.columns, "group": keys[local]})  # as buckets know them
        fold, k = buckets(named), buckets.n
    on = np.flatnonzero(learned(block))
    group, y = local[on], np.asarray(block.columns["outcome"][on], np.float64) - middle
    n = np.bincount(group * k + fold[on], minlength=len(keys) * k).reshape(len(keys), k)
    x = to_numpy(block.x)
    z = np.empty((len(keys), 1 + x.shape[1]))
    z[:, 0] = n.sum(axis=1)
    for j in range(x.shape[1]):
        z[:, 1 + j] = np.bincount(group, x[on, j] - centre[j], minlength=len(keys))
    return {"n": n, "z": z, "y": np.bincount(group, y, minlength=len(keys))}


def _aggregated(found: dict[str, np.ndarray], rows: Rows) -> Clusters:
    """What is kept of the sums of all groups."""
    torn = np.flatnonzero((found["n"] > 0).sum(axis=1) > 1)
    if torn.size:
        name = rows.categories("group")[found["key"][torn[0]]]
        raise DataError(
            f"group {name!r} has rows in several folds, which then tell of each other: give cv as a number, "
            "so that whole groups are held out, or splits that keep groups whole"
        )
    n = found["n"].sum(axis=1)
    known = n > 0
    n, z, y, by_fold = n[known], found["z"][known], found["y"][known], found["n"][known] > 0
    between = np.stack([z[here].T @ z[here] for here in by_fold.T])
    return Clusters(len(n), between, (z.T / n) @ z, z.T @ (y / n), float((y * y / n).sum()))
