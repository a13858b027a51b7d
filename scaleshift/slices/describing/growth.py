"""Which slice grew from one set of rows to another, and what does it cost?  Of two descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from scipy import stats

from scaleshift.errors import DataError
from scaleshift.parameters import check_level
from scaleshift.slices.describing import words
from scaleshift.slices.describing.judging import q_values, ratio
from scaleshift.slices.describing.variables import SLICE, Variables, dataset
from scaleshift.slices.mixtures.ranking import wilson_interval

OF_ALL = "sum over the slices, but for those of the same rows as another"

VARIABLES: Variables = {
    "share_source": (SLICE, "share of the source", "1", "of its judging rows"),
    "share_target": (SLICE, "share of the target", "1", "of its judging rows"),
    "growth": (SLICE, "growth", "1", "share of the target minus that of the source"),
    "growth_low": (SLICE, "lower end of the interval", "1", "Newcombe's interval of the growth"),
    "growth_high": (SLICE, "upper end of the interval", "1", "Newcombe's interval of the growth"),
    "growth_ratio": (SLICE, "growth as a factor", "1", "share of the target over that of the source"),
    "p_value": (SLICE, "p-value of growth", "1", "two-sided, of equal shares: twice the smaller exact tail"),
    "q_value": (SLICE, "false discovery rate", "1", "p-values adjusted by Benjamini and Hochberg"),
    "error_source": (
        SLICE,
        "error in the source",
        "1",
        "share of errors, or the mean loss where there are no errors",
    ),
    "error_target": (SLICE, "error in the target", "1", "NaN where the target has no labels"),
    "cost_of_growth": (
        SLICE,
        "what growth costs",
        "1",
        "growth times (error of the slice - overall error), both of the source: error that the target has "
        "more because the slice has another share there",
    ),
    "cost_of_change": (
        SLICE,
        "what change costs",
        "1",
        "share of the target times (error in the target - error in the source): error that it has more "
        "because the slice itself has",
    ),
    "total_cost_of_growth": ((), "what growth costs", "1", OF_ALL),
    "total_cost_of_change": ((), "what change costs", "1", OF_ALL),
    "overall_error_source": ((), "overall error of the source", "1", "of all judging rows"),
    "overall_error_target": ((), "overall error of the target", "1", "of all judging rows"),
    "flag": (SLICE, "reasons for caution", "", "joined by '; '; empty if none"),
    "words": (SLICE, "in words", "", "one sentence a slice"),
    "summary": ((), "in words", "", "the overall change, and what of it the slices explain"),
}


def compare(source: xr.Dataset, target: xr.Dataset, *, level: float = 0.95) -> xr.Dataset:
    """Which slice has another share of the target than of the source, and how much error that costs.

    Both are counted on rows that the fit of the slices did not see, where it held any out.

    Parameters
    ----------
    source, target : xarray.Dataset
        What `describe` of one slicer tells of two sets of rows. The target may have no labels.
    level : float, default 0.95
        Of the intervals.

    Returns
    -------
    xarray.Dataset
        By slice: share_source, share_target, growth and its interval, growth_ratio, p_value, q_value,
        error_source, error_target, cost_of_growth, cost_of_change, flag, words; totals and overall errors.

    Raises
    ------
    DataError
        If they are of different fits, or no descriptions.

    References
    ----------
    Newcombe (1998), Interval estimation for the difference between independent proportions.

    Examples
    --------
    >>> import numpy as np
    >>> from scaleshift import DominoSlicer, slices
    >>> rng = np.random.default_rng(0)
    >>> def draw(share):  # of the corner where the model fails
    ...     corner = rng.random(2_000) < share
    ...     X = rng.normal(size=(2_000, 2)) + 9 * corner[:, None]
    ...     y = rng.integers(0, 2, 2_000)
    ...     wrong = rng.random(2_000) < np.where(corner, 0.6, 0.05)
    ...     return {"embedding": X, "target": y, "pred_probs": np.where(wrong, 1 - y, y).astype(float)}
    >>> slicer = DominoSlicer(n_slices=1, n_mixture_components=2, random_state=0).fit(draw(0.1))
    >>> found = slices.compare(slicer.describe(draw(0.1)), slicer.describe(draw(0.3)))
    >>> bool(found["q_value"][0] < 0.001), round(float(found["cost_of_growth"][0]), 2)
    (True, 0.09)
    >>> for part in found["words"].item().split("; "):
    ...     print(part)
    grew from 10 % to 27 % of rows (+15 to +19 points), which costs 8.5 points of error
    wrong in 60 % before, 61 % now
    """
    check_level(level)
    _check(source, target)
    values = _growth(source, target, level)
    values.update(_costs(source, target, values))
    values["flag"] = _flags(source, target)
    values["words"] = _words(values, _has_errors(source), 1 - level)
    values["summary"] = np.array(_summary(values, _has_errors(source)))
    attributes = {
        **{name: source.attrs[name] for name in ("method", "citation", "parameters", "seed", "fit")},
        "measure": "share of errors" if _has_errors(source) else "mean loss",
        "level": level,
    }
    return dataset(VARIABLES, values, {"slice": source["slice"].values}, attributes)


def _check(source: Any, target: Any) -> None:
    """Refuse what are no descriptions of one fit."""
    for name, found in {"source": source, "target": target}.items():
        if not isinstance(found, xr.Dataset) or "judging_share" not in found or "fit" not in found.attrs:
            raise DataError(
                f"{name} is no description of slices: pass what slicer.describe(data) gives, a Dataset"
            )
    if source.attrs["fit"] != target.attrs["fit"]:
        named = (
            f"{name} by the fit {found.attrs['fit'][:8]} of {found.attrs['method']}"
            for name, found in {"source": source, "target": target}.items()
        )
        raise DataError(f"slices of different fits: {' and '.join(named)}; describe both with one slicer")


def _growth(source: xr.Dataset, target: xr.Dataset, level: float) -> dict[str, np.ndarray]:
    """Change of the shares, with Newcombe's interval and an exact test."""
    before, after = source["judging_share"].values, target["judging_share"].values
    n, m = float(source["n_effective"]), float(target["n_effective"])
    low, high = wilson_interval(before * n, np.full(len(before), n), level)
    lower, upper = wilson_interval(after * m, np.full(len(after), m), level)
    growth = after - before
    p_value = _equal_shares(np.rint(before * n), np.rint(n), np.rint(after * m), np.rint(m))
    return {
        "share_source": before,
        "share_target": after,
        "growth": growth,
        "growth_low": growth - np.hypot(after - lower, high - before),
        "growth_high": growth + np.hypot(upper - after, before - low),
        "growth_ratio": ratio(after, before),
        "p_value": p_value,
        "q_value": q_values(p_value),
    }


def _equal_shares(a: np.ndarray, n: float, b: np.ndarray, m: float) -> np.ndarray:
    """Two-sided p-value of a of n and b of m being one share: twice the smaller hypergeometric tail."""
    less, more = stats.hypergeom.cdf(b, n + m, a + b, m), stats.hypergeom.sf(b - 1, n + m, a + b, m)
    return np.clip(2 * np.minimum(less, more), 0, 1)


def _has_errors(described: xr.Dataset) -> bool:
    return bool(np.isfinite(described["overall_error_rate"]))


def _costs(source: xr.Dataset, target: xr.Dataset, growth: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Errors of both, and what growth and change add to the overall error."""
    errors = _has_errors(source)
    of_slice, overall = ("error_rate", "overall_error_rate") if errors else ("loss", "overall_loss")
    before, after = source[of_slice].values, target[of_slice].values
    overall_before, overall_after = float(source[overall]), float(target[overall])
    cost = growth["growth"] * (before - overall_before)
    # A slice that the target lacks costs it nothing, whatever its error would be.
    change = np.where(growth["share_target"] == 0, 0.0, growth["share_target"] * (after - before))
    change = change if np.isfinite(overall_after) else np.full(len(change), np.nan)
    # Slices of the same rows count once.
    once = source["same_rows_as"].values == np.arange(len(cost))
    return {
        "error_source": before,
        "error_target": after,
        "cost_of_growth": cost,
        "cost_of_change": change,
        "total_cost_of_growth": np.array(np.nansum(cost[once])),
        "total_cost_of_change": np.array(np.nansum(change[once]) if np.isfinite(change).any() else np.nan),
        "overall_error_source": np.array(overall_before),
        "overall_error_target": np.array(overall_after),
    }


def _flags(source: xr.Dataset, target: xr.Dataset) -> np.ndarray:
    """Reasons for caution, by slice."""
    flags = []
    for k in range(source.sizes["slice"]):
        reasons = []
        for name, described in {"source": source, "target": target}.items():
            if "those of the fit" in described.attrs["judged_by"]:
                reasons.append(f"{name} has rows that the fit saw")
            if described["judging_rows"].values[k] == 0:
                reasons.append(f"no rows in the {name}")
        if source["same_rows_as"].values[k] != k:
            reasons.append(f"same rows as slice {source['same_rows_as'].values[k]}")
        if not (_has_errors(source) or np.isfinite(source["overall_loss"])):
            reasons.append("errors of the source not known")
        flags.append("; ".join(reasons))
    return np.array(flags, dtype=str)


def _summary(values: Mapping[str, Any], of_errors: bool) -> str:
    """The overall change, and what of it these slices explain."""

    def told(number: float) -> str:
        return words.percent(number) if of_errors else f"{number:.3g}"

    def part(number: float) -> str:
        return f"{words.points(number)} points" if of_errors else f"{number:+.3g}"

    what = "errors" if of_errors else "mean loss"
    before, after = float(values["overall_error_source"]), float(values["overall_error_target"])
    grown = f"growth of these slices {part(float(values['total_cost_of_growth']))}"
    if not np.isfinite(after):
        return f"{what} {told(before)} before; {grown}" if np.isfinite(before) else "errors not known"
    changed = f"change inside them {part(float(values['total_cost_of_change']))}"
    return f"{what} {told(before)} before, {told(after)} now ({part(after - before)}): {grown}, {changed}"


def _words(values: dict[str, np.ndarray], of_errors: bool, alpha: float) -> np.ndarray:
    """One sentence a slice."""

    def cost(change: float) -> str:
        size = (
            f"{words.points(abs(change))[1:]} points of error" if of_errors else f"{abs(change):.3g} of loss"
        )
        return f"which {'costs' if change > 0 else 'saves'} {size}"

    def error(number: float) -> str:
        return words.percent(number) if of_errors else f"{number:.3g}"

    sentences = []
    for k in range(len(values["growth"])):
        one = {name: float(value[k]) for name, value in values.items() if np.ndim(value) and name != "flag"}
        clear = one["q_value"] <= alpha
        moved = ("grew" if one["growth"] > 0 else "shrank") if clear else "no clear change:"
        shares = f"from {words.percent(one['share_source'])} to {words.percent(one['share_target'])} of rows"
        span = f"{words.points(one['growth_low'])} to {words.points(one['growth_high'])} points"
        facts = [f"{moved} {shares} ({span})"]
        if clear and np.isfinite(one["cost_of_growth"]) and one["cost_of_growth"]:
            facts.append(cost(one["cost_of_growth"]))
        asides = []
        if np.isfinite(one["error_source"]) and np.isfinite(one["error_target"]):
            was = "wrong in" if of_errors else "mean loss"
            now = f"{was} {error(one['error_source'])} before, {error(one['error_target'])} now"
            # Where it is not little beside what growth costs: a slice may grow and get better.
            matters = clear and abs(one["cost_of_change"]) > 0.1 * abs(one["cost_of_growth"])
            asides.append(f"{now}, {cost(one['cost_of_change'])}" if matters else now)
        sentences.append(words.sentence(facts, *asides))
    return np.array(sentences, dtype=str)
