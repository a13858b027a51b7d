"""What study do these files make? Which samples, columns and treatments, and what stands in the way."""

from __future__ import annotations

import functools
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scaleshift.blocks import graph
from scaleshift.blocks.labels import natural_key
from scaleshift.cells import files
from scaleshift.cells.files.described import Described, Group, Rows
from scaleshift.cells.problem import Problem
from scaleshift.cells.sheets import panel
from scaleshift.cells.sheets import samples as sheets
from scaleshift.cells.sheets.channels import Modality, modality
from scaleshift.cells.sheets.panel import Columns
from scaleshift.cells.sheets.samples import Matched
from scaleshift.cells.treatment import transform
from scaleshift.cells.treatment.compensation import (
    Spillover,
    already_compensated,
    positions,
    read_spillover,
)
from scaleshift.cells.treatment.location_scale import Method
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
    spillover: Spillover | None = None


@dataclass(frozen=True, eq=False)
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
    metadata : dict
        Column name to {sample: value}.
    scaling : str or None
    problems : tuple of Problem
    said : tuple of str
        What was chosen on the user's behalf.
    """

    parts: tuple[Part, ...]
    paths: tuple[str, ...]
    files: tuple[Described, ...]
    columns: Columns
    transforms: tuple[transform.Transform, ...]
    metadata: Mapping[str, Mapping[str, Any]]
    scaling: Method | None
    problems: tuple[Problem, ...]
    said: tuple[str, ...] = ()

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
        text = json.dumps([parts, self.columns.markers, done, self.scaling, chunk_cells])
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
    problems += unreadable
    sheet = None if options.meta is None else sheets.read_samples(options.meta)
    by_file = panel.read_panel(options.panel) if options.panel is not None else None
    if not described:
        raise DataError(_listed("no file can be read", unreadable))
    matched = sheets.match_files(sheet, list(dict.fromkeys(f.file for f in described if not f.groups)))
    columns = panel.align(described, by_file, options.markers)
    problems += [p for file in described for p in file.problems] + matched.problems + list(columns.problems)
    kinds = _modalities(described)
    usual = Counter(kinds.values()).most_common(1)[0][0]  # `align` has refused files of another kind
    transforms, said = transform.resolve(
        options.transform, names=columns.markers, kinds=columns.kinds, modality=usual
    )
    spillovers = _spillovers(options.compensation, described, kinds, problems, said)
    metadata: dict[str, dict[str, Any]] = {name: {} for name in matched.metadata}
    refused = {problem.place for problem in problems if problem.level == "error"}
    parts = []
    for file in described:
        if file.path in columns.positions and file.path not in refused:
            for group in file.groups or _whole(file, matched):
                parts.append(_part(file, group, columns, spillovers.get(file.path)))
                for name, value in group.metadata.items():
                    metadata.setdefault(name, {})[group.sample] = value
    return StudyPlan(
        parts=tuple(_in_order(parts, matched.samples)),
        paths=tuple(found),
        files=tuple(described),
        columns=columns,
        transforms=transforms,
        metadata=metadata,
        scaling=options.scaling,
        problems=tuple(dict.fromkeys(problems)),
        said=tuple(said),
    )


def refuse_errors(plan: StudyPlan, errors: str) -> None:
    """Raise DataError where files are wrong and are not to be skipped, or nothing is left."""
    if plan.errors and errors == "raise":
        message = f"{len(plan.errors)} problem{'s' * (len(plan.errors) > 1)} to mend"
        way_out = "\nmend them, or pass errors='skip' (--skip) to leave these files out"
        raise DataError(_listed(message, plan.errors) + way_out)
    if not plan.parts:
        raise DataError(_listed("no file is left to read", plan.errors or list(plan.problems)))


def _listed(message: str, problems: Sequence[Problem]) -> str:
    lines = [f"  {problem}" for problem in problems[:SHOWN]]
    more = len(problems) - SHOWN
    return "\n".join([f"{message}:", *lines, *([f"  and {more} more"] if more > 0 else [])])


def _describe(paths: Sequence[str], options: Options) -> tuple[list[Described], list[Problem]]:
    """What each file is, in the order of the paths, and why some cannot be read."""
    arguments = options.duplicates, options.data_sets, options.sample
    batches = [paths[first : first + BATCH] for first in range(0, len(paths), BATCH)]
    answers = graph.run([functools.partial(_describe_batch, batch, *arguments) for batch in batches])
    every = [answer for batch in answers for answer in batch]
    described = [file for answer in every if isinstance(answer, list) for file in answer]
    return described, [answer for answer in every if isinstance(answer, Problem)]


def _describe_batch(paths: Sequence[str], *arguments: Any) -> list[list[Described] | Problem]:
    return [_describe_one(path, *arguments) for path in paths]


def _describe_one(path: str, *arguments: Any) -> list[Described] | Problem:
    try:
        return files.describe(path, *arguments)
    except ScaleshiftError as error:
        return Problem("error", path, str(error).removeprefix(path).lstrip(": "))


def _whole(file: Described, matched: Matched) -> tuple[Group, ...]:
    """A file, or one of its data sets, that is one sample; none where the sheet has no row for it."""
    if file.file not in matched.samples:
        return ()
    name = sample = matched.samples[file.file]
    if file.data_set:
        name = f"{sample}_{file.data_set + 1}"
    metadata = {column: values.get(sample) for column, values in matched.metadata.items()}
    return (Group(name, slice(0, file.n_events), metadata),)


def _part(file: Described, group: Group, columns: Columns, spillover: Spillover | None) -> Part:
    return Part(file, group.sample, group.rows, group.n_events, columns.positions[file.path], spillover)


def _in_order(parts: Iterable[Part], samples: Mapping[str, str]) -> list[Part]:
    """Parts by sample, samples and their files in the order that the sheet or the names give."""
    place = {name: i for i, name in enumerate(dict.fromkeys(samples.values()))}
    place_of_file = {path: i for i, path in enumerate(samples)}

    def key(part: Part) -> Any:
        at = place.get(samples.get(part.file.file, part.sample), len(place))
        return at, natural_key(part.sample), part.sample, place_of_file.get(part.file.file, 0)

    return sorted(parts, key=key)


def _modalities(described: Sequence[Described]) -> dict[str, Modality]:
    """mass, fluorescence or unknown, by file."""
    known: dict[Any, Modality] = {}
    for file in described:
        layout = file.channels, file.markers, file.cytometer
        if layout not in known:
            known[layout] = modality(*layout)
    return {file.path: known[file.channels, file.markers, file.cytometer] for file in described}


def _spillovers(
    wanted: Any,
    described: Sequence[Described],
    kinds: Mapping[str, Modality],
    problems: list[Problem],
    said: list[str],
) -> dict[str, Spillover]:
    """The matrix of each file that is compensated; says how many are not, and why."""
    if wanted is None or (isinstance(wanted, str) and wanted == "none"):
        return {}
    given = None if isinstance(wanted, str) and wanted == "auto" else _given(wanted)
    chosen, done, without = {}, [], []
    for file in described:
        matrix = file.spillover if given is None else given
        if given is None and kinds[file.path] == "mass":
            continue
        if given is None and already_compensated(file.channels, file.markers):
            done.append(file.path)
        elif matrix is None or matrix.is_identity:
            without.append(file.path)
        else:
            try:
                positions(matrix, file.channels, file.markers, file.path)
                chosen[file.path] = matrix
            except DataError as error:
                text = str(error).removeprefix(file.path).lstrip(": ")
                problems.append(Problem("error", file.path, text))
    if chosen:
        of = "their own spillover matrices" if given is None else given.source
        said.append(f"compensation: {len(chosen)} of {len(described)} files, by {of}")
    for paths, why in ((done, "compensated already, by the names of the channels: not done again"),):
        problems += [Problem("note", path, why) for path in paths]
    if chosen and without:
        more = f" (and {len(without) - 1} more files)" if len(without) > 1 else ""
        text = f"holds no spillover matrix, other files do: not compensated{more}"
        problems.append(Problem("warning", without[0], text, "pass compensation='none' or a matrix for all"))
    return chosen


def _given(wanted: Any) -> Spillover:
    return wanted if isinstance(wanted, Spillover) else read_spillover(wanted)


def _key(part: Part) -> Any:
    return None if part.spillover is None else spillover_key(part.spillover)


def spillover_key(spillover: Spillover) -> str:
    """Short name of a matrix, by its content."""
    content = repr(spillover.channels).encode() + spillover.matrix.tobytes()
    return hashlib.sha256(content).hexdigest()[:12]
