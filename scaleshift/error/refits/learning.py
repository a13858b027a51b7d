"""What is learned of an estimator before any target is known?  The fit, its folds, and the noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from scaleshift.blocks import passes
from scaleshift.error.family import Family, Job, Settings
from scaleshift.error.refits.estimators import check_estimator, settled
from scaleshift.error.refits.family import BY_REFITS, RefitFamily
from scaleshift.error.refits.frozen import learn_frozen
from scaleshift.error.refits.parts import ALL, divided, fit_part
from scaleshift.error.refits.worlds import Labels, Numbers, World, best_temperature, few_residuals, pooled
from scaleshift.errors import DataError

GENERATORS = ("auto", "plugin")
BY_PROBABILITIES = ("average_confidence", "difference_of_confidence", "average_thresholded_confidence")


def learn(job: Job) -> Family:
    """Learn from the source for an estimator in scikit-learn's style.

    Parameters
    ----------
    job : Job
        `settings.model` is the estimator, a classifier where the rows have no column "outcome". It is cloned
        and never changed itself. `settings.refit`: "cold" fits it anew to each replicate, "warm" goes on from
        the fitted model, "never" takes it as it comes: fitted, on other rows than these.

    Returns
    -------
    RefitFamily or FrozenFamily

    Raises
    ------
    DataError
        If the estimator lacks a method that is needed, or fails on the data; if the rows have no outcomes, or
        weigh more than a third of a worker's memory.

    Notes
    -----
    With generator "plugin" labels are drawn by the probabilities of the fitted model. "auto" divides their
    logits by the temperature that gives held-out rows the least deviance: probabilities of a model that has
    learned its rows by heart are near 0 and 1, and its error under them near 0. Numbers are drawn as the
    prediction and one of the held-out residuals; these hold the error of the fit beside the noise, so that
    their variance is somewhat large.

    A replicate is refitted with the `random_state` that the estimator has: with None, one that uses it gives
    other numbers each time.
    """
    settings, rows = job.settings, job.rows
    numbers = "outcome" in rows.columns
    if settings.generator not in GENERATORS:
        raise DataError(
            f"generator={settings.generator!r}: of an estimator outcomes are drawn by 'auto' or 'plugin'"
        )
    draws = any(method in BY_REFITS for method in settings.methods)
    check_estimator(settings.model, settings.refit, draws=draws, numbers=numbers)
    if not numbers:
        _check_sure(settings)
    if settings.refit == "never":
        return learn_frozen(job)
    classes = None if numbers else rows.categories("label")
    used = [name for name in ("outcome", "label", "group") if name in rows.columns]
    gathered = passes.gather({"source": rows.only(*used)}, divided, buckets=job.buckets)
    if gathered.n_rows["source"] < 2:
        raise DataError(
            f"{gathered.n_rows['source']} row(s) have an outcome: an estimator learns from 2 or more; "
            "give more outcomes"
        )
    keys = [ALL, *range(job.buckets.n if job.buckets else 0)]
    asked: dict[str, Any] = {"classes": classes, "loss": settings.loss}
    parts = passes.replicates(fit_part, gathered, keys, estimator=settings.model, **asked)
    every = parts.pop(ALL)
    folds = [part for part in parts.values() if part["n"]]
    cv_error, cv_error_se = _held_out_loss(folds)
    only = [name for name in ("outcome", "label", "train", "fresh") if name in rows.columns]
    return RefitFamily(
        cv_error=cv_error,
        cv_error_se=cv_error_se,
        n_invalid=gathered.n_invalid["source"],
        n=gathered.n_rows["source"],
        apparent=float(every["loss"] / every["n"]),
        world=_world(settings.loss, classes, settings.generator, every, folds),
        model=settled(every["model"].item(), classes),
        fold_models=tuple(settled(part["model"].item(), classes) for part in parts.values()),
        settings=settings,
        source=rows.only(*only),
        buckets=job.buckets,
    )


def _check_sure(settings: Settings) -> None:
    """Refuse a model of labels alone where it is believed: it would expect no errors at all."""
    model, name = settings.model, type(settings.model).__name__
    believed = [method for method in settings.methods if method in BY_PROBABILITIES]
    if settings.generator == "plugin":
        believed += [method for method in settings.methods if method in BY_REFITS]
    if believed and not hasattr(model, "predict_proba"):
        raise DataError(
            f"model {name} has no predict_proba, which {believed[0]!r} takes as it is: leave that method "
            "out, or wrap the model, sklearn.calibration.CalibratedClassifierCV(model)"
        )


def _held_out_loss(folds: list[dict[str, np.ndarray]]) -> tuple[float, float]:
    """Mean over held-out rows, and its standard error by the folds' means."""
    if not folds:
        return np.nan, np.nan
    total, n = (np.array([float(fold[name]) for fold in folds]) for name in ("loss", "n"))
    spread = (total / n).std(ddof=1) / np.sqrt(len(folds)) if len(folds) > 1 else np.nan
    return float(total.sum() / n.sum()), float(spread)


def _world(
    loss: Any,
    classes: np.ndarray | None,
    generator: str,
    every: Mapping[str, np.ndarray],
    folds: list[dict[str, np.ndarray]],
) -> World:
    """Laws of outcomes, by rows that the models had not learned from where there are folds."""
    if classes is not None:
        calibrates = generator == "auto" and bool(folds)
        found = sum((fold["deviances"] for fold in folds), np.zeros(1))
        return Labels(loss, classes, best_temperature(found) if calibrates else 1.0)
    parts = folds or [dict(every)]
    sizes = [int(part["n"]) for part in parts]
    residuals = pooled([part["residuals"] for part in parts], sizes)
    return Numbers(loss, few_residuals(residuals), float(residuals.var()), sum(sizes))
