"""Which quantifier answers?  The one that --method names, or with auto what suits the source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from scaleshift.quantify import methods

if TYPE_CHECKING:
    import xarray as xr

AUTO = "auto"
#: of `compare`, which runs before every such answer
QUICK = {"n_draws": 2, "n_left_out": 4, "cells_per_sample": 2_000}
OPTIONS = {  # parameter -> option
    "bandwidth": "--bandwidth",
    "n_features": "--features",
    "n_bootstrap": "--bootstrap",
    "level": "--level",
    "resample": "--resample",
    "invalid": "--invalid",
}
OF_SOME = {"bandwidth", "n_features"}  # mean another thing for each method: auto takes neither


class Choice(NamedTuple):
    """A method, and why it was chosen; no reason where the user named it."""

    name: str
    why: str


@dataclass(frozen=True)
class Wanted:
    """What was asked of the quantifier."""

    method: str = AUTO
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)  # parameter -> value, also those left out
    insisted: frozenset[str] = frozenset()  # parameters that were passed

    @property
    def told(self) -> dict[str, Any]:
        """What tells this from what else could be asked."""
        return {"method": self.method, "seed": self.seed, "settings": dict(self.settings)}

    def check(self) -> None:
        """Refuse options that the method does not have, before anything runs."""
        asked = methods.default() if self.method == AUTO else self.method
        lacking = self.insisted - methods.accepted(asked)
        if self.method == AUTO:
            lacking |= self.insisted & OF_SOME
        for name in OPTIONS:
            if name in lacking:
                having = ", ".join(methods.having([name])) or "no method"
                raise click.UsageError(
                    f"{OPTIONS[name]} does not go with --method {self.method}: it is for {having}"
                )

    def choose(self, cells: xr.Dataset) -> Choice:
        """The method for a source."""
        from scaleshift.blocks.rows import as_rows
        from scaleshift.quantify.recommend import ENOUGH_SAMPLES
        from scaleshift.quantify.trial_cells import labelled_samples
        from scaleshift.quantify.trials import LEAST_CELLS

        if self.method != AUTO:
            return Choice(self.method, "")
        n = len(labelled_samples(as_rows(cells), LEAST_CELLS))
        if n < ENOUGH_SAMPLES:
            return Choice(
                methods.default(),
                f"the default: methods are compared from {ENOUGH_SAMPLES} source samples with {LEAST_CELLS} "
                f"labelled cells each, and there {'is' if n == 1 else 'are'} {n}",
            )
        return self._compared(cells)

    def _compared(self, cells: xr.Dataset) -> Choice:
        """What a quick comparison on the source recommends."""
        from scaleshift.quantify import compare
        from scaleshift.quantify.trials import LABEL_SHIFT, SETTINGS

        candidates = {}
        for name in methods.league():
            accepted = methods.accepted(name)
            if self.insisted <= accepted:
                given = {"random_state": self.seed, "n_bootstrap": 0}  # intervals are not compared
                candidates[name] = methods.make(name, **{k: v for k, v in given.items() if k in accepted})
        found = compare(
            candidates,
            cells,
            settings=[name for name in SETTINGS if name != LABEL_SHIFT],
            random_state=self.seed,
            invalid=self.settings.get("invalid", "raise"),
            **QUICK,
        )
        return Choice(found.recommendation or methods.default(), found.reason)

    def make(self, name: str) -> Any:
        """The quantifier, with those of the settings that it has."""
        accepted = methods.accepted(name)
        given = {**self.settings, "random_state": self.seed}
        return methods.make(name, **{k: v for k, v in given.items() if k in accepted})
