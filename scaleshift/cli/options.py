"""Options that several verbs share, and what they do around a verb's work."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from scaleshift.cli import clusters, completing
from scaleshift.cli.helping import OneOf, in_section
from scaleshift.cli.progress import ProgressBar
from scaleshift.errors import ScaleshiftError

TABLES = (".csv", ".tsv", ".xlsx", ".xls", ".png", ".pdf", ".json", ".txt")


def folder(context: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """The --output folder; a name of a file is a misunderstanding."""
    if path is not None and path.suffix.lower() in TABLES and not path.is_dir():
        raise click.BadParameter(
            f"{str(path)!r} is the name of a file: --output takes a folder, in which the files are written; "
            f"give --output {str(path.with_suffix(''))!r}"
        )
    return path


SELECTION = (
    '==, !=, in (a, b), joined by "and": "day == 3 and sample != S01"; names with blanks need quotes: '
    "\"sample == 'Pat 1'\""
)
KINDS = ("local", *clusters.KINDS)

store = click.argument("store", shell_complete=completing.folders)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines in place of a table.")
quiet = click.option("--quiet", is_flag=True, help="No progress bars and no remarks.")
markers = click.option(
    "--markers",
    metavar="A,B,...",
    shell_complete=completing.marker_list,
    callback=lambda context, parameter, text: None if text is None else names(text),
    help="Use these columns of the study. Where left out: its features.",
)
invalid = click.option(
    "--invalid",
    type=OneOf(["raise", "drop"]),
    default="raise",
    help="What to do with cells that hold NaN or infinite values.",
)
scheduler = click.option(
    "--scheduler",
    default="local",
    shell_complete=completing.some_of(*KINDS),
    metavar="WHERE",
    help="Where to compute. local: threads of this machine. processes, cuda: processes of its cores or GPUs. "
    "A Dask scheduler: its address, tcp://..., or the .json file it wrote. slurm, slurm-runner (under srun), "
    "jobqueue, kubernetes: what is started for it; slurm:FILE has options in YAML, as cluster.connect of "
    "Python takes them.",
)


def names(text: str) -> list[str]:
    """Names between commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def all_of(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Several options as one decorator."""

    def decorate(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def output_of(written: str) -> Callable[[Any], Any]:
    """The option --output of a verb that writes these files."""
    return click.option(
        "--output",
        type=click.Path(file_okay=False, path_type=Path),
        callback=folder,
        help=f"Folder to write to: {written}.",
    )


def select(purpose: str) -> Callable[[Any], Any]:
    """The option --select of a verb that does this with the samples."""
    return click.option(
        "--select",
        shell_complete=completing.selection,
        help=f"Samples to {purpose}: {SELECTION}. All where left out.",
    )


def results(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Options that say where a result goes to."""
    return in_section("Results", *options)


def running(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Options that say how the work is done."""
    return in_section("Running", *options)


def passed(context: click.Context, names: Iterable[str]) -> dict[str, Any]:
    """Those of the options that were passed, by the names of their parameters."""
    default = ParameterSource.DEFAULT
    return {name: context.params[name] for name in names if context.get_parameter_source(name) is not default}


def make_folder(output: Path | None) -> None:
    """Make the --output folder before anything long runs."""
    if output is not None:
        try:
            output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ScaleshiftError(f"--output {output}: {error.strerror}; choose another folder") from error


@contextlib.contextmanager
def folder_for(output: Path | None) -> Iterator[None]:
    """Have the --output folder; where the work fails, folders that were made and stay empty are removed."""
    made = [] if output is None else [path for path in (output, *output.parents) if not path.exists()]
    make_folder(output)
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):  # something was left there
            for path in made:
                path.rmdir()
        raise


def refuse_inside(output: Path | None, store: str) -> None:
    """Raise UsageError where results would become a part of the store."""
    if output is not None and output.resolve().is_relative_to(Path(store).resolve()):
        raise click.UsageError(f"--output {output} lies in STORE itself: choose a folder beside it")


def _tell_dashboard(client: Any) -> None:
    """Where Dask shows what its workers do, if it does."""
    link = client.dashboard_link
    if link:
        click.echo(f"Dask's dashboard: {link}", err=True)


@contextlib.contextmanager
def computing(scheduler: str, quiet: bool) -> Iterator[None]:
    """Compute on this scheduler, with a progress bar for passes that take longer than 2 s."""
    with contextlib.ExitStack() as stack:
        if scheduler != "local":
            client = stack.enter_context(clusters.on(scheduler))
            if not quiet and sys.stderr.isatty():
                _tell_dashboard(client)
        if not quiet:
            stack.enter_context(ProgressBar())
        yield
