"""What does a source tell about labels? A table, a folder of gates, a FlowJo workspace, or a channel."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import zarr

from scaleshift.cells.labels.addresses import FILE, SAMPLE, Addresses, Place
from scaleshift.cells.labels.codes import CellLabels
from scaleshift.cells.labels.event_rows import EventRows
from scaleshift.cells.labels.first_event import Numbered, first_event_of
from scaleshift.cells.labels.flowjo import Workspace, files_of, flowkit_for
from scaleshift.cells.labels.gate_sets import GateSets
from scaleshift.cells.labels.gates import OVERLAPS, GateTable, Settling, gate_tables
from scaleshift.cells.labels.hierarchy import Hierarchy
from scaleshift.cells.labels.tables import Columns, Wanted, open_table
from scaleshift.cells.manifest import Manifest, array_of
from scaleshift.cells.problem import Problem
from scaleshift.cells.reader import read_rows
from scaleshift.cells.schema import X
from scaleshift.cells.sheets.filenames import composed
from scaleshift.cells.sheets.tables import find_column, place_of, read_table
from scaleshift.errors import DataError
from scaleshift.spelling import suggestion

CHANNEL = "channel:"
NO_LABELS = "none"  # takes those away that there are
MAX_CHANNEL_VALUES = 1_000
ZARR_FILES = ("zarr.json", ".zgroup", ".zattrs")
MEANT_FOR = {
    "column": ("table", "a table"),
    "sample": ("table", "a table"),
    "gates": ("gates workspace", "a folder of gates or a workspace"),
    "overlap": ("gates workspace", "a folder of gates or a workspace"),
    "fcs": ("workspace", "a FlowJo workspace"),
}


@dataclass(frozen=True)
class Request:
    """Where labels come from, as `label_cells` is told."""

    labels: Any
    column: str | None = None
    first_event: int | None = None
    gates: Iterable[str] | None = None
    overlap: str | None = None
    fcs: Any = None
    sample: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.labels, str | os.PathLike | pd.DataFrame):
            raise DataError(
                f"labels is a {type(self.labels).__name__}: expected a path, a DataFrame or 'channel:NAME'"
            )
        for option, (kinds, words) in MEANT_FOR.items():
            if getattr(self, option) is not None and self.kind not in kinds.split():
                raise DataError(f"{option}= goes with {words}, and {self.place} is none: leave it out")
        if self.first_event not in (None, 0, 1):
            raise DataError(f"first_event is {self.first_event!r}, expected 0 or 1, or None to find out")
        if self.first_event is not None and self.kind in ("workspace", "channel", "none"):
            raise DataError(f"first_event= goes with event numbers, and {self.place} has none: leave it out")
        if self.overlap not in (None, *OVERLAPS):
            raise DataError(f"overlap is {self.overlap!r}, expected one of {', '.join(OVERLAPS)}")

    def wanted(self, kind: str = FILE) -> Wanted:
        """The columns of a table."""
        return Wanted(self.column or "label", kind, self.sample)

    @property
    def place(self) -> str:
        """What an error calls the source."""
        return "the table" if isinstance(self.labels, pd.DataFrame) else os.fspath(self.labels)

    @property
    def as_words(self) -> bool:
        """Whether labels come as words, which may stand for numbers."""
        types = isinstance(self.labels, pd.DataFrame) or self.place.lower().endswith((".parquet", ".h5ad"))
        return self.kind == "table" and not types and not os.path.isdir(self.place)

    @property
    def kind(self) -> str:
        """table, gates, workspace, channel or none."""
        if isinstance(self.labels, pd.DataFrame):
            return "table"
        if self.place == NO_LABELS:
            return NO_LABELS
        if self.place.startswith(CHANNEL):
            return "channel"
        path = Path(self.place)
        if not path.exists():
            raise DataError(
                f"{path} does not exist: expected a table, a folder of gates, a .wsp file or channel:NAME"
            )
        if path.is_dir():
            return "table" if any((path / name).exists() for name in ZARR_FILES) else "gates"
        return "workspace" if path.suffix.lower() == ".wsp" else "table"


def check_request(labels: Any, **options: Any) -> None:
    """Refuse labels that no study could get, before there is one; opens tables, but reads no labels.

    Parameters
    ----------
    labels, **options
        As `label_cells` takes them: column, sample, first_event, gates, overlap, fcs.

    Raises
    ------
    DataError
        If there is nothing at a path, an option does not go with the source, a table or gate lacks a column,
        or a package is missing. Whether samples, events and channels are those of the study is told later.

    Examples
    --------
    >>> check_request("channel:gate")
    >>> check_request("labels.csv")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    scaleshift.errors.DataError: labels.csv does not exist: expected a table, a folder of gates, ...
    """
    request = Request(labels, **options)
    if request.kind == "table":
        with open_table(request.labels, request.wanted()):
            pass
    elif request.kind == "gates":
        tables, _ = gate_tables(Path(request.place), request.gates)
        for table in {table.path.suffix: table for table in tables}.values():  # thousands may be alike
            with open_table(str(table.path), Wanted(None)) as (columns, _):
                _refuse_without_events(columns, str(table.path))
    elif request.kind == "workspace":
        flowkit_for(request.place)
        files_of(request.fcs)


def with_sample(labelling: Mapping[str, Any], sample: str | None) -> Mapping[str, Any]:
    """The arguments of `label_cells`, and the files' column of samples where a table has it and no other.

    Parameters
    ----------
    labelling : mapping
        Arguments of `label_cells` that `check_request` has let pass.
    sample : str or None
        Column of the files that tells their samples.

    Examples
    --------
    >>> table = pd.DataFrame({"donor": ["a", "b"], "label": ["T", "B"]})
    >>> with_sample({"labels": table}, "donor")["sample"]
    'donor'
    """
    asked = {name: value for name, value in labelling.items() if name not in ("unlabelled", "parents")}
    request = Request(**asked)
    if sample is None or request.sample is not None or request.kind != "table":
        return labelling
    with open_table(request.labels, request.wanted()) as (columns, _):
        if columns.place is not None:
            return labelling
    try:
        with open_table(request.labels, Wanted(None, sample=sample)):
            return {**labelling, "sample": sample}
    except DataError:  # it has no such column
        return labelling


def tell_labels(
    told: CellLabels, request: Request, hierarchy: Hierarchy, group: zarr.Group, manifest: Manifest
) -> tuple[Hierarchy, list[Problem]]:
    """Read a source to its end: what it tells goes to `told`; what it knows of populations, and remarks.

    Raises
    ------
    DataError
        If the source cannot be read, or does not fit the study.
    """
    if request.kind == "channel":
        return hierarchy, _from_channel(told, group, manifest, request.place.removeprefix(CHANNEL))
    addresses = Addresses(manifest)
    if request.kind == "workspace":
        return _from_workspace(told, request, hierarchy, addresses)
    if request.kind == "gates":
        return _from_gates(told, request, hierarchy, addresses)
    return hierarchy, [] if request.kind == NO_LABELS else _from_table(told, request, addresses)


def read_parents(parents: Any) -> dict[str, str]:
    """Population to parent, from a mapping, a sheet with the columns label and parent, or its path."""
    if isinstance(parents, Mapping):
        return {
            composed(str(label)): composed(str(parent))
            for label, parent in parents.items()
            if not _is_blank(parent)
        }
    sheet, where = read_table(parents), place_of(parents)
    columns = {name: find_column(sheet, [name]) for name in ("label", "parent")}
    for name, found in columns.items():
        if found is None:
            raise DataError(f"{where}: has no column {name!r}{suggestion(name, sheet.columns)}")
    return read_parents(dict(zip(sheet[columns["label"]], sheet[columns["parent"]], strict=True)))


def _is_blank(value: Any) -> bool:
    return value is None or value != value or str(value).strip() == ""


def _from_table(told: CellLabels, request: Request, addresses: Addresses) -> list[Problem]:
    """A table with a row an event."""
    kind = FILE if addresses.files else SAMPLE
    with open_table(request.labels, request.wanted(kind)) as (columns, _):
        numbered = columns.event is not None
    found = _numbered_pieces(request.labels, request.place, kind, None, request.sample) if numbered else None
    events, remarks = _event_rows(found, request, addresses)
    with open_table(request.labels, request.wanted(kind)) as (columns, pieces):
        for piece in pieces:
            assert piece.labels is not None
            rows, inside = events.rows(piece, columns, request.place)
            clashes = told.tell(rows, told.numbers(piece.labels.codes[inside], piece.labels.values))
            if clashes.rows.size:
                event = events.event(int(clashes.rows[0]))
                first, second = (told.values[n[0] - 1] for n in (clashes.earlier, clashes.wanted))
                raise DataError(
                    f"{request.place}: {event} has two labels, {first!r} and {second!r}: keep one"
                )
    events.finish()
    return remarks


def _from_gates(
    told: CellLabels, request: Request, hierarchy: Hierarchy, addresses: Addresses
) -> tuple[Hierarchy, list[Problem]]:
    """A folder with a table a gate."""
    tables, remarks = gate_tables(Path(request.place), request.gates)
    kind = FILE if addresses.files else SAMPLE
    pieces = {table: functools.partial(_pieces_of_gate, table, kind, addresses) for table in tables}
    every = (piece for of_gate in pieces.values() for piece in of_gate())
    events, said = _event_rows(every, request, addresses)
    with contextlib.closing(GateSets(told.n_cells, [table.gate for table in tables])) as cells:
        for table in tables:
            for numbered in pieces[table]():
                cells.add(table.gate, events.rows(*numbered)[0])
        events.finish()
        settling = Settling(cells, told, hierarchy, request.place, find_parents=True)
        remarks += said + settling.settle(request.overlap or OVERLAPS[0])
    return settling.hierarchy, remarks


def _from_workspace(
    told: CellLabels, request: Request, hierarchy: Hierarchy, addresses: Addresses
) -> tuple[Hierarchy, list[Problem]]:
    """A FlowJo workspace, which says itself what is part of what."""
    workspace = Workspace(request.place, addresses, request.fcs)
    gates = workspace.gates(request.gates)
    hierarchy = Hierarchy(workspace.parents | hierarchy.parents)
    with contextlib.closing(GateSets(told.n_cells, gates)) as cells:
        for gate, rows in workspace.memberships(gates):
            cells.add(gate, rows)
        settling = Settling(cells, told, hierarchy, request.place, find_parents=False)
        return hierarchy, workspace.remarks + settling.settle(request.overlap or OVERLAPS[0])


def _event_rows(
    pieces: Iterable[Numbered] | None, request: Request, addresses: Addresses
) -> tuple[EventRows, list[Problem]]:
    """Rows by event numbers, and from what number they count, where that was to be found out."""
    if request.first_event is not None or pieces is None:
        return EventRows(addresses, request.first_event or 0), []
    first = first_event_of(pieces, addresses, request.place)
    text = f"events count from {first.number}: there is {first.evidence}"
    said = [Problem("note", request.place, text)] if first.evidence else []
    return EventRows(addresses, *first), said


def _pieces_of_gate(table: GateTable, kind: str, addresses: Addresses) -> Iterator[Numbered]:
    path = str(table.path)
    place = None if table.sample is None else addresses.place(table.sample, SAMPLE, path)
    return _numbered_pieces(path, path, kind, place)


def _numbered_pieces(
    table: Any, name: str, kind: str, place: Place | None = None, sample: str | None = None
) -> Iterator[Numbered]:
    """The pieces of a table of which event numbers alone are read."""
    with open_table(table, Wanted(None, kind, sample)) as (columns, pieces):
        _refuse_without_events(columns, name)
        for piece in pieces:
            yield Numbered(piece, columns, name, place)


def _refuse_without_events(columns: Columns, path: str) -> None:
    if columns.event is None:
        raise DataError(f"{path} has no column 'event': expected the numbers of the gate's events in one")


def _from_channel(told: CellLabels, group: zarr.Group, manifest: Manifest, name: str) -> list[Problem]:
    """A column of X, as it is stored."""
    where, array = f"{manifest.path}: column {name!r}", array_of(group, X, manifest.path)
    for names in (manifest.markers, manifest.var.get("channel", ())):
        if name in names:
            column = names.index(name)
            break
    else:
        raise DataError(f"{manifest.path} has no column {name!r}{suggestion(name, manifest.markers)}")
    for first in range(0, manifest.n_cells, manifest.chunk):
        stop = min(first + manifest.chunk, manifest.n_cells)
        values = read_rows(array, manifest.path, manifest.chunk, first, stop)[:, column]
        known = ~np.isnan(values)
        distinct, codes = np.unique(values[known], return_inverse=True)
        odd = distinct[np.isinf(distinct) | (distinct != np.floor(distinct))]
        if odd.size or len(told.values) + len(distinct) > MAX_CHANNEL_VALUES:
            what = f"{odd[0]:g}" if odd.size else "very many different numbers"
            raise DataError(
                f"{where} holds {what}, so it is a measurement: expected whole numbers, one a label, "
                "and neither transformed nor scaled"
            )
        told.tell(first + np.flatnonzero(known), told.numbers(codes, [int(v) for v in distinct]))
    return []
