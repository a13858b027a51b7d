"""What makes the answers for a target doubtful?  Reasons in words.

They see covariates alone: a model that is wrong about the outcome gives no sign without labels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import betabinom, binom

LOW_SHARE = 0.1  # of the source's rows, as effective sample size: below, a few rows decide a weighted error
LOW_ROWS = 30  # below, a mean of weighted losses has no normal interval
LOW_COVERAGE = 0.5  # mean of importance weights, which is 1 where source and target overlap
FAR_QUANTILE = 0.99  # of the source's extrapolation: rows beyond are far
FAR_SHARE = 0.05  # of target rows beyond the source's 99 % quantile, where 0.01 is expected without a shift
FAR_CHANCE = 0.025  # that as many lie there without a shift: a single row of ten tells nothing
FEW_ROWS = 30  # of a target: what is said of them is for these rows, and for no more

APART = "little overlap with the source"
LOW = "low effective sample size"
FAR = "far from the source"
FEW = "few target rows"
LEFT_OUT = "rows left out"
CALM = (FEW, LEFT_OUT)  # to be known; all other reasons are serious


def flags(
    n_rows: int,
    *,
    n_left_out: int = 0,
    n_source: float = np.nan,
    effective_sample_size: float = np.nan,
    coverage: float = np.nan,
    share_far: float = np.nan,
    n_judged: int | None = None,
    remarks: Sequence[str] = (),
) -> list[str]:
    """Reasons to mind the answers for one target; none where nothing is to be said.

    Parameters
    ----------
    n_rows : int
        Rows of the target that answers are of.
    n_left_out : int, default 0
        Its rows with NaN or infinite values.
    n_source : float, default NaN
        Source rows that `effective_sample_size` and the quantile behind `share_far` are of.
    effective_sample_size : float, default NaN
        Of importance weights; NaN: not known.
    coverage : float, default NaN
        Mean importance weight, at most 1; NaN: not known.
    share_far : float, default NaN
        Share of target rows whose extrapolation is above the source's 99 % quantile; NaN: not known.
    n_judged : int, optional
        Rows that `share_far` is of; all of the target where not given.
    remarks : sequence of str, default ()
        What the model's family says of the target.

    Returns
    -------
    list of str

    Examples
    --------
    >>> flags(1000, n_source=500, effective_sample_size=12.3, share_far=0.012)
    ['low effective sample size: 12 of 500 source rows']
    >>> flags(1000, share_far=0.4, n_left_out=3)
    ['far from the source: 40 % of its rows, 1 % of the source', 'rows left out: 3 (NaN or infinite)']
    """
    found = []
    if coverage < LOW_COVERAGE:
        found.append(f"{APART}: its rows stand for {100 * coverage:.0f} % of the target")
    if effective_sample_size < max(LOW_ROWS, LOW_SHARE * n_source):
        found.append(f"{LOW}: {effective_sample_size:.0f} of {n_source:.0f} source rows")
    if is_far(share_far, n_rows if n_judged is None else n_judged, n_source):
        found.append(f"{FAR}: {100 * share_far:.0f} % of its rows, 1 % of the source")
    found += [remark for remark in remarks if remark]
    if n_rows < FEW_ROWS:
        found.append(f"{FEW}: {n_rows}")
    if n_left_out:
        found.append(f"{LEFT_OUT}: {n_left_out} (NaN or infinite)")
    return found


def unreliable(reasons: Sequence[str]) -> bool:
    """Whether a reason is serious: answers may be far off.

    Examples
    --------
    >>> unreliable(["few target rows: 3"]), unreliable(["low effective sample size: 12 of 500 source rows"])
    (False, True)
    """
    return any(not reason.startswith(CALM) for reason in reasons)


def is_far(share: float, n: int, n_source: float = np.nan) -> bool:
    """Whether more of n rows lie beyond the source's 99 % quantile than chance explains.

    The quantile is one of `n_source` rows itself, which chance has drawn too; not known: it is exact.

    Examples
    --------
    >>> is_far(0.1, 10), is_far(0.2, 10), is_far(1.0, 1), is_far(float("nan"), 10)
    (False, True, True, False)
    >>> is_far(0.1, 20, n_source=10_000), is_far(0.1, 20, n_source=100)
    (True, False)
    """
    if not (n and share > FAR_SHARE):
        return False
    n_far = round(share * n)
    if np.isnan(n_source):
        chance = binom.sf(n_far - 1, n, 1 - FAR_QUANTILE)
    else:
        # Beyond the k-th largest of N rows there is a share of the population that is Beta(k, N + 1 - k).
        k = n_source - np.ceil(FAR_QUANTILE * (n_source - 1))
        chance = betabinom.sf(n_far - 1, n, k, n_source + 1 - k)
    return bool(chance <= FAR_CHANCE)
