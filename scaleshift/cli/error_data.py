"""Which cells does a model learn from, what does it predict of them, and which cells are the targets?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from scaleshift.cli.error_model import Model
from scaleshift.cli.error_outcome import LABEL, Outcome
from scaleshift.cli.opening import Opening
from scaleshift.errors import DataError

if TYPE_CHECKING:
    import xarray as xr

TARGET = "target"  # name of all target cells together
MOST_NAMES = 5


@dataclass(frozen=True)
class Asked:
    """What the command line says of the cells."""

    store: str
    outcome: str | None = None  # None: the labels
    source: str | None = None
    target: str | None = None
    by_sample: bool = False
    labelled_only: bool = False  # target cells whose outcome is known
    markers: Sequence[str] | None = None


@dataclass(frozen=True)
class Source:
    """What is learned from."""

    cells: xr.Dataset
    outcome: Any  # one a cell; None: the labels of the cells
    samples: list[Any]
    remarks: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Targets:
    """What is predicted."""

    cells: dict[str, xr.Dataset]
    fingerprint: str
    remarks: list[str] = field(default_factory=list)
    observed: dict[str, tuple[xr.Dataset, Any]] = field(default_factory=dict)  # with outcomes, where known


class NoCells(DataError):
    """No target has a cell."""


class Cells:
    """Source and targets of a study, for a model that is to be fitted."""

    def __init__(self, asked: Asked, model: Model) -> None:
        self.asked, self.opening = asked, Opening(asked.store)
        self.outcome = Outcome.to_learn(self.opening, asked.outcome, model.of_classes, model.name)
        self.features = _features(asked, model, self.opening, self.outcome)

    @cached_property
    def counts(self) -> dict[Any, np.ndarray]:
        """Of each sample that can be learned from, its cells without and with an outcome: (2,)."""
        asked, samples = self.asked, list(self.opening.manifest.samples)
        if asked.source is not None:
            samples = self.opening.select(asked.source, "--source")
        elif asked.target is not None:
            targets = self.opening.select(asked.target, "--target")
            samples = [name for name in samples if name not in targets]
            if not samples:
                raise click.UsageError(
                    "--target selects every sample: none is left to learn from; pass --source"
                )
        return self.outcome.counts(samples)

    @property
    def source_samples(self) -> list[Any]:
        """Names of samples of which some cell has an outcome."""
        found = [name for name, (_, n) in self.counts.items() if n]
        if not found:
            where = f"the samples with {self.asked.source}" if self.asked.source else "the source"
            way_out = "choose others with --source"
            if self.outcome.name == LABEL:
                way_out += f", or run `scaleshift label {self.asked.store} TABLE` first"
            raise DataError(f"no cell of {where} has a {self.outcome.name}: {way_out}")
        return found

    def source(self) -> Source:
        """The cells to learn from, lazy."""
        samples = self.source_samples
        cells = Opening(self.asked.store, self.features).cells(samples)
        if self.outcome.name != LABEL:
            cells = _unlabelled(cells)
        without, n = np.sum([self.counts[name] for name in samples], axis=0).tolist()
        remarks = []
        if without:
            remarks.append(f"{without} of {without + n} source cells have no {self.outcome.name}: left out")
        return Source(cells, self.outcome.of(samples), samples, remarks)

    def targets(self) -> Targets:
        """The cells that are predicted, lazy."""
        sources = self.source_samples
        names = [name for name in self.opening.manifest.samples if name not in sources]
        if self.asked.target is not None:
            names = self.opening.select(self.asked.target, "--target")
        elif not names:
            raise click.UsageError("every sample is learned from: none is left to predict; pass --target")
        targets = targets_of(self.asked, self.opening, names, self.features, self.outcome)
        both = [name for name in names if name in sources]
        if both:
            targets.remarks.append(f"{_listed(both)}: learned from, and predicted too")
        return targets


def targets_of(
    asked: Asked,
    opening: Opening,
    names: list[Any],
    features: Sequence[str] | None,
    outcome: Outcome | None,
) -> Targets:
    """The cells of samples, one target or one a sample; samples without cells are left out, and it is said.

    Parameters
    ----------
    outcome : Outcome or None
        Where the study has it: its cells then are held against what is observed.

    Raises
    ------
    NoCells
        If none is left.
    """
    from scaleshift.cells import open_cells

    names, remarks = _with_cells(opening, names)
    known = dict.fromkeys(names, 0)
    if outcome is not None:
        known = {name: int(counts[1]) for name, counts in outcome.counts(names).items()}
    if asked.labelled_only:
        names, more = _with_known(asked, known)
        remarks += more
    groups = {str(name): [name] for name in names} if asked.by_sample else {TARGET: names}
    told = {name: group for name, group in groups.items() if sum(known[one] for one in group)}
    if outcome is not None and outcome.name == LABEL and not asked.labelled_only:
        remarks += _without_label(outcome, [one for group in told.values() for one in group])
    fingerprint = _fingerprint(opening.manifest, groups, known if asked.labelled_only else {})
    found = Targets({}, fingerprint, remarks)
    for name, group in groups.items():
        cells = open_cells(asked.store, group, markers=features)
        if outcome is not None and name in told:
            y = outcome.of(group)
            if asked.labelled_only:
                cells, y = _of_known(cells, y, outcome.known(group))
            found.observed[name] = (cells, None) if y is None else (_unlabelled(cells), y)
        found.cells[name] = _unlabelled(cells)
    return found


def _with_cells(opening: Opening, names: list[Any]) -> tuple[list[Any], list[str]]:
    """Those of the samples that have cells, and what is to be said of the others."""
    n = dict(zip(opening.manifest.samples, opening.manifest.counts, strict=True))
    empty = [name for name in names if not n[name]]
    if len(empty) == len(names):
        told = f"the target samples {_listed(empty)} have no cells" if empty else "there is no target sample"
        raise NoCells(f"{opening.store}: {told}: select others")
    return [name for name in names if n[name]], [f"{_listed(empty)}: no cells, left out"] if empty else []


def _with_known(asked: Asked, known: dict[Any, int]) -> tuple[list[Any], list[str]]:
    """Those of the samples that have cells with known outcomes, and what is to be said of the others."""
    what = f"no cell has a {asked.outcome or LABEL}"
    if not any(known.values()):
        raise NoCells(f"{asked.store}: {what} in the target: leave --labelled-only out")
    without = [name for name, n in known.items() if not n]
    remarks = [f"{_listed(without)}: {what}, left out"] if without else []
    return [name for name, n in known.items() if n], remarks


def _of_known(cells: xr.Dataset, y: Any, known: Any) -> tuple[xr.Dataset, Any]:
    """Cells whose outcome is known, lazy; `known` is None where all are."""
    if known is None:
        return cells, y
    from scaleshift.blocks.chosen import chosen

    names = [str(name) for name, variable in cells.variables.items() if "cell" in variable.dims]
    columns = [cells[name].data for name in names]
    taken = chosen(known, columns if y is None else [*columns, y])
    kept = {
        name: (cells[name].dims, values, cells[name].attrs)
        for name, values in zip(names, taken, strict=False)
    }
    return cells.drop_vars(names).assign(kept), None if y is None else taken[-1]


def _without_label(outcome: Outcome, samples: list[Any]) -> list[str]:
    """What is to be said of targets some of whose cells have a label."""
    counts = list(outcome.counts(samples).values())
    without, n = sum(int(one[0]) for one in counts), sum(int(one.sum()) for one in counts)
    if not without:
        return []
    return [
        f"{without} of {n} target cells have no label: what a classifier says of cells of no class is "
        "counted in the expected error as well; --labelled-only leaves them out"
    ]


def _fingerprint(manifest: Any, groups: dict[str, list[Any]], known: dict[Any, int]) -> str:
    """What tells the cells of targets from others: their checksums, or the study where it has none.

    Of the cells with known outcomes alone also how many of them.
    """
    from scaleshift.checkpoint import fingerprint

    checksums = dict(zip(manifest.samples, manifest.checksums, strict=False))
    counts = dict(zip(manifest.samples, manifest.counts, strict=True))
    told = {
        name: [
            [str(one), known.get(one, counts[one]), checksums.get(one) or manifest.study] for one in samples
        ]
        for name, samples in groups.items()
    }
    return fingerprint(told)


def _features(asked: Asked, model: Model, opening: Opening, outcome: Outcome) -> list[str]:
    """Columns that the model is given: those of --markers, those that it names, or the study's features."""
    from scaleshift.cells import open_cells
    from scaleshift.spelling import suggestion

    marker = outcome.name if outcome.is_marker else None
    if asked.markers is not None:
        if marker in asked.markers:
            raise click.UsageError(f"{marker} is the --outcome: it cannot be one of --markers too")
        if model.features is not None and not model.is_refitted and list(asked.markers) != model.features:
            raise click.UsageError(
                f"--markers: {model.name} is not refitted, and names its features itself: leave --markers out"
            )
        return list(asked.markers)
    if model.features is not None:
        missing = [name for name in model.features if name not in opening.manifest.markers]
        if missing:
            hint = suggestion(missing[0], opening.manifest.markers)
            raise DataError(
                f"{model.name} needs the feature(s) {', '.join(missing)}, which {asked.store} lacks{hint}"
            )
        if marker in model.features:
            raise DataError(f"{model.name} takes {marker} for a feature, which is the --outcome")
        return model.features
    found = open_cells(asked.store)["marker"].values.tolist()
    left = [name for name in found if name != marker]
    if not left:
        raise DataError(f"{marker} is the only feature of {asked.store}: none is left to predict it from")
    return left


def _unlabelled(cells: xr.Dataset) -> xr.Dataset:
    return cells.drop_vars([LABEL, "label_code"], errors="ignore")


def _listed(names: Sequence[Any]) -> str:
    more = len(names) - MOST_NAMES
    return ", ".join(map(str, names[:MOST_NAMES])) + (f" and {more} more" if more > 0 else "")
