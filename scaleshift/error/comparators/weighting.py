"""What is the error if each source row counts as often as rows like it occur in the target?"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy.special import ndtri

from scaleshift.blocks import passes
from scaleshift.blocks.block import Block
from scaleshift.error.comparators import given
from scaleshift.error.discriminator import discriminate
from scaleshift.errors import DataError
from scaleshift.parameters import check, check_level, check_switch, is_whole

CITATION = (
    "Shimodaira (2000), Improving predictive inference under covariate shift by weighting the log-likelihood "
    "function; Sugiyama, Krauledat and Mueller (2007), Covariate shift adaptation by importance weighted "
    "cross validation"
)

#: name -> (long_name, description)
VARIABLES = {
    "error": ("weighted error", "sum of weight times loss over the sum of weights"),
    "error_low": ("lower end", "of the interval of error: weights taken as known, rows as independent"),
    "error_high": ("upper end", "of the interval of error: weights taken as known, rows as independent"),
    "error_plain": ("mean weighted loss", "mean of weight times loss: unbiased if the weights are right"),
    "error_cv": ("weighted cross-validation", "mean over folds of the fold's mean of weight times loss"),
    "effective_sample_size": (
        "effective sample size",
        "(sum of weights)^2 over the sum of squared weights: so many rows of weight 1 tell as much",
    ),
}


class Weighted(NamedTuple):
    """What sums over weighted rows tell."""

    error: float
    low: float
    high: float
    plain: float
    effective_sample_size: float


def importance_weighted(loss: Any, weight: Any, fold: Any = None, *, level: float = 0.95) -> xr.Dataset:
    """Error on a target, from losses of source rows and the weights under which they look like it.

    Parameters
    ----------
    loss : array-like of numbers, shape (n,)
        Of source rows that the model has not learned from: numpy, Dask with any chunks, pandas, xarray.
    weight : array-like of numbers, shape (n,)
        Density of the target over that of the source at each row, from 0 (`importance_weights`).
    fold : array-like of whole numbers, shape (n,), optional
        Fold of each row, for `error_cv`.
    level : float, default 0.95
        Of the interval.

    Returns
    -------
    xarray.Dataset
        error (self-normalised), error_low, error_high, error_plain (not normalised) and error_cv in units of
        the loss, error_cv NaN without folds; effective_sample_size in rows.

    Raises
    ------
    DataError
        If arrays are empty or differ in length, a loss is not finite, a weight is negative or not finite, all
        weights are 0, or folds are not whole numbers.

    Notes
    -----
    The interval is normal, with the delta-method variance of a ratio of means,
    ``sum w^2 (loss - error)^2 / (sum w)^2``. It knows nothing of wrong weights. Lazy input is read once.

    References
    ----------
    Shimodaira (2000); with folds Sugiyama, Krauledat and Mueller (2007).

    Examples
    --------
    >>> import scaleshift as ss
    >>> result = ss.error.importance_weighted([0.0, 1.0], [1.0, 3.0], fold=[0, 1])
    >>> float(result["error"]), float(result["error_plain"]), float(result["error_cv"])
    (0.75, 1.5, 1.5)
    >>> float(result["effective_sample_size"])
    1.6
    """
    check_level(level)
    columns = {"loss": loss, "weight": weight, **({} if fold is None else {"fold": fold})}
    rows = given.column_rows(**columns)
    state: given.State = passes.total(weighed, rows, None, merge=merge_weighed)
    for name in columns:
        given.refuse(state[name], name)
    found = weighted(state["sums"]["all"], level)
    error_cv = np.nan if fold is None else cross_validated(state["folds"])
    values = {
        "error": found.error,
        "error_low": found.low,
        "error_high": found.high,
        "error_plain": found.plain,
        "error_cv": error_cv,
        "effective_sample_size": found.effective_sample_size,
    }
    return given.dataset(values, VARIABLES, "importance_weighted", CITATION)


def importance_weights(
    X_source: Any,
    X_target: Any,
    *,
    cv: int = 5,
    self_normalised: bool = False,
    random_state: Any = 0,
) -> np.ndarray:
    """Weights under which source rows look like the target, by telling the two apart.

    Parameters
    ----------
    X_source : array-like of numbers, shape (n, p)
        Rows in memory.
    X_target : array-like of numbers, shape (m, p)
    cv : int, default 5
        Folds: a row's weight comes from a discriminator that has not seen it.
    self_normalised : bool, default False
        Whether weights are divided by their mean.
    random_state : int, Generator or None, default 0
        Of the folds.

    Returns
    -------
    numpy.ndarray of float64, shape (n,)
        (n/m) s/(1 - s), where s is the probability that a row is of the target.

    Raises
    ------
    DataError
        If arrays are lazy, empty, hold NaN, differ in columns, or have fewer rows than `cv`.

    Notes
    -----
    The discriminator is a logistic regression on standardised features and their squares, with which the
    log density ratio of two normal distributions of independent features is linear. Features are standardised
    by mean and spread of both sides, of which each counts by half. Its penalty is the one of three that tells
    held-out rows apart best. Odds beyond 2^52, where s rounds to 1, are clipped.

    References
    ----------
    Bickel, Brueckner and Scheffer (2009), Discriminative learning under covariate shift.

    Examples
    --------
    >>> import scaleshift as ss
    >>> rng = np.random.default_rng(0)
    >>> source = rng.normal(size=(2000, 1))
    >>> weight = ss.error.importance_weights(source, rng.normal(0.5, 1.0, (2000, 1)))
    >>> exact = np.exp(0.5 * source[:, 0] - 0.125)
    >>> bool(np.corrcoef(weight, exact)[0, 1] > 0.98)
    True
    """
    check("cv", cv, lambda n: is_whole(n) and n >= 2, "a whole number from 2")
    check_switch("self_normalised", self_normalised)
    for name, X in {"X_source": X_source, "X_target": X_target}.items():
        given.refuse_lazy(X, name, "a discriminator")
    source, target = given.matrix_of(X_source, "X_source"), given.matrix_of(X_target, "X_target")
    if source.shape[1] != target.shape[1]:
        raise DataError(
            f"X_target has {target.shape[1]} columns, X_source {source.shape[1]}: pass the same features"
        )
    if min(len(source), len(target)) < cv:
        raise DataError(
            f"X_source has {len(source)} rows and X_target {len(target)}: cv={cv} folds need as many of "
            "each; pass more rows, or a smaller cv"
        )
    weight = discriminate(source, target, n_folds=int(cv), random_state=random_state).weight
    return weight / weight.mean() if self_normalised else weight


# Sums -----------------------------------------------------------------------------------------------------


def sums_of(loss: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Sums over rows, (6,): 1, w, w^2, w l, w^2 l, w^2 l^2."""
    product, square = weight * loss, weight**2
    parts = (weight, square, product, square * loss, product**2)
    return np.array([len(loss), *(part.sum() for part in parts)])


def weighted(sums: np.ndarray, level: float) -> Weighted:
    """What the sums tell.

    Raises
    ------
    DataError
        If all weights are 0.
    """
    n, w, w2, wl, w2l, w2l2 = sums.tolist()
    if not w > 0:
        raise DataError(
            "weight is 0 in every row: no source row is like the target; weighting has "
            "no answer here, ask another method"
        )
    error = wl / w
    variance = max(w2l2 - 2 * error * w2l + error**2 * w2, 0) / w**2
    reach = float(ndtri((1 + level) / 2)) * variance**0.5
    return Weighted(error, error - reach, error + reach, wl / n, w**2 / w2)


def cross_validated(folds: dict[int, np.ndarray]) -> float:
    """Mean over folds of the fold's mean of weight times loss; `folds` maps them to n and the sum."""
    return float(np.mean([total / n for _, (n, total) in sorted(folds.items())]))


def by_fold(loss: np.ndarray, weight: np.ndarray, fold: np.ndarray) -> dict[int, np.ndarray]:
    """Rows of each fold, and their sum of weight times loss."""
    names, code = np.unique(fold, return_inverse=True)
    n, total = np.bincount(code), np.bincount(code, weight * loss)
    return {int(name): np.array(pair) for name, *pair in zip(names.tolist(), n, total, strict=True)}


def weighed(block: Block) -> given.State:
    """Sums of a block, and what is wrong in its columns."""
    loss, weight = (block.columns[name].astype(np.float64) for name in ("loss", "weight"))
    bad = ~np.isfinite(weight)
    wrong: given.State = {
        "loss": given.wrong({"not_finite": ~np.isfinite(loss)}, block.start),
        "weight": given.wrong({"not_finite": bad, "negative": ~bad & (weight < 0)}, block.start),
    }
    with np.errstate(invalid="ignore", over="ignore"):  # refused afterwards
        sums = sums_of(loss, weight)
    if "fold" not in block.columns:
        return {"sums": {"all": sums}, "folds": {}, **wrong}
    fold = block.columns["fold"].astype(np.float64)
    whole = np.isfinite(fold) & (fold == np.floor(fold))
    wrong["fold"] = given.wrong({"not_whole": ~whole}, block.start)
    folds = by_fold(loss[whole], weight[whole], fold[whole])
    return {"sums": {"all": sums}, "folds": folds, **wrong}


def merge_weighed(a: given.State, b: given.State) -> given.State:
    """The same of two blocks."""
    both = {name: given.merged(a[name], b[name]) for name in a if name != "folds"}
    folds = dict(a["folds"])
    for name, sums in b["folds"].items():
        folds[name] = folds[name] + sums if name in folds else sums
    return {**both, "folds": folds}
