"""How is a planned study written, and a killed writing resumed?  In waves of chunks, each then committed."""

from __future__ import annotations

import functools
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

import numpy as np
import zarr

from scaleshift.blocks import graph
from scaleshift.cells.intake.checksum import combine
from scaleshift.cells.intake.chunks import Chunk, Piece, Treatment, Written, part_of, scaling_of, write_chunk
from scaleshift.cells.intake.plan import Part, StudyPlan, spillover_key
from scaleshift.cells.intake.report import IngestReport, report_of
from scaleshift.cells.layout import commit, create_study, write_scaling, write_text
from scaleshift.cells.manifest import Manifest, open_study, plain
from scaleshift.cells.reader import store_at
from scaleshift.cells.treatment import transform
from scaleshift.cells.treatment.compensation import positions
from scaleshift.errors import DataError

CHUNKS_PER_THREAD = 4  # written between two commits
SAMPLES_A_TASK = 16  # whose scaling is learned
SPILLOVERS, REPORT = "spillover", "import"  # in uns: the matrices by their keys; the report


def assemble(plan: StudyPlan, location: str, *, labels: Any, chunk_cells: int, resume: bool) -> IngestReport:
    """Write a planned study, or what is missing of it, then its labels; see `ingest`."""
    planned = _manifest(plan, location, chunk_cells)
    group, done = _resumed(planned) if resume else (None, None)
    if group is None or done is None:
        group, done = _created(planned, plan)
    progress = _Progress(plan, planned, done)
    if done.n_cells < planned.n_cells or len(done.samples) < len(planned.samples):
        _write(group, plan, progress)
    report = report_of(plan, progress.committed)
    write_text(group, REPORT, report.to_json())
    if labels is not None:
        from scaleshift.cells.labels.label import label_cells

        report = replace(report, labels=label_cells(location, labels))
    return report


def _write(group: zarr.Group, plan: StudyPlan, progress: _Progress) -> None:
    """Write all chunks that hold cells which are not committed."""
    treatments = [_treatment(part, plan) for part in plan.parts]
    scalings = _scalings(group, plan, treatments)
    chunk_cells = progress.committed.chunk
    start = progress.committed.n_cells // chunk_cells * chunk_cells
    chunks = _chunks(plan, treatments, scalings, progress.committed, start)
    wave = CHUNKS_PER_THREAD * graph.n_threads()
    for first in range(0, max(len(chunks), 1), wave):
        now = chunks[first : first + wave]
        results = graph.run([functools.partial(write_chunk, chunk) for chunk, _ in now])
        for (_, parts), written in zip(now, results, strict=True):
            progress.note(parts, written)
        commit(group, progress.commit())


class _Progress:
    """What of the study is written: rows, checksums and invalid values, in the order of the rows."""

    def __init__(self, plan: StudyPlan, planned: Manifest, done: Manifest) -> None:
        self.plan, self.planned, self.committed = plan, planned, done
        self.sample_of = {name: code for code, name in enumerate(planned.samples)}
        self.n_rows = done.n_cells
        self.checksums = dict.fromkeys(planned.samples[len(done.samples) :], 0)
        self.invalid: dict[int, np.ndarray] = {}

    def note(self, parts: Sequence[int], written: Sequence[Written]) -> None:
        """Take in the pieces of the next chunk; those of committed samples are known already."""
        for number, piece in zip(parts, written, strict=True):
            sample = self.plan.parts[number].sample
            if sample in self.checksums:
                self.checksums[sample] = combine(self.checksums[sample], piece.crc, piece.n_bytes)
                self.invalid[number] = self.invalid.get(number, 0) + piece.invalid
                self.n_rows += piece.n_rows

    def commit(self) -> Manifest:
        """The manifest with all samples whose last row is written."""
        ends = np.cumsum(self.planned.counts)
        n = int(np.searchsorted(ends, self.n_rows, side="right"))
        known, new = len(self.committed.samples), self.planned.samples[:n]
        numbers = range(len(self.plan.parts))
        fresh = [i for i in numbers if known <= self.sample_of[self.plan.parts[i].sample] < n]
        self.committed = replace(
            self.committed,
            samples=new,
            counts=self.planned.counts[:n],
            metadata={name: values[:n] for name, values in self.planned.metadata.items()},
            checksums=self.committed.checksums + tuple(f"{self.checksums[s]:08x}" for s in new[known:]),
            files=(*self.committed.files, *(self._entry(i) for i in fresh)),
        )
        return self.committed

    def _entry(self, number: int) -> dict[str, Any]:
        """What the store keeps of the rows of one file."""
        part, invalid = self.plan.parts[number], self.invalid.get(number, np.zeros(0))
        markers = self.plan.columns.markers
        return {
            "path": part.file.path,
            "sample": part.sample,
            "n_events": part.n_events,
            "format": part.file.format,
            "fingerprint": part.file.fingerprint,
            "spillover": spillover_key(part.spillover) if part.spillover else None,
            "invalid": {markers[i]: int(invalid[i]) for i in np.flatnonzero(invalid).tolist()},
        }


def _manifest(plan: StudyPlan, location: str, chunk_cells: int) -> Manifest:
    """The study as planned; files and checksums come with the cells."""
    columns, samples = plan.columns, tuple(plan.counts)
    metadata = {}
    for name, of_sample in plan.metadata.items():
        values = np.array([*(of_sample.get(sample) for sample in samples), None], dtype=object)[:-1]
        metadata[name] = plain(values, f"sample metadata {name!r}")
    var = {"channel": columns.channels, "kind": columns.kinds, "feature": columns.features}
    return Manifest(
        path=location,
        study=uuid4().hex,
        samples=samples,
        counts=tuple(plan.counts.values()),
        markers=columns.markers,
        labels=(),
        chunk=chunk_cells,
        metadata=metadata,
        transform=transform.to_json(columns.markers, plan.transforms),
        compensation="spillover" if any(part.spillover for part in plan.parts) else "none",
        scaling=plan.scaling,
        var=var | ({"marker_class": columns.classes} if any(columns.classes) else {}),
        plan=plan.fingerprint(chunk_cells),
    )


def _created(planned: Manifest, plan: StudyPlan) -> tuple[zarr.Group, Manifest]:
    """A new store of the planned size, in which nothing is committed.

    A local one is made beside its place and moved there: it is either there, or not, and can be resumed.
    """
    location, remote = planned.path, "://" in planned.path
    folder, name = os.path.split(location)
    place = location if remote else os.path.join(folder, f".{name}.{str(planned.plan)[:8]}.new")
    if not remote and os.path.isdir(place):  # left by an import that was killed
        shutil.rmtree(place)
    group = create_study(replace(planned, path=place))
    matrices = {spillover_key(p.spillover): p.spillover.to_json() for p in plan.parts if p.spillover}
    write_text(group, SPILLOVERS, json.dumps(matrices))
    if not remote:
        os.rename(place, location)
    return _opened(location), replace(planned, samples=(), counts=(), metadata={})


def _opened(location: str) -> zarr.Group:
    store = store_at(location, read_only=False)
    return zarr.open_group(store, mode="r+", zarr_format=3, use_consolidated=False)


def _resumed(planned: Manifest) -> tuple[zarr.Group | None, Manifest | None]:
    """The store of a killed import and what is committed in it; None where it had not begun."""
    location = planned.path
    if "://" not in location and not os.path.exists(location):
        return None, None
    _, done = open_study(location)
    if done.plan != planned.plan:
        raise DataError(
            f"{location} is an import of other files, or of these done otherwise: resume with the same files "
            "and options, or choose another path"
        )
    return _opened(location), done


def _treatment(part: Part, plan: StudyPlan) -> Treatment:
    file, spillover = part.file, part.spillover
    none = np.empty(0, np.intp)
    compensated = none if spillover is None else positions(spillover, file.channels, file.markers, file.path)
    return Treatment(file.path, part.columns, compensated, spillover, plan.transforms)


def _scalings(
    group: zarr.Group, plan: StudyPlan, treatments: Sequence[Treatment]
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Location and scale of every sample, learned and stored; nothing where samples are not scaled."""
    if plan.scaling is None:
        return {}
    sources: dict[str, list[Any]] = {name: [] for name in plan.counts}
    for part, treatment in zip(plan.parts, treatments, strict=True):
        sources[part.sample].append((part.file.reader, part.rows, part.n_events, treatment))
    features, names = np.array(plan.columns.features), list(sources)
    batches = [names[first : first + SAMPLES_A_TASK] for first in range(0, len(names), SAMPLES_A_TASK)]
    of = [[sources[name] for name in batch] for batch in batches]
    learned = graph.run([functools.partial(scaling_of, batch, plan.scaling, features) for batch in of])
    location, scale = (np.concatenate([answer[i] for answer in learned]) for i in (0, 1))
    write_scaling(group, 0, location, scale)
    return {name: (location[i], scale[i]) for i, name in enumerate(names)}


def _chunks(
    plan: StudyPlan,
    treatments: Sequence[Treatment],
    scalings: dict[str, tuple[np.ndarray, np.ndarray]],
    study: Manifest,
    start: int,
) -> list[tuple[Chunk, list[int]]]:
    """The chunks from row `start` on, and of which part each piece is."""
    codes = {name: code for code, name in enumerate(plan.counts)}
    pieces: dict[int, list[tuple[int, Piece]]] = {}
    for number, chunk, first, stop in _cuts(plan.parts, study.chunk):
        if (chunk + 1) * study.chunk > start:
            part = plan.parts[number]
            location, scale = scalings.get(part.sample, (None, None))
            rows = part_of(part.rows, first, stop)
            code, treatment = codes[part.sample], treatments[number]
            piece = Piece(part.file.reader, rows, stop - first, code, treatment, location, scale)
            pieces.setdefault(chunk, []).append((number, piece))
    n_markers = len(study.markers)
    return [
        (
            Chunk(study.path, number * study.chunk, tuple(piece for _, piece in of_chunk), n_markers),
            [part for part, _ in of_chunk],
        )
        for number, of_chunk in pieces.items()
    ]


def _cuts(parts: Sequence[Part], chunk_cells: int) -> Iterator[tuple[int, int, int, int]]:
    """Part, chunk, and the part's rows [first, stop) in that chunk."""
    row = 0
    for number, part in enumerate(parts):
        first = 0
        while first < part.n_events:
            chunk = (row + first) // chunk_cells
            stop = min(part.n_events, (chunk + 1) * chunk_cells - row)
            yield number, chunk, first, stop
            first = stop
        row += part.n_events
