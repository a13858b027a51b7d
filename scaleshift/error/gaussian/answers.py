"""What error is to be expected at one target?  One function a method, registered in `METHODS`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from scaleshift.error.family import Answer, Sums
from scaleshift.error.gaussian.sums import mean_products

if TYPE_CHECKING:
    from scaleshift.error.gaussian.family import GaussianFamily

FEWEST_OUTER = 20  # replicates of the whole estimator, for an interval or a correction
OF_GROUPS = "replicates of the variances of groups are not drawn: no interval"
FEW = f"fewer than {FEWEST_OUTER} replicates tell how the estimate scatters: no interval"


def direct(family: GaussianFamily, sums: Sums) -> Answer:
    """Noise and the mean squared difference of refits from their generator."""
    products = mean_products(sums)
    error = family.noise.total + float(np.vdot(products, family.spread.matrix))
    low, high, reason = _interval(family, products, error, 0)
    drawn, by_replicate = family.drawn_err_b(sums), family.err_b(sums)
    return Answer(error, _mean(drawn), low, high, _mc_error(by_replicate), reason)


def decomposed(family: GaussianFamily, sums: Sums) -> Answer:
    """In-sample error by degrees of freedom, and what the target's covariates add to that of refits."""
    products = mean_products(sums)
    more = products - family.gram / family.n
    error = family.err_in + float(np.vdot(more, family.spread.matrix))
    low, high, reason = _interval(family, products, error, 1)
    drawn, in_b = family.drawn_err_b(sums), family.spread.in_b_drawn
    both = family.err_in + _mean(drawn - in_b) if drawn.size and in_b.size else np.nan
    mc_error = _mc_error(family.err_b(sums) - family.in_b)
    if error < 0:
        reason = "negative: a difference of estimates that are far apart"
    return Answer(error, both, low, high, mc_error, reason)


def corrected(family: GaussianFamily, sums: Sums) -> Answer:
    """The direct estimate by the mean of its ratios on replicates: most of its bias is gone."""
    plain = direct(family, sums)
    if family.closed.left > 0 or family.model == "ols":  # least squares: unbiased, with groups too
        return plain._replace(drawn=np.nan)
    ratios = _ratios(family, mean_products(sums), 0)
    if ratios is None:
        return Answer(np.nan, reason=_why_none(family))
    mean = ratios.mean()
    inner = ratios.std(ddof=1) / np.sqrt(ratios.size) / mean
    outer = plain.mc_error / plain.error if plain.error > 0 else 0.0
    error = plain.error / mean
    mc_error = float(error * np.hypot(inner, outer))
    return Answer(float(error), np.nan, plain.low, plain.high, mc_error, plain.reason)


def closed(family: GaussianFamily, sums: Sums) -> Answer:
    """Without replicates: least squares exactly, ridge by Sugiyama and Mueller."""
    error = family.closed.error(mean_products(sums))
    low, high = family.closed.interval(error, family.level)
    return Answer(error, np.nan, low, high, 0.0, family.closed.reason)


def cross_validated(family: GaussianFamily, sums: Sums) -> Answer:
    """Held-out error of the source, which knows nothing of the target; a t interval over folds."""
    if not family.n_folds:
        return Answer(np.nan, reason="there is no cross-validation: give cv")
    reach = stats.t.ppf((1 + family.level) / 2, max(family.n_folds - 1, 1)) * family.cv_error_se
    return Answer(family.cv_error, np.nan, family.cv_error - reach, family.cv_error + reach)


Method = Callable[["GaussianFamily", Sums], Answer]
METHODS: dict[str, Method] = {
    "direct": direct,
    "decomposed": decomposed,
    "corrected": corrected,
    "closed_form": closed,
    "cv": cross_validated,
}


def answer(family: GaussianFamily, method: str, sums: Sums) -> Answer:
    """The answer of one method; NaN, and why, where there are no rows, or no variance of noise."""
    if method == "cv":
        return cross_validated(family, sums)
    if not float(sums["n"]) > 0:
        return Answer(np.nan, reason="the target has no row that is finite")
    if not np.isfinite(family.noise.total):
        return Answer(np.nan, reason=family.few_left)
    return METHODS[method](family, sums)


def _interval(
    family: GaussianFamily, products: np.ndarray, error: float, which: int
) -> tuple[float, float, str]:
    """Exact for least squares; else the error by quantiles of what replicates of the estimate are by it."""
    if family.closed.left > 0:
        return *family.closed.interval(error, family.level), ""
    ratios = _ratios(family, products, which)
    if ratios is None:
        return np.nan, np.nan, _why_none(family)
    tail = (1 - family.level) / 2
    low, high = np.quantile(ratios, [tail, 1 - tail])
    if not (low > 0 and error > 0):
        return np.nan, np.nan, "replicates of the estimate are not positive: no interval"
    return float(error / high), float(error / low), ""


def _ratios(family: GaussianFamily, products: np.ndarray, which: int) -> np.ndarray | None:
    """Replicates of the direct (0) or decomposed (1) estimate by that of the source."""
    if family.outer is None or family.outer.alpha.size <= FEWEST_OUTER:
        return None
    found = family.scatter.ratios(products)[which]
    return found if np.isfinite(found).all() else None


def _why_none(family: GaussianFamily) -> str:
    return OF_GROUPS if family.grouped else FEW


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if values.size else np.nan


def _mc_error(values: np.ndarray) -> float:
    """Standard error of the mean of replicates; 0 where there are none."""
    return float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else 0.0
