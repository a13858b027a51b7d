"""What does a study on disk hold? Samples, markers, labels, and how many cells are committed."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import zarr

from scaleshift.cells.reader import RECORD, read_text
from scaleshift.cells.root import EXPECTED, FOREIGN, open_root
from scaleshift.cells.schema import SCALING, check_names_size, check_sizes
from scaleshift.cells.transient import DAMAGED, SEE_TO_IT, passes, patiently
from scaleshift.errors import DataError, ScaleshiftError, SchemaError

FORMAT = 1
SAMPLE_CODES, LABEL_CODES, INDEX, MARKERS = "obs/sample/codes", "obs/label/codes", "obs/_index", "var/_index"


@dataclass(frozen=True)
class Manifest:
    """What a study holds, as far as it is committed; the cells stand sample after sample.

    Attributes
    ----------
    path : str
        Absolute path or URL of the store.
    study : str
        Identifier of the study, drawn when it was written; appending keeps it.
    samples : tuple of str, int, float or bool
        Sample names in the order of their cells.
    counts : tuple of int
        Number of cells of each sample.
    markers : tuple of str
    labels : tuple of str, int, float or bool
    chunk : int
        Number of cells that are read at once: a chunk's, or a shard's where there are shards.
    metadata : dict
        Column name to the samples' values; None where a sample has none.
    files : tuple of dict
        The files that the cells came from.
    transform, compensation : JSON value
        What was done to the intensities, None if not known.
    scaling : str or None
        How each sample was scaled by its own location and scale; None where it was not.
    var : dict
        Column name to the markers' values: channel, kind, feature, ...
    checksums : tuple of str
        CRC-32 of the bytes of each sample's rows of X; "" where it was not computed, () if nowhere.
    plan : str or None
        What tells the import that made the study from another one.
    awaited : int
        Number of samples that the import will have brought when it is finished; 0 where it is.
    parents : dict
        Label, as text, to the population that its gate lies in; that one may have a parent too.
    labelling : bool
        Whether labels are being written, or writing them was interrupted.
    """

    path: str
    study: str
    samples: tuple[Any, ...]
    counts: tuple[int, ...]
    markers: tuple[str, ...]
    labels: tuple[Any, ...]
    chunk: int
    metadata: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    files: tuple[Any, ...] = ()
    transform: Any = None
    compensation: Any = None
    scaling: str | None = None
    var: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    checksums: tuple[str, ...] = ()
    plan: str | None = None
    awaited: int = 0
    parents: Mapping[str, str] = field(default_factory=dict)
    labelling: bool = False

    @property
    def n_cells(self) -> int:
        """Number of committed cells."""
        return sum(self.counts)

    @property
    def offsets(self) -> tuple[int, ...]:
        """Row of each sample's first cell."""
        ends = np.cumsum((0, *self.counts)).tolist()
        return tuple(ends[:-1])

    def to_json(self) -> str:
        """The record that stands in `uns/scaleshift`."""
        samples = {}
        for i, (name, offset) in enumerate(zip(self.samples, self.offsets, strict=True)):
            values = {column: v[i] for column, v in self.metadata.items()}
            samples[str(name)] = {"offset": offset, "n_cells": self.counts[i], "metadata": values}
            if self.checksums:
                samples[str(name)]["crc32"] = self.checksums[i]
        record = {
            "version": FORMAT,
            "study": self.study,
            "transform": self.transform,
            "compensation": self.compensation,
            "scaling": self.scaling,
            "plan": self.plan,
            "awaited": self.awaited,
            "files": list(self.files),
            "n_cells": self.n_cells,
            "n_labels": len(self.labels),
            "samples": samples,
        }
        if self.parents:
            record["parents"] = dict(self.parents)
        if self.labelling:
            record["labelling"] = True
        try:
            return json.dumps(record, ensure_ascii=False)
        except TypeError as error:
            raise DataError(f"transform, compensation and files must be JSON values: {error}") from error


def locate(path: str | os.PathLike[str]) -> str:
    """Absolute path, so that workers in other folders find it; a URL stays as it is."""
    text = os.fspath(path).removeprefix("file://")
    return text if "://" in text else os.path.abspath(text)


def read_manifest(path: str | os.PathLike[str]) -> Manifest:
    """Read what a study holds; reads no cells.

    Parameters
    ----------
    path : str or path-like
        Folder or URL of the store.

    Returns
    -------
    Manifest
        Its `n_cells` is 0 where a first write is still running or was killed.

    Raises
    ------
    SchemaError
        If there is no store of this layout and version.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from scaleshift.cells import as_cells, write_cells
    >>> with TemporaryDirectory() as folder:
    ...     write_cells(as_cells([[1.0], [2.0]], label=["B", "T"]), f"{folder}/study.zarr")
    ...     manifest = read_manifest(f"{folder}/study.zarr")
    >>> manifest.samples, manifest.labels, manifest.n_cells
    (('all',), ('B', 'T'), 2)
    """
    return open_study(locate(path))[1]


def open_study(location: str) -> tuple[zarr.Group, Manifest]:
    """Read-only root group and manifest of a study, its layout checked."""
    try:
        return patiently(lambda: _read_study(location))
    except ScaleshiftError:
        raise
    except Exception as error:  # a damaged or edited record can be wrong in more ways than checks foresee
        if passes(error):
            raise DataError(f"{location} cannot be read: {error}; {SEE_TO_IT}") from error
        raise SchemaError(
            f"{location}: the record of the study is damaged ({type(error).__name__}: {error}): {DAMAGED}"
        ) from error


def _read_study(location: str) -> tuple[zarr.Group, Manifest]:
    group = open_root(location)
    record = _record(group, location)
    cells = array_of(group, "X", location)
    markers = _read(group, MARKERS, slice(None), location)
    samples = _categories(group, "sample", len(record["samples"]), location)
    labels = _categories(group, "label", record["n_labels"], location)
    entries = list(record["samples"].values())
    manifest = Manifest(
        path=location,
        study=record["study"],
        samples=samples,
        counts=tuple(entry["n_cells"] for entry in entries),
        markers=tuple(str(m) for m in markers),
        labels=labels,
        chunk=(cells.shards or cells.chunks)[0],
        metadata=_columns([entry["metadata"] for entry in entries]),
        files=tuple(record["files"]),
        transform=record["transform"],
        compensation=record["compensation"],
        scaling=record.get("scaling"),
        var=_var(group, location),
        checksums=tuple(entry.get("crc32", "") for entry in entries),
        plan=record.get("plan"),
        awaited=record.get("awaited", 0),
        parents=record.get("parents", {}),
        labelling=record.get("labelling", False),
    )
    _check(group, record, manifest)
    return group, manifest


def array_of(group: zarr.Group, name: str, location: str) -> zarr.Array:
    """An array of the store that must be there."""
    try:
        found = group.get(name)
    except Exception as error:  # whatever zarr makes of damaged metadata
        raise SchemaError(f"{location}: {name} cannot be opened ({error}): {DAMAGED}") from error
    if not isinstance(found, zarr.Array):
        raise SchemaError(
            f"{location} has no array {name}: {EXPECTED}; if another tool has rewritten this study, {FOREIGN}"
        )
    return found


def scaling_arrays(group: zarr.Group, manifest: Manifest) -> dict[str, np.ndarray]:
    """Location and scale of each committed sample, (n_samples, n_markers); none where nothing was scaled."""
    if manifest.scaling is None:
        return {}
    rows = slice(len(manifest.samples))
    return {name: _read(group, f"uns/{name}", rows, manifest.path) for name in SCALING}


def refuse_unfinished(manifest: Manifest) -> None:
    """Raise SchemaError for a study without a finished sample, or whose labels are not written to the end."""
    if not manifest.samples and manifest.awaited:
        raise SchemaError(
            f"{manifest.path} holds none of its {manifest.awaited} samples yet: its import is under way, or "
            "was interrupted and goes on with resume=True (scaleshift ingest --resume)"
        )
    if not manifest.samples:
        raise SchemaError(
            f"{manifest.path} holds no finished sample: writing it was interrupted, or is still under way; "
            "if it was interrupted, delete it and write it again"
        )
    if manifest.labelling:
        raise SchemaError(
            f"{manifest.path}: writing its labels was interrupted, or is still under way; "
            "if it was interrupted, run label_cells (scaleshift label) again"
        )


def warn_unfinished(manifest: Manifest) -> None:
    """Warn where an import is under way, or was interrupted: the samples so far are not the whole study."""
    if manifest.awaited:
        warnings.warn(
            f"{manifest.path} holds {len(manifest.samples)} of {manifest.awaited} samples: its import is "
            "under way, or was interrupted and goes on with scaleshift ingest --resume",
            stacklevel=3,
        )


def _record(group: zarr.Group, location: str) -> dict[str, Any]:
    """The record in uns/scaleshift as JSON, its version and keys checked."""
    if RECORD not in group:
        raise SchemaError(f"{location} has no {RECORD}: {EXPECTED}; if AnnData wrote it, {FOREIGN}")
    text = _read(group, RECORD, (), location)
    try:
        record = json.loads(text)
        version = record["version"]
    except (ValueError, KeyError, TypeError) as error:
        raise SchemaError(f"{location}: {RECORD} is no record of a study ({error}): {EXPECTED}") from error
    if version != FORMAT:
        raise SchemaError(
            f"{location} has layout version {version!r}, this scaleshift reads version {FORMAT}: "
            "use the version that wrote it, or a newer one"
        )
    keys = ("study", "transform", "compensation", "files", "n_cells", "n_labels", "samples")
    lacking = [key for key in keys if key not in record]
    lacking += [
        f"samples.{name}.{key}"
        for name, entry in record.get("samples", {}).items()
        for key in ("offset", "n_cells", "metadata")
        if key not in entry
    ]
    if lacking:
        raise SchemaError(f"{location}: {RECORD} lacks {lacking[0]}: {EXPECTED}")
    return record


def _categories(group: zarr.Group, name: str, n: int, location: str) -> tuple[Any, ...]:
    """The n committed categories, as plain Python values; those after them belong to a running append."""
    if n == 0:
        return ()
    names = tuple(_read(group, f"obs/{name}/categories", slice(n), location).tolist())
    if len(names) < n:
        raise SchemaError(
            f"{location}: obs/{name} has {len(names)} categories, {RECORD} tells {n}: {DAMAGED}"
        )
    return names


def _read(group: zarr.Group, name: str, selection: Any, location: str) -> Any:
    """Some names as an array, or the record as text."""
    array = array_of(group, name, location)
    check_names_size(array.size, array.nchunks, f"{location}: {name}")
    try:
        return read_text(array) if array.ndim == 0 else np.asarray(array[selection])
    except Exception as error:  # as in reader.read_rows
        what = "is missing" if isinstance(error, FileNotFoundError) else "cannot be read"
        raise DataError(f"{location}: {name} {what} ({error}): {DAMAGED}") from error


def _var(group: zarr.Group, location: str) -> dict[str, tuple[Any, ...]]:
    """The columns that describe the markers; another tool may have added some that are no plain arrays."""
    columns: Any = group["var"].attrs.get("column-order", [])
    arrays = [str(name) for name in columns if isinstance(group.get(f"var/{name}"), zarr.Array)]
    return {name: tuple(_read(group, f"var/{name}", slice(None), location).tolist()) for name in arrays}


def _columns(entries: list[dict[str, Any]]) -> dict[str, tuple[Any, ...]]:
    names = dict.fromkeys(column for entry in entries for column in entry)
    return {column: tuple(entry.get(column) for entry in entries) for column in names}


def _check(group: zarr.Group, record: Mapping[str, Any], manifest: Manifest) -> None:
    """Raise SchemaError where the arrays and the record do not agree."""
    location, n_cells = manifest.path, manifest.n_cells
    check_sizes(manifest.counts, manifest.chunk, location)
    for what, names in {"sample": manifest.samples, "label": manifest.labels}.items():
        if len(set(names)) < len(names):
            raise SchemaError(f"{location}: obs/{what} names a category twice: {DAMAGED}")
    width = array_of(group, "X", location).shape[1:]
    if width != (len(manifest.markers),):
        raise SchemaError(
            f"{location}: X has {width} columns, var/_index {len(manifest.markers)} names: {DAMAGED}"
        )
    if [str(name) for name in manifest.samples] != list(record["samples"]):
        raise SchemaError(
            f"{location}: the categories of obs/sample are not the samples of {RECORD}: {DAMAGED}"
        )
    offsets = tuple(entry["offset"] for entry in record["samples"].values())
    if offsets != manifest.offsets or record["n_cells"] != n_cells:
        raise SchemaError(
            f"{location}: the offsets in {RECORD} do not add up to {record['n_cells']} cells: {DAMAGED}"
        )
    for name, kinds in {"X": "f", SAMPLE_CODES: "i", LABEL_CODES: "i", INDEX: "i"}.items():
        array = array_of(group, name, location)
        if array.dtype.kind not in kinds:
            raise SchemaError(
                f"{location}: {name} is {array.dtype}: another tool has rewritten this study; {FOREIGN}"
            )
        if array.shape[0] < n_cells:
            raise SchemaError(
                f"{location}: {name} has {array.shape[0]} rows, {RECORD} tells {n_cells}: {DAMAGED}"
            )


def plain(values: np.ndarray, what: str) -> tuple[Any, ...]:
    """Values as Python text, numbers and bools, as JSON and Zarr hold them; None for missing ones."""
    if values.dtype.kind in "mM":  # would silently become integers
        raise DataError(f"{what} is {values.dtype}: convert it to text")
    items = tuple(None if pd.api.types.is_scalar(v) and pd.isna(v) else v for v in values.tolist())
    for item in items:
        if isinstance(item, str) and not is_unicode(item):
            raise DataError(f"{what} holds {item!r}, which is no valid Unicode: rename it")
        if not isinstance(item, str | bool | int | float | None):
            raise DataError(
                f"{what} holds {item!r} ({type(item).__name__}): convert it to text, numbers or bools"
            )
    return items


def typed(values: tuple[Any, ...]) -> np.ndarray:
    """Values from JSON as an array of their type; missing numbers become NaN, other missing ones None."""
    if not values:
        return np.array([], dtype=np.str_)
    kinds = {type(v) for v in values}
    if kinds <= {int, float, type(None)} and kinds != {int}:
        return np.array(values, dtype=np.float64)
    return np.array(values) if len(kinds) == 1 else np.array(values, dtype=object)


def is_unicode(text: str) -> bool:
    """Whether a text can be written as UTF-8; names of files may not be."""
    return text.encode(errors="ignore").decode() == text
