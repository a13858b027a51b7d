"""What do comparators see?  A bounded sample of labelled source rows, judged by models without their fold.

And one of each target. What the models say of these rows is computed once, and shared by all comparators.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from scaleshift.blocks import passes, states
from scaleshift.blocks.block import Block, Rows
from scaleshift.blocks.buckets import Buckets
from scaleshift.error.discriminator import Shift, discriminate
from scaleshift.error.family import Family, Settings, WithLeverage
from scaleshift.error.flags import FAR_QUANTILE
from scaleshift.error.losses import expected_loss, observed_loss
from scaleshift.user_objects import name_of

MOST_ROWS = 5_000  # a share of them is known to .007; twice as many would cost a discriminator twice as long
MOST_BYTES = 80_000_000  # of X: rows of many features are fewer
FOLDS = 5  # of the discriminator; fewer where a side has fewer rows
NOISE = ("train", "fresh", "noise")  # columns that the caller has drawn, wide ones, which nobody needs here


@dataclass(frozen=True, eq=False)
class HeldOut:
    """A sample of labelled source rows."""

    x: np.ndarray  # (n, p) float64
    y: np.ndarray  # (n,) numbers, or codes of classes
    fold: np.ndarray  # (n,) int64; -1: every model has seen the row
    prediction: np.ndarray  # (n,), or (n, K) probabilities, by models that have not seen the row's fold
    loss: np.ndarray  # (n,)
    expected: np.ndarray  # (n,) loss that the predicted probabilities expect; NaN of numbers
    is_classes: bool
    is_grouped: bool  # whether rows depend on others
    loss_name: str
    level: float  # of intervals

    @property
    def is_held_out(self) -> bool:
        """Whether models have not seen the rows that they are judged by."""
        return bool((self.fold >= 0).all())


@dataclass(frozen=True, eq=False)
class Seen:
    """A sample of a target."""

    x: np.ndarray  # (m, p) float64
    prediction: np.ndarray  # (m,) or (m, K), by the model of all rows
    expected: np.ndarray  # (m,) loss that the predicted probabilities expect; NaN of numbers


# Asked for by every comparator and flag. Rows, which hash by identity, do not stay in memory for its sake:
# those of a monitor's last updates would be gigabytes.
_shifts: WeakKeyDictionary[Seen, WeakKeyDictionary[HeldOut, Shift | None]] = WeakKeyDictionary()


def shift_of(held: HeldOut, target: Seen) -> Shift | None:
    """How the target differs from the source; None with fewer than two rows on a side."""
    known = _shifts.setdefault(target, WeakKeyDictionary())
    if held not in known:
        n_folds = min(FOLDS, len(held.x), len(target.x))
        known[held] = None if n_folds < 2 else discriminate(held.x, target.x, n_folds=n_folds)
    return known[held]


def held_out(rows: Rows, family: Family, buckets: Buckets | None, settings: Settings, seed: int) -> HeldOut:
    """Draw labelled source rows and judge them: one pass.

    Parameters
    ----------
    rows : Rows
        As of a `Job`: with the column "outcome", or "label" of classes.
    family : Family
    buckets : Buckets or None
        Folds; None: no cross-validation, rows are judged by the model of all rows.
    settings : Settings
        Its `loss` and `level` are used.
    seed : int

    Returns
    -------
    HeldOut
        The same rows for any chunking.
    """
    name = "outcome" if "outcome" in rows.columns else "label"
    needed = rows.only(*(column for column in rows.columns if column not in NOISE))
    n = np.array([most_rows(rows)])
    drawn = passes.total(
        drawn_with_folds,
        needed,
        None,
        merge=functools.partial(states.merge_smallest, n),
        n=n,
        name=name,
        buckets=buckets,
        seed=seed,
    )
    x, fold = drawn["x"].astype(np.float64), drawn["fold"].astype(np.int64)
    prediction = family.held_out(x, fold)
    is_classes = name == "label"
    classes = rows.categories("label") if is_classes else None
    y = drawn[name].astype(np.int64 if is_classes else np.float64)
    loss = settings.loss
    return HeldOut(
        x,
        y,
        fold,
        prediction,
        observed_loss(loss, y, prediction, classes),
        _expected(loss, prediction, classes),
        is_classes,
        "group" in rows.columns,
        name_of(loss) if callable(loss) else loss,
        settings.level,
    )


def seen(
    rows: Rows, family: Family, settings: Settings, seed: int, classes: np.ndarray | None = None
) -> Seen:
    """Draw rows of a target and ask the model of them: one pass.

    Parameters
    ----------
    rows : Rows
        Of the target, in the source's columns.
    family : Family
    settings : Settings
        Its `loss` is used.
    seed : int
    classes : numpy.ndarray, shape (K,), optional
        Labels, which a loss of the user's is given.

    Returns
    -------
    Seen
    """
    drawn = passes.sample(rows.only(), most_rows(rows), seed=seed, stream="target rows")
    x = drawn["x"].astype(np.float64)
    prediction = family.predict(x) if len(x) else np.empty(0)  # estimators refuse no rows
    return Seen(x, prediction, _expected(settings.loss, prediction, classes))


def share_far(held: HeldOut, target: Seen, family: Family) -> float:
    """Share of target rows that extrapolate beyond the source's 99 % quantile; NaN where not known."""
    if not len(held.x) or not len(target.x):
        return np.nan
    source, found = family.extrapolation(held.x), family.extrapolation(target.x)
    if source is None or found is None:
        return np.nan
    if isinstance(family, WithLeverage):  # as a model sees a row that it has not learned from
        left = 1 - family.leverage(held.x)
        source = np.divide(source, left, out=np.full(len(left), np.inf), where=left > 0)
    edge = np.quantile(source, FAR_QUANTILE, method="higher")
    return np.nan if np.isnan(edge) else float(np.mean(found > edge))


def effective_sample_size(held: HeldOut, target: Seen) -> float:
    """So many rows of `held` tell of the target what as many of its own would; NaN where not known."""
    shift = shift_of(held, target)
    return np.nan if shift is None else shift.effective_sample_size


def coverage(held: HeldOut, target: Seen) -> float:
    """Share of the target that rows of `held` stand for, about; NaN where not known."""
    shift = shift_of(held, target)
    return np.nan if shift is None else shift.coverage


def drawn_with_folds(
    block: Block, n: np.ndarray, name: str, buckets: Buckets | None, seed: int
) -> dict[str, Any]:
    """Rows of one block with the smallest keys, their outcomes and folds along."""
    fold = np.full(len(block.valid), -1, np.int64) if buckets is None else buckets(block)
    block = block._replace(columns={**block.columns, "fold": fold})
    by = functools.partial(_labelled, name=name)
    return states.smallest(block, n, by, seed, "held-out rows", (name, "fold"))


def _labelled(block: Block, name: str) -> np.ndarray:
    """One stratum: the rows that have an outcome."""
    values = block.columns[name]
    return np.where(values >= 0 if name == "label" else np.isfinite(values), 0, -1)


def most_rows(rows: Rows) -> int:
    """How many rows are drawn: fewer of many features."""
    return max(1, min(MOST_ROWS, MOST_BYTES // (8 * rows.n_markers)))


def _expected(loss: Any, prediction: np.ndarray, classes: np.ndarray | None) -> np.ndarray:
    if prediction.ndim == 1:
        return np.full(len(prediction), np.nan)
    return expected_loss(loss, prediction, prediction, classes)
