"""Which cells lie in which gates of a FlowJo workspace? FlowKit gates the FCS files, one at a time."""

from __future__ import annotations

import os
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote
from xml.etree import ElementTree
from xml.parsers import expat

import numpy as np

from scaleshift.cells.labels.addresses import FILE, Addresses, Place
from scaleshift.cells.labels.codes import chosen
from scaleshift.cells.optional import optional
from scaleshift.cells.problem import Problem, several
from scaleshift.cells.regular import refuse_odd
from scaleshift.cells.sheets.filenames import base_name, closest, composed, stem
from scaleshift.errors import DataError, one_line
from scaleshift.spelling import suggestion

Route = tuple[str, ...]  # names from the outermost population to the gate


class Gated(NamedTuple):
    """A sample of the workspace that is in the study."""

    name: str  # in the workspace
    place: Place
    fcs: str


class Workspace:
    """A FlowJo workspace beside a study.

    A gate is called by its name, or by its whole path ("T cells/CD4+") where gates with different parents
    share one.

    Parameters
    ----------
    path : str
        The .wsp file.
    addresses : Addresses
        Of the study. Samples are matched by the names of their FCS files.
    fcs : path, list of paths or None
        FCS files or a folder of them. Default: where the study says they are, or beside the workspace.

    Raises
    ------
    DataError
        If FlowKit is missing or cannot read the workspace, an FCS file is not found, or no sample of the
        workspace is in the study.
    """

    def __init__(self, path: str, addresses: Addresses, fcs: Any = None) -> None:
        self.path = path
        self._flowkit = flowkit_for(path)
        _refuse_entities(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about FCS files that are not loaded yet
            try:
                self._workspace = self._flowkit.Workspace(path, load_missing_file_data=True)
            except Exception as error:  # whatever FlowKit and lxml make of a file
                raise DataError(f"{path}: FlowKit cannot read this workspace: {one_line(error)}") from error
        self.samples, self.remarks = self._matched(addresses, files_of(fcs))
        names = defaultdict(set)
        self._routes: dict[str, list[Route]] = {s.name: self._routes_of(s.name) for s in self.samples}
        every = dict.fromkeys(route for routes in self._routes.values() for route in routes)
        for route in every:
            names[route[-1]].add(route)
        self._label = {r: composed(r[-1]) if len(names[r[-1]]) == 1 else composed("/".join(r)) for r in every}
        self.parents = {self._label[route]: self._label[route[:-1]] for route in every if len(route) > 1}

    def gates(self, wanted: Iterable[str] | None) -> list[str]:
        """Names of the wanted gates, in this order; None: of all."""
        known = list(dict.fromkeys(self._label.values()))
        return known if wanted is None else chosen(wanted, known, f"gates of {self.path}")

    def memberships(self, gates: Iterable[str]) -> Iterator[tuple[str, np.ndarray]]:
        """Gate and rows of its cells, sample after sample."""
        for sample in self.samples:
            routes = {self._label[route]: route for route in self._routes[sample.name]}
            results = self._gate(sample)
            for gate in gates:
                if gate in routes:
                    *outer, name = routes[gate]
                    inside = results.get_gate_membership(name, ("root", *outer))
                    yield gate, sample.place.start + np.flatnonzero(inside)

    def _matched(self, addresses: Addresses, files: list[str] | None) -> tuple[list[Gated], list[Problem]]:
        """The workspace's samples that are in the study, with their FCS files, and a remark on the others."""
        gated: dict[Place, Gated] = {}
        others, seen = [], set()
        for name, uri in _names_and_uris(self.path):
            # A file may have been renamed since it was measured: where it stands tells more than $FIL.
            names = [unquote(uri), name, self._workspace.get_keywords(name).get("$FIL", name)]
            place = next((found for n in names if (found := addresses.find(n, FILE)) is not None), None)
            if place is None:
                others.append(name)
            elif name in seen:
                raise DataError(
                    f"{self.path}: two samples are called {name!r}, and FlowKit knows only one: "
                    "remove one from the workspace"
                )
            elif place in gated:
                raise DataError(
                    f"{self.path}: samples {gated[place].name!r} and {name!r} are both {place} of "
                    f"{addresses.store}: remove one from the workspace"
                )
            else:
                gated[place] = Gated(name, place, self._fcs_of(place, names, files))
            seen.add(name)
        if not gated:
            known = [place.name for place in addresses.files or addresses.samples]
            first = f"{others[0]!r}{suggestion(others[0], known)}" if others else "there is none"
            raise DataError(f"{self.path}: no sample of the workspace is in {addresses.store}: {first}")
        samples = list(gated.values())
        if not others:
            return samples, []
        text = f"{len(others)} samples are not in the study and were passed over: {several(others)}"
        return samples, [Problem("note", self.path, text)]

    def _fcs_of(self, place: Place, names: list[str], files: list[str] | None) -> str:
        """The FCS file of a sample."""
        wanted = [base_name(name) for name in ([place.path] if place.path else []) + names]
        if files is None:
            folder = os.path.dirname(self.path)
            beside = {base_name(name): os.path.join(folder, name) for name in os.listdir(folder or ".")}
            likely = (place.path, *(beside.get(name) for name in wanted))
            found = [path for path in likely if path and os.path.isfile(path)]
        else:
            ways = [(form, form(name)) for form in (base_name, stem) for name in wanted]
            fitting = ([path for path in files if form(path) == name] for form, name in ways)
            found = next(filter(None, fitting), [])
            found = [found[i] for i in closest(place.path or names[0], found)]
            if len(set(found)) > 1:
                raise DataError(
                    f"{self.path}: {found[0]} and {found[1]} may both be the FCS file of {place}: "
                    "tell the right one with fcs=... (--fcs)"
                )
        if not found:
            raise DataError(
                f"{self.path}: the FCS file of {place} is not found ({', '.join(dict.fromkeys(wanted))}): "
                "tell the folder of the FCS files with fcs=... (--fcs)"
            )
        return found[0]

    def _routes_of(self, name: str) -> list[Route]:
        return [(*path[1:], gate) for gate, path in self._workspace.get_gate_ids(name)]

    def _gate(self, sample: Gated) -> Any:
        """FlowKit's results for one sample; its events are read here and freed with the results."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                with open(sample.fcs, "rb") as file:
                    events = self._flowkit.Sample(file, sample_id=sample.name, use_flowjo_labels=True)
                results = self._workspace.get_gating_strategy(sample.name).gate_sample(events)
            except Exception as error:  # whatever FlowKit makes of a file
                raise DataError(
                    f"{self.path}: FlowKit cannot gate {sample.fcs}: {one_line(error)}; "
                    "or export its gates' events as tables, and label from their folder"
                ) from error
        if events.event_count != sample.place.n:
            raise DataError(
                f"{self.path}: {sample.fcs} has {events.event_count} events, {sample.place} of the study "
                f"{sample.place.n}: is it the file that the study was made of?"
            )
        return results


def flowkit_for(path: str) -> Any:
    """FlowKit; DataError that says how to get it where it is missing."""
    return optional("flowkit", "flowjo", f"reading {path}")


def _refuse_entities(path: str) -> None:
    """Raise DataError for a workspace that declares entities: a few lines stand for gigabytes, or a file."""
    refuse_odd(path)

    def refuse(*_: Any) -> None:
        raise DataError(
            f"{path}: declares a document type, which no workspace of FlowJo does: it is not read"
        )

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    try:
        with open(path, "rb") as file:
            parser.ParseFile(file)
    except DataError:
        raise
    except (expat.ExpatError, LookupError, ValueError, OSError) as error:  # of encodings that it lacks too
        raise DataError(f"{path}: FlowKit cannot read this workspace: {one_line(error)}") from error


def _names_and_uris(path: str) -> list[tuple[str, str]]:
    """Name of each sample of a workspace, and where its FCS file stood."""
    found = []
    for sample in ElementTree.parse(path).iter("Sample"):
        node, data = sample.find("SampleNode"), sample.find("DataSet")
        if node is not None and data is not None:
            found.append((node.get("name", ""), data.get("uri", "")))
    return found


def files_of(fcs: Any) -> list[str] | None:
    """Paths of the FCS files that were given: single ones, and all files of folders."""
    if fcs is None:
        return None
    given = [fcs] if isinstance(fcs, str | os.PathLike) else list(fcs)
    paths = []
    for item in map(Path, given):
        if not item.exists():
            raise DataError(
                f"fcs: {item} does not exist; give the FCS files of the workspace, or their folder"
            )
        paths += sorted(p for p in item.rglob("*") if p.is_file()) if item.is_dir() else [item]
    return [str(path) for path in paths]
