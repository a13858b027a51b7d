"""Which features come into question at all?  Those of largest t, told from their means and variances.

One pass whose cost grows with the number of features, not with its square.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scaleshift.auc.evidence import t_ranks
from scaleshift.auc.moments import ClassMoments, bucketed, contrast, weights
from scaleshift.blocks import passes
from scaleshift.blocks.block import Block, Rows
from scaleshift.blocks.buckets import Buckets
from scaleshift.blocks.statistics import Layout
from scaleshift.kernels import dispatch


def class_spread(rows: Rows, buckets: Buckets | None, *, weighted: bool) -> ClassMoments:
    """Means and squares of every label in every bucket, about 0: one pass, also over sparse rows."""
    n_classes, n_buckets = len(rows.categories("label")), buckets.n if buckets else 1
    groups, p = n_classes * n_buckets, rows.n_markers
    layout = layout_of_spread(groups, p)
    told: dict[str, Any] = {"buckets": buckets, "n_classes": n_classes, "weighted": weighted}
    found = passes.total(spread_of_block, rows, layout, **told)
    shape = n_classes, n_buckets
    first, second = (found["moments"][:, order].reshape(*shape, p) for order in (0, 1))
    count, weight = (found[name].reshape(shape) for name in ("count", "weight"))
    return ClassMoments(np.zeros(p), count, weight, first, second)


def layout_of_spread(groups: int, p: int) -> Layout:
    """Shapes of what one block gives."""
    return {"count": (groups,), "weight": (groups,), "moments": (groups, 2, p)}


def spread_of_block(block: Block, buckets: Buckets | None, n_classes: int, weighted: bool) -> dict[str, Any]:
    """Sums of one block, by class and bucket."""
    weight = weights(block) if weighted else None
    groups, n_groups = bucketed(block, buckets, n_classes, weight)
    known = groups >= 0
    with np.errstate(over="ignore", invalid="ignore"):  # `moments.usable` tells
        moments = dispatch.moment_sums(block.x, groups, n_groups, weight)
    return {
        "count": np.bincount(groups[known], minlength=n_groups),
        "weight": np.bincount(groups[known], None if weight is None else weight[known], minlength=n_groups),
        "moments": moments,
    }


def screened_by_any(
    spread: ClassMoments, signs: list[np.ndarray], parts: list[list[int]], n: int
) -> tuple[np.ndarray, int]:
    """Features that any part of the rows lets in, n at most.

    Parameters
    ----------
    spread : ClassMoments
        Of all features.
    signs : list of numpy.ndarray of int8, shape (n_classes,)
        Contrasts that will be asked for.
    parts : list of lists of int
        Buckets that will be asked for. Of few positives each part has favourites of its own.
    n : int

    Returns
    -------
    features : numpy.ndarray of int
        Ascending.
    n_each : int
        How many each contrast of each part lets in.
    """
    ranks = np.stack([t_ranks(contrast(spread, sign, part)) for sign in signs for part in parts])
    entered = np.sort(ranks.min(axis=0))  # with how many of each part a feature is let in
    n_each = int(entered[n]) if n < len(entered) else len(entered)
    n_each = max(n_each, 1)
    return np.flatnonzero(ranks.min(axis=0) < n_each), n_each
