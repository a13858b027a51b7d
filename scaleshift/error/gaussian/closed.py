"""Which errors are known without replicates?  Of least squares exactly; of ridge by Sugiyama and Mueller.

Each is constant + tr(U Q): one number a target, of its mean products U.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from scaleshift.error.gaussian.design import Design
from scaleshift.error.gaussian.generators import Fits, has_room, residual_squares, variance
from scaleshift.error.gaussian.procedures import Procedure
from scaleshift.error.gaussian.procedures.least_squares import LeastSquares
from scaleshift.error.gaussian.sums import Outcomes


@dataclass(frozen=True)
class ClosedForm:
    """Error of a target as constant + tr(U Q)."""

    constant: float
    quadratic: np.ndarray  # (q, q)
    left: float  # rows beyond the rank: degrees of freedom of an exact interval; 0 if there is none
    reason: str  # why there is no such form

    def error(self, products: np.ndarray) -> float:
        """Error at a target with these mean products, (q, q)."""
        return self.constant + float(np.vdot(products, self.quadratic)) if not self.reason else np.nan

    def interval(self, error: float, level: float) -> tuple[float, float]:
        """Where the error lies with this probability: exact for normal outcomes of independent rows."""
        if not self.left > 0:
            return np.nan, np.nan
        tails = stats.chi2.ppf([(1 + level) / 2, (1 - level) / 2], self.left)
        return float(self.left * error / tails[0]), float(self.left * error / tails[1])


def none(q: int, reason: str) -> ClosedForm:
    """No closed form, and why."""
    return ClosedForm(np.nan, np.full((q, q), np.nan), 0.0, reason)


def closed_form(design: Design, procedure: Procedure, outcomes: Outcomes, found: Fits) -> ClosedForm:
    """That of the procedure, for independent noise.

    References
    ----------
    Sugiyama, Mueller (2005). Input-dependent estimation of generalization error under covariate shift.
    """
    part, total, alpha = design.whole, outcomes.cross.sum(axis=0), float(found.alpha[0])
    q, own = len(total), procedure.operator(part, alpha)
    if own is None:
        return none(q, "no closed form of a lasso's error is known")
    plain = LeastSquares().operator(part, 0)
    theta = plain @ total[:, 0]
    rss = residual_squares(design, outcomes, theta[:, None])
    s2 = float(variance(rss, part.n, np.array([float(part.rank)]))[0])
    if np.isnan(s2):
        return none(q, f"rank {part.rank} leaves none of {part.n:g} rows for the variance of noise")
    if not procedure.penalised or alpha == 0:
        return ClosedForm(s2, s2 * plain, part.n - part.rank, "")
    if not has_room(design):
        return none(q, f"rank {part.rank} leaves too few of {part.n:g} rows for unbiased weights")
    gap, product = found.theta[:, 0] - theta, own @ design.total @ plain
    return ClosedForm(s2, np.outer(gap, gap) + s2 * (product + product.T - plain), 0.0, "")
