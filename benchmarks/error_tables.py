"""How far are estimates of prediction error from what comes out?  Fits, means, tables of the benchmarks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from auc_methods import markdown

import scaleshift as ss

__all__ = ["by_target", "estimates", "markdown", "mean_and_error", "signed", "table"]


def estimates(
    model: Any, x: np.ndarray, y: np.ndarray, targets: Mapping[str, np.ndarray], **parameters: Any
) -> tuple[ss.PredictionError, xr.Dataset]:
    """The estimator, fitted, and what it tells of all targets."""
    groups = parameters.pop("groups", None)
    estimator = ss.PredictionError(model, **parameters).fit(x, y, groups=groups)
    return estimator, estimator.predict(dict(targets))


def by_target(found: xr.Dataset, method: str, name: str = "error") -> np.ndarray:
    """Errors by one method, or bounds of them, (n_targets,)."""
    # `sel(method=...)` would be xarray's own parameter: how inexact labels are looked up.
    values: np.ndarray = found[name].sel({"method": method}).values
    return values


def signed(estimate: np.ndarray, realised: np.ndarray) -> np.ndarray:
    """Signed proportional difference."""
    return (estimate - realised) / realised


def mean_and_error(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean over the first axis and its standard error; NaN of one draw."""
    n = len(values)
    error = values.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full(values.shape[1:], np.nan)
    return values.mean(axis=0), error


def table(head: Sequence[str], rows: Mapping[str, Sequence[float]], shape: str = "{:.3f}") -> str:
    """Named rows of numbers, in Markdown."""
    return markdown(list(head), [[name, *(shape.format(v) for v in row)] for name, row in rows.items()])
