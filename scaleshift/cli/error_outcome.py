"""What is predicted of a study's cells?  Labels, a column of obs, a marker, or one of the sample sheet."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from scaleshift.cli.opening import Opening
from scaleshift.errors import DataError

if TYPE_CHECKING:
    from scaleshift.blocks.block import Column

LABEL, SAMPLE = "label", "sample"


class Outcome:
    """Outcomes of the cells of a study.

    A column of obs goes before a marker of its name, and that before a column of the sample sheet.

    Parameters
    ----------
    opening : Opening
    name : str or None
        None: the labels.
    of_classes : bool
        Whether the model predicts labels, rather than numbers.
    model : str
        What messages call it.
    """

    def __init__(self, opening: Opening, name: str | None, of_classes: bool, model: str) -> None:
        self.opening, self.store, self.name = opening, opening.store, name or LABEL
        self.of_classes, self.model = of_classes, model
        self._counts: dict[Any, np.ndarray] = {}

    @classmethod
    def to_learn(cls, opening: Opening, name: str | None, of_classes: bool, model: str) -> Outcome:
        """The outcome that a model is to learn; raises where it cannot."""
        found = cls(opening, name, of_classes, model)
        found._check()
        return found

    @property
    def exists(self) -> bool:
        """Whether the study has it."""
        return bool(self.opening.manifest.labels) if self.name == LABEL else self.name in self._names

    @cached_property
    def of_obs(self) -> list[str]:
        """Columns that can be outcomes."""
        from scaleshift.cells.columns import column_names

        return [name for name in column_names(self.store) if name not in (SAMPLE, LABEL)]

    @property
    def _names(self) -> list[str]:
        manifest = self.opening.manifest
        return [*self.of_obs, *manifest.markers, *manifest.metadata]

    @property
    def is_marker(self) -> bool:
        """Whether it is a column of X."""
        return self.name not in (LABEL, *self.of_obs) and self.name in self.opening.manifest.markers

    @property
    def of_samples(self) -> bool:
        """Whether it is a column of the sample sheet."""
        return self.exists and self.name not in (LABEL, *self.of_obs, *self.opening.manifest.markers)

    def _check(self) -> None:
        from scaleshift.spelling import suggestion

        if self.name == SAMPLE:
            raise click.BadParameter("a cell's sample is no outcome", param_hint="--outcome")
        if self.name == LABEL and not self.opening.manifest.labels:
            raise DataError(f"{self.store} has no labels: run `scaleshift label {self.store} TABLE` first")
        if not self.exists:
            hint = suggestion(self.name, [LABEL, *self._names])
            message = f"{self.store} has no column {self.name!r} in obs, X or the sample sheet{hint}"
            raise click.BadParameter(message, param_hint="--outcome")
        if self.name == LABEL and not self.of_classes:
            raise click.UsageError(
                f"--model {self.model} predicts numbers: name with --outcome a numeric column of obs, or a "
                "marker, or a column of the sample sheet"
            )
        if self.is_marker and self.of_classes:
            raise click.UsageError(
                f"--outcome {self.name} is a marker, and --model {self.model} predicts labels, no numbers"
            )

    def of(self, samples: list[Any]) -> Any:
        """The outcomes of the cells of samples, lazy; None where the cells bring their labels."""
        if self.name == LABEL:
            return None
        if self.is_marker:
            return self._marker(samples)
        if self.of_samples:
            values = self._by_sample(samples)
            return self._samples(samples).map_blocks(values.take, dtype=values.dtype)
        column = self._column(samples)
        if column.categories is not None:
            return column.values.map_blocks(named, column.categories, dtype=object)
        return column.values

    def known(self, samples: list[Any]) -> Any:
        """Whether each cell has one, lazy; None where all have. An infinite one is not unknown, but wrong."""
        from scaleshift.cells import open_cells

        if self.name == LABEL:
            return open_cells(self.store, samples)["label_code"].data >= 0
        if self.is_marker:
            return ~np.isnan(self._marker(samples))
        if self.of_samples:
            has = np.array([value is not None and value == value for value in self._by_sample(samples)])
            return self._samples(samples).map_blocks(has.take, dtype=bool)
        column = self._column(samples)
        if column.categories is not None:
            return column.values >= 0
        return ~np.isnan(column.values) if column.values.dtype.kind == "f" else None

    def counts(self, samples: Sequence[Any]) -> dict[Any, np.ndarray]:
        """Of each sample, its cells without and with an outcome, (2,): one pass over that column only."""
        new = [name for name in samples if name not in self._counts]
        if new:
            self._counts.update(self._counted(new))
        return {name: self._counts[name] for name in samples}

    def _counted(self, samples: list[Any]) -> dict[Any, np.ndarray]:
        from scaleshift.blocks import passes
        from scaleshift.blocks.block import Column
        from scaleshift.blocks.rows import as_rows, with_columns
        from scaleshift.cells import open_cells

        known, manifest = self.known(samples), self.opening.manifest
        if known is None:
            n = dict(zip(manifest.samples, manifest.counts, strict=True))
            return {name: np.array([0, n[name]]) for name in samples}
        cells = open_cells(self.store, samples)
        n_samples = cells.sizes[SAMPLE]
        pair = Column(2 * cells["sample_code"].data + known, np.arange(2 * n_samples), coded=True)
        counted = passes.counts(with_columns(as_rows(cells), pair=pair).only("pair"), "pair")
        return dict(zip(cells[SAMPLE].values.tolist(), counted.reshape(n_samples, 2), strict=True))

    def _marker(self, samples: list[Any]) -> Any:
        from scaleshift.cells import open_cells

        return open_cells(self.store, samples, markers=[self.name])["X"].data[:, 0]

    def _samples(self, samples: list[Any]) -> Any:
        """Codes of the cells' samples, lazy."""
        from scaleshift.cells import open_cells

        return open_cells(self.store, samples)["sample_code"].data

    def _by_sample(self, samples: list[Any]) -> np.ndarray:
        """What the sample sheet says of each sample: numbers, NaN where nothing; of classes as it stands."""
        from scaleshift.cells import open_cells

        manifest = self.opening.manifest
        of_name = dict(zip(manifest.samples, manifest.metadata[self.name], strict=True))
        told = [of_name[name] for name in open_cells(self.store, samples)[SAMPLE].values.tolist()]
        if self.of_classes:
            return np.array([*told, None], object)[:-1]
        if any(isinstance(value, str) for value in told):
            raise click.UsageError(
                f"--outcome {self.name} is text in the sample sheet, and --model {self.model} predicts "
                "numbers"
            )
        return np.array([np.nan if value is None else value for value in told], np.float64)

    def _column(self, samples: list[Any]) -> Column:
        from scaleshift.cells.columns import open_column

        column = open_column(self.store, self.name, samples)
        text = column.categories is not None or column.values.dtype.kind not in "biuf"
        if text and not self.of_classes:
            raise click.UsageError(
                f"--outcome {self.name} is text, and --model {self.model} predicts numbers"
            )
        return column


def named(codes: np.ndarray, categories: np.ndarray) -> np.ndarray:
    """Labels of a block by their codes, None for -1."""
    return np.array([*categories.tolist(), None], object)[codes]
