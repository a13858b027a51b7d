"""Which samples, markers and scaling of a study does a verb work on?"""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from scaleshift.errors import DataError

if TYPE_CHECKING:
    import xarray as xr

    from scaleshift.cells.manifest import Manifest


EVERY = "all"  # in place of a selection


class Opening:
    """A study, and how it is opened: which markers (None: its features), which scaling (None: as it is)."""

    def __init__(
        self, store: str | Path, markers: Sequence[str] | None = None, scaling: str | None = None
    ) -> None:
        self.store, self.markers, self.scaling = store, markers, scaling

    @cached_property
    def manifest(self) -> Manifest:
        """What the study holds."""
        from scaleshift.cells.manifest import read_manifest

        return read_manifest(self.store)

    @property
    def told(self) -> dict[str, Any]:
        """What tells this study, opened like this, from another."""
        return {"study": self.manifest.study, "markers": self.markers, "scaling": self.scaling}

    def select(self, text: str, option: str) -> list[Any]:
        """Names of the samples that an option selects; "all" selects every one."""
        from scaleshift.cells.selection import select_samples

        if text.strip() == EVERY:
            return list(self.manifest.samples)
        try:
            return select_samples(text, {"sample": self.manifest.samples, **self.manifest.metadata})
        except DataError as error:
            raise click.BadParameter(str(error), param_hint=option) from error

    def labelled(self, samples: list[Any]) -> xr.Dataset:
        """These samples, as `cells` gives them; DataError where none of their cells has a label."""
        cells = self.cells(samples)
        if cells.sizes["label"]:
            return cells
        way_out = f"run `scaleshift label {self.store} TABLE` first"
        if not self.manifest.labels:
            raise DataError(f"{self.store} has no labels: {way_out}")
        raise DataError(f"the source has no labels: choose samples that have some, or {way_out}")

    def cells(self, samples: list[Any]) -> xr.Dataset:
        """These samples, scaled as wanted, without the labels that none of their cells has."""
        from scaleshift.blocks import passes
        from scaleshift.blocks.rows import as_rows
        from scaleshift.cells import open_cells
        from scaleshift.cells.treatment.scaling import scale, unscale

        cells = open_cells(self.store, samples, markers=self.markers)
        if cells.sizes["label"]:
            used = passes.counts(as_rows(cells), "label") > 0
            cells = open_cells(self.store, samples, cells["label"].values[used], self.markers)
        if self.scaling in (None, cells.attrs.get("scaling")):
            return cells
        if "scaling" in cells.attrs:
            cells = unscale(cells)
        return cells if self.scaling == "none" else scale(cells, self.scaling)  # type: ignore[arg-type]


@contextlib.contextmanager
def reading(store: str) -> Iterator[None]:
    """Say where it was where Zarr or a codec cannot read a chunk: they raise what they like."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:
        if not any(_is_of_zarr(frame) for frame, _ in traceback.walk_tb(error.__traceback__)):
            raise
        first = str(error).strip().split("\n")[0] or type(error).__name__
        raise DataError(
            f"{store} cannot be read ({first}): restore it from a copy, or write it again"
        ) from error


def _is_of_zarr(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).split(".")[0] in ("zarr", "numcodecs")
