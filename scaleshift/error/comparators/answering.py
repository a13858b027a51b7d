"""What would other methods say of a target?  One function each, of the same two samples of rows.

Intervals are of the weighted methods alone: what confidence misses is no matter of how many rows there are.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from scaleshift.error.comparators import thresholding, weighting
from scaleshift.error.discriminator import Shift
from scaleshift.error.family import Answer
from scaleshift.error.held_out import HeldOut, Seen, shift_of

NOT_HELD_OUT = "no cross-validation: the model has seen the rows that it is judged by"
NO_FOLDS = "no cross-validation: there are no folds"
NO_CLASSES = "for classes alone: numbers have no confidence"
TOO_FEW = "too few rows to tell source and target apart"
NO_ROWS = "no rows"
APART = "source and target hardly overlap: a weighted mean would say nothing"
FEWEST_ROWS, LEAST_COVERAGE = 10, 0.1  # effective rows; share of the target that source rows stand for
COUNTING = 'counts errors: for loss="counting" alone'


def importance_weighted(held: HeldOut, target: Seen) -> Answer:
    """Self-normalised weighted mean of held-out losses; delta-method interval, NaN of grouped rows."""
    shift = shift_of(held, target)
    if shift is None or _hopeless(shift):
        return Answer(np.nan, reason=TOO_FEW if shift is None else APART)
    found = weighting.weighted(weighting.sums_of(held.loss, shift.weight), held.level)
    reason = "" if held.is_held_out else NOT_HELD_OUT
    if held.is_grouped:  # rows of a group are no independent draws
        return Answer(found.error, reason=reason)
    least, most = float(held.loss.min()), float(held.loss.max())  # a weighted mean is no further out
    return Answer(found.error, low=max(found.low, least), high=min(found.high, most), reason=reason)


def importance_weighted_cv(held: HeldOut, target: Seen) -> Answer:
    """Mean over folds of the fold's mean weighted loss; normal interval of rows, NaN of grouped ones."""
    shift = shift_of(held, target)
    if shift is None or _hopeless(shift):
        return Answer(np.nan, reason=TOO_FEW if shift is None else APART)
    if not held.is_held_out:
        return Answer(np.nan, reason=NO_FOLDS)
    error = weighting.cross_validated(weighting.by_fold(held.loss, shift.weight, held.fold))
    if held.is_grouped:
        return Answer(error)
    spread = np.std(shift.weight * held.loss, ddof=1) / len(held.loss) ** 0.5
    reach = float(ndtri((1 + held.level) / 2) * spread)
    return Answer(error, low=max(error - reach, 0.0), high=error + reach)


def _hopeless(shift: Shift) -> bool:
    """Whether weights say nothing: a handful of rows decides, or all are far too small."""
    return shift.effective_sample_size < FEWEST_ROWS or shift.coverage < LEAST_COVERAGE


def average_confidence(held: HeldOut, target: Seen) -> Answer:
    """Mean loss that the model's own probabilities expect: one minus confidence of the counting error."""
    if not held.is_classes:
        return Answer(np.nan, reason=NO_CLASSES)
    if not len(target.x):
        return Answer(np.nan, reason=NO_ROWS)
    return Answer(float(target.expected.mean()))


def difference_of_confidence(held: HeldOut, target: Seen) -> Answer:
    """The same, corrected by what it misses on held-out rows of the source."""
    missing = _missing(held, target)
    if missing:
        return Answer(np.nan, reason=missing)
    off = held.loss.mean() - held.expected.mean()
    return Answer(float(target.expected.mean() + off), reason="" if held.is_held_out else NOT_HELD_OUT)


def average_thresholded_confidence(held: HeldOut, target: Seen) -> Answer:
    """Share of the target below a confidence: as many held-out source rows are below it as are wrong."""
    missing = _missing(held, target)
    if missing or held.loss_name != "counting":
        return Answer(np.nan, reason=missing or COUNTING)
    source, most = held.prediction.max(axis=1), target.prediction.max(axis=1)
    threshold = thresholding.threshold_of(source, int(held.loss.sum()))
    n_below, n_at = int((most < threshold.at).sum()), int((most == threshold.at).sum())
    return Answer(threshold.error(n_below, n_at, len(most)), reason="" if held.is_held_out else NOT_HELD_OUT)


def _missing(held: HeldOut, target: Seen) -> str:
    """Why nothing can be said, or nothing."""
    if not held.is_classes:
        return NO_CLASSES
    return "" if len(target.x) and len(held.x) else NO_ROWS
