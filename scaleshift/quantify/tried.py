"""How far is each method from the truth of each trial? Fits, predictions, and what goes wrong in them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from sklearn.base import clone

from scaleshift.blocks import blas
from scaleshift.doing import doing
from scaleshift.errors import DataError
from scaleshift.quantify.flags import JOINT
from scaleshift.quantify.trial_cells import TrialCells
from scaleshift.quantify.trials import Split, Trial, truth

MEASURES = ("error", "unknown_error", "n_inside", "n_intervals", "seconds")
WARM = 20  # cells of a sample and class to warm up with
ROUNDING = 1e-9  # of the ends of an interval


def try_all(
    quantifiers: Mapping[str, Any], cells: TrialCells, splits: Sequence[Split], seed: int
) -> tuple[dict[str, np.ndarray], list[dict[str, str]]]:
    """Every method on every split.

    Returns
    -------
    measures : dict of str to numpy.ndarray, shape (n_methods, n_trials)
        Those of `MEASURES`; NaN where a method failed.
    flags : list of dict
        For each method: setting -> what went wrong there.
    """
    n_trials = sum(len(split.trials) for split in splits)
    measures = {name: np.full((len(quantifiers), n_trials), np.nan) for name in MEASURES}
    flags: list[dict[str, str]] = []
    with doing("trials", len(quantifiers) * n_trials) as advance:
        for i, method in enumerate(quantifiers.values()):
            said: dict[str, dict[str, None]] = {}
            first = 0
            _warm_up(fresh(method, seed), cells, splits[0])
            for split in splits:
                outcome = try_one(fresh(method, seed), cells, split)
                here = slice(first, first + len(split.trials))
                for name in MEASURES:
                    measures[name][i, here] = outcome.measures[name]
                for trial in split.trials:
                    said.setdefault(trial.setting, {}).update(dict.fromkeys(outcome.remarks))
                first += len(split.trials)
                advance(len(split.trials))
            flags.append({setting: JOINT.join(remarks) for setting, remarks in said.items()})
    return measures, flags


class Outcome(NamedTuple):
    """Of one method on one split."""

    measures: dict[str, np.ndarray]  # (n_trials,)
    remarks: list[str]  # why it failed, and what it warned of


def fresh(method: Any, seed: int) -> Any:
    """An unfitted copy, with a seed where it has none."""
    if not hasattr(method, "get_params"):
        return deepcopy(method)
    copy = clone(method)
    if copy.get_params(deep=False).get("random_state", seed) is None:
        copy.set_params(random_state=seed)
    return copy


def try_one(method: Any, cells: TrialCells, split: Split) -> Outcome:
    """Fit once, ask for all targets at once; whatever a method raises is a remark."""
    n = len(split.trials)
    measures = {name: np.full(n, np.nan) for name in MEASURES}
    remarks: list[str] = []
    started = time.process_time()
    with blas.one_thread(), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            result = _answer(method, cells, split)
            for i, trial in enumerate(split.trials):
                known, share = truth(cells, split, trial)
                found = _measured(result.isel(sample=i), cells.labels[known].tolist(), share)
                for name, value in found.items():
                    measures[name][i] = value
        except Exception as error:  # a method may raise what it likes: the others go on
            remarks.append(f"{type(error).__name__}: {_line(error)}")
            measures = {name: np.full(n, np.nan) for name in MEASURES}
    measures["seconds"][:] = (time.process_time() - started) / n
    remarks += [f"warning: {_line(w.message)}" for w in warned]
    return Outcome(measures, list(dict.fromkeys(remarks)))


def _warm_up(method: Any, cells: TrialCells, split: Split) -> None:
    """Import and compile what the method needs, so that its first trial is not charged for it."""
    few = split.source[cells.rank[split.source] < WARM]
    asked = Trial("", "", split.trials[0].rows[:WARM])
    try_one(method, cells, Split(few, (asked,)))  # on so few cells it may fail


def _answer(method: Any, cells: TrialCells, split: Split) -> xr.Dataset:
    """What the method says of the targets, in their order."""
    rows = split.source
    method.fit(cells.x[rows], cells.y(rows), sample=cells.samples[cells.sample[rows]])
    names = [f"target {i:05d}" for i in range(len(split.trials))]
    targets = [trial.rows for trial in split.trials]
    asked = np.repeat(names, [len(target) for target in targets])
    result = method.predict(cells.x[np.concatenate(targets)], sample=asked)
    return result.sel(sample=names)


def _measured(result: xr.Dataset, labels: list[Any], share: np.ndarray) -> dict[str, float]:
    """Errors and interval counts of one target; `labels` are those that the source holds."""
    place = {label: i for i, label in enumerate(result["label"].values.tolist())}
    missing = [str(label) for label in labels if label not in place]
    if missing:
        raise DataError(
            f"the result lacks the label(s) {', '.join(missing)}: expected all that the source holds"
        )
    take = [place[label] for label in labels]
    found = result["proportion"].values[take]
    if not np.isfinite(found).all():
        without = [str(label) for label, value in zip(labels, found, strict=True) if not np.isfinite(value)]
        raise DataError(
            f"no proportion of {', '.join(without)}: expected a number for each label of the source"
        )
    unknown = float(result["unknown"]) if "unknown" in result else 0.0
    inside = intervals = 0
    if "proportion_low" in result:
        low, high = (result[f"proportion_{end}"].values[take] for end in ("low", "high"))
        intervals = int(np.count_nonzero(np.isfinite(low) & np.isfinite(high)))
        inside = int(np.count_nonzero((low <= share + ROUNDING) & (share - ROUNDING <= high)))
    return {
        "error": np.abs(found - share).sum(),
        "unknown_error": abs(np.nan_to_num(unknown) - (1 - share.sum())),
        "n_inside": inside,
        "n_intervals": intervals,
    }


def _line(message: object) -> str:
    """The first line of a message, without what joins flags."""
    return (str(message).strip().splitlines() or [""])[0].replace(JOINT, ", ")
