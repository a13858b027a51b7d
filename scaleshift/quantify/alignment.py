"""Do classes that moved explain a sample?  Cells are given to their nearest class, and it is moved back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from scaleshift.quantify.features import ExplicitEmbedding
from scaleshift.quantify.moments import centres_and_spreads
from scaleshift.quantify.scores import (
    UNKNOWN_DENSITY,
    posteriors,
    row_features,
    sharpness,
    usual_density,
)
from scaleshift.solve.simplex import simplex_least_squares

N_STEPS = 3  # of moving back and giving cells to classes again
NEAR = 2.0  # within-class sd, root mean square over the markers: farther cells say nothing of a class's place
FARTHEST = 2.0  # within-class sd that a class is moved at most: beyond, it is another population
SHRINK = 50  # cells: the move of a class with so many counts half


@dataclass(frozen=True)
class KnownClasses:
    """What the model knows of the classes that have source cells."""

    embedding: ExplicitEmbedding
    means: np.ndarray  # (n_labels, n_features) class embeddings
    counts: np.ndarray  # (n_labels,)
    centres: np.ndarray  # (n_labels, n_markers)
    spreads: np.ndarray  # (n_labels, n_markers) within-class sd
    self_products: np.ndarray  # (n_labels,) mean squared norm of the features of a class's cells
    power: float  # to which densities are as sharp as the classes

    @property
    def typical(self) -> np.ndarray:
        """Mean density of each class at its own cells, (n_labels,)."""
        return np.sum(self.matched**2, axis=1)

    @property
    def matched(self) -> np.ndarray:
        """The features that proportions are matched on, (n_labels, n_matching)."""
        return self.means[:, : self.embedding.n_matching]


@dataclass(frozen=True)
class Fit:
    """Some cells of one sample, matched by the classes."""

    density: np.ndarray  # (n, n_labels) of every class at every cell
    own_density: np.ndarray  # (n,) of the sample itself
    hard: np.ndarray  # (n_labels,) proportions that add up to one
    soft: np.ndarray  # (n_labels,) proportions that need not
    distance: float
    misfit: float

    @property
    def unknown(self) -> float:
        """The share that soft matching leaves."""
        return float(np.clip(1 - self.soft.sum(), 0, 1))


@dataclass(frozen=True)
class Aligned:
    """One sample before and after its classes were moved back."""

    before: Fit
    after: Fit
    moved: np.ndarray  # (n_labels, n_markers) in within-class sd; NaN for classes without cells near
    shift: np.ndarray  # (n_markers,) mean over these cells


def known_classes(model: Any) -> KnownClasses:
    """What the model knows of its classes, those without cells left out."""
    present, source, embedding = model.class_counts_ > 0, model.source_, model.embedding_
    counts = model.class_counts_[present]
    centres, spreads = centres_and_spreads(source.moments[present], counts)
    sums = source.means[present]
    means, own = embedding.features(sums), embedding.self_products(sums)
    return KnownClasses(embedding, means, counts, centres, spreads, own, sharpness(model))


def align(known: KnownClasses, x: np.ndarray) -> Aligned:
    """Move each class back to where it lies in the source, as far as the cells near it tell.

    Parameters
    ----------
    known : KnownClasses
    x : numpy.ndarray of float64, shape (n, n_markers)
        A random draw of one sample's cells.
    """
    before = after = match(known, x)
    n = np.zeros(len(known.centres))
    move = np.zeros_like(known.centres)
    moved_back = x
    for _ in range(N_STEPS):
        nearest = np.argmax(_posteriors(known, after.density, after.hard), axis=1)
        off = (moved_back - known.centres[nearest]) / known.spreads[nearest]
        near = np.sqrt(np.mean(off**2, axis=1)) < NEAR
        member = (nearest[near, None] == np.arange(len(n))).astype(np.float64)
        n = member.sum(axis=0)
        centre = member.T @ x[near] / np.maximum(n, 1)[:, None]
        reach = FARTHEST * known.spreads
        move = np.clip(np.where(n[:, None] > 0, centre - known.centres, 0), -reach, reach)
        move *= (n / (n + SHRINK))[:, None]
        moved_back = x - move[nearest]
        after = match(known, moved_back)
    if after.misfit >= before.misfit:  # overlapping classes pull each other's centres: that explains nothing
        after = before
    moved = np.where(n[:, None] > 0, move / known.spreads, np.nan)
    weight = n / max(n.sum(), 1)
    return Aligned(before, after, moved, weight @ np.nan_to_num(moved))


def match(known: KnownClasses, x: np.ndarray) -> Fit:
    """Match some cells, all of a sample or drawn at random, by the classes.

    What sampling noise alone would add to the distance is taken off, so that few cells are not far cells.
    """
    embedding = known.embedding
    features = embedding.features(row_features(embedding, x))  # (n, n_features)
    target = features.mean(axis=0)
    matched, own = known.matched, slice(embedding.n_matching)
    gram = matched @ matched.T
    soft = simplex_least_squares(gram, (matched @ target[own])[None], soft=True)[0]
    means = known.means
    hard = simplex_least_squares(means @ means.T, (means @ target)[None])[0]
    residual = target - hard @ means
    noise = (np.mean(np.sum(features**2, axis=1)) - target @ target) / max(len(x) - 1, 1)
    spread = np.maximum(known.self_products - np.diag(gram), 0)
    noise += np.sum(hard**2 * spread / known.counts)
    distance = float(np.sqrt(max(residual @ residual - noise, 0)))
    return Fit(
        np.maximum(features[:, own] @ matched.T, 0),
        np.maximum(features[:, own] @ target[own], 0),
        hard,
        soft,
        distance,
        distance / float(np.sqrt(target @ target)),
    )


def unknown_weights(known: KnownClasses, fit: Fit) -> np.ndarray:
    """How much each cell belongs to the unknown population, (n,), from 0 to 1.

    1 - sum_i a_i p_i(x) / q(x), the density ratio of the classes to the sample itself, shows unknown cells
    that lie together, also where they overlap with a class. Where they are so few and far between that the
    sample has hardly any density of its own, the posterior of a flat density does. The larger one counts.
    """
    usual = usual_density(fit.soft, known.typical)
    by_ratio = 1 - fit.density @ fit.soft / np.maximum(fit.own_density, 1e-3 * usual)
    flat = np.full(len(fit.density), UNKNOWN_DENSITY * usual)
    share = np.append(fit.soft, fit.unknown)
    by_density = _posteriors(known, np.column_stack([fit.density, flat]), share)[:, -1]
    return np.clip(np.maximum(by_ratio, by_density), 0, 1)


def _posteriors(known: KnownClasses, density: np.ndarray, share: np.ndarray) -> np.ndarray:
    return posteriors(density, np.broadcast_to(share, density.shape), known.power)
