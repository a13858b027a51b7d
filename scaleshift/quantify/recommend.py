"""Which of the compared methods should answer for new samples, and why? One rule, and its reason in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scaleshift.quantify import methods as registry
from scaleshift.quantify.trials import CLASS_OUT, OF_SAMPLES, SAMPLE_OUT_UNGATED

ENOUGH_SAMPLES = 3  # left out in turn, before their errors can tell methods apart
HARDLY_ANY = 0.01  # share of cells without a label under which unknown cells need not be feared
MUCH = 1.5, 0.05  # much worse: over 1.5 times the least error + .05


class Advice(NamedTuple):
    """A method's name, or "" where none gave an answer; why; and what each method's error was."""

    method: str
    reason: str
    score: np.ndarray  # (n_methods,)


def recommend(
    names: Sequence[str], errors: np.ndarray, setting: np.ndarray, unit: np.ndarray, ungated: float
) -> Advice:
    """The method to use.

    Parameters
    ----------
    names : sequence of str
        Methods, the simplest first.
    errors : numpy.ndarray, shape (n_methods, n_trials)
    setting, unit : numpy.ndarray, shape (n_trials,)
        Of each trial: its setting, and what was left out.
    ungated : float
        Share of the cells that have no label.

    Returns
    -------
    Advice
        By the rule that `scaleshift.quantify.compare` documents.
    """
    of_samples = np.isin(setting, OF_SAMPLES)
    n_samples, default = len(np.unique(unit[of_samples])), registry.default()
    enough = n_samples >= ENOUGH_SAMPLES
    by_unit = _by_sample(errors, setting, unit) if enough else _by_trial(errors, setting, unit)
    score = by_unit.mean(axis=1)
    able = np.isfinite(score)
    if not able.any():
        return Advice("", "no method gave an answer in every trial: see flag", score)
    what = f"where one of {n_samples} samples is left out" if enough else "over all settings"
    if not enough and default in names and able[list(names).index(default)]:
        few = "one labelled sample tells" if n_samples < 2 else f"{n_samples} labelled samples tell"
        reason = f"{few} too little of how samples differ: the default, with an error of "
        return Advice(default, f"{reason}{_number(score[list(names).index(default)])} {what}", score)
    safe, guarded = _guard(names, errors, setting, able, ungated)
    candidates = np.flatnonzero(safe).tolist()
    best = min(candidates, key=lambda i: score[i])
    equal = [i for i in candidates if _within_noise(by_unit[i] - by_unit[best])]
    chosen = next((i for i in equal if names[i] == default), equal[0])
    return Advice(names[chosen], _reason(names, score, best, equal, chosen, what) + guarded, score)


def _by_sample(errors: np.ndarray, setting: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """(n_methods, n_samples): half of the error with ungated cells, half of that without, where there is."""
    found = []
    for name in np.unique(unit[np.isin(setting, OF_SAMPLES)]):
        known = [
            errors[:, (unit == name) & (setting == kind)].mean(axis=1)
            for kind in OF_SAMPLES
            if kind != SAMPLE_OUT_UNGATED and ((unit == name) & (setting == kind)).any()
        ]
        both = [np.mean(known, axis=0)] if known else []
        ungated = (unit == name) & (setting == SAMPLE_OUT_UNGATED)
        if ungated.any():
            both.append(errors[:, ungated].mean(axis=1))
        found.append(np.mean(both, axis=0))
    return np.column_stack(found)


def _by_trial(errors: np.ndarray, setting: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """(n_methods, n_units): the mean of each unit of each setting, weighted so that settings count alike."""
    found = []
    kinds = dict.fromkeys(setting)
    pairs = list(dict.fromkeys(zip(setting, unit, strict=True)))
    for kind, name in pairs:
        weight = len(pairs) / (len(kinds) * sum(kind == other for other, _ in pairs))
        found.append(weight * errors[:, (setting == kind) & (unit == name)].mean(axis=1))
    return np.column_stack(found)


def _guard(
    names: Sequence[str], errors: np.ndarray, setting: np.ndarray, able: np.ndarray, ungated: float
) -> tuple[np.ndarray, str]:
    """Which methods may be recommended, and what is said of those that may not."""
    here = setting == CLASS_OUT
    if ungated < HARDLY_ANY or not here.any():
        return able, ""
    error = errors[:, here].mean(axis=1)
    if not np.isfinite(error[able]).any():
        return able, ""
    factor, more = MUCH
    least = np.nanmin(error[able])
    safe = able & ~(error > factor * least + more) & np.isfinite(error)
    worse = [f"{names[i]} ({_number(error[i])})" for i in np.flatnonzero(able & ~safe).tolist()]
    if not worse:
        return safe, ""
    against = f"much worse where a class is left out (least error {_number(least)})"
    return safe, f"; left aside as {against}: {', '.join(worse)}"


def _within_noise(difference: np.ndarray) -> bool:
    """Whether the mean of paired differences is within their standard error, of zero."""
    if difference.size < 2:
        return bool(difference.mean() <= 0)
    return bool(difference.mean() <= difference.std(ddof=1) / np.sqrt(difference.size))


def _reason(
    names: Sequence[str], score: np.ndarray, best: int, equal: Sequence[int], chosen: int, what: str
) -> str:
    if len(equal) == 1:
        return f"the least error {what}: {_number(score[best])}"
    listed = ", ".join(f"{names[i]} {_number(score[i])}" for i in sorted(equal, key=lambda i: score[i]))
    why = "the default" if names[chosen] == registry.default() else "the first"
    return f"{why} of the methods within noise of the least error {what}: {listed}"


def _number(error: float) -> str:
    return f"{100 * error:.1f} %" if np.isfinite(error) else "no answer"
