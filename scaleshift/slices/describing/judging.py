"""How much worse is a slice than the rest, and could that be chance?  Rates, intervals and tests of its rows.

Only rows that had no say in what the slices are may judge them. On these, if errors have nothing to do with
the embeddings, every choice of a slice's rows among all is equally likely: Fisher's exact test needs nothing
else. Errors are whole, so its p-values lie above the uniform ones, never below.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special, stats

from scaleshift.slices.describing.profile import SliceProfile
from scaleshift.slices.mixtures.ranking import wilson_interval

FEW_ROWS = 10  # judging rows of a slice
LEAST_REST = 0.1  # of the judging rows that belong to no slice, for these to be the rest


class Judges(NamedTuple):
    """Which rows judge."""

    parts: slice  # of a profile: seen by the fit, held out of it
    reason: str  # why nothing can be tested, "" where it can


def judges_of(found: SliceProfile, whose: str) -> Judges:
    """Rows held out of the fit, or all rows where the fit saw none of them.

    Parameters
    ----------
    found : SliceProfile
    whose : {"others", "same", "shuffled"}
        As `profile.same_rows` tells.
    """
    if whose == "others":
        return Judges(slice(0, 2), "")
    if whose == "shuffled":
        return Judges(slice(0, 2), "rows of the fit in another order: held-out rows are not known")
    if found.tally("n", slice(1, 2))[-1] == 0:
        return Judges(slice(0, 2), "nothing held out")
    return Judges(slice(1, 2), "")


class Verdict(NamedTuple):
    """What the judging rows say; NaN where it is not known. The overall numbers are scalars."""

    n: np.ndarray  # (S,) judging rows
    share: np.ndarray  # (S,) of the judging rows
    error_rate: np.ndarray  # (S,)
    error_low: np.ndarray  # (S,)
    error_high: np.ndarray  # (S,)
    error_rate_rest: np.ndarray  # (S,)
    beside: bool  # whether the rest are the rows of no slice, rather than all but the slice's own
    overall_error_rate: float
    loss: np.ndarray  # (S,)
    loss_rest: np.ndarray  # (S,)
    overall_loss: float
    p_value: np.ndarray  # (S,)
    total: float  # effective number of judging rows


def judge(found: SliceProfile, judges: Judges, level: float) -> Verdict:
    """Rates and tests of the slices of a profile."""

    def tally(name: str) -> np.ndarray:
        return found.tally(name, judges.parts)

    n = tally("n")
    beside = bool(n[-2] >= max(FEW_ROWS, LEAST_REST * n[-1]))

    def both(*names: str) -> list[np.ndarray]:
        """Tallies of the slices, then of the rest of each."""
        tables = [tally(name) for name in names]
        return [table[:-2] for table in tables] + [rest_of(table, beside) for table in tables]

    rate, loss = ratio(tally("errors_w"), tally("error_w")), ratio(tally("losses_w"), tally("loss_w"))
    effective = ratio(tally("error_w") ** 2, tally("error_ww"))[:-2]
    low, high = wilson_interval(np.nan_to_num(rate[:-2]) * effective, effective, level)
    known = np.isfinite(rate[:-2])
    if judges.reason:
        p_value = np.full(found.n_slices, np.nan)
    elif tally("error_n")[-1]:
        p_value = fisher(*both("errors_n", "error_n"))
    else:
        p_value = welch(*both("losses_n", "squares_n", "loss_n"))
    count = ratio(tally("w")[-1] ** 2, tally("ww")[-1])
    return Verdict(
        n=n[:-2],
        share=ratio(tally("w")[:-2], tally("w")[-1:]),
        error_rate=rate[:-2],
        error_low=np.where(known, low, np.nan),
        error_high=np.where(known, high, np.nan),
        error_rate_rest=ratio(*both("errors_w", "error_w")[2:]),
        beside=beside,
        overall_error_rate=float(rate[-1]),
        loss=loss[:-2],
        loss_rest=ratio(*both("losses_w", "loss_w")[2:]),
        overall_loss=float(loss[-1]),
        p_value=p_value,
        total=float(count),
    )


def rest_of(table: np.ndarray, beside: bool) -> np.ndarray:
    """Of sums by slice, of no slice and of all rows, (S + 2, ...), those of what each slice is held against.

    These are the rows of no slice: a slice that is worse than healthy rows is, also where another one is
    much worse. Where these are few, all rows but the slice's own.
    """
    if beside:
        return np.broadcast_to(table[-2], table[:-2].shape)
    others = table[-1] - table[:-2]
    return np.where(np.abs(others) > 1e-9 * np.abs(table[-1]), others, 0.0)  # nothing but rounding


def fisher(errors: np.ndarray, n: np.ndarray, errors_rest: np.ndarray, n_rest: np.ndarray) -> np.ndarray:
    """P(as many errors in the slice, or more | its rows are any of both), NaN for slices without rows.

    Parameters
    ----------
    errors, n, errors_rest, n_rest : numpy.ndarray, shape (S,)
        Errors and rows of each slice, and of the rest.

    Examples
    --------
    >>> fisher(np.array([3.0]), np.array([3.0]), np.array([0.0]), np.array([3.0])).round(3).tolist()
    [0.05]
    """
    p_value = stats.hypergeom.sf(errors - 1, n + n_rest, errors + errors_rest, n)
    return np.where(n > 0, np.clip(p_value, 0, 1), np.nan)


def welch(
    losses: np.ndarray,
    squares: np.ndarray,
    n: np.ndarray,
    losses_rest: np.ndarray,
    squares_rest: np.ndarray,
    n_rest: np.ndarray,
) -> np.ndarray:
    """One-sided p-value of a larger mean loss in the slice than elsewhere, NaN with fewer than two rows.

    The larger of Welch's and that of the t-test with one variance: with few rows, of which all are lost,
    the slice's own variance says nothing.

    Parameters
    ----------
    losses, squares, n, losses_rest, squares_rest, n_rest : numpy.ndarray, shape (S,)
        Sums of losses, of their squares, and rows, of each slice and of the rest.

    Examples
    --------
    >>> sums = [np.array([number]) for number in (8.0, 22.0, 3.0, 2.0, 2.0, 3.0)]
    >>> welch(*sums).round(4).tolist()
    [0.05]
    """
    inside = _moments(losses, squares, n)
    outside = _moments(losses_rest, squares_rest, n_rest)
    tested = [
        stats.ttest_ind_from_stats(*inside, *outside, equal_var=equal, alternative="greater").pvalue
        for equal in (False, True)
    ]
    choices = special.gammaln(n + n_rest + 1) - special.gammaln(n + 1) - special.gammaln(n_rest + 1)
    with np.errstate(invalid="ignore"):  # never less than one choice of rows among all
        return np.maximum(np.maximum(*tested), np.exp(-choices))


def _moments(losses: np.ndarray, squares: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, ...]:
    """Mean, standard deviation and rows; NaN with fewer than two."""
    n = np.where(n >= 2, n, np.nan)
    mean = losses / n
    variance = (squares - n * mean**2) / (n - 1)
    # Equal losses have no variance; what is left of it is rounding.
    variance = np.where(variance > 1e-12 * squares / n, variance, 0.0)
    return mean, np.sqrt(variance), n


def q_values(p_value: np.ndarray) -> np.ndarray:
    """False discovery rates (Benjamini and Hochberg 1995) of the p-values that are known.

    Examples
    --------
    >>> q_values(np.array([0.01, np.nan, 0.5])).tolist()
    [0.02, nan, 0.5]
    """
    known = np.isfinite(p_value)
    q_value = np.full(len(p_value), np.nan)
    if known.any():
        q_value[known] = stats.false_discovery_control(p_value[known])
    return q_value


def ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """NaN where there is nothing to divide by."""
    a, b = np.broadcast_arrays(a, b)
    return np.divide(a, b, out=np.full(a.shape, np.nan), where=b > 0)
