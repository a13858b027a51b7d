"""What does `--state` keep, and does this call go with it?  Fitted once, then updated; never added twice."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from scaleshift.cli.error_data import Asked, Targets, targets_of
from scaleshift.cli.error_observed import beside_observed
from scaleshift.cli.error_outcome import Outcome
from scaleshift.cli.opening import EVERY, Opening
from scaleshift.errors import DataError

if TYPE_CHECKING:
    import xarray as xr

    from scaleshift.error.monitor import Monitor
    from scaleshift.error.watch import Watch

OF_TARGETS = ("by_sample", "labelled_only")  # which are kept: targets of updates are those of the fit
AGAIN = "these cells are those of the last update: they are not added again, and its answer is given again"


def read(path: Path | None) -> Monitor | None:
    """The state at a path; None where nothing stands there yet."""
    from scaleshift import persistence
    from scaleshift.error.monitor import Monitor

    if path is None or not os.path.lexists(path) or _is_empty(path):
        return None
    found = persistence.load(path)
    if not isinstance(found, Monitor):
        raise DataError(f"--state {path} holds a {type(found).__name__}: choose another folder")
    return found


def write(monitor: Monitor, path: Path) -> None:
    """Replace the state at a path, as a whole."""
    from scaleshift import persistence

    try:
        if _is_empty(path):
            path.rmdir()  # a state is put in place as a whole
        persistence.save(monitor, path)
    except OSError as error:
        raise _unwritable(path, error) from error


def refuse_unwritable(path: Path | None) -> None:
    """Raise before a long fit where its state could not be written."""
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> DataError:
    return DataError(f"--state {path} cannot be written ({error.strerror}): choose another folder")


def check(monitor: Monitor, given: Mapping[str, Any], options: Mapping[str, str], path: Path) -> None:
    """Refuse settings of a fit that are not those of the fit that is kept.

    Parameters
    ----------
    monitor : Monitor
    given : mapping
        Settings that were passed, by the name of their parameter.
    options : mapping
        Option of each parameter.
    path : path
        Of the state.
    """
    for name, value in given.items():
        kept = monitor.fitted.get(name)
        if kept != value:
            flag = isinstance(value, bool)
            told = options[name] if flag else f"{options[name]} {_shown(value)}"
            fitted = f"without {options[name]}" if flag else f"with {_shown(kept)}"
            raise click.UsageError(
                f"{told}: {path} was fitted {fitted}; leave {options[name]} out, or choose another --state"
            )


def trust(monitor: Monitor, types: Sequence[str], pickle: bool) -> None:
    """Trust the kept model's file as this call says: a state is data, and does not vouch for itself."""
    from scaleshift.models import ModelFile

    model = monitor.model.model
    if isinstance(model, ModelFile):
        model.trust(types, pickle)
    elif types or pickle:
        option = "--trust" if types else "--trust-pickle"
        raise click.UsageError(f"{option} goes with a model file, and --state keeps none")


def targets(monitor: Monitor, asked: Asked) -> Targets:
    """The cells of an update: those of --target, else all of STORE but what was learned from."""
    opening = Opening(asked.store)
    names = opening.select(asked.target or EVERY, "--target")
    if asked.target is None and opening.manifest.study == monitor.study:
        names = [name for name in names if name not in monitor.samples]
        if not names:
            raise click.UsageError("every sample of STORE was learned from: pass --target, or another STORE")
    model, fitted = monitor.model, monitor.fitted
    by_sample, labelled_only = (bool(fitted.get(name)) for name in OF_TARGETS)
    asked = replace(asked, outcome=fitted["outcome"], by_sample=by_sample, labelled_only=labelled_only)
    outcome = Outcome(opening, asked.outcome, model.classes_ is not None, fitted["model"])
    features = None if model.markers_ is None else list(model.markers_)
    return targets_of(asked, opening, names, features, outcome if outcome.exists else None)


def update(monitor: Monitor, new: Targets, watch: Watch | None) -> tuple[Monitor, xr.Dataset]:
    """The state after an update, and its answer; cells that are in it already are not added again."""
    again = monitor.is_last(new.fingerprint)
    result = monitor.answer if again else monitor.model.update(new.cells)
    result = beside_observed(result, monitor.model, new.observed)
    if again:
        new.remarks.append(AGAIN)
    elif monitor.fingerprint:
        new.remarks.append(_forgotten(monitor.model.forget))
        if "observed" in result and monitor.model.forget < 1:
            new.remarks.append("observed: of the cells of this update alone")
    counted = again and monitor.watch is not None and watch is not None and watch.is_of(monitor.watch)
    if watch is not None and not counted:
        watch = watch.updated(judged(result, watch.on))
    return monitor.after(result, watch, new.fingerprint), result


def _forgotten(share: float) -> str:
    """How much the past counts in an update."""
    if share == 0:
        return "--forget 0: all cells since the start count, so that a bad night is diluted, and lingers"
    if share == 1:
        return "--forget 1: the cells of this update alone count"
    return f"--forget {share:g}: {100 * share:g} % of what earlier updates have told is forgotten"


def judged(result: xr.Dataset, on: str) -> dict[str, float]:
    """By target, what an alarm looks at: the error by the first method, or the lower end of its interval."""
    values = result["error" if on == "error" else "error_low"].transpose("target", "method").values[:, 0]
    return dict(zip(map(str, result["target"].values.tolist()), values.tolist(), strict=True))


def _is_empty(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink() and not any(path.iterdir())


def _shown(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
