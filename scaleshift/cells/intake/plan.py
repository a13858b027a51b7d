"""What study do these files make? Which samples, columns and treatments, and what stands in the way."""

from __future__ import annotations

import functools
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from scaleshift.blocks import graph
from scaleshift.blocks.labels import natural_key
from scaleshift.blocks.sizes import count
from scaleshift.cells import files
from scaleshift.cells.files.described import Described, Group, Rows
from scaleshift.cells.intake.compensating import Matrix, choose_compensation
from scaleshift.cells.manifest import is_unicode
from scaleshift.cells.problem import Problem
from scaleshift.cells.sheets import panel
from scaleshift.cells.sheets import samples as sheets
from scaleshift.cells.sheets.channels import Kind, Modality, modality
from scaleshift.cells.sheets.filenames import composed
from scaleshift.cells.sheets.panel import Columns
from scaleshift.cells.sheets.samples import Matched, SampleSheet
from scaleshift.cells.treatment import transform
from scaleshift.cells.treatment.compensation import Spillover
from scaleshift.cells.treatment.location_scale import Method
from scaleshift.doing import doing
from scaleshift.errors import DataError, ScaleshiftError

BATCH = 64  # files described by one task
SHOWN = 20  # errors in one message


@dataclass(frozen=True)
class Options:
    """What the user chose; see `scaleshift.ingest`."""

    meta: Any = None
    panel: Any = None
    markers: Sequence[str] | str | None = None
    transform: Any = "auto"
    compensation: Any = "auto"
    scaling: Method | None = None
    errors: str = "raise"
    duplicates: str = "raise"
    data_sets: str = "raise"
    sample: str | None = None


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of one file that belong to one sample, and what they need to enter the study."""

    file: Described
    sample: str
    rows: Rows
    n_events: int
    columns: np.ndarray  # (n_markers,): the file's column of each of the study's
    compensated: np.ndarray  # (n_fluorochromes,): those that the matrix is about
    spillover: Spillover | None
    metadata: Mapping[str, Any]


@dataclass(frozen=True, eq=False, repr=False)
class StudyPlan:
    """What a study will be, before any events are read.

    Attributes
    ----------
    parts : tuple of Part
        In the order of their cells, those of a sample one after the other.
    paths : tuple of str
        All files that were found.
    files : tuple of Described
        All files that could be described.
    columns : Columns
    transforms : tuple of Transform
        One a column.
    compensation : "spillover" or "none"
    scaling : str or None
    metadata : dict
        Column name to {sample: value}.
    problems : tuple of Problem
    said : tuple of str
        What was chosen on the user's behalf.
    """

    parts: tuple[Part, ...]
    paths: tuple[str, ...]
    files: tuple[Described, ...]
    columns: Columns
    transforms: tuple[transform.Transform, ...]
    compensation: str
    scaling: Method | None
    metadata: Mapping[str, Mapping[str, Any]]
    problems: tuple[Problem, ...]
    said: tuple[str, ...] = ()

    def __repr__(self) -> str:
        sizes = [
            count(len(self.counts), "sample", "samples"),
            count(sum(self.counts.values()), "cell", "cells"),
            count(sum(self.columns.features), "feature", "features"),
        ]
        return f"<StudyPlan: {', '.join(sizes)}, {len(self.errors)} to mend>"

    @property
    def errors(self) -> list[Problem]:
        """The problems that stand in the way."""
        return [problem for problem in self.problems if problem.level == "error"]

    @functools.cached_property
    def counts(self) -> dict[str, int]:
        """Number of cells of each sample, in the order of the study."""
        counts: dict[str, int] = {}
        for part in self.parts:
            counts[part.sample] = counts.get(part.sample, 0) + part.n_events
        return counts

    def fingerprint(self, chunk_cells: int) -> str:
        """Tells an import of these files, done this way, from another one."""
        parts = [(p.sample, p.file.fingerprint, p.n_events, p.columns.tolist(), _key(p)) for p in self.parts]
        done = transform.to_json(self.columns.markers, self.transforms)
        columns = [self.columns.markers, self.columns.kinds, self.columns.features, self.columns.classes]
        text = json.dumps([parts, columns, done, self.scaling, chunk_cells])
        return hashlib.sha256(text.encode()).hexdigest()


def plan_study(paths: Any, options: Options) -> StudyPlan:
    """Describe the files and choose samples, columns and treatments; reads no events.

    Problems are collected, not raised: `scaleshift check` shows them all.

    Raises
    ------
    DataError
        If there is nothing to plan: a path or a sheet does not exist, or no file can be read.
    """
    found, problems = files.find(paths)
    described, unreadable = _describe(found, options)
    if not described:
        raise DataError(_listed("no file can be read", unreadable))
    told = any(file.groups for file in described)
    sheet = None if options.meta is None else sheets.read_samples(options.meta, told)
    by_sheet = panel.read_panel(options.panel) if options.panel is not None else None
    matched = sheets.match_files(sheet, found)
    described = [file for file in described if file.file in matched.samples]
    without_row = set(found) - set(matched.samples)
    unreadable = [problem for problem in unreadable if problem.place not in without_row]
    if not described:
        raise DataError(_listed("no file is left to read", [*unreadable, *matched.problems]))
    columns = panel.align(described, by_sheet, options.markers)
    kinds = {file.path: kind for file, kind in zip(described, _modalities(described), strict=True)}
    transforms, said, doubts = _transforms(options.transform, columns, kinds)
    aligned = [file for file in described if file.path in columns.positions]
    compensating = choose_compensation(options.compensation, aligned, kinds)
    problems += [*unreadable, *(p for file in described for p in file.problems), *matched.problems]
    problems += [*columns.problems, *doubts, *compensating.problems]
    usable = set(columns.positions) - {problem.place for problem in problems if problem.level == "error"}
    parts = [
        _part(file, group, columns, compensating.matrices.get(file.path))
        for file in described
        if file.path in usable
        for group in _groups(file, matched, sheet)
    ]
    if sheet is not None and sheet.by_sample:
        problems += sheets.match_samples(sheet, _samples(described, matched, sheet))
        parts = [part for part in parts if composed(part.sample) in sheet.samples]
    parts = _in_order(parts, matched.samples)
    metadata, shared = _metadata(parts)
    return StudyPlan(
        parts=tuple(parts),
        paths=tuple(found),
        files=tuple(described),
        columns=columns,
        transforms=transforms,
        compensation=compensating.state,
        scaling=options.scaling,
        metadata={name: metadata.get(name, {}) for name in (*matched.metadata, *metadata)},
        problems=tuple(dict.fromkeys([*problems, *shared])),
        said=(*said, *compensating.said),
    )


def refuse_errors(plan: StudyPlan, errors: str) -> None:
    """Raise DataError where files are wrong and are not to be skipped, or nothing is left."""
    if plan.errors and errors == "raise":
        message = f"{len(plan.errors)} problem{'s' * (len(plan.errors) > 1)} to mend"
        way_out = "\nmend them, or pass errors='skip' (--skip) to leave these files out"
        raise DataError(_listed(message, plan.errors) + way_out)
    of_study = [problem for problem in plan.errors if problem.place == panel.STUDY]
    if of_study:
        raise DataError(_listed("no study can be made of these files", of_study))
    if not plan.parts:
        raise DataError(_listed("no file is left to read", plan.errors or list(plan.problems)))


def shown(path: str) -> str:
    """A path as text that can be written anywhere."""
    return path if is_unicode(path) else ascii(path)


def _listed(message: str, problems: Sequence[Problem]) -> str:
    lines = [f"  {problem}" for problem in problems[:SHOWN]]
    more = len(problems) - SHOWN
    return "\n".join([f"{message}:", *lines, *([f"  and {more} more"] if more > 0 else [])])


def _describe(paths: Sequence[str], options: Options) -> tuple[list[Described], list[Problem]]:
    """What each file is, in the order of the paths, and why some cannot be read."""
    arguments = options.duplicates, options.data_sets, options.sample
    batches = [paths[first : first + BATCH] for first in range(0, len(paths), BATCH)]
    with doing("looking at the files"):
        answers = graph.run([functools.partial(_describe_batch, batch, *arguments) for batch in batches])
    every = [answer for batch in answers for answer in batch]
    described = [file for answer in every if isinstance(answer, list) for file in answer]
    return described, [answer for answer in every if isinstance(answer, Problem)]


def _describe_batch(paths: Sequence[str], *arguments: Any) -> list[list[Described] | Problem]:
    return [_describe_one(path, *arguments) for path in paths]


def _describe_one(path: str, *arguments: Any) -> list[Described] | Problem:
    if not is_unicode(path):
        return Problem("error", shown(path), "has a name that is no valid UTF-8", "rename it")
    try:
        return files.describe(path, *arguments)
    except ScaleshiftError as error:
        return Problem("error", path, str(error).removeprefix(path).lstrip(":, "))
    except Exception as error:  # one bad file never takes the others with it
        return Problem("error", path, f"cannot be read ({type(error).__name__}: {error})")


def _groups(file: Described, matched: Matched, sheet: SampleSheet | None) -> list[Group]:
    """The samples in a file, or one of its data sets, with what the sheet tells of it, or of them."""
    name = sample = matched.samples[file.file]
    if not file.groups:
        name = f"{sample}_{file.data_set + 1}" if file.data_set else sample
        return [Group(name, slice(0, file.n_events), _known(sample, matched))]
    if sheet is not None and sheet.by_sample:
        return [replace(g, metadata={**g.metadata, **_known(g.sample, matched)}) for g in file.groups]
    renamed = sheet is not None and len(file.groups) == 1
    metadata = _known(sample, matched)
    return [
        Group(name if renamed else group.sample, group.rows, {**group.metadata, **metadata})
        for group in file.groups
    ]


def _samples(described: Iterable[Described], matched: Matched, sheet: SampleSheet) -> dict[str, str]:
    """The samples of all files, each with the first file that holds it."""
    found: dict[str, str] = {}
    for file in described:
        for group in _groups(file, matched, sheet):
            found.setdefault(composed(group.sample), file.file)
    return found


def _known(sample: str, matched: Matched) -> dict[str, Any]:
    """What a sheet tells of a sample."""
    return {column: values.get(composed(sample)) for column, values in matched.metadata.items()}


def _part(file: Described, group: Group, columns: Columns, matrix: Matrix | None) -> Part:
    spillover, compensated = matrix or (None, np.empty(0, np.intp))
    position = columns.positions[file.path]
    return Part(
        file, group.sample, group.rows, group.n_events, position, compensated, spillover, group.metadata
    )


def _metadata(parts: Iterable[Part]) -> tuple[dict[str, dict[str, Any]], list[Problem]]:
    """Column name to {sample: value}: the first file's where several hold a sample, with a warning."""
    metadata: dict[str, dict[str, Any]] = {}
    holder: dict[str, str] = {}
    problems = []
    for part in parts:
        first = holder.setdefault(part.sample, part.file.file)
        if first != part.file.file and part.file.groups:
            text = f"holds cells of sample {part.sample!r}, as {first} does: they become one sample"
            fix = "if they are not the same sample, import the files apart"
            problems.append(Problem("warning", part.file.path, text, fix))
        for name, value in part.metadata.items():
            metadata.setdefault(name, {}).setdefault(part.sample, value)
    return metadata, problems


def _in_order(parts: Iterable[Part], samples: Mapping[str, str]) -> list[Part]:
    """Parts by sample, samples and their files in the order that the sheet or the names give."""
    place = {path: i for i, path in enumerate(samples)}
    first: dict[str, int] = {}
    for part in (parts := list(parts)):
        first[part.sample] = min(place[part.file.file], first.get(part.sample, len(place)))

    def key(part: Part) -> Any:
        return first[part.sample], natural_key(part.sample), part.sample, place[part.file.file]

    return sorted(parts, key=key)


def _transforms(
    wanted: Any, columns: Columns, kinds: Mapping[str, Modality]
) -> tuple[tuple[transform.Transform, ...], list[str], list[Problem]]:
    """The transform of each column, what is to be said of it, and what is doubtful."""
    known = Counter(kind for kind in kinds.values() if kind != "unknown")  # `align` refuses a mixture
    usual: Modality = known.most_common(1)[0][0] if known else "unknown"
    treated: list[Kind] = [  # a feature is treated as a marker, whatever it looks like
        "marker" if used and kind == "other" else kind
        for kind, used in zip(columns.kinds, columns.features, strict=True)
    ]
    transforms, said = transform.resolve(wanted, names=columns.markers, kinds=treated, modality=usual)
    problems = []
    strangers = [path for path, kind in kinds.items() if kind == "unknown"]
    if known and strangers and wanted == "auto":
        more = f" (and {len(strangers) - 1} more)" if len(strangers) > 1 else ""
        text = f"its channels tell no kind of cytometry: transformed as the others, {usual}{more}"
        problems.append(Problem("warning", strangers[0], text, "pass transform=... (--transform) to choose"))
    linear = [
        name
        for name, kind, used, done in zip(columns.markers, treated, columns.features, transforms, strict=True)
        if used and kind != "marker" and done == transform.Identity() and usual != "unknown"
    ]
    if linear:
        text = f"{', '.join(linear)}: features that are not transformed, on another scale than the markers"
        fix = f"pass --transform {linear[0]}=..., or --scaling robust"
        problems.append(Problem("warning", panel.STUDY, text, fix))
    return transforms, said, problems


def _modalities(described: Sequence[Described]) -> list[Modality]:
    """mass, fluorescence or unknown, by file; tables may hold anything, transformed already or not."""
    known: dict[Any, Modality] = {}
    kinds = []
    for file in described:
        layout = file.channels, file.markers, file.cytometer
        if layout not in known:
            known[layout] = modality(*layout)
        kinds.append(known[layout] if file.format.startswith("FCS") else "unknown")
    return kinds


def _key(part: Part) -> Any:
    return None if part.spillover is None else spillover_key(part.spillover)


def spillover_key(spillover: Spillover) -> str:
    """Short name of a matrix, by its content."""
    content = repr(spillover.channels).encode() + spillover.matrix.tobytes()
    return hashlib.sha256(content).hexdigest()[:12]
