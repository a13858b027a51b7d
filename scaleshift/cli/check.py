"""scaleshift check: what stands in the way of making a study of these files?"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from scaleshift.blocks.sizes import count
from scaleshift.cli import completing, options
from scaleshift.cli.helping import Verb
from scaleshift.cli.study_options import describe_study, treat

if TYPE_CHECKING:
    from scaleshift.cells.intake.plan import StudyPlan
    from scaleshift.cells.problem import Problem

SCHEMA = "scaleshift.check/1"
FAILED = 1  # exit code
LEVELS = ("error", "warning", "note")


@click.command(
    cls=Verb,
    examples="""
scaleshift check data/
scaleshift check data/ --meta samples.xlsx --panel panel.csv
""",
)
@click.argument("paths", nargs=-1, required=True, shell_complete=completing.files)
@describe_study
@treat
@options.results(options.as_json)
@options.running(options.scheduler)
@click.pass_context
def check(
    context: click.Context, paths: Sequence[str], as_json: bool, scheduler: str, **choices: Any
) -> None:
    """Look at files before they become a study: one line a file; nothing is written.

    PATHS are files, or folders of which the FCS files (else AnnData, parquet, CSV) are taken. The exit code
    is 1 if something must be mended, or left out with "scaleshift ingest --skip".
    """
    from scaleshift.cells.intake.plan import Options, plan_study

    with options.computing(scheduler, quiet=True):
        plan = plan_study(paths, Options(**choices))
    click.echo(json.dumps(to_json(plan), indent=2) if as_json else "\n".join(map(printable, lines(plan))))
    if plan.errors:
        context.exit(FAILED)


def printable(text: str) -> str:
    """A text without control codes: names come from files."""
    from scaleshift.report.names import printable as shown

    return shown(text)


def lines(plan: StudyPlan) -> Iterator[str]:
    """One line a file, then what is to be said of sheets, then of the study."""
    from scaleshift.blocks.labels import natural_key
    from scaleshift.cells.intake.plan import shown

    by_place = _by_place(plan)
    rows = [_row(file, by_place.pop(file.path, [])) for file in plan.files]
    paths = [shown(path) for path in plan.paths]
    rows += [_other(path, by_place.pop(path)) for path in paths if path in by_place]
    seen = {row[1] for row in rows} | {file.file for file in plan.files}
    rows += [["left out", path, *[""] * 4, "no row in the sheet"] for path in paths if path not in seen]
    rows.sort(key=lambda row: natural_key(row[1]))
    rows += [_other(place, problems) for place, problems in by_place.items()]
    root = _common_folder([row[1] for row in rows])
    rows = [[row[0], _relative(row[1], root), *row[2:]] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(6)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row[:6], widths, strict=True))
        yield "  ".join([*cells, row[6]]).rstrip()
    yield ""
    yield from _summary(plan)


def _row(file: Any, problems: Sequence[Problem]) -> list[str]:
    facts = [file.format, file.cytometer[:24], f"{file.n_events} events", f"{len(file.channels)} channels"]
    return [_level(problems), file.path, *facts, _said(problems)]


def _other(place: str, problems: Sequence[Problem]) -> list[str]:
    return [_level(problems), place, "", "", "", "", _said(problems)]


def _level(problems: Sequence[Problem]) -> str:
    return next((level for level in LEVELS[:2] if any(p.level == level for p in problems)), "ok")


def _said(problems: Sequence[Problem]) -> str:
    """All there is to say, on one line, the worst first."""
    ordered = sorted(problems, key=lambda problem: LEVELS.index(problem.level))
    texts = [problem.text + (f"; {problem.fix}" if problem.fix else "") for problem in ordered]
    return " | ".join(" ".join(text.split()) for text in texts)


def _by_place(plan: StudyPlan) -> dict[str, list[Problem]]:
    found: dict[str, list[Problem]] = {}
    for problem in plan.problems:
        found.setdefault(problem.place, []).append(problem)
    return found


def _common_folder(paths: Sequence[str]) -> str:
    absolute = [os.path.dirname(path) for path in paths if os.path.isabs(path)]
    return os.path.commonpath(absolute) if absolute else ""


def _relative(path: str, root: str) -> str:
    return os.path.relpath(path, root) if os.path.isabs(path) else path


def _summary(plan: StudyPlan) -> Iterator[str]:
    files = count(len({part.file.path for part in plan.parts}), "file", "files")
    samples = count(len(plan.counts), "sample", "samples")
    yield f"{files}, {samples}, {count(sum(plan.counts.values()), 'cell', 'cells')} can be read"
    columns = plan.columns
    used = [m for m, is_feature in zip(columns.markers, columns.features, strict=True) if is_feature]
    kept = [m for m, is_feature in zip(columns.markers, columns.features, strict=True) if not is_feature]
    yield f"{count(len(used), 'feature', 'features')}: {', '.join(used)}"
    if kept:
        yield f"kept, but no features: {', '.join(kept)}"
    yield from plan.said
    if plan.errors:
        yield f"{len(plan.errors)} to mend, or to leave out with scaleshift ingest --skip"


def to_json(plan: StudyPlan) -> dict[str, Any]:
    """The plan for machines."""
    columns = plan.columns
    return {
        "schema": SCHEMA,
        "files": [
            {
                "path": file.path,
                "format": file.format,
                "cytometer": file.cytometer,
                "n_events": file.n_events,
                "channels": list(file.channels),
                "markers": list(file.markers),
            }
            for file in plan.files
        ],
        "samples": plan.counts,
        "markers": [
            {"marker": m, "channel": c, "kind": k, "feature": f}
            for m, c, k, f in zip(
                columns.markers, columns.channels, columns.kinds, columns.features, strict=True
            )
        ],
        "said": list(plan.said),
        "problems": [problem.to_json() for problem in plan.problems],
    }
