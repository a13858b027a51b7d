"""From which model are outcomes drawn anew?  The fit, least squares on its support or on all, or a blend.

The noise variance belongs to the generator. One function a generator, registered in `GENERATORS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from scaleshift.error.gaussian.choosing import fold_models
from scaleshift.error.gaussian.design import Design
from scaleshift.error.gaussian.procedures import Procedure
from scaleshift.error.gaussian.sums import Outcomes
from scaleshift.errors import DataError

SHARES = np.linspace(0, 1, 21)  # of least squares in a blend
LEFT = 0.1  # share of rows beyond the rank that least squares on all features needs to generate outcomes
SATURATED = 1e-8  # share of rows beyond the degrees of freedom at which there is no variance to tell


@dataclass(frozen=True)
class Fits:
    """What was learned from C outcomes."""

    theta: np.ndarray  # (q, C) the model
    alpha: np.ndarray  # (C,)
    freedom: np.ndarray  # (C,)
    rss: np.ndarray  # (C,)


@dataclass(frozen=True)
class Generated:
    """Models from which outcomes are drawn."""

    mean: np.ndarray  # (q, C)
    variance: np.ndarray  # (C,) of noise; NaN where there are as many degrees of freedom as rows
    share: np.ndarray  # (C,) of least squares on the support


def fits(
    design: Design,
    procedure: Procedure,
    outcomes: Outcomes,
    alpha: np.ndarray,
    start: np.ndarray | None = None,
) -> Fits:
    """Learn from all rows."""
    total = outcomes.cross.sum(axis=0)
    theta = procedure.fit(design.whole, total, alpha, start)
    freedom = procedure.freedom(design.whole, theta, alpha)
    return Fits(theta, alpha, freedom, residual_squares(design, outcomes, theta))


def residual_squares(design: Design, outcomes: Outcomes, theta: np.ndarray) -> np.ndarray:
    """Sum of squared residuals of each model, (q, C) -> (C,)."""
    total = outcomes.cross.sum(axis=0)
    found = outcomes.square.sum(axis=0) - 2 * (theta * total).sum(axis=0)
    return np.maximum(found + (theta * (design.total @ theta)).sum(axis=0), 0)


def variance(rss: np.ndarray, n: float, freedom: np.ndarray) -> np.ndarray:
    """RSS / (n - degrees of freedom)."""
    left = n - freedom
    return np.where(left > SATURATED * n, rss / np.where(left > 0, left, 1), np.nan)


def plugin(design: Design, procedure: Procedure, outcomes: Outcomes, found: Fits) -> Generated:
    """The fit itself."""
    return Generated(found.theta, variance(found.rss, design.whole.n, found.freedom), np.zeros(outcomes.size))


def relaxed(design: Design, procedure: Procedure, outcomes: Outcomes, found: Fits) -> Generated:
    """Least squares on the features that the fit keeps; where it keeps all (ridge), as `ols`."""
    if found.alpha.any() and procedure.operator(design.whole, float(found.alpha[0])) is not None:
        return least_squares(design, procedure, outcomes, found)
    mean = procedure.relaxed(design.whole, outcomes.cross.sum(axis=0), found.theta)
    return Generated(mean, variance(found.rss, design.whole.n, found.freedom), np.ones(outcomes.size))


def least_squares(design: Design, procedure: Procedure, outcomes: Outcomes, found: Fits) -> Generated:
    """Least squares on all features, with its own variance.

    Raises
    ------
    DataError
        If fewer than a tenth of the rows are left for the variance.
    """
    if not has_room(design):
        raise DataError(
            f"least squares cannot generate outcomes of {design.whole.n:g} rows: its rank is "
            f"{design.whole.rank}, which leaves less than {LEFT:.0%} of the rows for the variance of noise; "
            "give generator='plugin' (or 'relaxed' of a lasso)"
        )
    cross = outcomes.cross.sum(axis=0)
    mean = design.whole.whole(design.whole.inverse @ design.whole.centred(cross), cross)
    rss = residual_squares(design, outcomes, mean)
    freedom = np.full(outcomes.size, float(design.whole.rank))
    return Generated(mean, variance(rss, design.whole.n, freedom), np.ones(outcomes.size))


def blended(design: Design, procedure: Procedure, outcomes: Outcomes, found: Fits) -> Generated:
    """(1 - share) fit + share least squares on its support, the share by the source's cross-validation.

    0 where that does not help, without folds, and where least squares on all features has no room.
    """
    own = plugin(design, procedure, outcomes, found)
    unchanged = not procedure.penalised or not found.alpha.any()
    linear = procedure.operator(design.whole, float(found.alpha[0])) is not None
    if unchanged or not design.training or (linear and not has_room(design)):
        return own
    share = SHARES[_held_out_of_blends(design, procedure, outcomes, found).argmin(axis=0)]
    on_support = procedure.relaxed(design.whole, outcomes.cross.sum(axis=0), found.theta)
    return Generated((1 - share) * found.theta + share * on_support, own.variance, share)


def has_room(design: Design) -> bool:
    """Whether least squares leaves enough rows for the variance of noise."""
    return design.whole.n - design.whole.rank >= max(2, LEFT * design.whole.n)


def _held_out_of_blends(design: Design, procedure: Procedure, outcomes: Outcomes, found: Fits) -> np.ndarray:
    """Squared error of each blend by the folds' own fits, less that of no model: (shares, C)."""
    near = found.theta[:, 0]
    models = fold_models(design, procedure, outcomes, found.alpha, near)
    total, errors = outcomes.cross.sum(axis=0), np.zeros((len(SHARES), outcomes.size))
    for model, fold, part in zip(models, design.folds, design.training, strict=True):
        step = procedure.relaxed(part, total - outcomes.cross[fold], model) - model
        gram, cross = design.gram[fold], outcomes.cross[fold]
        slope = (step * (gram @ model - cross)).sum(axis=0)
        bend = (step * (gram @ step)).sum(axis=0)
        errors += 2 * SHARES[:, None] * slope + SHARES[:, None] ** 2 * bend
    return errors


Generator = Callable[[Design, Procedure, Outcomes, Fits], Generated]
GENERATORS: dict[str, Generator] = {
    "plugin": plugin,
    "relaxed": relaxed,
    "ols": least_squares,
    "auto": blended,
}
