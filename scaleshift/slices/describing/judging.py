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

    rate, rest = _means(tally("errors_w"), tally("error_w"))
    loss, loss_rest = _means(tally("losses_w"), tally("loss_w"))
    effective = ratio(tally("error_w") ** 2, tally("error_ww"))
    low, high = wilson_interval(np.nan_to_num(rate[:-1]) * effective[:-1], effective[:-1], level)
    known = np.isfinite(rate[:-1])
    if judges.reason:
        p_value = np.full(found.n_slices, np.nan)
    elif tally("error_n")[-1]:
        p_value = fisher(tally("errors_n"), tally("error_n"))
    else:
        p_value = welch(tally("losses_n"), tally("squares_n"), tally("loss_n"))
    count = ratio(tally("w")[-1] ** 2, tally("ww")[-1])
    return Verdict(
        n=tally("n")[:-1],
        share=ratio(tally("w")[:-1], tally("w")[-1:]),
        error_rate=rate[:-1],
        error_low=np.where(known, low, np.nan),
        error_high=np.where(known, high, np.nan),
        error_rate_rest=rest,
        overall_error_rate=float(rate[-1]),
        loss=loss[:-1],
        loss_rest=loss_rest,
        overall_loss=float(loss[-1]),
        p_value=p_value,
        total=float(count),
    )


def fisher(errors: np.ndarray, n: np.ndarray) -> np.ndarray:
    """P(as many errors in the slice, or more | its rows are any of all rows), NaN for slices without rows.

    Parameters
    ----------
    errors, n : numpy.ndarray, shape (S + 1,)
        Errors and rows of each slice, and of all rows.

    Examples
    --------
    >>> fisher(np.array([3.0, 3.0]), np.array([3.0, 6.0])).round(3).tolist()
    [0.05]
    """
    p_value = stats.hypergeom.sf(errors[:-1] - 1, n[-1], errors[-1], n[:-1])
    return np.where(n[:-1] > 0, np.clip(p_value, 0, 1), np.nan)


def welch(losses: np.ndarray, squares: np.ndarray, n: np.ndarray) -> np.ndarray:
    """One-sided p-value of a larger mean loss in the slice than elsewhere, NaN with fewer than two rows.

    The larger of Welch's and that of the t-test with one variance: with few rows, of which all are lost,
    the slice's own variance says nothing.

    Parameters
    ----------
    losses, squares, n : numpy.ndarray, shape (S + 1,)
        Sums of losses, of their squares, and rows, of each slice and of all rows.

    Examples
    --------
    >>> welch(np.array([8.0, 10.0]), np.array([22.0, 24.0]), np.array([3.0, 6.0])).round(4).tolist()
    [0.05]
    """
    inside = _moments(losses[:-1], squares[:-1], n[:-1])
    outside = _moments(losses[-1] - losses[:-1], squares[-1] - squares[:-1], n[-1] - n[:-1])
    tested = [
        stats.ttest_ind_from_stats(*inside, *outside, equal_var=equal, alternative="greater").pvalue
        for equal in (False, True)
    ]
    n, rest = n[:-1], n[-1] - n[:-1]
    choices = special.gammaln(n + rest + 1) - special.gammaln(n + 1) - special.gammaln(rest + 1)
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


def _means(sums: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each slice and all rows, (S + 1,), and of the rows outside each slice, (S,)."""
    outside = mass[-1] - mass[:-1]
    outside = np.where(outside > 1e-9 * mass[-1], outside, 0.0)  # nothing but rounding
    return ratio(sums, mass), ratio(sums[-1] - sums[:-1], outside)


def ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """NaN where there is nothing to divide by."""
    a, b = np.broadcast_arrays(a, b)
    return np.divide(a, b, out=np.full(a.shape, np.nan), where=b > 0)
