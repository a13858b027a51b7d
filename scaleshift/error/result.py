"""What does a user see?  Errors of all targets by all methods, as one dataset."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from scaleshift.error.comparators import NORM
from scaleshift.error.family import Answer
from scaleshift.fitted import written
from scaleshift.user_objects import name_of

CITATION = (
    "Estimation of prediction error with known covariate shift: parametric bootstrap at the covariates of "
    "the target, direct (Algorithm 1) and decomposed (Algorithm 2)"
)
OF_METHOD = {
    "error": ("expected loss", "mean over the target's rows, noise of outcomes integrated out"),
    "error_drawn": (
        "expected loss, outcomes drawn",
        "with outcomes that were drawn; NaN: none were",
    ),
    "error_low": ("lower end of the interval", "NaN where the method has none"),
    "error_high": ("upper end of the interval", "NaN where the method has none"),
    "mc_error": (
        "Monte-Carlo standard error",
        "of error, for its number of replicates; 0 of closed forms",
    ),
}
OF_TARGET = {
    "n_rows": ("rows", "finite ones; weighted where the past is forgotten"),
    "n_invalid": ("rows left out", "those with NaN or infinite values"),
    "effective_sample_size": (
        "effective sample size",
        "source rows that remain once they are weighted as the target's; of the rows looked at",
    ),
    "far": ("share of rows far away", "rows that are further than 99 % of the source's; NaN: no such score"),
    "unreliable": ("unreliable", "whether there is a reason not to trust the errors; False is no guarantee"),
    "flag": ("reasons", "in words, joined by '; '; empty if none"),
}


class OfTarget(NamedTuple):
    """What is told of one target."""

    answers: Mapping[str, Answer]  # by method
    n_rows: float
    n_invalid: float
    effective_sample_size: float
    far: float
    unreliable: bool
    flag: str
    by_feature: np.ndarray | None = None
    projection_norm: tuple[float, str] | None = None  # and why there is none


def dataset(
    found: Mapping[str, OfTarget],
    methods: Sequence[str],
    in_sample: Mapping[str, float],
    error_cv: float,
    features: Any,
    attributes: Mapping[str, Any],
) -> xr.Dataset:
    """Everything by target and method.

    Parameters
    ----------
    found : mapping of target to OfTarget
    methods : sequence of str
    in_sample : mapping of method to float
    error_cv : float
    features : sequence
        Names of the columns.
    attributes : mapping
    """
    methods = [method for method in methods if method != NORM]
    nothing = Answer(np.nan, reason="this model has no such answer")
    answers = [[one.answers.get(method, nothing) for method in methods] for one in found.values()]
    values = np.array(
        [[[a.error, a.drawn, a.low, a.high, a.mc_error] for a in row] for row in answers], np.float64
    ).reshape(len(found), len(methods), len(OF_METHOD))
    variables: dict[str, Any] = {
        name: (("target", "method"), values[..., number]) for number, name in enumerate(OF_METHOD)
    }
    why = [[answer.reason for answer in row] for row in answers]
    variables["reason"] = (("target", "method"), np.array(why, str).reshape(values.shape[:2]))
    variables |= {name: ("target", [getattr(one, name) for one in found.values()]) for name in OF_TARGET}
    variables["error_in_sample"] = ("method", [in_sample.get(method, np.nan) for method in methods])
    variables["error_cv"] = ((), error_cv)
    known = [one.by_feature for one in found.values() if one.by_feature is not None]
    if len(known) == len(found):
        variables["by_feature"] = (("target", "feature"), np.stack(known))
    norms = [one.projection_norm for one in found.values() if one.projection_norm is not None]
    if len(norms) == len(found):
        variables[NORM] = ("target", np.array([norm for norm, _ in norms]))
    result = xr.Dataset(variables, {"target": list(found), "method": list(methods)}, dict(attributes))
    if "by_feature" in result:
        result = result.assign_coords(feature=list(features))
    if norms:
        reasons = "; ".join(dict.fromkeys(text for _, text in norms if text))
        return _described(result, {"reason": reasons} if reasons else {})
    return _described(result)


def _described(result: xr.Dataset, of_norm: Mapping[str, str] | None = None) -> xr.Dataset:
    more = {
        "error_in_sample": ("error in sample", "expected loss at the covariates of the source"),
        "reason": ("reason", "why there is no answer, or what to mind; else empty"),
        "error_cv": ("cross-validated error", "mean held-out loss of the source; NaN without folds"),
        "by_feature": ("excess error by feature", "what the spread of a feature's weight adds to the error"),
        NORM: (
            "projection norm",
            "distance of the model from one of the target with its own predictions as labels: no error, but "
            "it grows with it",
        ),
    }
    for name, (long_name, description) in {**OF_METHOD, **OF_TARGET, **more}.items():
        if name in result:
            result[name].attrs = {"long_name": long_name, "description": description}
    if of_norm:
        result[NORM].attrs.update(of_norm)
    return result


def attributes(parameters: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Version, citation, parameters, seed of a result."""
    from scaleshift import __version__

    plain = {
        name: value if isinstance(value, str | int | float | None) else _in_text(value)
        for name, value in parameters.items()
    }
    return {
        "scaleshift_version": __version__,
        "method": "PredictionError",
        "citation": CITATION,
        "parameters": json.dumps(plain),
        **more,
    }


def _in_text(value: Any) -> Any:
    """Names as a list of them; anything else as it is written in Python."""
    names = isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
    return list(value) if names else written(value)


def loss_name(loss: Any) -> str:
    """What a loss is called."""
    return loss if isinstance(loss, str) else name_of(loss)
