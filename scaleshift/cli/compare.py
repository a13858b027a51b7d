"""scaleshift compare: which method answers best for this study?  A league table on its labelled samples."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import xarray as xr
from rich.console import Console

from scaleshift.cli import options, zarr_groups
from scaleshift.cli.opening import EVERY, Opening
from scaleshift.cli.output import plain
from scaleshift.cli.results import LEAGUE, PAGE
from scaleshift.quantify.methods import available

MIN_WIDTH = 80
TABLE = "league.csv"


def _methods(context: click.Context, parameter: click.Parameter, text: str | None) -> list[str] | None:
    """Names between commas; an unknown one is wrong usage."""
    found = None if text is None else options.names(text)
    unknown = set(found or ()) - set(available())
    if unknown or found == []:
        named = ", ".join(sorted(unknown)) or repr(text)
        raise click.BadParameter(f"{named}: expected some of {', '.join(available())}")
    return found


@click.command()
@click.argument("store")
@click.option("--source", default=EVERY, show_default=True, help="Samples whose labels are compared on.")
@click.option(
    "--methods",
    "names",
    metavar="A,B,...",
    callback=_methods,
    help="Methods to compare, as --method of quantify names them. Where left out: one of each kind.",
)
@click.option(
    "--draws",
    "n_draws",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    help="Targets with resampled shares, of each source.",
)
@click.option(
    "--left-out",
    "n_left_out",
    type=click.IntRange(1),
    default=6,
    show_default=True,
    help="Classes and samples left out in turn, at most.",
)
@click.option(
    "--cells",
    "cells_per_sample",
    type=click.IntRange(100),
    default=5_000,
    show_default=True,
    help="Cells drawn of each sample.",
)
@click.option(
    "--invalid",
    type=click.Choice(["raise", "drop"]),
    default="raise",
    show_default=True,
    help="What to do with cells that hold NaN or infinite values.",
)
@options.markers
@click.option(
    "--scaling",
    type=click.Choice(["none", "robust", "z"]),
    help="Scale the markers of each sample by itself. Where left out: as the study is scaled.",
)
@click.option("--seed", default=0, show_default=True, help="Of the draws and the methods.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    callback=options.folder,
    help=f"Folder to write {PAGE}, {TABLE} and {LEAGUE} to.",
)
@options.all_of(options.as_json, options.quiet, options.scheduler)
def compare(
    store: str,
    source: str,
    names: Sequence[str] | None,
    markers: list[str] | None,
    scaling: str | None,
    seed: int,
    output: Path | None,
    as_json: bool,
    quiet: bool,
    scheduler: str,
    **settings: Any,
) -> None:
    """Compare methods on the labelled samples of STORE, and recommend one.

    Each method learns from a part of the labelled cells and answers for another, whose shares are known: with
    shares resampled, with a class left out of the source, and with a sample left out.

    \b
    scaleshift compare study.zarr --source "gated == true" --output results
    scaleshift compare study.zarr --methods soft-landmarks,hard-landmarks
    """
    from scaleshift import report
    from scaleshift.quantify import compare as compared
    from scaleshift.report.names import printable

    options.make_folder(output)
    with options.computing(scheduler, quiet):
        study = Opening(store, markers, scaling)
        cells = study.labelled(study.select(source, "--source"))
        result = compared(names, cells, random_state=seed, **settings)
    remarks = [] if output is None else write(result, output)
    if as_json:
        click.echo(json.dumps(to_json(result), indent=2))
    else:
        width = max(Console().width, MIN_WIDTH)  # a narrower terminal wraps lines, but no number is cut
        Console(width=width).print(report.league_text(result, width=width))
    for remark in [] if quiet else remarks:
        click.echo(printable(remark), err=True)


def write(result: xr.Dataset, output: Path) -> list[str]:
    """Write page, table and dataset; the remark returned says what was written."""
    from scaleshift import report

    report.page(result, output / PAGE)
    report.league(result, output / TABLE)
    zarr_groups.write(result, output / LEAGUE)
    return [f"wrote {output / PAGE}, {output / TABLE} and {output / LEAGUE}"]


def to_json(result: xr.Dataset) -> dict[str, Any]:
    """The league table for machines, best method first; NaN becomes null. Version 1 of the schema."""
    from scaleshift import report

    found: dict[Any, dict[str, Any]] = {}
    for row in report.league(result).to_dict("records"):
        entry = {str(name): plain(value) for name, value in row.items()}
        of_method = {name: entry.pop(name) for name in ("method", "recommended", "score")}
        found.setdefault(of_method["method"], {**of_method, "settings": []})["settings"].append(entry)
    attributes = {str(name): value for name, value in result.attrs.items()}
    for name in ("samples", "methods"):  # a dataset's attributes are text
        attributes[name] = json.loads(attributes[name])
    return {"schema": "scaleshift.compare/1", "attributes": attributes, "methods": list(found.values())}
