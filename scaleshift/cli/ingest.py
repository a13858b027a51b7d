"""scaleshift ingest: files of events become a study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os.path import exists
from typing import TYPE_CHECKING, Any

import click

from scaleshift.blocks.sizes import count
from scaleshift.cli import completing, options, stopping
from scaleshift.cli.helping import Verb, in_section
from scaleshift.cli.study_options import describe_study, treat

if TYPE_CHECKING:
    from scaleshift.cells.intake.report import IngestReport
    from scaleshift.cells.problem import Problem


@click.command(
    cls=Verb,
    examples="""
scaleshift check data/ --meta samples.xlsx
scaleshift ingest data/ study.zarr --meta samples.xlsx
scaleshift ingest data/ study.zarr --meta samples.xlsx --panel panel.csv --labels gates.csv
scaleshift ingest data/ study.zarr --meta samples.xlsx --resume
""",
)
@click.argument("paths", nargs=-1, metavar="PATHS...", shell_complete=completing.files)
@click.argument("store")
@describe_study
@treat
@in_section(
    "Labels, if there are some already",
    click.option(
        "--labels",
        shell_complete=completing.files,
        help="As scaleshift label takes them: a table, a folder, a .wsp, channel:NAME.",
    ),
    click.option("--label-column", help="Column of the table with the labels; 'label' where left out."),
)
@options.results(
    click.option("--skip", is_flag=True, help="Leave out files that cannot be used, in place of stopping."),
    click.option(
        "--chunk-cells",
        type=click.IntRange(1, 2**31),
        default=131_072,
        help="Cells of the study that are read at once.",
    ),
    options.as_json,
    options.quiet,
)
@options.running(
    options.scheduler,
    click.option("--resume", is_flag=True, help="Go on with an import that was interrupted."),
)
def ingest(
    paths: Sequence[str],
    store: str,
    labels: str | None,
    label_column: str | None,
    skip: bool,
    as_json: bool,
    quiet: bool,
    scheduler: str,
    **choices: Any,
) -> None:
    """Make a study, the Zarr store STORE, of the files in PATHS.

    What is wrong with the files is said first, all at once, and nothing is written. An import that was killed
    goes on with --resume.
    """
    if not paths:
        raise click.UsageError(
            f"{store} alone: give files or folders, then STORE, the study that they become, as in "
            f"scaleshift ingest {store} study.zarr"
        )
    from scaleshift.cells import ingest as make

    stopping.goes_on(lambda: f"the same command with --resume goes on with {store}" if exists(store) else "")
    with options.computing(scheduler, quiet):
        labelling = None if labels is None else {"labels": labels, "column": label_column}
        report = make(paths, store, labels=labelling, errors="skip" if skip else "raise", **choices)
    if as_json:
        click.echo(report.to_json())
    elif not quiet:
        from scaleshift.report.names import printable

        click.echo("\n".join(map(printable, lines(report))))  # names come from files


def lines(report: IngestReport) -> list[str]:
    """What was done, and every remark that the user should act on; what goes for many files once."""
    alike: dict[tuple[str, str], list[Problem]] = {}
    for problem in report.problems:
        if problem.level != "note":
            alike[str(problem), ""] = [problem]
        elif problem.fix:
            alike.setdefault((problem.text, problem.fix), []).append(problem)
    remarks = [_told(problems) for problems in alike.values()]
    left_out = [f"left out: {path}" for path in report.left_out]
    sizes = [
        count(len(report.samples), "sample", "samples"),
        count(report.n_cells, "cell", "cells"),
        count(len(report.features), "feature", "features"),
    ]
    said = [*report.said, ", ".join(sizes)]
    if report.labels is not None:
        n_labelled, n_cells = report.labels["n_labelled"], report.labels["n_cells"]
        said.append(f"{n_labelled:,} of {count(n_cells, 'cell has', 'cells have')} a label")
    return [*remarks, *left_out, *said, f"wrote {report.store}"]


def _told(problems: Sequence[Problem]) -> str:
    """One remark for all files of which there is the same to say."""
    first, more = problems[0], len(problems) - 1
    place = f"{first.place} (and {more} more)" if more else first.place
    return f"{first.level}: {replace(first, place=place)}"
