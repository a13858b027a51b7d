"""What did an import read, drop, rename and warn about?  For people and for machines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from scaleshift.blocks.sizes import count
from scaleshift.cells.intake.plan import StudyPlan, shown
from scaleshift.cells.manifest import Manifest
from scaleshift.cells.problem import Problem, several

SCHEMA = "scaleshift.ingest/1"


@dataclass(frozen=True, repr=False)
class IngestReport:
    """What became of the files of a study.

    Attributes
    ----------
    store : str
    n_cells : int
    samples, markers, features : tuple of str
        Of the study; the features are those of the markers that methods use.
    transform, compensation, scaling : JSON value
        What was done to the intensities.
    said : tuple of str
        What was chosen on the user's behalf, in words.
    files : tuple of dict
        One a file and sample: path, sample, n_events, invalid (marker to the number of values that are NaN
        or infinite), spillover (key of the matrix), fingerprint.
    left_out : tuple of str
        Files that were found but are not in the study.
    problems : tuple of Problem
    labels : dict or None
        What `label_cells` reported.
    """

    store: str
    n_cells: int
    samples: tuple[str, ...]
    markers: tuple[str, ...]
    features: tuple[str, ...]
    transform: Any
    compensation: Any
    scaling: str | None
    said: tuple[str, ...]
    files: tuple[dict[str, Any], ...]
    left_out: tuple[str, ...]
    problems: tuple[Problem, ...]
    labels: Any = None

    def __repr__(self) -> str:
        sizes = [
            count(len(self.samples), "sample", "samples"),
            count(self.n_cells, "cell", "cells"),
            count(len(self.features), "feature", "features"),
            count(len(self.left_out), "file", "files"),
        ]
        return f"<IngestReport: {', '.join(sizes)} left out>"

    def to_json(self) -> str:
        """The report as JSON, version 1 of its schema."""
        return json.dumps({"schema": SCHEMA, **asdict(self)})


def report_of(plan: StudyPlan, written: Manifest) -> IngestReport:
    """The report on a study that was written as planned."""
    columns = plan.columns
    used = {part.file.file for part in plan.parts}
    return IngestReport(
        store=written.path,
        n_cells=written.n_cells,
        samples=tuple(str(name) for name in written.samples),
        markers=columns.markers,
        features=tuple(m for m, used in zip(columns.markers, columns.features, strict=True) if used),
        transform=written.transform,
        compensation=written.compensation,
        scaling=written.scaling,
        said=plan.said,
        files=written.files,
        left_out=tuple(shown(path) for path in plan.paths if path not in used),
        problems=(*plan.problems, *map(_invalid, (file for file in written.files if file["invalid"]))),
    )


def _invalid(file: Mapping[str, Any]) -> Problem:
    counts = [f"{marker}: {n}" for marker, n in file["invalid"].items()]
    text = f"{sum(file['invalid'].values())} values are NaN or infinite ({several(counts)})"
    return Problem("warning", file["path"], text, "quantify with invalid='drop' (--invalid drop)")
