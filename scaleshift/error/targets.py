"""What is a target?  Rows with a name, in the columns that the model knows; and what is kept of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import xarray as xr

from scaleshift.blocks.block import Rows
from scaleshift.blocks.rows import as_rows, with_numbers
from scaleshift.error.family import Sums
from scaleshift.error.held_out import Seen
from scaleshift.error.job import noise_by_row
from scaleshift.errors import DataError, ScaleshiftError

ONE = "target"  # name of a target that has none


@dataclass(frozen=True)
class TargetState:
    """What is kept of a target, without its rows."""

    sums: Sums  # weighted: the past counts less where it is forgotten
    seen: Seen  # some rows of its last part
    n_rows: float  # weighted, of finite rows
    n_invalid: float  # weighted
    n_updates: int = 1

    def then(self, newer: TargetState, forget: float) -> TargetState:
        """The same target after another part of it came in.

        Parameters
        ----------
        newer : TargetState
            Of the part.
        forget : float
            Share of the past that no longer counts.
        """
        keep = 1 - forget
        return replace(
            newer,
            sums={name: keep * values + newer.sums[name] for name, values in self.sums.items()},
            n_rows=keep * self.n_rows + newer.n_rows,
            n_invalid=keep * self.n_invalid + newer.n_invalid,
            n_updates=self.n_updates + 1,
        )


def named(targets: Any) -> dict[str, Any]:
    """Targets by name; one alone is called "target".

    Examples
    --------
    >>> list(named([[1.0]])), list(named({"site B": [[1.0]]}))
    (['target'], ['site B'])
    """
    if not isinstance(targets, Mapping) or isinstance(targets, xr.Dataset):
        return {ONE: targets}
    if not targets:
        raise DataError("there are no targets: pass rows, or {name: rows}")
    names = [str(name) for name in targets]
    if len(set(names)) < len(names):
        raise DataError(f"targets have the names {names}: expected each once")
    return dict(zip(names, targets.values(), strict=True))


def rows_of(name: str, X: Any, like: Any, noise: Any = None) -> Rows:
    """Rows of one target, with its columns in the order of the fit, and with "noise", (m, B), where given.

    Parameters
    ----------
    name : str
    X : array-like, shape (m, n_features), or a cells dataset
    like : object
        With `markers_`, `n_features_in_`, `treatment_`, `classes_`, `settings_` and `invalid` of the fit.
    noise : array-like, shape (B, m), optional
    """
    with naming(name):
        rows = as_rows(X, invalid=like.invalid).only()
        rows = rows.matched(like.markers_, like.n_features_in_, like.treatment_)
        if not rows.x.shape[0]:
            raise DataError("no rows: leave it out")
        if noise is None:
            return rows
        n, uniform = rows.x.shape[0], like.classes_ is not None
        n_replicates = like.settings_.n_bootstrap
        return with_numbers(rows, noise=noise_by_row(noise, n, uniform=uniform, n_replicates=n_replicates))


@contextlib.contextmanager
def naming(name: str) -> Iterator[None]:
    """Whatever is wrong with a target has its name."""
    try:
        yield
    except ScaleshiftError as error:
        raise type(error)(f"target {name!r}: {error}") from error


def noise_of(noise: Any, names: list[str]) -> dict[str, Any]:
    """Noise of each target, by name.

    Raises
    ------
    DataError
        If it is not given for each.
    """
    if noise is None:
        return dict.fromkeys(names)
    given = noise.get("target") if isinstance(noise, Mapping) else None
    if given is None:
        raise DataError("noise of predict holds no 'target': pass {'target': (n_replicates, m)}")
    given = (
        {str(name): one for name, one in given.items()} if isinstance(given, Mapping) else {names[0]: given}
    )
    missing = [name for name in names if name not in given]
    if missing:
        raise DataError(f"noise['target'] lacks the target {missing[0]!r}: pass {{name: (n_replicates, m)}}")
    return {name: given[name] for name in names}
