"""scaleshift doctor: what this installation has, what is missing, and how to get it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from scaleshift.cli import options

if TYPE_CHECKING:
    from scaleshift.doctor.finding import Finding

STYLES = {"ok": "green", "missing": "yellow", "problem": "bold red"}


@click.command()
@options.as_json
@click.pass_context
def doctor(context: click.Context, as_json: bool) -> None:
    """Check this installation: versions, CPU, memory, disk, GPU, cluster, extras, and a small run.

    \b
    ok       as it should be
    missing  optional, and not here
    problem  needed, or set up on purpose, and broken: exit code 1
    """
    from scaleshift.doctor import examine, is_fine, to_json

    sections = examine()
    if as_json:
        click.echo(json.dumps(to_json(sections), indent=2))
    else:
        Console().print(_table(sections))
    context.exit(0 if all(is_fine(findings) for findings in sections.values()) else 1)


def _table(sections: Mapping[str, list[Finding]]) -> Table:
    from scaleshift.report.table import printable

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
