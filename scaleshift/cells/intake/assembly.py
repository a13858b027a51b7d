"""How is a planned study written, and a killed writing resumed?  In waves of chunks, each then committed."""

from __future__ import annotations

import functools
import json
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import zarr

from scaleshift.blocks import graph
from scaleshift.cells.intake.checksum import combine
from scaleshift.cells.intake.chunks import Chunk, Piece, Treatment, Written, part_of, write_chunk
from scaleshift.cells.intake.learned_scaling import learn_scaling
from scaleshift.cells.intake.plan import Part, StudyPlan, spillover_key
from scaleshift.cells.intake.report import IngestReport, report_of
from scaleshift.cells.layout import commit, create_study, write_scaling, write_text
from scaleshift.cells.manifest import Manifest, open_study, plain, scaling_arrays
from scaleshift.cells.reader import store_at
from scaleshift.cells.treatment import transform
from scaleshift.doing import doing
from scaleshift.errors import DataError, ScaleshiftError

CHUNKS_PER_THREAD = 4  # written between two commits
SPILLOVERS, REPORT = "spillover", "import"  # in uns: the matrices by their keys; the report


def assemble(
    plan: StudyPlan, location: str, *, labels: Mapping[str, Any] | None, chunk_cells: int, resume: bool
) -> IngestReport:
    """Write a planned study, or what is missing of it, then its labels; see `ingest`."""
    try:
        return _assemble(plan, location, labels=labels, chunk_cells=chunk_cells, resume=resume)
    except OSError as error:
        raise DataError(
            f"{location}: cannot be written ({error.strerror or error}); once that is mended, go on with "
            "resume=True (--resume)"
        ) from error


def _assemble(
    plan: StudyPlan, location: str, *, labels: Mapping[str, Any] | None, chunk_cells: int, resume: bool
) -> IngestReport:
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

        try:
            report = replace(report, labels=label_cells(location, **labels))
        except ScaleshiftError as error:
            way_out = f"mend this and run `{_command(location, **labels)}`"
            raise DataError(f"{error}; the study {location} is written, without labels: {way_out}") from error
        write_text(group, REPORT, report.to_json())
    return report


def _command(
    location: str, labels: Any, column: str | None = None, sample: str | None = None, **_: Any
) -> str:
    """What gives a study its labels."""
    source = os.fspath(labels) if isinstance(labels, str | os.PathLike) else "TABLE"
    options = {"--column": column, "--sample": sample}
    given = [word for option, name in options.items() if name is not None for word in (option, name)]
    return shlex.join(["scaleshift", "label", location, source, *given])


def _write(group: zarr.Group, plan: StudyPlan, progress: _Progress) -> None:
    """Write all chunks that hold cells which are not committed."""
    chunks = _scaled(group, plan, progress.planned, _chunks(plan, progress.committed))
    wave = CHUNKS_PER_THREAD * graph.n_threads()
    with doing("chunks", len(chunks), wave) as advance:
        for first in range(0, max(len(chunks), 1), wave):
            now = chunks[first : first + wave]
            results = graph.run([functools.partial(write_chunk, chunk) for chunk, _ in now])
            for (_, parts), written in zip(now, results, strict=True):
                progress.note(parts, written)
            commit(group, progress.commit())
            advance(len(now))


class _Progress:
    """What of the study is written: rows, checksums and invalid values, in the order of the rows."""

    def __init__(self, plan: StudyPlan, planned: Manifest, done: Manifest) -> None:
        self.plan, self.planned, self.committed = plan, planned, done
        self.n_rows = done.n_cells
        self.n_parts = len(done.files)  # each part has its entry
        self.checksums = dict.fromkeys(planned.samples[len(done.samples) :], 0)
        self.invalid: dict[int, np.ndarray] = {}

    def note(self, parts: Sequence[int], written: Sequence[Written]) -> None:
        """Take in the pieces of the next chunk."""
        for number, piece in zip(parts, written, strict=True):
            sample = self.plan.parts[number].sample
            self.checksums[sample] = combine(self.checksums[sample], piece.crc, piece.n_bytes)
            self.invalid[number] = self.invalid.get(number, 0) + piece.invalid
            self.n_rows += piece.n_rows

    def commit(self) -> Manifest:
        """The manifest with all samples whose last row is written."""
        ends = np.cumsum(self.planned.counts)
        n = int(np.searchsorted(ends, self.n_rows, side="right"))
        known, new = len(self.committed.samples), self.planned.samples[:n]
        finished, first = set(new[known:]), self.n_parts
        while self.n_parts < len(self.plan.parts) and self.plan.parts[self.n_parts].sample in finished:
            self.n_parts += 1
        self.committed = replace(
            self.committed,
            samples=new,
            awaited=0 if n == len(self.planned.samples) else self.planned.awaited,
            counts=self.planned.counts[:n],
            metadata={name: values[:n] for name, values in self.planned.metadata.items()},
            checksums=self.committed.checksums + tuple(f"{self.checksums[s]:08x}" for s in new[known:]),
            files=(*self.committed.files, *map(self._entry, range(first, self.n_parts))),
        )
        return self.committed

    def _entry(self, number: int) -> dict[str, Any]:
        """What the store keeps of the rows of one file."""
        part, invalid = self.plan.parts[number], self.invalid.get(number, np.zeros(0))
        markers, usual = self.plan.columns.markers, list(self.plan.columns.channels)
        channels = [part.file.channels[column] for column in part.columns.tolist()]
        return {
            "path": part.file.path,
            "sample": part.sample,
            "n_events": part.n_events,
            "format": part.file.format,
            "fingerprint": part.file.fingerprint,
            "spillover": spillover_key(part.spillover) if part.spillover else None,
            "invalid": {markers[i]: int(invalid[i]) for i in np.flatnonzero(invalid).tolist()},
            **({"channels": channels} if channels != usual else {}),
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
        compensation=plan.compensation,
        scaling=plan.scaling,
        var=var | ({"marker_class": columns.classes} if any(columns.classes) else {}),
        plan=plan.fingerprint(chunk_cells),
        awaited=len(samples),
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
    return _opened(location), _none_of(planned)


def _none_of(planned: Manifest) -> Manifest:
    """The study with none of its samples yet."""
    return replace(planned, samples=(), counts=(), metadata={})


def _opened(location: str) -> zarr.Group:
    store = store_at(location, read_only=False)
    return zarr.open_group(store, mode="r+", zarr_format=3, use_consolidated=False)


def _resumed(planned: Manifest) -> tuple[zarr.Group | None, Manifest | None]:
    """The store of a killed import and what is committed in it; None where it had not begun."""
    location = planned.path
    if "://" in location:
        try:
            zarr.open_group(store_at(location, read_only=True), mode="r", zarr_format=3)
        except FileNotFoundError:
            return None, None
    elif not os.path.exists(location):
        return None, None
    _, done = open_study(location)
    n = len(done.samples)
    if (done.plan, done.samples, done.counts) != (planned.plan, planned.samples[:n], planned.counts[:n]):
        raise DataError(
            f"{location} is an import of other files, or of these done otherwise, or samples were appended "
            "since: resume with the same files and options, or choose another path"
        )
    if "://" not in location:
        for left in Path(location).rglob("*.partial"):  # what Zarr was writing when the process was killed
            left.unlink()
    return _opened(location), done


def _scaled(
    group: zarr.Group, plan: StudyPlan, planned: Manifest, chunks: list[tuple[Chunk, list[int]]]
) -> list[tuple[Chunk, list[int]]]:
    """The chunks with the scaling of their samples: learned and stored before anything is written."""
    if plan.scaling is None:
        return chunks
    location, scale = scaling_arrays(group, planned).values()
    if not np.isfinite(location).all() or not np.isfinite(scale).all():  # not stored yet
        every = [chunk for chunk, _ in _chunks(plan, _none_of(planned))]
        features = np.array(plan.columns.features)
        with doing("learning the scaling"):
            location, scale = learn_scaling(every, planned.samples, features, plan.scaling)
        write_scaling(group, 0, location, scale)

    def scaled(chunk: Chunk) -> Chunk:
        of = [(piece, piece.sample_code) for piece in chunk.pieces]
        pieces = tuple(replace(piece, location=location[i], scale=scale[i]) for piece, i in of)
        return replace(chunk, pieces=pieces)

    return [(scaled(chunk), parts) for chunk, parts in chunks]


def _chunks(plan: StudyPlan, committed: Manifest) -> list[tuple[Chunk, list[int]]]:
    """The chunks that hold cells which are not committed, and of which part each of their pieces is."""
    codes = {name: code for code, name in enumerate(plan.counts)}
    pieces: dict[int, list[tuple[int, Piece]]] = {}
    for number, first, stop, chunk in _cuts(plan.parts, committed.chunk, len(committed.samples)):
        part = plan.parts[number]
        treatment = Treatment(part.file.path, part.columns, part.compensated, part.spillover, plan.transforms)
        rows = part_of(part.rows, first, stop)
        piece = Piece(part.file.reader, rows, stop - first, codes[part.sample], treatment)
        pieces.setdefault(chunk, []).append((number, piece))
    size, n_markers = committed.chunk, len(committed.markers)
    return [
        (
            Chunk(
                committed.path,
                chunk * size,
                max(0, committed.n_cells - chunk * size),
                tuple(piece for _, piece in of_chunk),
                n_markers,
            ),
            [part for part, _ in of_chunk],
        )
        for chunk, of_chunk in pieces.items()
    ]


def _cuts(parts: Sequence[Part], chunk_cells: int, n_done: int) -> Iterator[tuple[int, int, int, int]]:
    """Part, its rows [first, stop) and their chunk; without the parts of the first `n_done` samples."""
    row, samples = 0, dict.fromkeys(part.sample for part in parts)
    done = set(list(samples)[:n_done])
    for number, part in enumerate(parts):
        first = part.n_events if part.sample in done else 0
        while first < part.n_events:
            chunk = (row + first) // chunk_cells
            stop = min(part.n_events, (chunk + 1) * chunk_cells - row)
            yield number, first, stop, chunk
            first = stop
        row += part.n_events
