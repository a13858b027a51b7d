"""What is told of targets, and of the model?  Answers of engine and comparators, what makes them doubtful."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from scaleshift.blocks import graph, passes
from scaleshift.blocks.block import Block, Rows
from scaleshift.blocks.sizes import count
from scaleshift.cells.problem import several
from scaleshift.error.comparators import COMPARATORS, NORM
from scaleshift.error.comparators.projection import norm_of_seen
from scaleshift.error.family import Answer, Family, Settings
from scaleshift.error.flags import flags, unreliable
from scaleshift.error.held_out import HeldOut, coverage, effective_sample_size, seen, share_far
from scaleshift.error.result import OfTarget, attributes, dataset, loss_name
from scaleshift.error.targets import TargetState, naming, rows_of
from scaleshift.errors import DataError
from scaleshift.kernels.reference import to_numpy

if TYPE_CHECKING:
    from scaleshift.error.prediction_error import PredictionError
    from scaleshift.fitted import Facts

OF_FIT = ("model", "generator", "alpha", "penalty", "n_bootstrap", "level", "tol", "refit", "scale")


def states(
    family: Family,
    targets: Mapping[str, Rows],
    settings: Settings,
    classes: np.ndarray | None,
    *,
    with_noise: bool,
) -> dict[str, TargetState]:
    """What is kept of targets: the engine's sums, and some rows of each; refits meet all targets at once."""
    together = {} if isinstance(settings.model, str) else family.target_sums(targets, with_noise)
    found = {}
    for name, rows in targets.items():
        with naming(name):
            sums = together or family.target_sums({name: rows}, with_noise)
            n = float(sums[name]["n"])
            some = seen(rows, family, settings, settings.seed, classes)
            found[name] = TargetState(sums[name], some, n, rows.x.shape[0] - n)
    return found


def of_target(family: Family, held: HeldOut, state: TargetState, settings: Settings) -> OfTarget:
    """Everything of one target."""
    answers: dict[str, Answer] = dict(family.answers(state.sums))
    for name in settings.methods:
        if name in COMPARATORS:
            answers[name] = COMPARATORS[name](held, state.seen)
    far, size = share_far(held, state.seen, family), effective_sample_size(held, state.seen)
    negative = [
        one.reason for one in answers.values() if one.error < 0
    ]  # others say why there is no interval
    remarks = [*family.remarks(state.sums), *negative]
    reasons = flags(
        round(state.n_rows),
        n_left_out=round(state.n_invalid),
        n_source=len(held.x),
        effective_sample_size=size,
        coverage=coverage(held, state.seen),
        share_far=far,
        n_judged=len(state.seen.x),
        remarks=list(dict.fromkeys(remarks)),
    )
    return OfTarget(
        answers,
        state.n_rows,
        state.n_invalid,
        size,
        far,
        unreliable(reasons),
        "; ".join(reasons),
        family.by_feature(state.sums),
        norm_of_seen(family, held, state.seen, settings) if NORM in settings.methods else None,
    )


def facts(model: PredictionError) -> Facts:
    """What was learned of the source, and of targets since, in words."""
    n, loss = getattr(model.family_, "n", None), loss_name(model.settings_.loss)
    rows = "" if n is None else f"{count(int(n), 'row', 'rows')} of "
    left_out = f", {count(model.n_invalid_, 'row', 'rows')} left out" if model.n_invalid_ else ""
    found: Facts = {
        "learned from": f"{rows}{count(model.n_features_in_, 'feature', 'features')}{left_out}",
        "outcomes": "numbers" if model.classes_ is None else f"labels: {several(model.classes_.tolist())}",
    }
    if np.isfinite(model.error_cv_):
        found["error held out"] = f"{model.error_cv_:.3g} +- {model.error_cv_se_:.2g} ({loss})"
    in_sample = {
        name: f"{error:.3g}" for name, error in model.family_.error_in_sample.items() if np.isfinite(error)
    }
    if in_sample:
        found["error in sample"] = in_sample
    found["generator"] = model.generator_
    if model.targets_:
        found["targets"] = {name: f"{state.n_rows:,.0f} rows" for name, state in model.targets_.items()}
    return {**found, "seed": str(model.seed_)}


def answered(model: PredictionError, states: Mapping[str, TargetState]) -> xr.Dataset:
    """The result of some targets."""
    settings, family = model.settings_, model.family_
    fitted = {name: getattr(settings, name) for name in OF_FIT}  # whatever was set since
    fitted["method"] = settings.methods
    found = {name: of_target(family, model.held_out_, state, settings) for name, state in states.items()}
    told = attributes(
        {**model.get_params(), **fitted},
        seed=model.seed_,
        loss=loss_name(settings.loss),
        generator=model.generator_,
    )
    features = range(model.n_features_in_) if model.markers_ is None else model.markers_
    return dataset(found, settings.methods, family.error_in_sample, family.cv_error, features, told)


def extrapolated(model: PredictionError, X: Any) -> Any:
    """How far rows are from what the source tells of, (m,)."""
    rows = rows_of("X", X, model)
    if model.family_.extrapolation(np.zeros((1, model.n_features_in_))) is None:
        raise DataError("model is an estimator, which has no extrapolation score: pass a named model")
    found = passes.map_rows(extrapolation_leaf, rows, family=model.family_)
    return graph.compute(found, in_memory=True) if rows.in_memory else found


def extrapolation_leaf(block: Block, family: Family) -> np.ndarray:
    """Scores of one block's rows."""
    found = family.extrapolation(to_numpy(block.x).astype(np.float64))
    assert found is not None
    return found
