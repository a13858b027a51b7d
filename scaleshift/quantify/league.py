"""Which method for this study? A league table of quantifiers on the user's own labelled cells."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

import scaleshift
from scaleshift.blocks import noise
from scaleshift.blocks.block import Invalid
from scaleshift.blocks.rows import as_rows
from scaleshift.errors import DataError
from scaleshift.quantify import methods as registry
from scaleshift.quantify.recommend import recommend
from scaleshift.quantify.trial_cells import TrialCells, gather
from scaleshift.quantify.trials import SETTINGS, Split, splits
from scaleshift.quantify.tried import try_all
from scaleshift.spelling import meant

#: variable -> (long_name, units, description)
VARIABLES = {
    "error": (
        "error of the proportions",
        "1",
        "sum of the absolute errors over the classes of the source, mean over trials",
    ),
    "error_se": ("standard error of the error", "1", "over what is left out, or over draws"),
    "unknown_error": ("error of the unknown share", "1", "absolute; methods without one say 0"),
    "coverage": (
        "coverage",
        "1",
        "share of the intervals of proportions that hold the share among the target's cells; NaN without any",
    ),
    "seconds": ("processor time", "s", "of fits and predictions, of all threads; trials of one fit share it"),
}
SCORE = "score", "1", "error that the recommendation goes by; NaN without an answer in every trial of it"


def compare(
    methods: Any = None,
    X: Any = None,
    y: Any = None,
    sample: Any = None,
    *,
    settings: Sequence[str] | None = None,
    n_draws: int = 5,
    n_left_out: int = 6,
    cells_per_sample: int = 5_000,
    random_state: Any = None,
    invalid: Invalid = "raise",
) -> xr.Dataset:
    """League table of methods on labelled cells, and which of them to use for new samples.

    Each method is fitted on a part of the labelled cells and asked for another part, whose shares are known,
    in up to five settings: the shares resampled; a class left out of the source; a sample left out, as it is,
    with its shares resampled, and with the cells that no label holds. A bounded number of cells is drawn
    first, in one pass, so that every setting works in memory.

    Parameters
    ----------
    methods : mapping of str to quantifier, sequence of quantifiers or names, or None
        Unfitted objects with ``fit(X, y, sample=)`` and ``predict(X, sample=)`` that return a Dataset as
        scaleshift's own do; or names, as `scaleshift quantify --method` takes them. None: one of each kind.
        They are copied; a `random_state` of None takes one from this function's.
    X : array-like, shape (n, n_markers), or a cells dataset
        All labelled samples, with their unlabelled cells: in a sample that has labels, a cell without one is
        taken for a cell outside every class. Samples without labels are left out.
    y, sample : array-like, shape (n,), optional
        Labels and samples, as for ``fit``.
    settings : sequence of str, optional
        Some of the settings, by the names that the result has.
    n_draws : int, default 5
        Resampled targets of each source.
    n_left_out : int, default 6
        Classes and samples that are left out in turn, at most: the largest classes, and samples at random.
    cells_per_sample : int, default 5000
        Cells drawn of each sample; of all samples together at most 200 000.
    random_state : None, int or numpy.random.Generator
    invalid : {"raise", "drop"}, default "raise"
        What to do with rows that hold NaN or infinite values.

    Returns
    -------
    xarray.Dataset
        Dimensions (method, setting): error, error_se, unknown_error, coverage, seconds, and flag, the reason
        why there is no number. (method, trial): trial_error, trial_unknown_error, with the coordinates
        trial_setting and left_out. (method): score, what the recommendation goes by. Attributes:
        recommendation, reason, seed, numbers of cells and samples. Choose a method by
        ``table.loc[{"method": "cc"}]``: the argument `method` of xarray's ``sel`` is another thing.

    Raises
    ------
    DataError
        Without labels, for an unknown name, or where the cells allow no setting.

    Notes
    -----
    Errors are against the shares among the target's own cells; cells of classes that the source lacks, and
    cells without a label, are unknown.

    The recommendation: with three or more samples that can be left out, the score is the mean error with a
    sample left out: half of it that with ungated cells, where there are any. Methods whose mean difference to
    the best, sample by sample, is within one standard error of it are equal; of these the default method is
    taken, else the one that stands first. A method that is much worse than the best where a class is left out
    is not recommended, unless hardly any cell is without a label. With fewer samples the study cannot tell
    how samples differ: the default method is recommended, and where it is not among those compared, the one
    with the least mean error over all settings.

    Examples
    --------
    >>> import scaleshift as ss
    >>> rng = np.random.default_rng(0)
    >>> y = rng.choice(["a", "b", "c"], 3000)
    >>> X = np.column_stack([y == "a", y == "b"]) * 5 + rng.normal(size=(3000, 2))
    >>> two = {"hard": ss.DFM(soft=False, n_bootstrap=0), "soft": ss.DFM(n_bootstrap=0)}
    >>> table = ss.quantify.compare(two, X, y, random_state=0)
    >>> table["setting"].values.tolist()
    ['label shift', 'class left out']
    >>> table.recommendation
    'soft'
    """
    quantifiers = _named(methods)
    wanted = _settings(settings)
    bounds = {"n_draws": n_draws, "n_left_out": n_left_out, "cells_per_sample": cells_per_sample}
    for name, number in bounds.items():
        if not isinstance(number, int | np.integer) or number < 1:
            raise DataError(f"{name}={number!r}: expected a number from 1")
    if X is None:
        raise DataError("there are no cells to compare on: pass X, as an array or a cells dataset")
    seed = noise.seed_of(random_state)
    cells = gather(as_rows(X, y, sample, invalid=invalid), int(cells_per_sample), seed)
    tried = list(splits(cells, wanted, int(n_draws), int(n_left_out), seed))
    if not tried:
        raise DataError(
            f"{len(cells.label)} cells of {len(cells.samples)} sample(s) allow none of the settings "
            f"{', '.join(wanted)}: label more cells, 50 in a sample and 40 of a class at least"
        )
    numbers, flags = try_all(quantifiers, cells, tried, seed)
    found = _table(quantifiers, cells, tried, numbers, flags)
    return found.assign_attrs(seed=seed, **{name: int(number) for name, number in bounds.items()})


def _named(methods: Any) -> dict[str, Any]:
    """The methods by name; names are those of the registry, or of the classes."""
    if methods is None:
        methods = registry.league()
    if isinstance(methods, xr.Dataset):
        raise DataError("methods is a dataset: pass the methods first, or None, then the cells")
    if isinstance(methods, str) or not isinstance(methods, Mapping | Sequence):
        raise DataError(f"methods={methods!r}: expected a mapping of names to quantifiers, or a list")
    if isinstance(methods, Mapping):
        found = [(str(name), method) for name, method in methods.items()]
    else:
        found = [(m if isinstance(m, str) else type(m).__name__, m) for m in methods]
    named: dict[str, Any] = {}
    for name, method in found:
        if name in named:  # two of one class
            name = next(f"{name}-{i}" for i in range(2, len(found) + 2) if f"{name}-{i}" not in named)
        named[name] = registry.make(method) if isinstance(method, str) else method
        if isinstance(method, type):
            raise DataError(f"the method {name} is the class {method.__name__}: pass an object of it")
        if not (hasattr(named[name], "fit") and hasattr(named[name], "predict")):
            raise DataError(f"the method {name}, of type {type(method).__name__}, lacks fit or predict")
    if not named:
        raise DataError("there are no methods to compare: pass some, or None for one of each kind")
    return named


def _settings(settings: Sequence[str] | None) -> list[str]:
    unknown = [name for name in settings or () if name not in SETTINGS]
    if unknown or isinstance(settings, str) or (settings is not None and not len(settings)):
        hint = meant(settings if isinstance(settings, str) else unknown[0], SETTINGS) if unknown else ""
        raise DataError(f"settings={settings!r}: expected a list of some of {', '.join(SETTINGS)}{hint}")
    return [name for name in SETTINGS if settings is None or name in settings]


def _table(
    quantifiers: Mapping[str, Any],
    cells: TrialCells,
    tried: Sequence[Split],
    numbers: Mapping[str, np.ndarray],
    flags: Sequence[Mapping[str, str]],
) -> xr.Dataset:
    """Means by setting, the trials behind them, and the recommendation."""
    trials = [trial for split in tried for trial in split.trials]
    setting = np.array([trial.setting for trial in trials])
    unit = np.array([trial.unit for trial in trials])
    names, settings = list(quantifiers), [name for name in SETTINGS if name in set(setting)]
    advice = recommend(names, numbers["error"], setting, unit, float(np.mean(cells.label < 0)))
    columns = [_of_setting(numbers, setting == name, unit) for name in settings]
    data: dict[str, Any] = {
        name: (("method", "setting"), np.column_stack([column[name] for column in columns]), _told(*told))
        for name, told in VARIABLES.items()
    }
    flag = np.array([[of.get(name, "") for name in settings] for of in flags])
    data["flag"] = ("method", "setting"), flag, {"long_name": "why there is no number, and warnings"}
    data["score"] = "method", advice.score, _told(*SCORE)
    for name in ("error", "unknown_error"):
        data[f"trial_{name}"] = ("method", "trial"), numbers[name], _told(*VARIABLES[name])
    coordinates = {
        "method": names,
        "setting": settings,
        "description": ("setting", [SETTINGS[name] for name in settings]),
        "trial_setting": ("trial", setting),
        "left_out": ("trial", unit),
    }
    attributes = {
        "scaleshift_version": scaleshift.__version__,
        "recommendation": advice.method,
        "reason": advice.reason,
        "n_cells": len(cells.label),
        "n_ungated": int(np.sum(cells.label < 0)),
        "samples": json.dumps(cells.samples.tolist()),
        "methods": json.dumps({name: str(method) for name, method in quantifiers.items()}),
    }
    return xr.Dataset(data, coordinates, attributes)


def _of_setting(numbers: Mapping[str, np.ndarray], here: np.ndarray, unit: np.ndarray) -> dict[str, Any]:
    """The variables of one setting, (n_methods,) each."""
    error, unknown = (_by_unit(numbers[name][:, here], unit[here]) for name in ("error", "unknown_error"))
    inside, n = (numbers[name][:, here].sum(axis=1) for name in ("n_inside", "n_intervals"))
    n_units = error.shape[1]
    spread = error.std(axis=1, ddof=1) if n_units > 1 else np.full(len(error), np.nan)
    return {
        "error": error.mean(axis=1),
        "error_se": spread / np.sqrt(n_units),
        "unknown_error": unknown.mean(axis=1),
        "coverage": inside / np.where(n > 0, n, np.nan),
        "seconds": numbers["seconds"][:, here].sum(axis=1),
    }


def _by_unit(values: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Means over the trials of each unit, (n_methods, n_units)."""
    return np.column_stack([values[:, unit == name].mean(axis=1) for name in dict.fromkeys(unit)])


def _told(long_name: str, units: str, description: str) -> dict[str, str]:
    return {"long_name": long_name, "units": units, "description": description}
