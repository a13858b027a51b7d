"""The command line: one file a verb, imported when it is asked for."""

from __future__ import annotations

import errno
import importlib
import os
import sys
import warnings
from collections.abc import Iterator, MutableMapping
from typing import Any

import click

import scaleshift
from scaleshift.cli import helping, stopping
from scaleshift.errors import ScaleshiftError
from scaleshift.kernels.cuda.choice import DeviceError

COMPLETING = "_SCALESHIFT_COMPLETE"  # by which a shell asks what can stand here
#: verb -> the question that it answers, in the order of work; a new one is a line here and a file of its name
SECTIONS = {
    "See it work": {
        "demo": "What does it do? The main job on a small real study.",
        "doctor": "What is installed, and what is missing? Is a store whole?",
    },
    "Make a study of files": {
        "check": "What is wrong with these files? One line each.",
        "ingest": "Files of events become a study, one Zarr store.",
        "label": "Labels into a study: from a table, gates, or a FlowJo workspace.",
    },
    "Ask it": {
        "compare": "Which method answers best for this study?",
        "quantify": "Which share of each sample belongs to each class?",
        "slices": "Where does a trained model fail?",
        "auc": "Which few features rank a rare label above all others?",
        "error": "How wrong will a model be on samples without labels?",
    },
    "Show it": {
        "report": "One HTML page of results, to mail or print.",
        "completion": "Let the shell complete verbs, options and names.",
    },
}
FIRST_STEPS = """
scaleshift demo
scaleshift check data/ --meta samples.xlsx
scaleshift ingest data/ study.zarr --meta samples.xlsx
scaleshift label study.zarr gates.csv
scaleshift quantify study.zarr --source "gated == true" --output results
"""
CLOSING = """
scaleshift VERB --help says what a verb can do, with examples. The guide, docs/guide.md, goes by questions.
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 done and an alarm rang, 130 and 143 stopped by Ctrl-C, SIGTERM.
"""


class Verbs(MutableMapping[str, click.Command]):
    """The verbs by name; one is imported when it is taken, so that help and the shell do not wait for all."""

    def __init__(self) -> None:
        self.names = [verb for verbs in SECTIONS.values() for verb in verbs]

    def __getitem__(self, name: str) -> click.Command:
        if name not in self.names:
            raise KeyError(name)
        command: click.Command = getattr(importlib.import_module(f"scaleshift.cli.{name}"), name)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __setitem__(self, name: str, command: click.Command) -> None:
        raise TypeError("a verb is a line of SECTIONS")

    def __delitem__(self, name: str) -> None:
        raise TypeError("a verb is a line of SECTIONS")


class Commands(helping.Group):
    """Turns scaleshift's own errors into one line and exit code 1; wrong usage is 2, a signal 130 or 143."""

    def main(self, args: Any = None, *more: Any, **named: Any) -> Any:
        """Run the command line; a process that was stopped and is its own (no `args`) ends at once."""
        if COMPLETING in os.environ:
            from scaleshift.cli import completing

            completing.register()
        if args is None:
            _open_closed_streams()
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


def _open_closed_streams() -> None:
    """Put nothing in place of streams that were closed (``2>&-``): the next file would take their numbers."""
    for name in ("stdin", "stdout", "stderr"):  # as they are numbered
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: SIM115  # for good


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


@click.group(
    cls=Commands,
    commands=Verbs(),
    sections=SECTIONS,
    first_steps=FIRST_STEPS,
    closing=CLOSING,
    subcommand_metavar="VERB [ARGS]...",
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": helping.WIDTH,
        "show_default": True,
    },
)
@click.version_option(scaleshift.__version__, prog_name="scaleshift")
def main() -> None:
    """Work under distribution shift, at any size.

    Which share of a sample belongs to each class? Where does a trained model fail? Which few features rank a
    rare class? How wrong will a model be elsewhere? From data that need not fit into memory.
    """
