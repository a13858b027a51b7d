"""What would other outcomes of the same rows have been?  Replicates, drawn as sums: no row is met again.

With G = Z'Z of a fold, c* = G theta + noise of covariance variance G, and y*'y* to match: the same
distribution as outcomes that are drawn row by row. Each replicate has a generator of its own, so that more of
them leave the first as they are.
"""

from __future__ import annotations

import numpy as np

from scaleshift.blocks import noise
from scaleshift.error.gaussian.clusters import Clusters, NoiseVariance
from scaleshift.error.gaussian.design import Design, root_of
from scaleshift.error.gaussian.sums import Outcomes


def given(design: Design, mean: np.ndarray, variance: float, train: Outcomes) -> Outcomes:
    """Outcomes z'mean + s e of noise e that was given by row, of which sums are known.

    Noise is taken as it was given: rows that share some must do so in e.
    """
    s = np.sqrt(variance)
    cross = (design.gram @ mean)[..., None] + s * train.cross
    square = 2 * s * np.einsum("q,kqb->kb", mean, train.cross) + variance * train.square
    return Outcomes(cross, square + np.einsum("q,kqr,r->k", mean, design.gram, mean)[:, None])


def drawn(
    design: Design,
    mean: np.ndarray,
    found: NoiseVariance,
    groups: Clusters | None,
    seed: int,
    n_replicates: int,
) -> Outcomes:
    """Outcomes of `n_replicates` draws.

    With groups, squares are those of independent noise of the same total: they do not choose a penalty.
    """
    folds, (k, q) = design.folds, design.gram.shape[:2]
    covariance = found.own * design.gram
    if groups is not None:
        covariance = covariance + found.shared * groups.between
    roots = {fold: root_of(covariance[fold]) for fold in folds}
    left = np.array([max(round(design.n_by_fold[f]) - len(roots[f].directions), 0) for f in folds])
    cross, square = np.zeros((k, q, n_replicates)), np.zeros((k, n_replicates))
    for b in range(n_replicates):
        random = noise.of_replicate(seed, "train", b)
        normal = random.standard_normal((len(folds), q))
        rest = random.chisquare(np.maximum(left, 1)) * (left > 0)
        cross[folds, :, b] = normal
        square[folds, b] = rest
    for fold in folds:
        along = roots[fold].directions @ cross[fold]
        cross[fold] = roots[fold].factor @ cross[fold]
        square[fold] = found.total * (square[fold] + (along * along).sum(axis=0))
        expected = design.gram[fold] @ mean
        square[fold] += 2 * (mean @ cross[fold]) + mean @ expected
        cross[fold] += expected[:, None]
    return Outcomes(cross, square)


def inner_noise(gram: np.ndarray, seed: int, n_replicates: int) -> np.ndarray:
    """Noise of Z'y of variance 1, (q, n): that of replicates of replicates, the same for all of these."""
    draws = [noise.of_replicate(seed, "inner", b).standard_normal(len(gram)) for b in range(n_replicates)]
    return root_of(gram).factor @ np.stack(draws, axis=1)
