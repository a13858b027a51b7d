"""Which cells does a model learn from, what does it predict of them, and which cells are the targets?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from scaleshift.cli.error_model import Model
from scaleshift.cli.opening import Opening
from scaleshift.errors import DataError

if TYPE_CHECKING:
    import xarray as xr

    from scaleshift.blocks.block import Column

LABEL, SAMPLE = "label", "sample"
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


class Outcome:
    """What is predicted of the cells of a study: its labels, a column of obs, or a marker."""

    def __init__(self, store: str, name: str | None, opening: Opening, model: Model) -> None:
        self.store, self.name, self.opening, self.model = store, name or LABEL, opening, model
        if self.name == SAMPLE:
            raise click.BadParameter("a cell's sample is no outcome", param_hint="--outcome")
        if self.name == LABEL and not opening.manifest.labels:
            raise DataError(f"{store} has no labels: run `scaleshift label {store} TABLE` first")
        self._check_known()
        if self.name == LABEL and not model.of_classes:
            raise click.UsageError(
                f"--model {model.name} predicts numbers: name with --outcome a numeric column of obs, or a "
                "marker"
            )
        if self.is_marker and model.of_classes:
            raise click.UsageError(
                f"--outcome {self.name} is a marker, and --model {model.name} predicts labels, no numbers"
            )

    @cached_property
    def of_obs(self) -> list[str]:
        """Columns that can be outcomes."""
        from scaleshift.cells.columns import column_names

        return [name for name in column_names(self.store) if name not in (SAMPLE, LABEL)]

    @property
    def is_marker(self) -> bool:
        """Whether it is a column of X."""
        return self.name != LABEL and self.name not in self.of_obs

    def _check_known(self) -> None:
        from scaleshift.blocks.labels import suggestion

        known = [LABEL, *self.of_obs, *self.opening.manifest.markers]
        if self.name not in known:
            message = f"{self.store} has no column {self.name!r} in obs or X{suggestion(self.name, known)}"
            raise click.BadParameter(message, param_hint="--outcome")

    def of(self, samples: list[Any]) -> Any:
        """The outcomes of the cells of samples, lazy; None where the cells bring their labels."""
        from scaleshift.cells import open_cells

        if self.name == LABEL:
            return None
        if self.is_marker:
            return open_cells(self.store, samples, markers=[self.name])["X"].data[:, 0]
        column = self._column(samples)
        if column.categories is not None:
            return column.values.map_blocks(named, column.categories, dtype=object)
        return column.values

    def known(self, samples: list[Any]) -> Any:
        """Whether each cell has one, lazy; None where all have."""
        from scaleshift.cells import open_cells

        if self.name == LABEL:
            return open_cells(self.store, samples)["label_code"].data >= 0
        if self.is_marker:
            return None
        column = self._column(samples)
        if column.categories is not None:
            return column.values >= 0
        return np.isfinite(column.values) if column.values.dtype.kind == "f" else None

    def _column(self, samples: list[Any]) -> Column:
        from scaleshift.cells.columns import open_column

        column = open_column(self.store, self.name, samples)
        text = column.categories is not None or column.values.dtype.kind not in "biuf"
        if text and not self.model.of_classes:
            raise click.UsageError(
                f"--outcome {self.name} is text, and --model {self.model.name} predicts numbers"
            )
        return column


def named(codes: np.ndarray, categories: np.ndarray) -> np.ndarray:
    """Labels of a block by their codes, None for -1."""
    return np.array([*categories.tolist(), None], object)[codes]


class Cells:
    """Source and targets of a study, for a model that is to be fitted."""

    def __init__(self, asked: Asked, model: Model) -> None:
        self.asked, self.opening = asked, Opening(asked.store)
        self.outcome = Outcome(asked.store, asked.outcome, self.opening, model)
        self.features = _features(asked, model, self.opening, self.outcome)

    @cached_property
    def counts(self) -> dict[Any, np.ndarray]:
        """Of each sample that can be learned from, its cells without and with an outcome: (2,)."""
        from scaleshift.blocks import passes
        from scaleshift.blocks.block import Column
        from scaleshift.blocks.rows import as_rows, with_columns
        from scaleshift.cells import open_cells

        asked, manifest = self.asked, self.opening.manifest
        samples = list(manifest.samples)
        if asked.source is not None:
            samples = self.opening.select(asked.source, "--source")
        elif asked.target is not None:
            targets = self.opening.select(asked.target, "--target")
            samples = [name for name in samples if name not in targets]
            if not samples:
                raise click.UsageError(
                    "--target selects every sample: none is left to learn from; pass --source"
                )
        known = self.outcome.known(samples)
        if known is None:
            n = dict(zip(manifest.samples, manifest.counts, strict=True))
            return {name: np.array([0, n[name]]) for name in samples}
        cells = open_cells(asked.store, samples)
        pair = 2 * cells["sample_code"].data + known
        n_samples = cells.sizes[SAMPLE]
        column = Column(pair, np.arange(2 * n_samples), coded=True)
        counted = passes.counts(with_columns(as_rows(cells), pair=column).only("pair"), "pair")
        return dict(zip(cells[SAMPLE].values.tolist(), counted.reshape(n_samples, 2), strict=True))

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
        targets = targets_of(self.asked, self.opening, names, self.features)
        both = [name for name in names if name in sources]
        if both:
            targets.remarks.append(f"{_listed(both)}: learned from, and predicted too")
        return targets


def targets_of(asked: Asked, opening: Opening, names: list[Any], features: Sequence[str] | None) -> Targets:
    """The cells of samples, one target or one a sample; samples without cells are left out, and said."""
    from scaleshift.cells import open_cells

    manifest = opening.manifest
    n = dict(zip(manifest.samples, manifest.counts, strict=True))
    empty = [name for name in names if not n[name]]
    names = [name for name in names if n[name]]
    remarks = [f"{_listed(empty)}: no cells, left out"] if empty else []
    if not names:
        raise DataError(f"{asked.store}: the target samples {_listed(empty)} have no cells: select others")
    groups = {str(name): [name] for name in names} if asked.by_sample else {TARGET: names}
    cells = {
        name: _unlabelled(open_cells(asked.store, group, markers=features)) for name, group in groups.items()
    }
    return Targets(cells, _fingerprint(manifest, groups), remarks)


def _fingerprint(manifest: Any, groups: dict[str, list[Any]]) -> str:
    """What tells the cells of targets from others: their checksums, or the study where it has none."""
    from scaleshift.checkpoint import fingerprint

    checksums = dict(zip(manifest.samples, manifest.checksums, strict=False))
    counts = dict(zip(manifest.samples, manifest.counts, strict=True))
    told = {
        name: [[str(one), counts[one], checksums.get(one) or manifest.study] for one in samples]
        for name, samples in groups.items()
    }
    return fingerprint(told)


def _features(asked: Asked, model: Model, opening: Opening, outcome: Outcome) -> list[str]:
    """Columns that the model is given: those of --markers, those that it names, or the study's features."""
    from scaleshift.blocks.labels import suggestion
    from scaleshift.cells import open_cells

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
