"""Which proportions do counts of predicted classes, of flagged cells and of posteriors tell?

Three estimators and the median of them; each for many replicates at once, so that an interval is a small
solve. *Open* ones leave flagged cells out and give less than one in all; *closed* ones take every cell.

C: classify and count. B: least squares between the predicted shares and those of the classes (BBSE with a
class of flagged cells). E: expectation-maximisation over posteriors. H: class by class the median of these.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scaleshift.solve.simplex import simplex_least_squares

NAMES = {
    "C": "classify and count",
    "B": "inverted confusion matrix",
    "E": "expectation-maximisation",
    "H": "median of three estimators",
}
STEP = 1e-3  # mean change of a proportion at which EM ends: what hardly any cell tells stays as in the source
MAX_STEPS = 1_000


class Rates(NamedTuple):
    """What becomes of the source's cells; the leading axis is over replicates."""

    predicted: np.ndarray  # (r, n_classes, n_classes) shares of a class's cells by predicted class
    clear: np.ndarray  # (r, n_classes, n_classes) the same of those that are not flagged
    flagged_of_predicted: np.ndarray  # (r, n_classes) share of flagged cells by predicted class
    prior: np.ndarray  # (n_classes,) class shares of the source

    def replicates(self, which: slice | np.ndarray) -> Rates:
        """Of some replicates."""
        return Rates(self.predicted[which], self.clear[which], self.flagged_of_predicted[which], self.prior)

    @property
    def flagged(self) -> np.ndarray:
        """Share of flagged cells by class, (r, n_classes)."""
        return np.clip(1 - self.clear.sum(axis=2), 0, 0.999)


class Seen(NamedTuple):
    """What is counted of one sample's cells; the leading axis is over replicates."""

    predicted: np.ndarray  # (r, n_classes) shares of the cells by predicted class
    kinds: np.ndarray  # (r, n_prototypes) shares of the cells by prototype
    posteriors: np.ndarray  # (n_prototypes, n_classes) mean posterior of these


def rates(predicted: np.ndarray, clear: np.ndarray) -> Rates:
    """Rates of counts (r, n_classes, n_classes) by class and predicted class, the first of all cells.

    A class without cells in a replicate has the rates of all; one without any is told without error.
    """
    n = predicted.sum(axis=2)
    own = np.eye(predicted.shape[1]) * np.maximum(n[0], 1)[:, None]
    every = n[0, :, None] > 0
    base, base_clear = np.where(every, predicted[0], own), np.where(every, clear[0], own)
    there = n[:, :, None] > 0
    total = np.where(there, n[:, :, None], base.sum(axis=1)[None, :, None])
    of_predicted = predicted.sum(axis=1)
    missed = of_predicted - clear.sum(axis=1)
    usual = missed[0].sum() / max(of_predicted[0].sum(), 1)
    by_predicted = np.where(of_predicted > 0, missed / np.maximum(of_predicted, 1e-12), usual)
    return Rates(
        np.where(there, predicted, base) / total,
        np.where(there, clear, base_clear) / total,
        by_predicted,
        n[0] / n[0].sum(),
    )


def closed(seen: Seen, source: Rates, steps: int | None = None) -> tuple[np.ndarray, int]:
    """The four estimates without an unknown share: (4, r, n_classes), and EM's number of steps."""
    gram, products = _products(source.predicted, seen.predicted)
    inverted = simplex_least_squares(gram, products)
    start = np.broadcast_to(source.prior, seen.predicted.shape)
    mixed, steps = expectation_maximisation(seen, start, steps)
    return _with_median(seen.predicted, inverted, mixed), steps


def opened(seen: Seen, source: Rates, steps: int | None = None) -> tuple[np.ndarray, int]:
    """The same of the cells that are not flagged, whose shares (of all cells) `seen` has."""
    counted = seen.predicted / np.maximum(1 - source.flagged_of_predicted, 1e-3)
    counted = counted / np.maximum(counted.sum(axis=1, keepdims=True), 1)
    n_classes = counted.shape[1]
    outputs = np.zeros((len(source.clear), n_classes + 1, n_classes + 1))  # unknown and flag last
    outputs[:, :-1, :-1], outputs[:, :-1, -1], outputs[:, -1, -1] = source.clear, source.flagged, 1
    flag = np.clip(1 - seen.predicted.sum(axis=1, keepdims=True), 0, 1)
    gram, products = _products(outputs, np.concatenate([seen.predicted, flag], axis=1))
    inverted = simplex_least_squares(gram, products)[:, :-1]
    passed = 1 - source.flagged
    start = source.prior * passed
    mixed, steps = expectation_maximisation(seen, start / start.sum(axis=1, keepdims=True), steps)
    mixed = mixed / passed
    mixed = mixed / np.maximum(mixed.sum(axis=1, keepdims=True), 1e-12)
    total = np.minimum(1, (1 - flag[:, 0]) / (mixed * passed).sum(axis=1).clip(1e-12))
    return _with_median(counted, inverted, mixed * total[:, None]), steps


def expectation_maximisation(seen: Seen, start: np.ndarray, steps: int | None) -> tuple[np.ndarray, int]:
    """Proportions among the cells of `seen`, (r, n_classes); without `steps` until the first row rests."""
    kinds = seen.kinds / np.maximum(seen.kinds.sum(axis=1, keepdims=True), 1e-12)
    shares = np.broadcast_to(start, (len(kinds), start.shape[-1]))
    for step in range(MAX_STEPS if steps is None else steps):
        told = kinds / np.maximum(shares @ seen.posteriors.T, 1e-300)
        following = shares * (told @ seen.posteriors)
        following = following / np.maximum(following.sum(axis=1, keepdims=True), 1e-300)
        rests = np.abs(following[0] - shares[0]).mean() < STEP
        shares = following
        if steps is None and rests:
            return shares, step + 1
    return shares, MAX_STEPS if steps is None else steps


def _products(outputs: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gram matrices and products of least squares; one source for all samples, or one for each."""
    gram = outputs @ outputs.transpose(0, 2, 1)
    gram = np.broadcast_to(gram, (len(seen), *gram.shape[1:]))
    return gram, np.einsum("rko,ro->rk", np.broadcast_to(outputs, (len(seen), *outputs.shape[1:])), seen)


def _with_median(*three: np.ndarray) -> np.ndarray:
    middle = np.median(three, axis=0)
    total = np.median([estimate.sum(axis=1) for estimate in three], axis=0)
    return np.array([*three, middle * (total / np.maximum(middle.sum(axis=1), 1e-12))[:, None]])
