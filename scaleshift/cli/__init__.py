"""The command line: one file a verb."""

from __future__ import annotations

import errno
import warnings
from typing import Any

import click

import scaleshift
from scaleshift.cli import stopping
from scaleshift.cli.auc import auc as auc_command
from scaleshift.cli.check import check as check_command
from scaleshift.cli.compare import compare as compare_command
from scaleshift.cli.demo import demo as demo_command
from scaleshift.cli.doctor import doctor as doctor_command
from scaleshift.cli.error import error as error_command
from scaleshift.cli.ingest import ingest as ingest_command
from scaleshift.cli.label import label as label_command
from scaleshift.cli.quantify import quantify as quantify_command
from scaleshift.cli.report import report as report_command
from scaleshift.cli.slices import slices as slices_command
from scaleshift.errors import ScaleshiftError
from scaleshift.kernels.cuda.choice import DeviceError


class Commands(click.Group):
    """Turns scaleshift's own errors into one line and exit code 1; wrong usage is 2, a signal 130 or 143."""

    def main(self, args: Any = None, *more: Any, **named: Any) -> Any:
        """Run the command line; a process that was stopped and is its own (no `args`) ends at once."""
        try:
            return super().main(args, *more, **named)
        except SystemExit as end:
            if args is None and end.code in stopping.CODES:
                stopping.leave(int(end.code))
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb."""
        try:
            with warnings.catch_warnings(), stopping.heard():
                warnings.showwarning = _show_warning
                return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise stopping.told(ctx, stop) from stop
        except Exception as error:
            stopped = stopping.behind(error)
            if stopped is not None:
                raise stopping.told(ctx, stopped) from error
            if isinstance(error, click.ClickException):
                error.message = _shown(error.message)  # type: ignore[misc]  # it is what click shows
            elif _is_ours(error):
                raise click.ClickException(_shown(error)) from error
            raise


def _is_ours(error: Exception) -> bool:
    """Also a full disk, or a read-only folder; a closed pipe is click's own business."""
    if isinstance(error, OSError):
        return error.errno != errno.EPIPE
    return isinstance(error, ScaleshiftError | DeviceError)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """One line, without the place in the code."""
    click.echo(f"warning: {_shown(message)}", err=True)


def _shown(text: object) -> str:
    """Names in it come from files, and may hold what a terminal would obey, or a line like one of ours."""
    from scaleshift.report.names import printable

    first, *more = map(printable, str(text).split("\n"))
    return "\n".join([first, *(line if line.startswith("  ") else f"  {line}" for line in more)])


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(scaleshift.__version__, prog_name="scaleshift")
def main() -> None:
    """Working under distribution shift at any size.

    \b
    scaleshift demo                              see it work on a small real study
    scaleshift check FILES                       what is wrong with these files?
    scaleshift ingest FILES STORE                make a study of them
    scaleshift quantify STORE --source "..."     class proportions of unlabelled samples
    scaleshift compare STORE                     which method answers best for this study?
    scaleshift slices STORE --model MODEL        where does a trained model fail?
    scaleshift auc STORE --positive LABEL        which few features rank a rare label?
    scaleshift error STORE --model MODEL         what error to expect without outcomes?
    scaleshift label STORE LABELS                write labels into a study, from gates or a table
    scaleshift doctor [STORE]                    what is installed, what is missing; is a store whole?

    Exit codes: 0 done, 1 failed, 2 wrong usage, 3 done and an alarm rang, 130 and 143 stopped by Ctrl-C and
    by SIGTERM.
    """


main.add_command(auc_command)
main.add_command(check_command)
main.add_command(compare_command)
main.add_command(demo_command)
main.add_command(doctor_command)
main.add_command(error_command)
main.add_command(ingest_command)
main.add_command(label_command)
main.add_command(quantify_command)
main.add_command(report_command)
main.add_command(slices_command)
