"""Which estimator suits this study, and how much looks unknown where nothing is?  Each part left out in turn.

Where the source has several labelled samples, each is taken for a target: classifiers, landmarks and usual
values are those of the others. Its own proportions count in full, resampled ones (Dirichlet) half.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scaleshift.blocks import noise
from scaleshift.quantify.open_set import estimators
from scaleshift.quantify.open_set.alignment import class_shifts, flagged
from scaleshift.quantify.open_set.estimators import Seen, rates
from scaleshift.quantify.open_set.learning import Learned, Scored
from scaleshift.quantify.open_set.profile import profile

DEFAULT = "H", 0.05  # estimator and gate where the source is one sample
LEAST_GATE = 0.03
N_RESAMPLED = 5


@dataclass(frozen=True)
class Selection:
    """What leaving samples out tells."""

    estimator: str  # letter, of `estimators.NAMES`
    gate: float  # unknown share that samples of known classes reach
    errors: np.ndarray  # (n_parts, 4) L1 error of C, B, E and H for each part left out; none for one sample


def select(learned: Learned, scored: Scored, seed: int) -> Selection:
    """The estimator with the least error; the largest unknown share of a left-out sample, .03 at least."""
    if not learned.strata.by_sample:
        return Selection(*DEFAULT, np.zeros((0, 4)))
    shares = noise.generator(seed, "resampled").dirichlet(np.ones(learned.strata.n_classes), size=N_RESAMPLED)
    own, resampled, novel = [], [], []
    for part in range(learned.strata.n_parts):
        errors, unknown = _left_out(learned, scored, part, shares)
        own.append(errors[0])
        resampled.append(errors[1:].mean(axis=0))
        novel.append(unknown)
    worth = np.mean(own, axis=0) + 0.5 * np.mean(resampled, axis=0)
    return Selection("CBEH"[int(np.argmin(worth))], max(LEAST_GATE, *novel), np.array(own))


def _left_out(learned: Learned, scored: Scored, part: int, shares: np.ndarray) -> tuple[np.ndarray, float]:
    """L1 errors (1 + n_resampled, 4) of the part as it is and resampled, and its unknown share by H."""
    here, n = scored.part == part, learned.strata.n_classes
    rest = profile(
        scored.z[~here],
        scored.predicted[~here],
        scored.novelty[~here],
        scored.weight[~here],
        learned.profile.spread,
        learned.profile.unknown,
    )
    novel = scored.novelty[~here] > rest.thresholds[scored.predicted[~here]]
    source = rates(*_crossed(scored, ~here, novel, n))
    z, predicted, novelty = scored.z[here], scored.predicted[here], scored.novelty[here]
    shift = class_shifts(z, predicted, novelty, rest)
    landmarks = learned.scorer.landmarks.only_others(part)
    _, novel = flagged(z, predicted, novelty, shift[None], np.zeros(len(z), np.int64), landmarks, rest)
    code, kind = scored.code[here], learned.prototypes.nearest(scored.posterior[here])
    errors, unknown = [], 0.0
    for number, wanted in enumerate([None, *shares]):
        weight = scored.weight[here]
        if wanted is not None:
            there = np.bincount(code, weight, n)
            weight = weight * np.where(there > 0, wanted / np.maximum(there, 1e-12), 0)[code]
        weight = weight / weight.sum()
        seen = _seen(predicted, kind, scored.posterior[here], weight * ~novel, learned)
        found = estimators.opened(seen, source)[0][:, 0]
        errors.append(np.abs(found - np.bincount(code, weight, n)).sum(axis=1))
        if number == 0:
            unknown = float(1 - found[3].sum())
    return np.array(errors), unknown


def _crossed(scored: Scored, here: np.ndarray, novel: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights by class and predicted class, of all cells and of those not flagged: (1, n, n) each."""
    cell, weight = scored.code[here] * n + scored.predicted[here], scored.weight[here]
    counted = [np.bincount(cell, weight * kept, n * n).reshape(1, n, n) for kept in (1.0, ~novel)]
    return counted[0], counted[1]


def _seen(
    predicted: np.ndarray, kind: np.ndarray, posterior: np.ndarray, weight: np.ndarray, learned: Learned
) -> Seen:
    n_kinds, n = learned.prototypes.posterior.shape
    kinds = np.bincount(kind, weight, n_kinds)
    sums = np.column_stack([np.bincount(kind, weight * column, n_kinds) for column in posterior.T])
    means = np.where(
        kinds[:, None] > 0, sums / np.maximum(kinds, 1e-300)[:, None], learned.prototypes.posterior
    )
    return Seen(np.bincount(predicted, weight, n)[None], kinds[None], means)
