"""scaleshift doctor: what this installation has, what is missing, and how to get it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from scaleshift.cli import completing, options
from scaleshift.cli.helping import Verb
from scaleshift.doing import doing

if TYPE_CHECKING:
    from scaleshift.doctor.finding import Finding

STYLES = {"ok": "green", "missing": "yellow", "problem": "bold red"}


@click.command(
    cls=Verb,
    examples="""
scaleshift doctor
scaleshift doctor study.zarr
scaleshift doctor study.zarr --json --scheduler tcp://127.0.0.1:8786
""",
)
@click.argument("store", required=False, shell_complete=completing.folders)
@options.results(options.as_json, options.quiet)
@options.running(options.scheduler)
@click.pass_context
def doctor(context: click.Context, store: str | None, as_json: bool, quiet: bool, scheduler: str) -> None:
    """Check this installation: versions, CPU, memory, disk, GPU, cluster, extras, and a small run.

    With STORE, a study, a saved model or another Zarr group, check that instead: every chunk is read, and
    every one that is missing or damaged is told with its rows and samples; codes that name no label or
    another sample, samples that are not as they were imported, values that are not finite, what a killed
    writer left, and files that do not belong there. It takes about as long as reading the store.

    \b
    ok       as it should be
    missing  optional, and not here; of files, left over, and harmless
    problem  needed, or set up on purpose, and broken: exit code 1
    """
    from scaleshift.doctor import examine, is_fine, to_json

    if store is None:
        if scheduler != "local":
            raise click.UsageError("--scheduler goes with STORE: where it is read")
        sections = examine()
    else:
        from scaleshift.doctor.store import examine_store

        with options.computing(scheduler, quiet), doing("reading the store"):
            sections = examine_store(store)
    if as_json:
        click.echo(json.dumps(to_json(sections), indent=2))
    else:
        Console().print(_table(sections))
    context.exit(0 if all(is_fine(findings) for findings in sections.values()) else 1)


def _table(sections: Mapping[str, list[Finding]]) -> Table:
    from scaleshift.report.names import printable

    shown = Table.grid(padding=(0, 2, 0, 0))
    shown.add_column(no_wrap=True)
    shown.add_column()
    shown.add_column(overflow="fold")
    for section, findings in sections.items():
        shown.add_row(Text(section, "bold"))
        for finding in findings:
            words = Text(printable(finding.value))
            if finding.advice:
                words.append(f"\n→ {printable(finding.advice)}", "bold")
            mark = Text(finding.status, STYLES[finding.status])
            shown.add_row(mark, Text(printable(finding.name)), words)
    return shown
