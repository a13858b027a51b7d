"""scaleshift report: one HTML page of what other verbs have found."""

from __future__ import annotations

from pathlib import Path

import click

from scaleshift.cli import html_page, options, printing
from scaleshift.cli.helping import Verb
from scaleshift.cli.html_page import PAGE
from scaleshift.cli.results import reporting, results_of


@click.command(
    cls=Verb,
    examples="""
scaleshift report results
scaleshift report results --output for-the-clinic
scaleshift report results/slices.zarr --output slices-only
""",
)
@click.argument("result", type=click.Path(path_type=Path))
@options.results(
    click.option(
        "--output",
        type=click.Path(file_okay=False, path_type=Path),
        callback=options.folder,
        help=f"Folder to write {PAGE} to. Where left out: that of RESULT.",
    ),
    options.quiet,
)
def report(result: Path, output: Path | None, quiet: bool) -> None:
    """Make one HTML page of the results in RESULT: open it in a browser, mail it, print it.

    RESULT is the folder that --output of quantify, compare, slices, auc or error named, or one of the .zarr
    in it. The page holds everything itself, and loads nothing from anywhere: bars, intervals, flags in words,
    tables that sort, filter and download, methods and seeds. These verbs leave one in their --output too.
    """
    from scaleshift.report import page

    found = results_of(result)
    is_group = (result / "zarr.json").exists()
    folder = output or (result.parent if is_group else result)
    options.make_folder(folder)
    html_page.refuse_foreign(folder)
    with reporting(result):
        page(found, folder / PAGE)
    printing.say([f"wrote {folder / PAGE}: open it in a browser"], quiet)
