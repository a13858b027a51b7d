"""What stands in a column of `obs` that is neither sample nor label, such as predictions?  Read by blocks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import zarr

from scaleshift.blocks.block import Column
from scaleshift.blocks.labels import CODE
from scaleshift.cells.manifest import Manifest, array_of, locate, open_study
from scaleshift.cells.reader import BlockReader, CodeReader
from scaleshift.cells.schema import SAMPLE, UNLABELLED
from scaleshift.cells.store import lazy, opened_rows, positions
from scaleshift.errors import DataError
from scaleshift.spelling import suggestion

OBS = "obs"
Order = Callable[[np.ndarray], np.ndarray]


def column_names(path: str | os.PathLike[str]) -> list[str]:
    """Names of the columns of `obs` of a study, sample and label among them."""
    group, _ = open_study(locate(path))
    return [name for name in sorted(_obs(group)) if name != "_index"]


def open_column(
    path: str | os.PathLike[str],
    name: str,
    samples: Iterable[Any] | None = None,
    order: Order | None = None,
) -> Column:
    """Open one column of `obs` of a study, as AnnData writes it; lazy.

    Parameters
    ----------
    path : path
    name : str
    samples : iterable of sample names, optional
        As in `open_cells`: the rows are the same, and so are the blocks.
    order : callable, optional
        Gives the categories that are wanted of those that are stored, all of them among these; codes are
        renumbered. Default: as they are stored.

    Returns
    -------
    Column
        Codes and categories of a categorical; else values, (n,): numbers, bools, or text as objects.

    Raises
    ------
    DataError
        If there is no such column, it is of another kind, or shorter than the study.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from scaleshift.cells import as_cells, write_cells
    >>> with TemporaryDirectory() as folder:
    ...     write_cells(as_cells([[1.0], [2.0]], label=["B", "A"]), f"{folder}/study.zarr")
    ...     column = open_column(f"{folder}/study.zarr", "label")
    ...     column.categories.tolist(), column.values.compute().tolist()
    (['A', 'B'], [1, 0])
    """
    group, manifest = open_study(locate(path))
    place = f"{manifest.path}: {OBS}/{name}"
    if name not in _obs(group) or name == "_index":
        hint = suggestion(name, [n for n in _obs(group) if n != "_index"])
        raise DataError(f"{manifest.path} has no column {OBS}/{name}{hint}")
    rows = opened_rows(manifest, positions(manifest, SAMPLE, manifest.samples, samples))
    found = group[f"{OBS}/{name}"]
    if isinstance(found, zarr.Array):
        _check_length(found, manifest, place)
        kind = np.dtype(found.dtype).kind
        if found.ndim != 1 or kind not in "biufOUT":
            raise DataError(
                f"{place} is {found.dtype} of shape {found.shape}: expected one number or text a cell"
            )
        reader = TextReader if kind in "OUT" else BlockReader
        dtype = np.dtype(object) if kind in "OUT" else np.dtype(found.dtype)
        return Column(lazy(reader(rows, f"{OBS}/{name}", (manifest.n_cells,), dtype)))
    if found.attrs.get("encoding-type") != "categorical":
        what = found.attrs.get("encoding-type", "a group")
        raise DataError(f"{place} is {what}: expected a categorical, or numbers or text without a mask")
    _check_length(array_of(group, f"{OBS}/{name}/codes", manifest.path), manifest, place)
    stored = np.array(np.asarray(array_of(group, f"{OBS}/{name}/categories", manifest.path)[:]).tolist())
    wanted = stored if order is None else order(stored)
    code = np.array([*map(wanted.tolist().index, stored.tolist()), UNLABELLED], CODE)
    where = (rows, f"{OBS}/{name}/codes", (manifest.n_cells,), CODE, UNLABELLED)
    return Column(lazy(CodeReader(*where, len(stored), code)), wanted, coded=True)


@dataclass(frozen=True, eq=False)
class TextReader(BlockReader):
    """Reader of texts of any length, as objects."""

    def read(self, first: int, stop: int) -> np.ndarray:
        """Texts of the shown rows [first, stop)."""
        return super().read(first, stop).astype(object)


def _obs(group: zarr.Group) -> list[str]:
    found: Any = group[OBS]
    return [name for name, _ in found.members()]


def _check_length(array: zarr.Array, manifest: Manifest, place: str) -> None:
    if array.shape[0] < manifest.n_cells:
        raise DataError(
            f"{place} has {array.shape[0]} values, the study {manifest.n_cells} cells: write it again for all"
        )
